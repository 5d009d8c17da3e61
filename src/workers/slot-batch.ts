/**
 * A slot batch: the executions that one slot runs one after the other; usually a single one. If their lease is not
 * renewed, the remaining lease is checked before each. An execution whose time limit is not shorter is deferred, and
 * the next one, whose limit may be shorter, is tried. (Kale's rule.)
 */

/** Jobs that no slot takes for this long are put back: another worker may be idle. */
export const longestInBacklogMs = 1_000

interface SlotBatchLimit<Work> {
  timeLimitMs(work: Work): number
  /** Ms left of the lease now. */
  leftMs(): number
  /** Puts back an execution that would not end in time. */
  defer(work: Work): void
}

export class SlotBatch<Work> {
  /** When the batch was claimed or, if it had to wait for its instant, might begin; on the monotonic clock. */
  arrivedAt: number
  /** The number of its slot; -1 while it waits for one. */
  slot = -1
  readonly #works: Work[]
  readonly #limit: SlotBatchLimit<Work> | undefined

  constructor(works: Work[], arrivedAt: number, limit?: SlotBatchLimit<Work>) {
    this.#works = works
    this.arrivedAt = arrivedAt
    this.#limit = limit
  }

  /** Executions that have not begun. */
  get waiting(): readonly Work[] {
    return this.#works
  }

  /** Has a slot from now on. */
  in(slot: number): this {
    this.slot = slot
    return this
  }

  /** The next execution that there is time for; undefined if there is none. */
  next(): Work | undefined {
    if (this.#limit === undefined) return this.#works.shift()
    for (let work = this.#works.shift(); work !== undefined; work = this.#works.shift()) {
      if (this.#limit.timeLimitMs(work) < this.#limit.leftMs()) return work
      this.#limit.defer(work)
    }
    return undefined
  }

  /** Removes and returns the executions that have not begun. */
  rest(): Work[] {
    return this.#works.splice(0)
  }
}
