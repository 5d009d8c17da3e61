/**
 * The mill reader: reads the metrics of a mill for one scrape, with a bounded number of calls: four, one for each throttle,
 * at most 200, up to four for each of the 20 queues whose jobs have been waiting longest, and one for each of the 20 queues
 * with the most scheduled jobs. While a queue is damaged all queues are counted one by one.
 */

import { explainedHead, unknownTasks } from '../../client/jobs/wait-facts.js'
import type { WaitCause } from '../../core/job/wait-reason.js'
import { defined } from '../../core/values/defined.js'
import { hourNumbers } from '../../measures/history-counters.js'
import {
  type MetricsPart,
  type MillMetrics,
  mostQueues,
  mostShards,
  mostStanding,
  mostThrottles,
  type QueueMetrics,
  type StandstillReason,
  standstillReasons,
  type ThrottleMetrics,
} from '../../measures/mill-metrics.js'
import { workerMetrics, workersByQueue } from '../../measures/worker-counts.js'
import type { Mill } from '../../mill/mill.js'
import { type Attendance, attendanceOf } from '../../runtime/process/process-peers.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { Store } from '../../stores/contract/store.js'
import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { slotAt, stepMs } from '../../stores/rules/history-slots.js'
import { depthsOf, type NamedQueue, namedQueues, throttleStates } from './queue-rows.js'

/** A process whose store was away writes its counts at most this late. */
const latestMs = stepMs.hour

/** Reads a part of the metrics that may fail by itself; undefined if it does. */
type Attempt = <T>(part: MetricsPart, read: Promise<T> | undefined) => Promise<T | undefined>

/** Rejects if the store cannot be reached; other parts that cannot be read are named in its answer. */
export async function readMill(mill: Mill): Promise<MillMetrics> {
  const store = await mill.adminParts.look()
  const all = await namedQueues(mill)
  const queues = all.slice(0, mostQueues)
  const unread = new Set<MetricsPart>()
  const attempt: Attempt = async (part, read) => read?.catch(() => void unread.add(part))
  const { now, depths } = await depthsOf(store, queues)
  const [hours, workers, throttles] = await Promise.all([
    attempt('history', hoursOf(store, queues, now)),
    attempt('workers', store.workers?.list()),
    throttlesOf(store, queues, attempt),
  ])
  if (depths.some((depth) => depth instanceof Error)) unread.add('queue')
  const attendance = workers && attendanceOf(workers)
  const workersOf = attendance && workersByQueue(attendance.serving)
  const standstills = await standstillsOf(store, queues, depths, { attendance, now, attempt })
  return {
    store: store.traits.name,
    isExact: store.traits.exactDepth,
    hasHistory: store.history !== undefined,
    queues: queues.map((queue, i) => ({
      ...queueMetrics(queue, depths[i]!),
      ...(workersOf && { workers: workersOf.get(queue.name) ?? 0 }),
      standstill: standstills.get(queue.name) ?? [],
      hours: hours?.[i] ?? [],
    })),
    queuesLeftOut: all.length - queues.length,
    ...throttles,
    ...(attendance && { workers: workerMetrics(attendance.serving, attendance.silent.length) }),
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
): Omit<QueueMetrics, 'workers' | 'standstill' | 'hours'> {
  const limit = stored?.maxRunning
  const about = { name, isOrdered: kind === 'ordered', ...(typeof limit === 'number' && { runningLimit: limit }) }
  if (depth instanceof Error) return { ...about, paused: stored?.paused ?? false, draining: stored?.draining ?? false }
  const { paused, draining, queue: _, lostAt: _lost, shardLagsMs, ...counts } = depth
  const lags = shardLagsMs !== undefined && shardLagsMs.length <= mostShards ? { shardLagsMs: [...shardLagsMs] } : {}
  return { ...about, paused, draining, depth: { ...counts, ...lags } }
}

interface Asking {
  /** Absent if the store keeps no registry of workers, or it could not be read. */
  readonly attendance: Attendance | undefined
  readonly now: number
  readonly attempt: Attempt
}

/** The scheduled jobs of a queue that are looked at: those that are due next. */
const mostPutBack = 20

/**
 * Why the first ready job has not begun, by queue, of those whose first job has been waiting longest; and whether jobs are
 * put back as no worker knows their task, of those with the most scheduled jobs.
 */
async function standstillsOf(
  store: Store,
  queues: readonly NamedQueue[],
  depths: readonly (QueueDepth | Error)[],
  { attendance, now, attempt }: Asking,
): Promise<ReadonlyMap<string, StandstillReason[]>> {
  if (store.records === undefined) return new Map()
  const known = queues.flatMap(({ stored: queue }, i) => {
    const depth = depths[i]!
    return queue === undefined || depth instanceof Error ? [] : [{ queue, depth }]
  })
  const served = known.map((one) => ({ ...one, workers: attendance && attendanceIn(one.queue.name, attendance) }))
  const waiting = served.filter(({ depth }) => depth.ready > 0).sort((a, b) => b.depth.lagMs - a.depth.lagMs)
  const later = served.filter(({ depth }) => depth.scheduled > 0)
  const fullest = later.sort((a, b) => b.depth.scheduled - a.depth.scheduled)
  const found = await Promise.all([
    ...waiting.slice(0, mostStanding).map(async (one) => {
      const reasons = await attempt('queue', explainedHead(store, one, now))
      return [one.queue.name, reasons ?? []] as const
    }),
    ...fullest.slice(0, mostStanding).map(async ({ queue: { name }, workers }) => {
      const byTask = await attempt('queue', unknownTasks(store, name, workers, mostPutBack))
      return [name, [...(byTask?.values() ?? [])].flat()] as const
    }),
  ])
  const causes = new Map<string, Set<WaitCause>>()
  for (const [name, reasons] of found)
    causes.set(name, new Set([...(causes.get(name) ?? []), ...reasons.map(({ why }) => why)]))
  return new Map([...causes].map(([name, all]) => [name, standstillReasons.filter((why) => all.has(why))]))
}

/** The workers that take jobs of the queue. */
function attendanceIn(queue: string, { serving, silent }: Attendance): Attendance {
  const takes = ({ queues }: SeenWorker) => queues.includes(queue)
  return { serving: serving.filter(takes), silent: silent.filter(takes) }
}

async function throttlesOf(
  { throttles }: Store,
  queues: readonly NamedQueue[],
  attempt: Attempt,
): Promise<Pick<MillMetrics, 'throttles' | 'throttlesLeftOut'>> {
  if (throttles === undefined) return { throttles: [], throttlesLeftOut: 0 }
  const scopes = [...new Set(queues.flatMap(({ stored }) => stored?.throttle?.scope ?? []))]
  const asked = new Set(scopes.slice(0, mostThrottles))
  const limited = queues.filter(({ stored }) => stored?.throttle !== undefined && asked.has(stored.throttle.scope))
  const states = await throttleStates(limited, (queue) => attempt('throttle', throttles.state(queue)))
  const metrics = [...states].map(([name, { throttle, hits, forMs, groups }]): ThrottleMetrics => {
    const rules = throttle.rules.map(({ limit, windowMs }) => ({ limit, windowMs }))
    return { name, rules, hits: [...hits], waitMs: forMs, ...defined({ groups }) }
  })
  return { throttles: metrics, throttlesLeftOut: scopes.length - asked.size }
}
