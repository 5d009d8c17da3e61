/** A set of payloads of one id in the memory store: each once, in the order of handing over. */

import type { Merge } from '../../../core/queue/queue.js'
import { byScore, type PayloadEntry } from '../../rules/payloads.js'
import { SortedList } from './sorted-list.js'

export class PayloadSet {
  readonly #merge: () => Merge
  readonly #byIdentity = new Map<string, PayloadEntry>()
  readonly #inOrder = new SortedList<PayloadEntry>(byScore)

  constructor(merge: () => Merge, entries: Iterable<PayloadEntry> = []) {
    this.#merge = merge
    this.addAll(entries)
  }

  get size(): number {
    return this.#inOrder.size
  }

  /** Whether adding a payload of this identity would enlarge the set. */
  growsBy(identity: string): boolean {
    return this.#merge() === 'latest' ? this.size === 0 : !this.#byIdentity.has(identity)
  }

  add(entry: PayloadEntry): void {
    this.addAll([entry])
  }

  /** The rule of `merged` in `rules/payloads`: this set is the one, the entries the other. */
  addAll(entries: Iterable<PayloadEntry>): void {
    for (const entry of entries) this.#join(entry)
    if (this.#merge() === 'latest') this.take(this.size - 1)
  }

  /** Removes and returns the first `count`. */
  take(count: number): PayloadEntry[] {
    const taken = this.#inOrder.head(count)
    for (const entry of taken) {
      this.#inOrder.remove(entry)
      this.#byIdentity.delete(entry.identity)
    }
    return taken
  }

  #join(entry: PayloadEntry): void {
    const equal = this.#byIdentity.get(entry.identity)
    if (equal !== undefined) {
      if (byScore(equal, entry) <= 0) return
      this.#inOrder.remove(equal)
    }
    this.#byIdentity.set(entry.identity, entry)
    this.#inOrder.add(entry)
  }

  [Symbol.iterator](): Iterator<PayloadEntry> {
    return this.#inOrder[Symbol.iterator]()
  }
}
