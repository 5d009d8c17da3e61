/** The metrics of a mill for one scrape: plain values that may travel between processes, and their samples. Pure. */

import * as v from 'valibot'
import type { WaitCause } from '../core/job/wait-reason.js'
import type { HistoryCounts } from '../stores/contract/history.js'
import { runTimeBoundsMs } from '../stores/rules/history-slots.js'
import { queueCounters } from '../stores/rules/queue-counts.js'
import { type MetricSamples, seconds } from './exposition.js'

/** Bounds, so that the metrics stay few however large the mill is. */
export const mostQueues = 1_000
export const mostThrottles = 200
export const mostWorkers = 200
/** The lags of shards are left out for a queue with more shards. */
export const mostShards = 32
/** The queues that are asked why their jobs wait: those whose first job has been waiting longest, or with the most scheduled ones. */
export const mostStanding = 20

/** Why the first ready job of a queue may have to wait. */
export const standstillReasons = [
  ...(['paused', 'resharding', 'no-worker', 'no-task', 'held', 'throttled', 'max-running', 'exclusive'] as const),
  ...(['suspect', 'slots-full', 'expired'] as const),
] as const satisfies readonly WaitCause[]
export type StandstillReason = (typeof standstillReasons)[number]

const amount = v.pipe(v.number(), v.finite())

const depthShape = v.object({
  ...v.entriesFromList([...queueCounters, 'lagMs'], amount),
  shardLagsMs: v.exactOptional(v.array(amount)),
})

const queueShape = v.object({
  name: v.string(),
  isOrdered: v.boolean(),
  paused: v.boolean(),
  draining: v.boolean(),
  /** Absent: the store cannot count it. */
  depth: v.exactOptional(depthShape),
  /** Absent if there is none, or one by group. */
  runningLimit: v.exactOptional(amount),
  /** Absent if the store does not know the workers. */
  workers: v.exactOptional(amount),
  /** Why its first ready job has not begun, or jobs are put back; empty if nothing keeps them, or nobody asked. */
  standstill: v.array(v.picklist(standstillReasons)),
  /** For each recent hour: its beginning, then its counts as lists of numbers. */
  hours: v.array(v.array(amount)),
})

const throttleShape = v.object({
  name: v.string(),
  rules: v.array(v.object({ limit: amount, windowMs: amount })),
  /** Starts in the window of each rule; empty if they are counted by group. */
  hits: v.array(amount),
  waitMs: amount,
  groups: v.exactOptional(amount),
})

const workerShape = v.object({
  id: v.string(),
  host: v.string(),
  slots: amount,
  running: amount,
  rssBytes: v.exactOptional(amount),
  loopDelayMs: v.exactOptional(amount),
})

/** The parts that may fail by themselves. */
const partShape = v.picklist(['queue', 'throttle', 'workers', 'history'])

const metricsShape = v.object({
  store: v.string(),
  /** Whether its counters are complete. */
  isExact: v.boolean(),
  hasHistory: v.boolean(),
  queues: v.array(queueShape),
  queuesLeftOut: amount,
  throttles: v.array(throttleShape),
  throttlesLeftOut: amount,
  /** Absent if the store keeps no registry, or it could not be read. */
  workers: v.exactOptional(
    v.object({ ...v.entriesFromList(['running', 'stopping', 'silent'], amount), each: v.array(workerShape) }),
  ),
  unread: v.array(partShape),
})

export type MillMetrics = v.InferOutput<typeof metricsShape>
export type QueueMetrics = MillMetrics['queues'][number]
export type ThrottleMetrics = MillMetrics['throttles'][number]
export type WorkerMetrics = NonNullable<MillMetrics['workers']>
export type MetricsPart = MillMetrics['unread'][number]

/** Undefined for an invalid value: it may come from a process in which any code runs. */
export function millMetricsIn(value: unknown): MillMetrics | undefined {
  const { success, output } = v.safeParse(metricsShape, value)
  return success ? output : undefined
}

const jobStates = ['waiting', 'scheduled', 'ready', 'running', 'dead'] as const
const jobEvents = ['enqueued', 'started', 'completed', 'failed', 'dead', 'crashed', 'cancelled'] as const
const boundsInSeconds = runTimeBoundsMs.map(seconds)

