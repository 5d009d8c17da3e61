/**
 * A turn of the event loop, as far as a worker begins jobs in it. Without its bound, handlers that compute before they
 * wait would block the loop one after the other in one turn, and no timer or answer of the store would be heard between
 * two of them.
 */

/** Jobs begin in one turn for this long. After a turn that took longer, one begins. */
const longestMs = 10

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
    this.#isCutShort ||= this.#wasLong || now - this.#startedAt >= longestMs
    return this.#isCutShort ? undefined : now
  }

  #end(): void {
    this.#wasLong = this.#mono() - this.#startedAt! >= longestMs
    this.#startedAt = undefined
    if (!this.#isCutShort) return
    this.#isCutShort = false
    this.#goOn()
  }
}
