/**
 * Slots: how many jobs a worker runs at once, and the moment when one of them is free again. Each slot in use has a
 * number of its own, from 0 on.
 */

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
