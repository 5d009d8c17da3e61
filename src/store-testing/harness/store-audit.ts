/**
 * The audit of a store: the changes of its jobs' states, and the rules that hold for every history of every store.
 */

import type { JobState } from '../../core/job/job.js'

/**
 * An audit entry: one change of one job's state, written where it happens, in the store's atomic step. A claim and its
 * end are always recorded; a state that a job only passes through within one step may be left out. For an ordered queue
 * the live jobs are recorded. A live job that is buried leaves, or goes back with its remaining payloads. Payloads that
 * waited behind a claim are enqueued when the claim leaves nothing else.
 */
export interface AuditEntry {
  readonly at: number
  readonly queue: string
  /** Ordered queues only. */
  readonly shard?: number
  readonly id: string
  readonly kind: AuditKind
  /** State before; null: there was no such job. */
  readonly from: JobState | null
  /** State after; null: nothing, or only the id, is kept. */
  readonly to: JobState | null
  /** The fence of the claim that began or ended; 0 for a job never claimed. */
  readonly fence: number
  /** The worker that claimed, or held the claim that ended; null without a claim. */
  readonly worker: string | null
}

/**
 * - `enqueue`: accepted · `promote`: scheduled → ready · `claim`: → running
 * - `requeue`: running → ready or scheduled: retried, released, failed from outside, or its lease expired
 * - `bury`: → dead · `revive`: dead → ready · `keep`: running → completed with a result
 * - `leave`: gone: completed, cancelled, deleted, cleared, trimmed or replaced
 */
export type AuditKind = 'enqueue' | 'promote' | 'claim' | 'requeue' | 'bury' | 'revive' | 'keep' | 'leave'

/** The name of a change of state; undefined if there is none (scheduled again, a beat). */
export function auditKind(from: JobState | null, to: JobState | null): AuditKind | undefined {
  if (from === to) return undefined
  if (to === null) return 'leave'
  if (from === null) return 'enqueue'
  if (to === 'running') return 'claim'
  if (to === 'dead') return 'bury'
  if (to === 'completed') return 'keep'
  if (from === 'running') return 'requeue'
  if (from === 'dead') return 'revive'
  return to === 'ready' ? 'promote' : undefined
}

/** Every breach of a rule by an audit, in the order of the entries; empty if there is none. */
export function auditBreaches(entries: readonly AuditEntry[]): string[] {
  const breaches: string[] = []
  const running = new Map<string, number>()
  const fences = new Map<string, number>()
  for (const [i, { kind, queue, shard, id, fence, from }] of entries.entries()) {
    const job = JSON.stringify([queue, id])
    const line = JSON.stringify([queue, shard])
    const say = (what: string) => breaches.push(`entry ${i}: ${kind} of ${job} with fence ${fence}: ${what}`)
    const held = running.get(job)
    if (kind === 'claim') {
      if (held !== undefined) say(`its claim with fence ${held} has not ended`)
      if (fence < (fences.get(line) ?? 0)) say(`fence ${fences.get(line)} was given before`)
      if (from !== 'ready') say(`it was ${from}, not ready`)
      running.set(job, fence)
      fences.set(line, fence)
    } else if (from === 'running') {
      if (held !== fence) say(`its current claim has fence ${held}`)
      running.delete(job)
    } else if (held !== undefined) {
      say(`it is running with fence ${held}`)
    }
  }
  return breaches
}
