/** The settler: collects what is to be settled and sends it in batches; while the store is away it keeps trying. */

import type { Random } from '../core/clock.js'
import type { Events } from '../core/events.js'
import type { SettleAnswer, SettleItem, Store } from '../stores/store.js'
import { isFatal, outageDelayMs } from './outage.js'

/** `undefined`: the store never took it, and it is not tried again. */
export type Answered = (answer: SettleAnswer | undefined) => void

interface Unsettled {
  readonly item: SettleItem
  readonly answered: Answered
}

export class Settler {
  readonly #store: Store
  readonly #events: Events
  readonly #random: Random
  #unsettled: Unsettled[] = []
  #underWay = 0
  #planned = false
  #idle: (() => void)[] = []
  #isGivenUp = false

  constructor(store: Store, events: Events, random: Random) {
    this.#store = store
    this.#events = events
    this.#random = random
  }

  /** Settles with the others of this tick. `answered` is called once, when the store has answered or is given up. */
  settle(item: SettleItem, answered: Answered): void {
    this.#unsettled.push({ item, answered })
    if (this.#planned) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      this.flush()
    })
  }

  /** Sends what has been collected now, so that a claim made in the same tick shares its commit. */
  flush(): void {
    if (this.#unsettled.length === 0) return
    const unsettled = this.#unsettled
    this.#unsettled = []
    const { maxBatch } = this.#store.traits
    for (let i = 0; i < unsettled.length; i += maxBatch) {
      this.#underWay += 1
      void this.#send(unsettled.slice(i, i + maxBatch)).then(() => this.#sent())
    }
  }

  /** Resolves when everything has been answered or, with what has not been given up, after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    this.flush()
    if (this.#underWay === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, withinMs)
      this.#idle.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#isGivenUp = true
  }

  #sent(): void {
    this.#underWay -= 1
    if (this.#underWay > 0 || this.#unsettled.length > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #send(batch: readonly Unsettled[]): Promise<void> {
    const items = batch.map(({ item }) => item)
    for (let failures = 0; ; failures += 1) {
      try {
        const answers = await this.#store.settle(items)
        batch.forEach(({ answered }, i) => {
          answered(answers[i]!)
        })
        return
      } catch (error) {
        const retryMs = this.#isGivenUp || isFatal(error) ? undefined : outageDelayMs(failures, this.#random)
        this.#events.emit('store.failed', { call: 'settle', error, retryMs })
        // Nobody will ever take these settles: the leases end, and the jobs are run again.
        if (retryMs === undefined) {
          for (const { answered } of batch) answered(undefined)
          return
        }
        await new Promise((resolve) => setTimeout(resolve, retryMs))
      }
    }
  }
}
