/** The queue rows: each declared or stored queue, with its counts and its limits. */

import { emptyDepth } from '../../client/admin/queue-looks.js'
import { hasCode } from '../../core/errors.js'
import { messageOf } from '../../core/messages/describe.js'
import { defined } from '../../core/values/defined.js'
import { slicesOf } from '../../core/values/pages.js'
import { workersByQueue } from '../../measures/worker-counts.js'
import type { Mill } from '../../mill/mill.js'
import { attendanceOf } from '../../runtime/process/process-peers.js'
import type { QueueDepth } from '../../stores/contract/queue-depth.js'
import type { QueueKind, StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Store } from '../../stores/contract/store.js'
import type { ThrottleState } from '../../stores/contract/throttles.js'
import type { SeenWorker } from '../../stores/contract/worker-registry.js'
import { noCounts } from '../../stores/rules/queue-counts.js'
import type { Spark, SparkReader } from './sparks.js'

/** The fullest window of a throttle. */
interface FullestLimit {
  readonly hits: number
  readonly limit: number
  readonly windowMs: number
  /** Ms until the next job may start; 0: at once. */
  readonly nextMs: number
}

export interface OverviewRow extends Omit<QueueDepth, 'queue' | 'shardLagsMs' | 'lostAt'> {
  readonly name: string
  readonly kind: QueueKind
  readonly declared: boolean
  /** Why the store cannot use the queue; its counts are 0 then. */
  readonly damaged?: string
  readonly shards: number
  /** Absent without a throttle that counts the whole queue. */
  readonly limit?: FullestLimit
  readonly maxRunning?: StoredQueue['maxRunning']
  /** The number of shards to which it is on its way: until then none of its jobs starts. */
  readonly resharding?: number
  /** The number of workers that take its jobs; absent if the store keeps no registry of workers. */
  readonly serving?: number
  readonly spark: Spark
}

/** How many throttles are read at once. */
const throttlesPerTrip = 20

export interface NamedQueue {
  readonly name: string
  readonly kind: QueueKind
  readonly shards: number
  readonly declared: boolean
  readonly stored: StoredQueue | undefined
}

/** The declared queues in their order, then the others. `names`: only these. */
export async function queueRows(
  mill: Mill,
  readSparks: SparkReader,
  names?: readonly string[],
): Promise<OverviewRow[]> {
  return (await queuesAndWorkers(mill, readSparks, names)).queues
}

/** The same with all workers; undefined if the store keeps no registry of them. */
export async function queuesAndWorkers(
  mill: Mill,
  readSparks: SparkReader,
  names?: readonly string[],
): Promise<{ readonly queues: OverviewRow[]; readonly workers: readonly SeenWorker[] | undefined }> {
  const store = await mill.adminParts.look()
  const all = await namedQueues(mill)
  const queues = names === undefined ? all : all.filter(({ name }) => names.includes(name))
  const [{ now, depths }, limits, workers] = await Promise.all([
    depthsOf(store, queues),
    limitsOf(store, queues),
    store.workers?.list(),
  ])
  const workersOf = workers && workersByQueue(attendanceOf(workers).serving)
  const sparks = await readSparks(
    store,
    queues.map(({ name }) => name),
    now,
  )
  const rows = queues.map((queue, i) => ({
    ...rowOf(queue, depths[i]!, limits.get(queue.name), sparks[i]!),
    ...(workersOf && { serving: workersOf.get(queue.name) ?? 0 }),
  }))
  return { queues: rows, workers }
}

/** The declared queues, then those that are only stored. */
export async function namedQueues(mill: Mill): Promise<NamedQueue[]> {
  const stored = (await mill.storedQueues()) ?? []
  const byName = new Map(stored.map((queue) => [queue.name, queue]))
  const declared = [...mill.queues.values()].map(({ name, ordered, shards }): NamedQueue => {
    const found = byName.get(name)
    return { name, kind: ordered ? 'ordered' : 'plain', shards: found?.shards ?? shards, declared: true, stored: found }
  })
  const others = stored.filter(({ name }) => !mill.queues.has(name))
  return [...declared, ...others.map((queue) => ({ ...queue, declared: false, stored: queue }))]
}

/**
 * The counts of all queues in one trip. If one cannot be counted, its error, and the counts of the others one by one.
 */
