/** Millrace through its public API, with its defaults. */

import { defineTask, millrace } from 'millrace'
import type { Contender, OpenContender } from './contender.js'

export const open: OpenContender = async (url, queues, shards): Promise<Contender> => {
  const names = Array.from({ length: queues }, (_, index) => `queue-${index}`)
  const blank = defineTask({ name: 'blank', queue: names[0]! })
  const mill = millrace({
    store: url,
    tasks: [blank],
    queues: Object.fromEntries(names.map((name) => [name, { shards }])),
  })
  await mill.depths()
  return {
    enqueue: (input) => mill.enqueue(blank, input),
    enqueueMany: (inputs) => mill.enqueueMany(blank, inputs),
    async work({ concurrency, started, completed }) {
      blank.handle(async (input) => started(input))
      mill.on('job.completed', completed)
      await mill.worker({ concurrency }).start()
    },
    close: () => mill.close(),
  }
}
