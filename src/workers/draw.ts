/** The draw: which queues the next claim asks, by the selector, leaving out those found empty since the last rest. */

import type { Random } from '../core/clock.js'
import { ConfigError } from '../core/errors.js'
import type { Queue } from '../core/queue.js'
import type { Selector } from '../selectors/selector.js'
import type { Claimed } from '../stores/store.js'

/** Candidates of one claim: the contract's bound. */
const mostPerTrip = 16
export class Draw {
  readonly #selector: Selector
  readonly #queues: readonly Queue[]
  readonly #random: Random
  readonly #tried = new Set<string>()
  readonly #heads = new Map<string, number>()
  #staying: { readonly queue: string; left: number } | undefined

  constructor(selector: Selector, queues: readonly Queue[], random: Random) {
    this.#selector = selector
    this.#queues = queues
    this.#random = random
  }

  /** The queues to ask next, in order; none when every queue that the selector names was found empty. */
  next(): string[] {
    if (this.#staying !== undefined) return [this.#staying.queue]
    // Leaving out what was found empty is drawing again until a queue comes up that was not.
    const candidates = this.#candidates()
    if (candidates.length === 0) return []
    const names = new Set(this.#selector(candidates, this.#random))
    return [...names].filter((name) => !this.#tried.has(this.#known(name))).slice(0, mostPerTrip)
  }

  /** Takes note of what a claim of these queues gave. */
  answered(asked: readonly string[], { queue, heads }: Claimed): void {
    for (const { queue: name, ageMs } of heads ?? []) {
      if (ageMs === undefined) this.#heads.delete(name)
      else this.#heads.set(name, ageMs)
    }
    if (queue === undefined) {
      for (const name of asked) this.#tried.add(name)
      this.#staying = undefined
      return
    }
    this.#tried.clear()
    this.#stay(queue)
  }

  /** The queues found empty: those worth waiting for. */
  get tried(): string[] {
    return [...this.#tried]
  }

  /** After a rest any queue may have work. */
  rested(): void {
    this.#tried.clear()
  }

  #stay(queue: string): void {
    const left =
      this.#staying === undefined
        ? this.#queues.find(({ name }) => name === queue)!.iterations - 1
        : this.#staying.left - 1
    this.#staying = left > 0 ? { queue, left } : undefined
  }

  #candidates() {
    return this.#queues
      .filter(({ name }) => !this.#tried.has(name))
      .map(({ name, weight }) => {
        const headAgeMs = this.#heads.get(name)
        return headAgeMs === undefined ? { name, weight } : { name, weight, headAgeMs }
      })
  }

  #known(name: string): string {
    if (this.#queues.some((queue) => queue.name === name)) return name
    throw new ConfigError('selector', [
      {
        path: 'selector',
        message: `named queue '${name}', which this worker does not serve; it serves ${this.#queues.map((queue) => queue.name).join(', ')}`,
      },
    ])
  }
}
