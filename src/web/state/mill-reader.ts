/**
 * The mill reader: reads the metrics of a mill for one scrape, with a bounded number of calls: four, and one for each
 * throttle, at most 200. While a queue is damaged all queues are counted one by one.
 */

import { defined } from '../../core/values/defined.js'
import { hourNumbers } from '../../measures/history-counters.js'
import {
  type MetricsPart,
  type MillMetrics,
  mostQueues,
  mostShards,
  mostThrottles,
  type QueueMetrics,
  type ThrottleMetrics,
} from '../../measures/mill-metrics.js'
import { workerMetrics, workersByQueue } from '../../measures/worker-counts.js'
import type { Mill } from '../../mill/mill.js'
import { attendanceOf } from '../../runtime/process/process-peers.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { Store } from '../../stores/contract/store.js'
import { slotAt, stepMs } from '../../stores/rules/history-slots.js'
import { depthsOf, type NamedQueue, namedQueues } from './queue-rows.js'

/** How many throttles are read at once. */
const throttlesPerTrip = 20
/** A process whose store was away writes its counts at most this late. */
const latestMs = stepMs.hour

/** Rejects if the store cannot be reached; other parts that cannot be read are named in its answer. */
export async function readMill(mill: Mill): Promise<MillMetrics> {
  const store = await mill.adminParts.look()
  const all = await namedQueues(mill)
  const queues = all.slice(0, mostQueues)
  const unread = new Set<MetricsPart>()
  const attempt = async <T>(part: MetricsPart, read: Promise<T> | undefined): Promise<T | undefined> =>
    read?.catch(() => void unread.add(part))
  const { now, depths } = await depthsOf(store, queues)
  const [hours, workers, throttles] = await Promise.all([
    attempt('history', hoursOf(store, queues, now)),
    attempt('workers', store.workers?.list()),
    throttlesOf(store, queues, attempt),
  ])
  if (depths.some((depth) => depth instanceof Error)) unread.add('queue')
  const live = workers && attendanceOf(workers).serving
  const workersOf = live && workersByQueue(live)
  return {
    store: store.traits.name,
    isExact: store.traits.exactDepth,
    hasHistory: store.history !== undefined,
    queues: queues.map((queue, i) => ({
      ...queueMetrics(queue, depths[i]!),
      ...(workersOf && { workers: workersOf.get(queue.name) ?? 0 }),
      hours: hours?.[i] ?? [],
    })),
    queuesLeftOut: all.length - queues.length,
    ...throttles,
    ...(live && { workers: workerMetrics(live) }),
    unread: [...unread],
  }
}

/** For each queue the hours to which counts may still be added. */
async function hoursOf(store: Store, queues: readonly NamedQueue[], now: number): Promise<number[][][]> {
  const span = { step: 'hour', fromAt: slotAt('hour', Math.max(0, now - latestMs)), toAt: now + stepMs.hour } as const
  const histories = await store.history?.read(
    queues.map(({ name }) => name),
    span,
  )
  return (histories ?? []).map((points) => points.map((point) => hourNumbers(point.at, point)))
}

function queueMetrics(
  { name, kind, stored }: NamedQueue,
  depth: QueueDepth | Error,
): Omit<QueueMetrics, 'workers' | 'hours'> {
  const limit = stored?.maxRunning
  const about = { name, isOrdered: kind === 'ordered', ...(typeof limit === 'number' && { runningLimit: limit }) }
  if (depth instanceof Error) return { ...about, paused: stored?.paused ?? false, draining: stored?.draining ?? false }
  const { paused, draining, queue: _, lostAt: _lost, shardLagsMs, ...counts } = depth
  const lags = shardLagsMs !== undefined && shardLagsMs.length <= mostShards ? { shardLagsMs: [...shardLagsMs] } : {}
  return { ...about, paused, draining, depth: { ...counts, ...lags } }
}

/** A throttle that queues share is read once. */
async function throttlesOf(
  { throttles }: Store,
  queues: readonly NamedQueue[],
  attempt: <T>(part: MetricsPart, read: Promise<T>) => Promise<T | undefined>,
): Promise<Pick<MillMetrics, 'throttles' | 'throttlesLeftOut'>> {
  const byScope = new Map<string, string>()
  if (throttles !== undefined)
    for (const { name, stored } of queues)
      if (stored?.throttle !== undefined && !byScope.has(stored.throttle.scope))
        byScope.set(stored.throttle.scope, name)
  const asked = [...byScope].slice(0, mostThrottles)
  const read = async ([scope, queue]: readonly [string, string]): Promise<ThrottleMetrics[]> => {
    const state = await attempt('throttle', throttles!.state(queue))
    if (state === undefined) return []
    const { throttle, hits, forMs, groups } = state
    const rules = throttle.rules.map(({ limit, windowMs }) => ({ limit, windowMs }))
    return [{ name: scope, rules, hits: [...hits], waitMs: forMs, ...defined({ groups }) }]
  }
  const found: ThrottleMetrics[] = []
  for (let from = 0; from < asked.length; from += throttlesPerTrip)
    found.push(...(await Promise.all(asked.slice(from, from + throttlesPerTrip).map(read))).flat())
  return { throttles: found, throttlesLeftOut: byScope.size - asked.length }
}
