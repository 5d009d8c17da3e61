/** A beat: the report of a running job that comes with the renewal of its lease. */

import type { Progress } from '../../core/job/job.js'
import type { Payload } from '../../core/values/codec.js'

/** The report of a running job; a field that is absent stays as it was. */
export interface Beat extends JobProcess {
  /** Ms from the start of the handler to this call. The first beat with this field sets `startedAt`. */
  readonly startedMs?: number
  readonly progress?: Progress
  /**
   * Plain queues only: progress that a later attempt can resume from. Every later claim of the job receives the latest
   * checkpoint, until the job is completed or cancelled.
   */
  readonly checkpoint?: Checkpoint
  /**
   * Plain queues only: well-formed text to append to the job's log (`core/job/job-log`). The store keeps the log over all
   * attempts, until the job's record goes.
   */
  readonly log?: string
}

/** The process in which a job runs, identified by its own report (`runtime/process-identity`). */
export interface JobProcess {
  readonly host?: string
  readonly boot?: string
  readonly pidns?: string
  readonly pid?: number
  readonly ticks?: number
}

/** An ended run, as reported by the process that ran the handler. */
export interface EndedRun extends Pick<JobProcess, 'host' | 'pid'> {
  /** Ms from the start of the handler to this call. */
  readonly startedMs: number
}

/**
 * When the handler began, in ms since 1970 on the clock of `now`. Rounded up to `now`: nothing begins before it is due.
 */
export function startedAtOf(startedMs: number, now: number): number {
  return now - Math.floor(startedMs)
}

export interface Checkpoint {
  readonly payload: Payload
  readonly codec?: string
}
