/** What may be said of one job when it is enqueued. */

import type { Duration } from './duration.js'
import type { Meta } from './job.js'

export interface EnqueueOptions {
  /**
   * An id of your own. While a job with this id waits, runs or lies in the morgue, and for the mill's `idempotency`
   * after it ended, enqueueing it again answers `'duplicate'` and stores nothing. Default: a new id.
   */
  readonly id?: string
  /** Not to be run before so long from now, on the store's clock. Not together with `runAt`. */
  readonly delay?: Duration
  /** Not to be run before this moment: a Date, or ISO-8601 text with a zone. A bare number is refused. */
  readonly runAt?: Date | string
  /** −32,768 … 32,767, higher first. Default 0. */
  readonly priority?: number
  /** Sent along with the input and through every retry. */
  readonly meta?: Meta
  /** The group that throttles and fairness count this job by, instead of the task's `group`. */
  readonly group?: string
  /** Another queue than the task's. */
  readonly queue?: string
}
