/** Millrace through its public API, with its defaults. */

import { defineTask, type Mill, type MillOptions, millrace } from 'millrace'
import type { Contender, OpenContender } from './contender.js'

export const open: OpenContender = opening({})

/** Opens Millrace with these options. `watch` begins to watch the mill, and returns a function that ends that. */
export function opening(options: Partial<MillOptions>, watch = (_mill: Mill) => async () => {}): OpenContender {
  return (url, queues, shards) => opened(url, queues, shards, options, watch)
}

async function opened(
  url: string,
  queues: number,
  shards: number,
  options: Partial<MillOptions>,
  watch: (mill: Mill) => () => Promise<void>,
): Promise<Contender> {
  const names = Array.from({ length: queues }, (_, index) => `queue-${index}`)
  const blank = defineTask({ name: 'blank', queue: names[0]! })
  const mill = millrace({
    ...options,
    store: url,
    tasks: [blank],
    queues: Object.fromEntries(names.map((name) => [name, { shards }])),
  })
  await mill.depths()
  const endWatch = watch(mill)
  return {
    enqueue: (input) => mill.enqueue(blank, input),
    enqueueMany: (inputs) => mill.enqueueMany(blank, inputs),
    async work({ concurrency, started, completed }) {
      blank.handle(async (input) => started(input))
      mill.on('job.completed', completed)
      await mill.worker({ concurrency }).start()
    },
    close: async () => {
      await endWatch()
      await mill.close()
    },
  }
}
