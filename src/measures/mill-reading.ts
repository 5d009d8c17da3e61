/** The mill reading: the figures of a mill for one scrape, as plain values that may travel between processes. */

import * as v from 'valibot'

/** Bounds of a reading, so that it stays small however large the mill is. */
export const mostQueues = 1_000
export const mostThrottles = 200
export const mostWorkers = 200
/** The lags of shards are left out for a queue with more shards. */
export const mostShards = 32

const amount = v.pipe(v.number(), v.finite())

const depthShape = v.object({
  ready: amount,
  scheduled: amount,
  running: amount,
  dead: amount,
  retries: amount,
  suspects: amount,
  payloads: amount,
  lagMs: amount,
  processed: amount,
  failed: amount,
  crashed: amount,
  expired: amount,
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

/** The parts of a reading that may fail by themselves. */
const partShape = v.picklist(['queue', 'throttle', 'workers', 'history'])

const readingShape = v.object({
  store: v.string(),
  /** Whether its counters are complete. */
  isExact: v.boolean(),
  hasHistory: v.boolean(),
  queues: v.array(queueShape),
  queuesLeftOut: amount,
  throttles: v.array(throttleShape),
  throttlesLeftOut: amount,
  /** Absent if the store keeps no registry, or it could not be read. */
  workers: v.exactOptional(v.object({ running: amount, stopping: amount, each: v.array(workerShape) })),
  unread: v.array(partShape),
})

export type MillReading = v.InferOutput<typeof readingShape>
export type QueueReading = MillReading['queues'][number]
export type ThrottleReading = MillReading['throttles'][number]
export type WorkersReading = NonNullable<MillReading['workers']>
export type ReadingPart = MillReading['unread'][number]

/** Undefined for an invalid value: it may come from a process in which any code runs. */
export function readingIn(value: unknown): MillReading | undefined {
  const { success, output } = v.safeParse(readingShape, value)
  return success ? output : undefined
}
