/** The slots of a history: the minutes and hours to which counts are added, and how long each is kept. Pure. */

import type { HistoryCounts, HistoryGauges, HistoryPoint, HistoryStep } from '../contract/history.js'

export const historySteps: readonly HistoryStep[] = ['minute', 'hour']
export const stepMs: Readonly<Record<HistoryStep, number>> = { minute: 60_000, hour: 3_600_000 }
export const historyKeptMs: Readonly<Record<HistoryStep, number>> = { minute: 7 * 86_400_000, hour: 366 * 86_400_000 }

/** Upper bounds of the classes of run times; the last class has none. */
export const runTimeBoundsMs: readonly number[] = [10, 100, 1_000, 10_000, 60_000, 600_000]

/**
 * The class that a run time belongs to, from 0.
 * @internal
 */
export function runTimeClass(runMs: number): number {
  let i = 0
  while (i < runTimeBoundsMs.length && runMs > runTimeBoundsMs[i]!) i += 1
  return i
}

/** The beginning of the minute or hour that contains an instant. */
export function slotAt(step: HistoryStep, at: number): number {
  return Math.floor(at / stepMs[step]) * stepMs[step]
}

/** The beginning of the oldest slot that is kept: the first one that has not ended longer ago than the kept time. */
export function oldestSlotAt(step: HistoryStep, now: number): number {
  return slotAt(step, now - historyKeptMs[step])
}

/** The counts other than `runTimes`, in the order in which stores keep them. */
const countNames = [
  'enqueued',
  'started',
  'completed',
  'failed',
  'dead',
  'crashed',
  'cancelled',
  'runMs',
] as const satisfies readonly (keyof HistoryCounts)[]

const gaugeNames = ['lagMs', 'waiting', 'running'] as const satisfies readonly (keyof HistoryGauges)[]

/** The length of the list that `countNumbers` returns. */
export const countsLength = countNames.length + runTimeBoundsMs.length + 1

/** Counts as a list of whole numbers: those of `countNames`, then the run times. */
export function countNumbers(counts: HistoryCounts): number[] {
  return [...countNames.map((name) => counts[name]), ...counts.runTimes].map(Math.round)
}

/** Gauges as a list of whole numbers; empty if there are none. */
export function gaugeNumbers(gauges: HistoryGauges | undefined): number[] {
  return gauges === undefined ? [] : gaugeNames.map((name) => Math.round(gauges[name]))
}

/** The point made from both lists, one after the other. */
export function pointOf(at: number, numbers: readonly number[]): HistoryPoint {
  const named = (names: readonly string[], from: number) =>
    Object.fromEntries(names.map((name, i) => [name, numbers[from + i]!]))
  return {
    at,
    ...(named(countNames, 0) as unknown as Omit<HistoryCounts, 'runTimes'>),
    runTimes: numbers.slice(countNames.length, countsLength),
    ...(numbers.length > countsLength ? { gauges: named(gaugeNames, countsLength) as unknown as HistoryGauges } : {}),
  }
}
