/** A counting store: a memory store that keeps every claim that is made on it, with its answer, which comes later as it does over a wire. */

import type { Claimed, Claimer, ClaimFrom } from 'millrace/store'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

export interface CountedClaim {
  readonly from: readonly ClaimFrom[]
  readonly by: Claimer
  readonly answer: Claimed
}

export class CountingStore extends MemoryStore {
  readonly counted: CountedClaim[] = []
  readonly #waiting = new Map<(claim: CountedClaim) => boolean, (claim: CountedClaim) => void>()

  override async claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed> {
    const answer = await super.claim(from, by)
    await new Promise(setImmediate)
    const counted = { from, by, answer }
    this.counted.push(counted)
    for (const [fits, resolve] of this.#waiting) {
      if (!fits(counted)) continue
      this.#waiting.delete(fits)
      resolve(counted)
    }
    return answer
  }

  /** The next claim that fits. */
  next(fits: (claim: CountedClaim) => boolean): Promise<CountedClaim> {
    return new Promise((resolve) => this.#waiting.set(fits, resolve))
  }

  /** Those that asked this queue for jobs. */
  asked(queue: string): CountedClaim[] {
    return this.counted.filter(({ from }) => from.some((one) => one.queue === queue && one.limit > 0))
  }
}
