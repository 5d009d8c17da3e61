/**
 * The expiry of one queue of the memory store: its waiting jobs with a time to begin, by that time.
 */

import { bySeq, isWaiting, type MemoryJob } from './memory-job.js'
import { SortedList } from './sorted-list.js'

export class MemoryExpiry {
  readonly #jobs = new SortedList<MemoryJob>((a, b) => a.expiresAt! - b.expiresAt! || bySeq(a, b))

  /** The job is in a state. */
  add(job: MemoryJob): void {
    if (job.expiresAt !== undefined && isWaiting(job)) this.#jobs.add(job)
  }

  /** The job leaves its state. */
  leave(job: MemoryJob): void {
    if (job.expiresAt !== undefined && isWaiting(job)) this.#jobs.remove(job)
  }

  /** The first expired jobs, at most `count`. */
  due(count: number, now: number): MemoryJob[] {
    return this.#jobs.head(count).filter((job) => job.expiresAt! <= now)
  }
}
