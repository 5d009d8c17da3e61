/**
 * An audit entry: one change of one job's state, written where it happens, in the store's atomic step. A claim and its end
 * are always told; of the states that a job only passes through within one step a store may tell or not. In an ordered
 * queue the live jobs are told of: one that is buried leaves, or goes back with what is left of it, and what waited beside
 * a claim is enqueued when that leaves nothing else.
 */

import type { JobState } from '../../core/job.js'

export interface AuditEntry {
  readonly at: number
  readonly queue: string
  /** Of an ordered queue. */
  readonly shard?: number
  readonly id: string
  readonly kind: AuditKind
  /** State before; null: there was no such job. */
  readonly from: JobState | null
  /** State after; null: nothing, or only the id, is kept. */
  readonly to: JobState | null
  /** Of the claim that began or ended; 0 for a job never claimed. */
  readonly fence: number
  /** Who claimed, or held the claim that ended; null where there is no claim. */
  readonly worker: string | null
}

/**
 * - `enqueue`: accepted · `promote`: scheduled → ready · `claim`: → running
 * - `requeue`: running → ready or scheduled: retried, released, failed from outside, or its lease had ended
 * - `bury`: → dead · `revive`: dead → ready · `keep`: running → completed with a result
 * - `leave`: gone: completed, cancelled, deleted, cleared, trimmed or replaced
 */
export type AuditKind = 'enqueue' | 'promote' | 'claim' | 'requeue' | 'bury' | 'revive' | 'keep' | 'leave'

/** What a change of state is called; undefined where none is (scheduled again, a beat). */
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
