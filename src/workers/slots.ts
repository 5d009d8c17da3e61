/**
 * Slots: how many jobs a worker runs at once, which of them share a slot, and how many it begins in one turn of the
 * event loop.
 */

/** How many slots are used, and the moment when one is free again. Each slot in use has a number of its own, from 0 on. */
export class Slots {
  readonly total: number
  #used = 0
  /** Numbers below this have been in use; those of them that are not now: */
  #fresh = 0
  readonly #free: number[] = []
  #retired = 0
  #waiting: (() => void)[] = []

  constructor(total: number) {
    this.total = total
  }

  get used(): number {
    return this.#used
  }

  get free(): number {
    return this.total - this.#used
  }

  /** Slots in use that cannot be counted on: their handlers go on after their jobs were given up. */
  get retired(): number {
    return this.#retired
  }

  /** Takes a slot, and returns its number: `wanted` if that is one of its numbers and free, otherwise any. */
  take(wanted?: number): number {
    this.#used += 1
    if (wanted !== undefined && wanted < this.total) {
      while (this.#fresh <= wanted) this.#free.push(this.#fresh++)
      const at = this.#free.indexOf(wanted)
      if (at >= 0) return this.#free.splice(at, 1)[0]!
    }
    return this.#free.pop() ?? this.#fresh++
  }

  retire(): void {
    this.#retired += 1
  }

  /** A retired slot is given back when its handler ends after all. */
  give(slot: number, wasRetired = false): void {
    this.#used -= 1
    this.#free.push(slot)
    if (wasRetired) this.#retired -= 1
    if (this.#waiting.length === 0) return
    const waiting = this.#waiting
    this.#waiting = []
    // Handlers that end together free their slots in one tick: a waiter sees all of them, and claims once.
    setImmediate(() => {
      for (const resolve of waiting) resolve()
    })
  }

  /** Resolves after the next slot was given back, with all others of that tick; also at `wake()`. */
  freed(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve))
  }

  wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve()
  }
}

/** Jobs that no slot takes for this long are put back: another worker may be idle. */
export const longestInBacklogMs = 1_000

interface SlotBatchLimit<Work> {
  timeLimitMs(work: Work): number
  /** Ms left of the lease now. */
  leftMs(): number
  /** Puts back an execution that would not end in time. */
  defer(work: Work): void
}

/**
 * The executions that one slot runs one after the other; usually a single one. If their lease is not
 * renewed, the remaining lease is checked before each. An execution whose time limit is not shorter is deferred, and
 * the next one, whose limit may be shorter, is tried. (Kale's rule.)
 */
export class SlotBatch<Work> {
  /** When the batch was claimed or, if it had to wait for its instant, might begin; on the monotonic clock. */
  arrivedAt: number
  /** The number of its slot; -1 while it waits for one. */
  slot = -1
  /** The execution that its slot runs. */
  running: Work | undefined
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

/** The batches with an execution that runs, each at the number of its slot. */
export class RunningBatches<Work> {
  readonly #bySlot: (SlotBatch<Work> | undefined)[] = []
  #size = 0

  get size(): number {
    return this.#size
  }

  /** In the order of their slots. */
  get batches(): SlotBatch<Work>[] {
    return this.#bySlot.filter((batch) => batch !== undefined)
  }

  /** The executions that run, in the order of their slots. */
  get works(): Work[] {
    return this.batches.map(({ running }) => running!)
  }

  /** The slot of the batch runs this execution of it. */
  add(batch: SlotBatch<Work>, work: Work): void {
    batch.running = work
    this.#bySlot[batch.slot] = batch
    this.#size += 1
  }

  /** The execution runs in this slot no longer. Returns its batch; undefined if it was not running there. */
  remove(slot: number, work: Work): SlotBatch<Work> | undefined {
    const batch = this.#bySlot[slot]
    if (batch?.running !== work) return undefined
    batch.running = undefined
    this.#bySlot[slot] = undefined
    this.#size -= 1
    return batch
  }
}

/** Jobs begin in one turn for this long. After a turn that took longer, one begins. */
const longestTurnMs = 10

/**
 * A turn of the event loop, as far as a worker begins jobs in it. Without its bound, handlers that compute before they
 * wait would block the loop one after the other in one turn, and no timer or answer of the store would be heard between
 * two of them.
 */
export class LoopTurn {
  readonly #mono: () => number
  readonly #goOn: () => void
  #startedAt: number | undefined
  #isCutShort = false
  #wasLong = false

  /** `goOn`: called in the next turn if a job was refused in this one. */
  constructor(mono: () => number, goOn: () => void) {
    this.#mono = mono
    this.#goOn = goOn
  }

  /** The instant at which one more job begins in this turn; undefined if none may. */
  next(): number | undefined {
    const now = this.#mono()
    if (this.#startedAt === undefined) {
      this.#startedAt = now
      setImmediate(() => this.#end())
      return now
    }
    this.#isCutShort ||= this.#wasLong || now - this.#startedAt >= longestTurnMs
    return this.#isCutShort ? undefined : now
  }

  #end(): void {
    this.#wasLong = this.#mono() - this.#startedAt! >= longestTurnMs
    this.#startedAt = undefined
    if (!this.#isCutShort) return
    this.#isCutShort = false
    this.#goOn()
  }
}
