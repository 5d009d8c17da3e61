/**
 * An audit entry: one change of one job's state, written where it happens, in the store's atomic step. A claim and its
 * end are always recorded; a state that a job only passes through within one step may be left out. For an ordered queue
 * the live jobs are recorded. A live job that is buried leaves, or goes back with its remaining payloads. Payloads that
 * waited behind a claim are enqueued when the claim leaves nothing else.
 */

import type { JobState } from '../../core/job.js'

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
