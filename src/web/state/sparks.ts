/** The sparks: what became of the jobs of each queue in the last minutes, for a line beside its counts. */

import type { HistoryPoint } from '../../stores/contract/history.js'
import type { Store } from '../../stores/contract/store.js'
import { slotAt, stepMs } from '../../stores/rules/history-slots.js'

/** A number for each minute, oldest first; none where the store keeps no history, or nobody has told of the queue in that time. */
export interface Spark {
  readonly enqueued: readonly number[]
  readonly done: readonly number[]
  readonly failed: readonly number[]
}

/** Reads one for each of the queues. `now`: of the store. */
export type SparkReader = (store: Store, queues: readonly string[], now: number) => Promise<readonly Spark[]>

const empty: Spark = { enqueued: [], done: [], failed: [] }

/** For those who draw none. */
export const noSparks: SparkReader = async (_, queues) => queues.map(() => empty)

/** The last minutes, the one that runs now too. */
export function sparksOfLast(minutes: number): SparkReader {
  return async (store, queues, now) => {
    if (store.history === undefined) return noSparks(store, queues, now)
    const fromAt = slotAt('minute', now) - (minutes - 1) * stepMs.minute
    const told = await store.history.read(queues, { step: 'minute', fromAt: Math.max(0, fromAt), toAt: now + 1 })
    return told.map((points) => sparkOf(points, fromAt, minutes))
  }
}

function sparkOf(points: readonly HistoryPoint[], fromAt: number, minutes: number): Spark {
  if (points.length === 0) return empty
  const line = (count: 'enqueued' | 'completed' | 'failed') => {
    const numbers = new Array<number>(minutes).fill(0)
    for (const point of points) numbers[(point.at - fromAt) / stepMs.minute] = point[count]
    return numbers
  }
  return { enqueued: line('enqueued'), done: line('completed'), failed: line('failed') }
}

/** What was read is told again for so long, unless other queues are asked: of a history each process writes once a minute. */
export function keptSparks(read: SparkReader, forMs: number, mono: () => number): SparkReader {
  let last: { readonly names: string; readonly until: number; readonly sparks: readonly Spark[] } | undefined
  return async (store, queues, now) => {
    const names = queues.join()
    if (last?.names === names && mono() < last.until) return last.sparks
    const sparks = await read(store, queues, now)
    last = { names, until: mono() + forMs, sparks }
    return sparks
  }
}
