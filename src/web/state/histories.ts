/** Histories: what became of the jobs of queues, by minute or hour, if their store keeps that. */

import { UnsupportedByStoreError } from '../../core/errors.js'
import type { Store } from '../../stores/contract/store.js'

interface HistorySpan {
  readonly step: 'minute' | 'hour'
  readonly fromAt: number
  readonly toAt: number
}

export interface HistoryPoint {
  /** The beginning of its minute or hour. */
  readonly at: number
  readonly enqueued: number
  readonly completed: number
  readonly failed: number
  readonly gauges?: { readonly lagMs: number; readonly waiting: number; readonly running: number }
}

/** The part of a store that keeps them. */
interface HistoryReader {
  read(queues: readonly string[], span: HistorySpan): Promise<HistoryPoint[][]>
}

const minuteMs = 60_000

/** Undefined for a store that keeps none. */
export function historiesOf(store: Store): HistoryReader | undefined {
  return (store as { readonly history?: HistoryReader }).history
}

/** The points of one queue. Throws `UnsupportedByStoreError`. */
export async function historyOf(store: Store, queue: string, span: HistorySpan): Promise<HistoryPoint[]> {
  const reader = historiesOf(store)
  if (reader === undefined)
    throw new UnsupportedByStoreError(
      store.traits.name,
      'a history of queues',
      'Scrape its metrics, and keep them elsewhere.',
    )
  const [points = []] = await reader.read([queue], span)
  return points
}

/** A number for each minute, oldest first. */
export interface Spark {
  readonly enqueued: readonly number[]
  readonly done: readonly number[]
  readonly failed: readonly number[]
}

/** The last minutes of each queue, the one that runs now too; without numbers if nothing of them is kept. */
export async function sparksOf(
  store: Store,
  queues: readonly string[],
  minutes: number,
  now: number,
): Promise<Spark[]> {
  const reader = historiesOf(store)
  if (reader === undefined || queues.length === 0) return queues.map(() => ({ enqueued: [], done: [], failed: [] }))
  const toAt = Math.floor(now / minuteMs) * minuteMs + minuteMs
  const fromAt = toAt - minutes * minuteMs
  const histories = await reader.read(queues, { step: 'minute', fromAt, toAt })
  return histories.map((points) => sparkOf(points, fromAt, minutes))
}

function sparkOf(points: readonly HistoryPoint[], fromAt: number, minutes: number): Spark {
  const numbers = (of: (point: HistoryPoint) => number) => {
    const all = new Array<number>(minutes).fill(0)
    for (const point of points) {
      const i = Math.floor((point.at - fromAt) / minuteMs)
      if (i >= 0 && i < minutes) all[i] = of(point)
    }
    return all
  }
  return {
    enqueued: numbers(({ enqueued }) => enqueued),
    done: numbers(({ completed }) => completed),
    failed: numbers(({ failed }) => failed),
  }
}
