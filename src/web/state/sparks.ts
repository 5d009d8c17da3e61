/** The sparks: what became of the jobs of each queue in the last minutes, for a line beside its counts. */

import { queueHistories } from '../../client/admin/queue-history.js'
import type { Store } from '../../stores/contract/store.js'
import { stepMs } from '../../stores/rules/history-slots.js'

/** A number for each minute, oldest first; none where the store keeps no history. */
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
    const from = new Date(Math.max(0, now - (minutes - 1) * stepMs.minute))
    const histories = await queueHistories(store, queues, { from }, now)
    return histories.map(({ points }) => ({
      enqueued: points.map(({ enqueued }) => enqueued),
      done: points.map(({ completed }) => completed),
      failed: points.map(({ failed }) => failed),
    }))
  }
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
