/** The ids that a queue remembers of ended jobs, in the order in which they are forgotten. */

import type { RememberedJob } from './memory-job.js'
import { SortedList } from './sorted-list.js'

export class RememberedIds {
  readonly #byId = new Map<string, RememberedJob>()
  readonly #byTime = new SortedList<RememberedJob>((a, b) => a.until - b.until || a.seq - b.seq)

  get(id: string, now: number): RememberedJob | undefined {
    const job = this.#byId.get(id)
    return job !== undefined && job.until > now ? job : undefined
  }

  add(job: RememberedJob): void {
    this.delete(job.id)
    this.#byId.set(job.id, job)
    this.#byTime.add(job)
  }

  delete(id: string): void {
    const job = this.#byId.get(id)
    if (job === undefined) return
    this.#byId.delete(id)
    this.#byTime.remove(job)
  }

  /** Forgets at most `count` ids whose time is over. */
  expire(count: number, now: number): void {
    for (const job of this.#byTime.head(count)) {
      if (job.until > now) break
      this.delete(job.id)
    }
  }

  list(now: number): RememberedJob[] {
    return [...this.#byTime].filter((job) => job.until > now)
  }
}
