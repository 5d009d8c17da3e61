/** The failure count of a job, from its attempt and its end. */

import type { JobRow } from '../api/answers.js'

/** How many of its attempts failed. */
export function failuresOf(job: JobRow): number {
  return diedOfFailure(job) ? job.attempt : job.attempt - 1
}

/** Whether its last attempt is one that failed. */
export function diedOfFailure({ state, reason = '' }: JobRow): boolean {
  return state === 'dead' && ['max-retries', 'no-retries', 'unrecoverable'].includes(reason)
}
