/**
 * Awake time: the milliseconds in which the supervisor itself was running. The count stops while the supervisor is
 * stopped or starved, because the silence of others in that time says nothing about them.
 */

/** A tick that comes later than this was delayed from outside. */
const longestTickMs = 1_000

export class AwakeTime {
  #ms = 0
  #tickedAt: number

  /** `now`: monotonic, here and below. */
  constructor(now: number) {
    this.#tickedAt = now
  }

  get ms(): number {
    return this.#ms
  }

  /** To be called several times a second. */
  tick(now: number): void {
    this.#ms += Math.min(now - this.#tickedAt, longestTickMs)
    this.#tickedAt = now
  }
}
