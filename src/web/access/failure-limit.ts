/**
 * The failure limit: how many wrong tokens of one address are answered in a minute before it is told to wait.
 */

const mostFailures = 10
const windowMs = 60_000
/** The number of addresses remembered. */
const mostAddresses = 10_000

export class FailureLimit {
  readonly #failures = new Map<string, { count: number; readonly sinceAt: number }>()
  readonly #mono: () => number

  constructor(mono: () => number) {
    this.#mono = mono
  }

  /** How long who sends wrong tokens from this address is told to wait, in ms; 0: not at all. */
  waitMs(address: string): number {
    const failures = this.#of(address)
    return failures === undefined || failures.count < mostFailures ? 0 : failures.sinceAt + windowMs - this.#mono()
  }

  count(address: string): void {
    const failures = this.#of(address)
    if (failures !== undefined) failures.count += 1
    else {
      if (this.#failures.size >= mostAddresses) this.#failures.delete(this.#failures.keys().next().value!)
      this.#failures.set(address, { count: 1, sinceAt: this.#mono() })
    }
  }

  #of(address: string): { count: number; readonly sinceAt: number } | undefined {
    const failures = this.#failures.get(address)
    if (failures === undefined || this.#mono() - failures.sinceAt < windowMs) return failures
    this.#failures.delete(address)
    return undefined
  }
}
