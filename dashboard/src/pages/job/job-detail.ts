/** The job detail: everything that the API knows about one job. */

import type { Instant, JobRow, JobState } from '../../api/answers.js'

export interface Relative {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Absent if nothing of it is kept any more. */
  readonly state?: JobState
}

export interface JobDetail extends JobRow {
  readonly parent?: Relative
  /** The job that it was enqueued again from. */
  readonly repeatOf?: Relative
  /** How many enqueue calls it has noted. */
  readonly childCalls?: number
  /** As far as they can be found. */
  readonly children?: readonly Relative[]
  /** Absent if the mill of this window does not declare its task. */
  readonly retry?: { readonly max: number; readonly delays: readonly RetryDelay[] }
  readonly leaseMs?: number
  /** The signals that may be sent to it here. Absent: none. */
  readonly signals?: readonly string[]
  /** Its latest failed attempts, oldest first. */
  readonly failures?: readonly { readonly attempt: number; readonly at: Instant; readonly error: string }[]
}

export interface RetryDelay {
  readonly leastMs: number
  readonly mostMs: number
}

const endStates: readonly JobState[] = ['completed', 'dead', 'cancelled']

export function hasEnded(state: JobState): boolean {
  return endStates.includes(state)
}

/** Whether its payloads are shown as they are, but for types that JSON lacks. `redacts`: whether the window has a `redact`. */
export function isShownWhole({ payloadsHidden }: JobRow, redacts: boolean): boolean {
  return payloadsHidden !== true && !redacts
}

/** Whether it has payloads in their order, instead of one input. */
export function isOrdered(job: JobRow): boolean {
  return job.payloadCount !== undefined || job.payloads !== undefined
}
