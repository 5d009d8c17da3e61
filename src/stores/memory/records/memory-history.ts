/** The history of the memory store: the slots of each queue, by their beginning. */

import type { History, HistoryStep } from '../../contract/history.js'
import {
  countNumbers,
  countsLength,
  gaugeNumbers,
  historySteps,
  oldestSlotAt,
  pointOf,
  slotAt,
} from '../../rules/history-slots.js'

type HistorySlots = Map<number, number[]>

/** By queue. */
export type MemoryHistory = Map<string, Readonly<Record<HistoryStep, HistorySlots>>>

/** `history` throws `ClosedError` on a closed handle. */
export function memoryHistory(now: () => number, history: () => MemoryHistory): History {
  return {
    async add(entries) {
      const known = history()
      for (const { queue, agoMs, counts, gauges } of entries) {
        const of = known.get(queue) ?? { minute: new Map(), hour: new Map() }
        known.set(queue, of)
        const numbers = countNumbers(counts)
        for (const step of historySteps) addTo(of[step], slotAt(step, now() - agoMs), numbers, gaugeNumbers(gauges))
      }
      for (const of of known.values()) for (const step of historySteps) forget(of[step], oldestSlotAt(step, now()))
    },

    async read(queues, { step, fromAt, toAt }) {
      const known = history()
      const oldest = Math.max(fromAt, oldestSlotAt(step, now()))
      return queues.map((queue) =>
        [...(known.get(queue)?.[step] ?? [])]
          .filter(([at]) => at >= oldest && at < toAt)
          .sort(([a], [b]) => a - b)
          .map(([at, numbers]) => pointOf(at, numbers)),
      )
    },
  }
}

function addTo(slots: HistorySlots, at: number, counts: readonly number[], gauges: readonly number[]): void {
  const before = slots.get(at) ?? []
  const sums = counts.map((count, i) => count + (before[i] ?? 0))
  slots.set(at, [...sums, ...(gauges.length > 0 ? gauges : before.slice(countsLength))])
}

function forget(slots: HistorySlots, before: number): void {
  for (const at of slots.keys()) if (at < before) slots.delete(at)
}
