/** The waiter: where an idle worker rests until a queue is rung, something falls due, or it is time to look again. */

import type { Store, Wait } from '../stores/store.js'

/** A wait shorter than this is not worth a trip to the store and back, and guards against a store whose clock stands. */
const shortestMs = 1

export class Waiter {
  readonly #store: Store
  #rest: AbortController | undefined

  constructor(store: Store) {
    this.#store = store
  }

  /** Resolves when one of the queues may have work, after `longPollMs` at the latest, or at `wake()`. */
  async rest(queues: readonly string[], waits: readonly Wait[], longPollMs: number): Promise<void> {
    this.#rest = new AbortController()
    try {
      await this.#store.wait(queues, restMs(waits, longPollMs), this.#rest.signal)
    } finally {
      this.#rest = undefined
    }
  }

  wake(): void {
    this.#rest?.abort()
  }
}

/** Until the first of the queues changes by itself, within bounds. */
export function restMs(waits: readonly Wait[], longPollMs: number): number {
  const soonest = Math.min(longPollMs, ...waits.map(({ forMs }) => forMs ?? longPollMs))
  return Math.max(shortestMs, Math.ceil(soonest))
}
