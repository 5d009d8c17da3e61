/** The samples of queues: a reading of the store, on the sheet. Pure. */

import type { HistoryCounts } from '../stores/contract/history.js'
import { runTimeBoundsMs } from '../stores/rules/history-slots.js'
import type { MetricSheet } from './metric-sheet.js'
import type { MillReading, QueueReading } from './mill-reading.js'
import { seconds } from './second.js'

const jobStates = ['ready', 'scheduled', 'running', 'dead'] as const
const jobEvents = ['enqueued', 'started', 'completed', 'failed', 'dead', 'crashed', 'cancelled'] as const
const boundsInSeconds = runTimeBoundsMs.map(seconds)

/** `gained`: the gains of a queue's history since this process began to report it. */
export function tellQueues(
  sheet: MetricSheet,
  { queues, queuesLeftOut, isExact, hasHistory }: MillReading,
  gained: (queue: string) => HistoryCounts | undefined,
): void {
  sheet.tell('millrace_queues', {}, queues.length)
  sheet.tell('millrace_queues_left_out', {}, queuesLeftOut)
  for (const queue of queues) {
    tellState(sheet, queue)
    if (isExact) tellCounters(sheet, queue)
    const counts = hasHistory ? gained(queue.name) : undefined
    if (counts !== undefined) tellHistory(sheet, queue.name, counts)
  }
}

function tellState(sheet: MetricSheet, queue: QueueReading): void {
  const { depth, name } = queue
  const labels = { queue: name }
  sheet.tell('millrace_queue_paused', labels, Number(queue.paused))
  sheet.tell('millrace_queue_draining', labels, Number(queue.draining))
  sheet.tell('millrace_queue_damaged', labels, Number(depth === undefined))
  sheet.tell('millrace_queue_running_limit', labels, queue.runningLimit)
  sheet.tell('millrace_queue_workers', labels, queue.workers)
  if (depth === undefined) return
  for (const state of jobStates) sheet.tell('millrace_jobs', { ...labels, state }, depth[state])
  sheet.tell('millrace_queue_lag_seconds', labels, seconds(depth.lagMs))
  for (const [shard, lagMs] of (depth.shardLagsMs ?? []).entries())
    sheet.tell('millrace_queue_shard_lag_seconds', { ...labels, shard: String(shard) }, seconds(lagMs))
  sheet.tell('millrace_queue_retries', labels, depth.retries)
  sheet.tell('millrace_queue_suspects', labels, depth.suspects)
  if (queue.isOrdered) sheet.tell('millrace_queue_payloads', labels, depth.payloads)
}

function tellCounters(sheet: MetricSheet, { name, depth }: QueueReading): void {
  const labels = { queue: name }
  sheet.tell('millrace_jobs_processed_total', labels, depth?.processed)
  sheet.tell('millrace_attempts_failed_total', labels, depth?.failed)
  sheet.tell('millrace_attempts_crashed_total', labels, depth?.crashed)
  sheet.tell('millrace_jobs_expired_total', labels, depth?.expired)
}

function tellHistory(sheet: MetricSheet, queue: string, counts: HistoryCounts): void {
  for (const event of jobEvents) sheet.tell('millrace_job_events_total', { queue, event }, counts[event])
  const times = { bounds: boundsInSeconds, counts: counts.runTimes, sum: seconds(counts.runMs) }
  sheet.tellHistogram('millrace_job_duration_seconds', { queue }, times)
}
