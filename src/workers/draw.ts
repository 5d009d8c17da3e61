/** The draw: which queues the next claim asks, by the selector, leaving out those found empty since they were last heard of. */

import type { Random } from '../core/clock.js'
import { ConfigError } from '../core/errors.js'
import type { Queue } from '../core/queue.js'
import { messageOf } from '../core/shown.js'
import type { Candidate, Selector } from '../selectors/selector.js'
import type { Claimed } from '../stores/store.js'

/** Candidates of one claim: the contract's bound. */
export const mostPerTrip = 16

export class Draw {
  readonly #selector: Selector
  readonly #queues: readonly Queue[]
  readonly #random: Random
  /** Found empty, the one that was asked longest ago first. */
  readonly #tried = new Set<string>()
  readonly #rung = new Set<string>()
  readonly #heads = new Map<string, number>()
  /** Drawn and not asked yet: what is not used is not drawn again. */
  #drawn: string[] | undefined
  #staying: { readonly queue: string; left: number } | undefined

  constructor(selector: Selector, queues: readonly Queue[], random: Random) {
    this.#selector = selector
    this.#queues = queues
    this.#random = random
  }

  /** The queues to ask next, in order: those that were rung first. None when every queue that the selector names was found empty. */
  next(): string[] {
    this.#drawn ??= this.#staying === undefined ? this.#order() : [this.#staying.queue]
    return this.#drawn
  }

  #order(): string[] {
    // Leaving out what was found empty is drawing again until a queue comes up that was not.
    const candidates = this.#candidates()
    if (candidates.length === 0) return []
    const drawn = new Set(this.#selected(candidates))
    const untried = [...drawn].filter((name) => !this.#tried.has(this.#known(name)))
    if (this.#rung.size === 0) return untried.slice(0, mostPerTrip)
    const isRung = (name: string) => this.#rung.has(name)
    return [...untried.filter(isRung), ...untried.filter((name) => !isRung(name))].slice(0, mostPerTrip)
  }

  /** Takes note of what a claim of these queues gave. */
  answered(asked: readonly string[], { queue, heads }: Claimed): void {
    for (const { queue: name, ageMs } of heads ?? []) {
      if (ageMs === undefined) this.#heads.delete(name)
      else this.#heads.set(name, ageMs)
    }
    this.#rung.clear()
    this.#drawn = undefined
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

  /** These may have work: they were rung, or something in them has fallen due. */
  heard(queues: readonly string[]): void {
    this.#drawn = undefined
    for (const name of queues) {
      this.#tried.delete(name)
      this.#rung.add(name)
    }
  }

  /** Nothing was heard for long enough to look again, at as many as one claim can ask. */
  sweep(): void {
    this.#drawn = undefined
    for (const name of [...this.#tried].slice(0, mostPerTrip)) this.#tried.delete(name)
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

  #selected(candidates: readonly Candidate[]): readonly string[] {
    try {
      return this.#selector(candidates, this.#random)
    } catch (error) {
      throw new ConfigError('selector', [{ path: 'selector', message: `threw: ${messageOf(error)}` }], { cause: error })
    }
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
