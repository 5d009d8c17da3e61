/** The unheard claims of a claimer: the store made them in a call whose answer was lost. They are put back at once. */

import { hasCode } from '../../core/error-codes.js'
import type { Events } from '../../core/events.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'

/** A call that was cut off may be carried out after the first look, if its request arrives late. */
const secondLookMs = 5_000
/** The pause after a look that failed. The call itself waits for the store. */
const againMs = 250

interface UnheardClaimsParts {
  readonly worker: string
  readonly connect: () => Promise<Pick<Store, 'settle' | 'traits' | 'workers'>>
  /** The known claims whose end the store has not yet taken. */
  readonly held: () => readonly ClaimKey[]
  readonly events: Events
  readonly mono: () => number
}

export class UnheardClaims {
  readonly #parts: UnheardClaimsParts
  /** The instants of the next looks, on the monotonic clock, soonest first. */
  #looksAt: readonly number[] = []

  constructor(parts: UnheardClaimsParts) {
    this.#parts = parts
  }

  /** Ms until the next look; Infinity if no answer was lost. */
  get dueInMs(): number {
    const [next] = this.#looksAt
    return next === undefined ? Number.POSITIVE_INFINITY : Math.max(0, next - this.#parts.mono())
  }

  /** Notes the error with which a claim rejected. */
  failed(error: unknown): void {
    if (hasCode(error, 'store-unavailable') && error.inDoubt) this.suspected()
  }

  /** A claim may exist that no answer reported. */
  suspected(): void {
    const now = this.#parts.mono()
    this.#looksAt = [now, now + secondLookMs]
  }

  /**
   * Looks for unheard claims, if it is time, and puts them back: uncounted, into their old places. Call it while no
   * claim is under way. It costs a turn of the event loop even if none are due: check `dueInMs` first where that
   * matters. Never rejects: a failure is emitted as `store.failed`, and tried again.
   */
  async putBack(): Promise<void> {
    if (this.dueInMs > 0) return
    const { events, mono } = this.#parts
    const [, ...later] = this.#looksAt
    this.#looksAt = later
    try {
      await this.#look()
    } catch (error) {
      events.emit('store.failed', { call: 'workers.held', error, retryMs: againMs })
      const again = mono() + againMs
      this.#looksAt = [again, ...later.map((at) => Math.max(at, again + secondLookMs))]
    }
  }

  async #look(): Promise<void> {
    const { worker, connect, held, events } = this.#parts
    const store = await connect()
    const { workers, traits } = store
    if (workers === undefined) return
    for (;;) {
      const made = await workers.held(worker)
      const heard = new Set(held().map(nameOf))
      const unheard = made.filter((claim) => !heard.has(nameOf(claim))).slice(0, traits.maxBatch)
      if (unheard.length === 0) return
      const answers = await store.settle(
        unheard.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'release', delayMs: 0 })),
      )
      for (const [i, { queue, id, task }] of unheard.entries())
        if (answers[i] === 'ok') events.emit('job.released', { queue, id, task, reason: 'unheard', delayMs: 0 })
      // Nothing was put back: another claimer has them by now.
      if (!answers.includes('ok')) return
    }
  }
}

function nameOf({ queue, fence, id }: ClaimKey): string {
  return `${queue} ${fence} ${id}`
}
