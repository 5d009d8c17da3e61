/** Millrace through its public API, with its defaults. */

import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Mill, MillOptions } from 'millrace'
import * as own from 'millrace'
import type { Contender, OpenContender } from './contender.js'

export const open: OpenContender = opening({})

type Build = Pick<typeof own, 'defineTask' | 'millrace'>

/** Opens Millrace as it is built in this checkout. */
export async function openBuilt(checkout: string): Promise<OpenContender> {
  const build = (await import(pathToFileURL(resolve(checkout, 'dist/index.js')).href)) as Build
  return opening({}, undefined, build)
}

/** Opens Millrace with these options. `watch` begins to watch the mill, and returns a function that ends that. */
export function opening(
  options: Partial<MillOptions>,
  watch = (_mill: Mill) => async () => {},
  build: Build = own,
): OpenContender {
  return (url, queues, shards) => opened(url, queues, shards, options, watch, build)
}

async function opened(
  url: string,
  queues: number,
  shards: number,
  options: Partial<MillOptions>,
  watch: (mill: Mill) => () => Promise<void>,
  { defineTask, millrace }: Build,
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
