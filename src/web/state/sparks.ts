/** The sparks: outcomes of each queue's jobs in the last minutes, for a line next to its counts. */

import type { HistoryPoint } from '../../stores/contract/history.js'
import type { Store } from '../../stores/contract/store.js'
import { slotAt, stepMs } from '../../stores/rules/history-slots.js'

/**
 * A number for each minute, oldest first; empty if the store keeps no history, or has none of the queue in that time.
 */
export interface Spark {
  readonly enqueued: readonly number[]
  readonly done: readonly number[]
  readonly failed: readonly number[]
}

/** Reads one spark for each of the queues. `now`: on the store's clock. */
export type SparkReader = (store: Store, queues: readonly string[], now: number) => Promise<readonly Spark[]>

const empty: Spark = { enqueued: [], done: [], failed: [] }

/** For callers that draw no sparks. */
export const noSparks: SparkReader = async (_, queues) => queues.map(() => empty)

/** The last minutes, including the present one. */
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

/**
 * Keeps what was read for `forMs`, unless other queues are read: each process writes its history only once a minute.
 */
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
