/** Slots: how many jobs a worker runs at once, and the moment when one of them is free again. */

export class Slots {
  readonly total: number
  #used = 0
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

  take(): void {
    this.#used += 1
  }

  retire(): void {
    this.#retired += 1
  }

  /** A retired slot is given back when its handler ends after all. */
  give(wasRetired = false): void {
    this.#used -= 1
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
