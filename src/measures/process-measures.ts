/** The measures of a process: its vital figures, and its counts of failures and of other trouble. */

import * as v from 'valibot'
import type { MetricSheet } from './metric-sheet.js'
import { seconds } from './second.js'

/** The most rows of failures of one process: pairs of a queue and a reason. */
export const mostFailureRows = 500

const amount = v.pipe(v.number(), v.finite(), v.minValue(0))

const measuresShape = v.object({
  rssBytes: amount,
  heapBytes: amount,
  loopDelayMs: amount,
  upMs: amount,
  /** Since the process began to count. */
  failures: v.pipe(v.array(v.tuple([v.string(), v.string(), amount])), v.maxLength(mostFailureRows)),
  events: v.record(v.string(), amount),
})

/** The form in which they travel between processes. */
export type ProcessMeasures = v.InferOutput<typeof measuresShape>
export type ProcessCounts = Pick<ProcessMeasures, 'failures' | 'events'>

export const noProcessCounts: ProcessCounts = { failures: [], events: {} }

/** Undefined for an invalid value. */
export function processMeasuresIn(value: unknown): ProcessMeasures | undefined {
  const { success, output } = v.safeParse(measuresShape, value)
  return success ? output : undefined
}

export function addedProcessCounts(one: ProcessCounts, other: ProcessCounts): ProcessCounts {
  const failures = new Map(one.failures.map((row) => [JSON.stringify(row.slice(0, 2)), row]))
  for (const [queue, reason, count] of other.failures) {
    const key = JSON.stringify([queue, reason])
    failures.set(key, [queue, reason, count + (failures.get(key)?.[2] ?? 0)])
  }
  const events = { ...one.events }
  for (const [name, count] of Object.entries(other.events)) events[name] = count + (events[name] ?? 0)
  return { failures: [...failures.values()], events }
}

export function tellVitals(
  sheet: MetricSheet,
  pid: number,
  { rssBytes, heapBytes, loopDelayMs, upMs }: Omit<ProcessMeasures, keyof ProcessCounts>,
): void {
  const labels = { pid: String(pid) }
  sheet.tell('millrace_process_resident_memory_bytes', labels, rssBytes)
  sheet.tell('millrace_process_heap_bytes', labels, heapBytes)
  sheet.tell('millrace_process_loop_delay_seconds', labels, seconds(loopDelayMs))
  sheet.tell('millrace_process_uptime_seconds', labels, seconds(upMs))
}

export function tellCounts(sheet: MetricSheet, { failures, events }: ProcessCounts): void {
  for (const [queue, reason, count] of failures) sheet.tell('millrace_failures_total', { queue, reason }, count)
  for (const [event, count] of Object.entries(events)) sheet.tell('millrace_events_total', { event }, count)
}
