/**
 * A batch: what one slot is given to do, one job after the other; mostly it is a single job. Where its lease is not
 * renewed, it is looked before each job what is left of it: one whose time limit is not less is deferred, and the next is
 * tried, whose limit may be smaller. (Kale's rule.)
 */

export interface BatchLimit<Job> {
  timeLimitMs(job: Job): number
  /** What is left of the lease now. */
  leftMs(): number
  /** Puts a job back that would not be done in time. */
  defer(job: Job): void
}

export class Batch<Job> {
  /** When it was taken in hand, on the monotonic clock. */
  readonly arrivedAt: number
  readonly #jobs: Job[]
  readonly #limit: BatchLimit<Job> | undefined

  constructor(jobs: Job[], arrivedAt: number, limit?: BatchLimit<Job>) {
    this.#jobs = jobs
    this.arrivedAt = arrivedAt
    this.#limit = limit
  }

  /** What has not been begun. */
  get waiting(): readonly Job[] {
    return this.#jobs
  }

  /** The next job there is time for; undefined when there is none. */
  next(): Job | undefined {
    if (this.#limit === undefined) return this.#jobs.shift()
    for (let job = this.#jobs.shift(); job !== undefined; job = this.#jobs.shift()) {
      if (this.#limit.timeLimitMs(job) < this.#limit.leftMs()) return job
      this.#limit.defer(job)
    }
    return undefined
  }

  /** Takes out what has not been begun. */
  rest(): Job[] {
    return this.#jobs.splice(0)
  }
}
