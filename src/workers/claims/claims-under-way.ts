/**
 * The claims of a worker that are under way: nearly always one. While claims come back as large as they can be, a
 * second one is sent before the first is answered. The store then has the next claim at hand when it has done one, and
 * what is settled meanwhile shares its commit.
 */

export class ClaimsUnderWay {
  readonly #trips = new Set<Promise<void>>()
  readonly #hasEnded: () => void
  #jobs = 0

  /** `hasEnded`: called each time that one of them has ended. */
  constructor(hasEnded: () => void) {
    this.#hasEnded = hasEnded
  }

  get count(): number {
    return this.#trips.size
  }

  /** The most jobs that they can bring. */
  get jobs(): number {
    return this.#jobs
  }

  /** `trip`: ends when its answer is in hand. */
  add(jobs: number, trip: Promise<void>): void {
    this.#jobs += jobs
    const ended = trip.finally(() => {
      this.#jobs -= jobs
      this.#trips.delete(ended)
      this.#hasEnded()
    })
    this.#trips.add(ended)
    // Perhaps nobody waits for this one: what fails it fails the next one too.
    ended.catch(() => {})
  }

  /** Resolves when the answer to one of them is in hand; rejects with its error. */
  next(): Promise<void> {
    return Promise.race(this.#trips)
  }

  /** Resolves when none is left, however they end. */
  async ended(): Promise<void> {
    await Promise.allSettled(this.#trips)
  }
}
