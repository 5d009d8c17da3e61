/** The samples of a mill: its throttles and its workers, on the sheet. Pure. */

import type { MetricSheet } from './metric-sheet.js'
import type { MillReading, ThrottleReading } from './mill-reading.js'
import { seconds } from './second.js'

export function tellThrottles(sheet: MetricSheet, { throttles, throttlesLeftOut }: MillReading): void {
  sheet.tell('millrace_throttles_left_out', {}, throttlesLeftOut)
  for (const throttle of throttles) tellThrottle(sheet, throttle)
}

function tellThrottle(sheet: MetricSheet, { name, rules, hits, waitMs, groups }: ThrottleReading): void {
  for (const [i, { limit, windowMs }] of rules.entries()) {
    const labels = { throttle: name, window: String(seconds(windowMs)) }
    sheet.tell('millrace_throttle_limit', labels, limit)
    sheet.tell('millrace_throttle_hits', labels, hits[i])
  }
  sheet.tell('millrace_throttle_wait_seconds', { throttle: name }, seconds(waitMs))
  sheet.tell('millrace_throttle_groups', { throttle: name }, groups)
}

export function tellWorkers(sheet: MetricSheet, { workers }: MillReading): void {
  if (workers === undefined) return
  sheet.tell('millrace_workers', { state: 'running' }, workers.running)
  sheet.tell('millrace_workers', { state: 'stopping' }, workers.stopping)
  for (const { id, host, slots, running, rssBytes, loopDelayMs } of workers.each) {
    const labels = { worker: id, host }
    sheet.tell('millrace_worker_slots', labels, slots)
    sheet.tell('millrace_worker_running', labels, running)
    sheet.tell('millrace_worker_resident_memory_bytes', labels, rssBytes)
    sheet.tell('millrace_worker_loop_delay_seconds', labels, loopDelayMs && seconds(loopDelayMs))
  }
}
