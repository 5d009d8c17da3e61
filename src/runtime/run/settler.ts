/** The settler: collects settle items and sends them in batches; while the store is away it keeps trying. */

import type { Events } from '../../core/events.js'
import type { Random } from '../../core/platform/clock.js'
import { outageDelayMs, timerMs } from '../../core/platform/timer.js'
import { answersIn } from '../../stores/contract/damage.js'
import type { ExtendItem, SettleAnswer, SettleItem } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { isFatal } from '../outage.js'

/** `undefined`: the store never took it, and it is not tried again. */
export type Answered = (answer: SettleAnswer | undefined) => void

interface SettlerParts {
  readonly store: Pick<Store, 'traits' | 'settle' | 'extend'>
  readonly events: Events
  readonly random: Random
  readonly mono: () => number
}

export class Settler {
  readonly #parts: SettlerParts
  /** Items to send, and next to them the callbacks for the answers. */
  #items: SettleItem[] = []
  /** Last updates of some of their jobs, sent before the items. */
  #words: ExtendItem[] = []
  #waiting: Answered[] = []
  /** Items that were sent and have no answer. */
  #underWay: (readonly SettleItem[])[] = []
  #planned = false
  #idle: (() => void)[] = []
  #isGivenUp = false

  constructor(parts: SettlerParts) {
    this.#parts = parts
  }

  /**
   * Settles with the other items of this tick. `answered` is called once, when the store has answered or is given up.
   * `words`: the last update of the claim; it is lost if the store is away.
   */
  settle(item: SettleItem, answered: Answered, words?: ExtendItem): void {
    if (words !== undefined) this.#words.push(words)
    this.#items.push(item)
    this.#waiting.push(answered)
    if (this.#planned) return
    this.#planned = true
    setImmediate(() => {
      this.#planned = false
      this.flush()
    })
  }

  /** Sends the collected items now, so that a claim made in the same tick shares their commit. */
  flush(): void {
    if (this.#items.length === 0) return
    this.#say()
    const items = this.#items
    const waiting = this.#waiting
    this.#items = []
    this.#waiting = []
    const { maxBatch } = this.#parts.store.traits
    for (let i = 0; i < items.length; i += maxBatch) {
      const some = items.slice(i, i + maxBatch)
      this.#underWay.push(some)
      void this.#send(some, waiting.slice(i, i + maxBatch)).then(() => this.#sent(some))
    }
  }

  /** Not awaited: calls of one handle are carried out in the order in which they are made. */
  #say(): void {
    const words = this.#words
    if (words.length === 0) return
    this.#words = []
    const { store, events } = this.#parts
    const { maxBatch } = store.traits
    for (let i = 0; i < words.length; i += maxBatch)
      store.extend(words.slice(i, i + maxBatch)).catch((error: unknown) => {
        events.emit('store.failed', { call: 'extend', error, retryMs: undefined })
      })
  }

  /** The items that the store has not answered. */
  get unanswered(): readonly SettleItem[] {
    return this.#underWay.flat().concat(this.#items)
  }

  /** Resolves when everything has been answered, and at the latest after `withinMs`. */
  async settled(withinMs: number): Promise<void> {
    this.flush()
    if (this.#underWay.length === 0) return
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timerMs(withinMs))
      this.#idle.push(() => {
        clearTimeout(timer)
        resolve()
      })
    })
    this.#isGivenUp = true
  }

  #sent(items: readonly SettleItem[]): void {
    this.#underWay = this.#underWay.filter((one) => one !== items)
    if (this.#underWay.length > 0 || this.#items.length > 0) return
    for (const resolve of this.#idle.splice(0)) resolve()
  }

  async #send(items: readonly SettleItem[], waiting: readonly Answered[]): Promise<void> {
    const { store, events, random, mono } = this.#parts
    const madeAt = mono()
    for (let failures = 0; ; failures += 1) {
      try {
        const answers = await store.settle(failures === 0 ? items : items.map((item) => aged(item, mono() - madeAt)))
        for (const [i, answered] of waiting.entries()) answered(answers[i]!)
        return
      } catch (error) {
        // Keep the answers of the sound queues if another one is damaged.
        const told = answersIn(error) ?? []
        const retryMs = this.#isGivenUp || isFatal(error) ? undefined : outageDelayMs(failures, random)
        events.emit('store.failed', { call: 'settle', error, retryMs })
        // No store will ever take these settles: the leases end, and the jobs run again.
        if (retryMs === undefined) {
          for (const [i, answered] of waiting.entries()) answered(told[i] as SettleAnswer | undefined)
          return
        }
        await new Promise((resolve) => setTimeout(resolve, timerMs(retryMs)))
      }
    }
  }
}

/** The same item sent `byMs` later: its run began longer ago. */
function aged(item: SettleItem, byMs: number): SettleItem {
  if (!('run' in item) || item.run === undefined) return item
  return { ...item, run: { ...item.run, startedMs: item.run.startedMs + byMs } }
}
