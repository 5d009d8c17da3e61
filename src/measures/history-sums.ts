/**
 * The history sums: counters derived from the history of queues that never go back. A history is written once a minute,
 * or late if the store was away, and old points are dropped. Each reading therefore adds the gains of each open hour
 * since the last one.
 */

import type { HistoryCounts } from '../stores/contract/history.js'
import { countNumbers, countsLength, pointOf } from '../stores/rules/history-slots.js'
import { mostQueues } from './mill-reading.js'

interface QueueSums {
  readonly total: number[]
  /** For each hour, by its beginning, the counts of the last reading. */
  hours: ReadonlyMap<number, readonly number[]>
}

const mostKept = 2 * mostQueues
const nothing: readonly number[] = new Array<number>(countsLength).fill(0)

export class HistorySums {
  readonly #queues = new Map<string, QueueSums>()
  #hasBegun = false

  /** Adds a reading: for each queue the hours that may still grow, each as its beginning and its counts. */
  add(readings: readonly { readonly name: string; readonly hours: readonly (readonly number[])[] }[]): void {
    for (const { name, hours } of readings) this.#addTo(name, hours)
    this.#hasBegun = true
    if (this.#queues.size > mostKept) this.#forget(new Set(readings.map(({ name }) => name)))
  }

  /** The gains since the first reading; undefined for a queue that no reading contained. */
  of(queue: string): HistoryCounts | undefined {
    const sums = this.#queues.get(queue)
    return sums && pointOf(0, sums.total)
  }

  /** A queue that is missing now may come again, and then goes on from its old sums. */
  #forget(told: ReadonlySet<string>): void {
    for (const name of this.#queues.keys()) if (!told.has(name)) this.#queues.delete(name)
  }

  #addTo(name: string, hours: readonly (readonly number[])[]): void {
    const sums = this.#queues.get(name) ?? { total: [...nothing], hours: new Map() }
    const isFirst = !this.#hasBegun
    const read = new Map<number, readonly number[]>()
    for (const [at = 0, ...numbers] of hours) {
      // Counts from before the first reading are no gain: nobody, or another process, has counted them.
      const before = sums.hours.get(at) ?? (isFirst ? numbers : nothing)
      for (const i of sums.total.keys()) sums.total[i]! += Math.max(0, (numbers[i] ?? 0) - (before[i] ?? 0))
      read.set(at, numbers)
    }
    sums.hours = read
    this.#queues.set(name, sums)
  }
}

/** An hour of a history as a reading carries it. */
export function hourNumbers(at: number, counts: HistoryCounts): number[] {
  return [at, ...countNumbers(counts)]
}
