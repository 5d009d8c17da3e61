/** A worker process of the limits drill. Its jobs take a moment. From a given job on, they never end. */

import { setTimeout as delay } from 'node:timers/promises'
import { millrace, type StoreDescriptor } from 'millrace'
import type { WorkerWord } from '../crew.js'
import { bounded, limitedQueues, shared } from './limits-drill.js'

const [described = '', keptFrom = 'Infinity'] = process.argv.slice(2)
const say = (word: WorkerWord) => process.send?.(word)

const run = async (input: unknown, { signal }: { readonly signal: AbortSignal }) => {
  if (Number(input) < Number(keptFrom)) await delay(Math.random() * 100)
  else await delay(60_000, undefined, { signal }).catch(() => {})
}
const mill = millrace({
  store: JSON.parse(described) as StoreDescriptor,
  tasks: [bounded.handle(run), shared.handle(run)],
  queues: limitedQueues,
})
const worker = mill.worker({ concurrency: 10 })
await worker.start()
say({ kind: 'ready', worker: worker.id })
