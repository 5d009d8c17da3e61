/**
 * The expiry of one queue of the memory store: its waiting jobs with a time limit for their first claim, by that time.
 */

import { bySeq, type MemoryJob } from './memory-job.js'
import { SortedList } from './sorted-list.js'

export class MemoryExpiry {
  readonly #jobs = new SortedList<MemoryJob>((a, b) => a.expiresAt! - b.expiresAt! || bySeq(a, b))

  add(job: MemoryJob): void {
    if (job.expiresAt !== undefined) this.#jobs.add(job)
  }

  /** It was taken or has ended, and does not expire any more. */
  leave(job: MemoryJob): void {
    if (job.expiresAt === undefined) return
    this.#jobs.remove(job)
    job.expiresAt = undefined
  }

  /** The first expired jobs, at most `count`. */
  due(count: number, now: number): MemoryJob[] {
    return this.#jobs.head(count).filter((job) => job.expiresAt! <= now)
  }
}
