/** Expiry: when a waiting job is no longer worth beginning. The rule of every store. */

import type { NewJob } from '../contract/new-job.js'

/** The reason with which such a job is cancelled. */
export const expiredReason = 'expired'

/** From this instant on no claim receives the job; undefined: it never expires. */
export function expiryOf({ expiresMs }: Pick<NewJob, 'expiresMs'>, now: number): number | undefined {
  return expiresMs === undefined ? undefined : now + Math.ceil(expiresMs)
}
