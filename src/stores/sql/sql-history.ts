/** The history in a SQL store: a row for each minute and each hour of a queue. */

import type { HistoryEntry, HistoryPoint, HistorySpan } from '../contract/history.js'
import { upkeepLimit } from '../rules/bounds.js'
import { countNumbers, gaugeNumbers, historySteps, oldestSlotAt, pointOf, slotAt } from '../rules/history-slots.js'
import { all, run, type SqlSteps } from './sql-steps.js'

/** The columns of `history`, in the order in which `countNumbers` and `gaugeNumbers` return values. */
export const historyCounts: readonly string[] = [
  ...['enqueued', 'started', 'completed', 'failed', 'dead', 'crashed', 'cancelled', 'run_ms'],
  ...Array.from({ length: 7 }, (_, i) => `runs_${i}`),
]
export const historyGauges: readonly string[] = ['lag_ms', 'waiting', 'running']

const columns = [...historyCounts, ...historyGauges]
const sums = historyCounts.map((name) => `${name} = history.${name} + excluded.${name}`)
const latest = historyGauges.map((name) => `${name} = coalesce(excluded.${name}, history.${name})`)
const addText = `INSERT INTO history (queue, step, at, ${columns.join(', ')}) VALUES (?, ?, ?, ${columns.map(() => '?').join(', ')})
       ON CONFLICT (queue, step, at) DO UPDATE SET ${[...sums, ...latest].join(', ')}`

/** Also removes the rows of each step that are too old, at most `upkeepLimit` more than it adds. */
export function* addHistory(entries: readonly HistoryEntry[], now: number): SqlSteps<void> {
  for (const { queue, agoMs, counts, gauges } of entries) {
    const numbers = [...countNumbers(counts), ...(gauges === undefined ? [null, null, null] : gaugeNumbers(gauges))]
    for (const [i, step] of historySteps.entries()) {
      const at = slotAt(step, now - agoMs)
      if (at >= oldestSlotAt(step, now)) yield* run(addText, queue, i, at, ...numbers)
    }
  }
  for (const [i, step] of historySteps.entries()) {
    const old = yield* all<{ queue: string; at: number }>(
      'SELECT queue, at FROM history WHERE step = ? AND at < ? ORDER BY at LIMIT ?',
      ...[i, oldestSlotAt(step, now), entries.length + upkeepLimit],
    )
    for (const { queue, at } of old)
      yield* run('DELETE FROM history WHERE queue = ? AND step = ? AND at = ?', queue, i, at)
  }
}

export function* readHistory(
  queues: readonly string[],
  { step, fromAt, toAt }: HistorySpan,
  now: number,
): SqlSteps<HistoryPoint[][]> {
  const from = Math.max(fromAt, oldestSlotAt(step, now))
  const points: HistoryPoint[][] = []
  for (const queue of queues) {
    const rows = yield* all<Record<string, number | null>>(
      `SELECT at, ${columns.join(', ')} FROM history WHERE queue = ? AND step = ? AND at >= ? AND at < ? ORDER BY at`,
      ...[queue, historySteps.indexOf(step), from, toAt],
    )
    points.push(
      rows.map((row) =>
        pointOf(
          row['at']!,
          columns.map((name) => row[name]!).filter((number) => number !== null),
        ),
      ),
    )
  }
  return points
}
