/**
 * A producer process of `postgres-crashes`: enqueues plain jobs and payloads of its own ids, one call after the other, and writes
 * down what was accepted, until it is ended.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { millrace } from 'millrace'
import { LedgerWriter, monotonicMs } from '../everything/effect-lines.js'
import { ordered, plain, queues } from './crash-mill.js'

/** `name`: no other producer pushes to its ids. */
const [store = '', folder = '', name = ''] = process.argv.slice(2)
const ledger = new LedgerWriter(folder)
const mill = millrace({ store, tasks: [plain, ordered], queues })
const [entities, perCall, singles, pushes] = [100, 100, 50, 30]
const mostAhead = 3_000
const lookMs = 20

let isEnding = false
process.once('SIGTERM', () => {
  isEnding = true
})

/** What a call in doubt has enqueued was never accepted: it may be there or not. */
async function plainJobs(): Promise<void> {
  const together = mill.enqueueMany(plain, new Array(perCall).fill(null))
  const apart = Array.from({ length: singles }, () => mill.enqueue(plain, null))
  const [many, ...each] = await Promise.allSettled([together, ...apart])
  if (many.status === 'fulfilled') accept(many.value)
  accept(each.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])))
}

function accept(handles: readonly { readonly id: string }[]): void {
  ledger.accepted(
    'plain',
    handles.map(({ id }) => id),
  )
}

let next = 0

/** One payload for each of some ids. Its number is greater than all that this producer, or one before it, has pushed. */
async function payloads(): Promise<void> {
  const n = Math.round(monotonicMs() * 1_000)
  const inputs = Array.from({ length: pushes }, () => ({ id: `${name}-${next++ % entities}`, n }))
  await mill.enqueueMany(ordered, inputs).then(
    () =>
      ledger.accepted(
        'ordered',
        inputs.map(({ id }) => `${id}:${n}`),
      ),
    () => {},
  )
}

await mill.ready().catch(() => {})
process.send!('ready')
while (!isEnding) {
  const [depth] = await mill.depths([plain.queue]).catch(() => [])
  if (depth === undefined || depth.ready > mostAhead) await delay(lookMs)
  else await Promise.all([plainJobs(), payloads()])
}
await mill.close()
process.disconnect()
