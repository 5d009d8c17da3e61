/**
 * A slot batch: what one slot is given to do, one execution after the other; mostly it is a single one. Where its lease is not
 * renewed, it is looked before each of them what is left of it: one whose time limit is not less is deferred, and the next
 * is tried, whose limit may be smaller. (Kale's rule.)
 */

interface SlotBatchLimit<Work> {
  timeLimitMs(work: Work): number
  /** What is left of the lease now. */
  leftMs(): number
  /** Puts back what would not be done in time. */
  defer(work: Work): void
}

export class SlotBatch<Work> {
  /** When it was taken in hand, on the monotonic clock. */
  readonly arrivedAt: number
  readonly #works: Work[]
  readonly #limit: SlotBatchLimit<Work> | undefined

  constructor(works: Work[], arrivedAt: number, limit?: SlotBatchLimit<Work>) {
    this.#works = works
    this.arrivedAt = arrivedAt
    this.#limit = limit
  }

  /** What has not been begun. */
  get waiting(): readonly Work[] {
    return this.#works
  }

  /** The next that there is time for; undefined when there is none. */
  next(): Work | undefined {
    if (this.#limit === undefined) return this.#works.shift()
    for (let work = this.#works.shift(); work !== undefined; work = this.#works.shift()) {
      if (this.#limit.timeLimitMs(work) < this.#limit.leftMs()) return work
      this.#limit.defer(work)
    }
    return undefined
  }

  /** Takes out what has not been begun. */
  rest(): Work[] {
    return this.#works.splice(0)
  }
}
