/**
 * The history counters: they are derived from the history of queues, and never go back. A history is written once a minute,
 * or late if the store was away, and old points are dropped. Each reading therefore adds the gains of each open hour
 * since the last one.
 */

import type { HistoryCounts } from '../stores/contract/history.js'
import { countNumbers, countsLength, pointOf } from '../stores/rules/history-slots.js'
import { mostQueues } from './mill-metrics.js'

interface QueueCounters {
  readonly total: number[]
  /** For each hour, by its beginning, the counts of the last reading. */
  hours: ReadonlyMap<number, readonly number[]>
}

const mostKept = 2 * mostQueues
const nothing: readonly number[] = new Array<number>(countsLength).fill(0)

export class HistoryCounters {
  readonly #queues = new Map<string, QueueCounters>()
  #hasBegun = false

  /** Adds a reading: for each queue the hours that may still grow, each as its beginning and its counts. */
  add(readings: readonly { readonly name: string; readonly hours: readonly (readonly number[])[] }[]): void {
    for (const { name, hours } of readings) this.#addTo(name, hours)
    this.#hasBegun = true
    if (this.#queues.size > mostKept) this.#forget(new Set(readings.map(({ name }) => name)))
  }

  /** The gains since the first reading; undefined for a queue that no reading contained. */
  of(queue: string): HistoryCounts | undefined {
    const counters = this.#queues.get(queue)
    return counters && pointOf(0, counters.total)
  }

  /** A queue that is missing now may come again, and then goes on from its old counters. */
  #forget(told: ReadonlySet<string>): void {
    for (const name of this.#queues.keys()) if (!told.has(name)) this.#queues.delete(name)
  }

  #addTo(name: string, hours: readonly (readonly number[])[]): void {
    const counters = this.#queues.get(name) ?? { total: [...nothing], hours: new Map() }
    const isFirst = !this.#hasBegun
    const read = new Map<number, readonly number[]>()
    for (const [at = 0, ...numbers] of hours) {
      // Counts from before the first reading are no gain: nobody, or another process, has counted them.
      const before = counters.hours.get(at) ?? (isFirst ? numbers : nothing)
      for (const i of counters.total.keys()) counters.total[i]! += Math.max(0, (numbers[i] ?? 0) - (before[i] ?? 0))
      read.set(at, numbers)
    }
    counters.hours = read
    this.#queues.set(name, counters)
  }
}

/** An hour of a history as a reading carries it. */
export function hourNumbers(at: number, counts: HistoryCounts): number[] {
  return [at, ...countNumbers(counts)]
}
