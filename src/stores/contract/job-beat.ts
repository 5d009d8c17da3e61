/** A beat: what a running job says of itself when its lease is renewed. */

import type { Progress } from '../../core/job.js'
import type { Payload } from '../../core/values/codec.js'

/** What a running job reports with its lease; what is absent stays as it was. */
export interface Beat extends JobProcess {
  /** Ms from the start of the handler to this call. The first beat that has it sets `startedAt`. */
  readonly startedMs?: number
  readonly progress?: Progress
  /**
   * Plain queues only: how far the work is for certain, so that a later attempt can go on from there. The latest is handed
   * over with every later claim of the job, until it is completed or cancelled.
   */
  readonly checkpoint?: Checkpoint
  /**
   * Plain queues only, well-formed text: it joins the log of the job (`core/job-log`), which is kept over all attempts and
   * as long as the job's record.
   */
  readonly log?: string
}

/** The process that a running job runs in, as it says itself: what tells it from every other one (`runtime/process-identity`). */
export interface JobProcess {
  readonly host?: string
  readonly boot?: string
  readonly pidns?: string
  readonly pid?: number
  readonly ticks?: number
}

/** A run that has ended, as the process tells of it that the handler ran in. */
export interface EndedRun extends Pick<JobProcess, 'host' | 'pid'> {
  /** Ms from the start of the handler to this call. */
  readonly startedMs: number
}

/** When it began, in ms since 1970 on the clock of `now`. Rounded towards now: nothing begins before it is due. */
export function startedAtOf(startedMs: number, now: number): number {
  return now - Math.floor(startedMs)
}

export interface Checkpoint {
  readonly payload: Payload
  readonly codec?: string
}
