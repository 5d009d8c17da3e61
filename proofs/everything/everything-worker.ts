/** A worker process of the mill of everything: tells its parent when it is ready, and a sample of itself when it is asked. */

import type { Duration } from 'millrace'
import { type ProcessSample, processSample } from '../process-sample.js'
import type { Kind } from './effect-lines.js'
import mill, { latencies, ledger } from './everything-mill.js'

/** What it says to its parent. */
export type EverythingWord =
  | { readonly kind: 'ready'; readonly worker: string }
  | { readonly kind: 'failed'; readonly call: string }
  | { readonly kind: 'refused'; readonly what: string }
  | { readonly kind: 'sample'; readonly sample: ProcessSample & WorkerSample }

/** Since the sample before. */
export interface WorkerSample {
  readonly completed: number
  /** Of starts of plain jobs. */
  readonly p50Ms: number
  readonly p99Ms: number
}

const say = (word: EverythingWord) => process.send?.(word)
let completed = 0
mill.on('job.completed', ({ task, id }) => {
  completed += 1
  ledger?.completed(task as Kind, id)
})
// The work of an isolated job is written down by another process.
mill.on('job.started', ({ task, id }) => {
  if (task === 'long') ledger?.told('long', id, 'job.started')
})
mill.on('lease.lost', ({ task, id, child }) => ledger?.told(task as Kind, id, 'lease.lost', child ?? ''))
mill.on('job.released', ({ task, id, reason }) => ledger?.told(task as Kind, id, 'job.released', reason))
mill.on('job.failed', ({ task, id, error }) => ledger?.told(task as Kind, id, 'job.failed', error))
mill.on('loop.blocked', ({ forMs }) => ledger?.told('plain', '-', 'loop.blocked', Math.round(forMs)))
mill.on('schedule.skipped', ({ schedule, tickAt, ticks }) =>
  ledger?.told('ticking', schedule, 'schedule.skipped', tickAt, ticks),
)
mill.on('schedule.missed', ({ schedule, tickAt, leftOut, reason }) =>
  ledger?.told('ticking', schedule, 'schedule.missed', tickAt, leftOut, reason),
)
mill.on('start.late', ({ task, id }) => ledger?.late(task as Kind, id))
mill.on('settle.refused', ({ queue, task, id, kind, answer }) => {
  say({ kind: 'refused', what: `${kind} of ${queue} ${id}: ${answer}` })
  ledger?.told(task as Kind, id, 'settle.refused', kind, answer)
})
mill.on('store.failed', ({ call, error }) => say({ kind: 'failed', call: `${call}: ${String(error)}` }))
mill.on('worker.failed', ({ error }) => say({ kind: 'failed', call: `worker: ${String(error)}` }))

const { EVERYTHING_GRACE: grace = '30s' } = process.env
const worker = mill.worker({ concurrency: 40, grace: grace as Duration })
await worker.start()
say({ kind: 'ready', worker: worker.id })

process.on('message', () => {
  const [p50Ms, p99Ms] = latencies.take([0.5, 0.99]) as [number, number]
  say({ kind: 'sample', sample: { ...processSample(), completed, p50Ms, p99Ms } })
  completed = 0
})
process.once('SIGTERM', async () => {
  await mill.close()
  process.disconnect()
})