/** `gained`: the gains of a queue's history since this process began to report it. */
export function addQueues(
  samples: MetricSamples,
  { queues, queuesLeftOut, isExact, hasHistory }: MillMetrics,
  gained: (queue: string) => HistoryCounts | undefined,
): void {
  samples.add('millrace_queues', {}, queues.length)
  samples.add('millrace_queues_left_out', {}, queuesLeftOut)
  for (const queue of queues) {
    addState(samples, queue)
    if (isExact) addQueueCounters(samples, queue)
    const counts = hasHistory ? gained(queue.name) : undefined
    if (counts !== undefined) addHistory(samples, queue.name, counts)
  }
}

function addState(samples: MetricSamples, queue: QueueMetrics): void {
  const { depth, name } = queue
  const labels = { queue: name }
  samples.add('millrace_queue_paused', labels, Number(queue.paused))
  samples.add('millrace_queue_draining', labels, Number(queue.draining))
  samples.add('millrace_queue_damaged', labels, Number(depth === undefined))
  samples.add('millrace_queue_running_limit', labels, queue.runningLimit)
  samples.add('millrace_queue_workers', labels, queue.workers)
  for (const reason of queue.standstill) samples.add('millrace_queue_standstill', { ...labels, reason }, 1)
  if (depth === undefined) return
  for (const state of jobStates) samples.add('millrace_jobs', { ...labels, state }, depth[state])
  samples.add('millrace_queue_lag_seconds', labels, seconds(depth.lagMs))
  for (const [shard, lagMs] of (depth.shardLagsMs ?? []).entries())
    samples.add('millrace_queue_shard_lag_seconds', { ...labels, shard: String(shard) }, seconds(lagMs))
  samples.add('millrace_queue_retries', labels, depth.retries)
  samples.add('millrace_queue_suspects', labels, depth.suspects)
  if (queue.isOrdered) samples.add('millrace_queue_payloads', labels, depth.payloads)
}

function addQueueCounters(samples: MetricSamples, { name, depth }: QueueMetrics): void {
  const labels = { queue: name }
  samples.add('millrace_jobs_processed_total', labels, depth?.processed)
  samples.add('millrace_attempts_failed_total', labels, depth?.failed)
  samples.add('millrace_attempts_crashed_total', labels, depth?.crashed)
  samples.add('millrace_jobs_expired_total', labels, depth?.expired)
}

function addHistory(samples: MetricSamples, queue: string, counts: HistoryCounts): void {
  for (const event of jobEvents) samples.add('millrace_job_events_total', { queue, event }, counts[event])
  const times = { bounds: boundsInSeconds, counts: counts.runTimes, sum: seconds(counts.runMs) }
  samples.addHistogram('millrace_job_duration_seconds', { queue }, times)
}

export function addThrottles(samples: MetricSamples, { throttles, throttlesLeftOut }: MillMetrics): void {
  samples.add('millrace_throttles_left_out', {}, throttlesLeftOut)
  for (const throttle of throttles) addThrottle(samples, throttle)
}

function addThrottle(samples: MetricSamples, { name, rules, hits, waitMs, groups }: ThrottleMetrics): void {
  for (const [i, { limit, windowMs }] of rules.entries()) {
    const labels = { throttle: name, window: String(seconds(windowMs)) }
    samples.add('millrace_throttle_limit', labels, limit)
    samples.add('millrace_throttle_hits', labels, hits[i])
  }
  samples.add('millrace_throttle_wait_seconds', { throttle: name }, seconds(waitMs))
  samples.add('millrace_throttle_groups', { throttle: name }, groups)
}

export function addWorkers(samples: MetricSamples, { workers }: MillMetrics): void {
  if (workers === undefined) return
  samples.add('millrace_workers', { state: 'running' }, workers.running)
  samples.add('millrace_workers', { state: 'stopping' }, workers.stopping)
  samples.add('millrace_workers', { state: 'silent' }, workers.silent)
  for (const { id, host, slots, running, rssBytes, loopDelayMs } of workers.each) {
    const labels = { worker: id, host }
    samples.add('millrace_worker_slots', labels, slots)
    samples.add('millrace_worker_running', labels, running)
    samples.add('millrace_worker_resident_memory_bytes', labels, rssBytes)
    samples.add('millrace_worker_loop_delay_seconds', labels, loopDelayMs && seconds(loopDelayMs))
  }
}