export async function depthsOf(
  store: Store,
  queues: readonly NamedQueue[],
): Promise<{ readonly now: number; readonly depths: (QueueDepth | Error)[] }> {
  try {
    return await depthsIn(store, queues)
  } catch (error) {
    if (!isOfOneQueue(error)) throw error
  }
  const looks = await Promise.allSettled(queues.map((queue) => depthsIn(store, [queue])))
  const away = looks.find((look) => look.status === 'rejected' && !isOfOneQueue(look.reason))
  if (away?.status === 'rejected') throw away.reason
  const now = Math.max(0, ...looks.map((look) => (look.status === 'fulfilled' ? look.value.now : 0)))
  return { now, depths: looks.map((look) => (look.status === 'fulfilled' ? look.value.depths[0]! : look.reason)) }
}

/** The counts of the queues, in their order; a declared one that is not stored yet is empty. */
async function depthsIn(
  store: Store,
  queues: readonly NamedQueue[],
): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
  const there = store.records === undefined ? queues : queues.filter(({ stored }) => stored !== undefined)
  const { now, depths } = await store.depth(there.map(({ name }) => name))
  const byName = new Map(depths.map((depth) => [depth.queue, depth]))
  return { now, depths: queues.map(({ name }) => byName.get(name) ?? emptyDepth(name)) }
}

function isOfOneQueue(error: unknown): boolean {
  return hasCode(error, 'store-corrupt') || hasCode(error, 'queue-unknown')
}

/** Undefined also if its queue is gone or damaged, which must not prevent others from being shown. */
export async function unlessDamaged<T>(read: Promise<T>): Promise<T | undefined> {
  return read.catch((error: unknown) => {
    if (isOfOneQueue(error)) return undefined
    throw error
  })
}

/** The state of each throttle of these queues, by scope, a few at a time. Queues that share one share one reading. */
export async function throttleStates(
  queues: readonly NamedQueue[],
  read: (queue: string) => Promise<ThrottleState | undefined>,
): Promise<ReadonlyMap<string, ThrottleState>> {
  const firstOf = new Map<string, string>()
  for (const { name, stored } of queues)
    if (stored?.throttle !== undefined && !firstOf.has(stored.throttle.scope)) firstOf.set(stored.throttle.scope, name)
  const found = new Map<string, ThrottleState>()
  for (const some of slicesOf([...firstOf], throttlesPerTrip)) {
    const states = await Promise.all(some.map(([, queue]) => read(queue)))
    for (const [i, [scope]] of some.entries()) if (states[i] !== undefined) found.set(scope, states[i])
  }
  return found
}

/** By queue. */
async function limitsOf(
  { throttles }: Store,
  queues: readonly NamedQueue[],
): Promise<ReadonlyMap<string, FullestLimit>> {
  if (throttles === undefined) return new Map()
  const whole = queues.filter(({ stored }) => stored?.throttle?.by === 'queue')
  const states = await throttleStates(whole, (queue) => unlessDamaged(throttles.state(queue)))
  const limits = whole.flatMap(({ name, stored }) => {
    const state = states.get(stored!.throttle!.scope)
    const limit = state && limitOf(state)
    return limit === undefined ? [] : [[name, limit] as const]
  })
  return new Map(limits)
}

function limitOf({ throttle, hits, forMs }: ThrottleState): FullestLimit | undefined {
  const windows = throttle.rules.map(({ limit, windowMs }, i) => ({ hits: hits[i] ?? 0, limit, windowMs }))
  const [fullest] = windows.sort((a, b) => b.hits / b.limit - a.hits / a.limit)
  return fullest && { ...fullest, nextMs: forMs }
}

function rowOf(
  { name, kind, declared, shards, stored }: NamedQueue,
  depth: QueueDepth | Error,
  limit: FullestLimit | undefined,
  spark: Spark,
): OverviewRow {
  const bounds = defined({ limit, maxRunning: stored?.maxRunning, resharding: stored?.resharding })
  const about = { name, kind, declared, shards, ...bounds, spark }
  if (depth instanceof Error) {
    const { paused = false, draining = false } = stored ?? {}
    return { ...about, ...noCounts, paused, draining, damaged: messageOf(depth) }
  }
  const { queue: _, shardLagsMs: _lags, lostAt: _lost, ...counts } = depth
  return { ...about, ...counts }
}
