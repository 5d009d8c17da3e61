/** A queue: its name, its policy, and what each of its options means. */

import * as v from 'valibot'
import type { Random } from '../platform/clock.js'
import type { Duration } from '../values/duration.js'
import { callable, duration, exactly, whole } from '../values/option-check.js'
import type { Throttle } from './throttle.js'
import { type ThrottleOptions, throttleOf, throttleSchema } from './throttle-options.js'

/** Keep at most so many, for at most so long; both absent: as many and as long as the store lasts. */
interface Keep {
  readonly age?: Duration
  readonly count?: number
}

/** Of what of an ordered queue at most one claim runs at a time: of an id, or, as in Lowkiq, one batch of a whole shard. */
export type Exclusive = 'id' | 'shard'

/** A shard of an ordered queue, as the order of its shards sees it. */
export interface ShardCandidate {
  readonly shard: number
  /** Ms since its oldest ready job was due; absent where none is ready. */
  readonly headAgeMs?: number
}

/**
 * In which order a claim asks the shards of an ordered queue: the one whose oldest ready job has waited longest first, each
 * in its turn, or a function of the user's. It answers their numbers, each at most once; those left out are not asked this time.
 */
export type ShardOrder =
  | 'lag'
  | 'sequential'
  | ((shards: readonly ShardCandidate[], random: Random) => readonly number[])

/** Which payloads of an id an ordered queue keeps: all, or only the one with the highest score. */
export type Merge = 'all' | 'latest'

export interface QueueOptions {
  /** Lottery tickets, 1 … 100. Default 10. */
  readonly weight?: number
  /**
   * Most jobs that one claim takes. Default: as many as there are free slots and a prefetch that is measured, at most 250
   * or what the store allows; with `renewLease: false` 10.
   */
  readonly claimSize?: number
  /** Claims made on this queue each time the selector puts it first. Default 1. */
  readonly iterations?: number
  /** Longest wait for a ring before an idle worker looks again. Default `'5s'`. */
  readonly longPoll?: Duration
  /** How long a claim holds without a beat, at least `'3s'`. Default `'30s'`; with `renewLease: false` `'10m'`. */
  readonly lease?: Duration
  /**
   * Whether claims are renewed while their jobs run. False: a claim takes `claimSize` jobs that one slot runs one after
   * the other within one lease, and a job whose `timeLimit` is not less than what is left of it is put back. Where the queue
   * has a throttle or `maxRunning`, a claim is for free slots only, and each of its jobs has one to itself: what a limit
   * counts is to start then. Default true.
   */
  readonly renewLease?: boolean
  /** Order among equal priorities; not of an ordered queue, which goes by time. Fixed at first use. Default `'fifo'`. */
  readonly order?: 'fifo' | 'lifo'
  /**
   * Jobs of a group run one after the other, in the order in which they were enqueued; those without a group go by themselves. Plain
   * queues on SQS only, where it makes a FIFO queue. Fixed at first use. Default false.
   */
  readonly fifo?: boolean
  /** One claim of an id at a time, payloads merge. Fixed at first use. Default: true where an ordered task names the queue. */
  readonly ordered?: boolean
  /**
   * Over how many shards an ordered queue is spread, and any other on a store with several servers; elsewhere it has no
   * effect. The number that was given first counts. Bounds are divided by it; order and `maxPending` then hold in each
   * shard. Default 1, of an ordered queue 5.
   */
  readonly shards?: number
  /**
   * Ordered queues only: of what at most one claim runs at a time, of an id (`'id'`) or of a whole shard (`'shard'`: as in
   * Lowkiq, one batch). Fixed at first use. Default `'id'`.
   */
  readonly exclusive?: Exclusive
  /** Ordered queues only: in which order their shards are asked. Default `'lag'`. */
  readonly shardOrder?: ShardOrder
  /** Most waiting jobs, of an ordered queue most waiting payloads; more are refused with `QueueFullError`. Default: no limit. */
  readonly maxPending?: number
  /** A job that took its worker with it so often, while alone, is buried. Default 3. */
  readonly maxCrashes?: number
  /**
   * Limits of pace, over all processes: one, or several with different windows. Fixed at first use but for what
   * `millrace queues throttle` sets; where left out the stored one holds. Default: none.
   */
  readonly throttle?: ThrottleOptions | readonly ThrottleOptions[]
  /**
   * Most jobs that run at once over all processes, or of each group; of groups only in a queue of one shard. A job that was
   * claimed counts until it is settled. Default: no limit.
   */
  readonly maxRunning?: number | { readonly perGroup: number }
  readonly retention?: {
    /**
     * Results of completed jobs; jobs of ordered queues have none. Default `{ age: '1h', count: 1000 }`, of those whose handlers
     * returned something; where you give it, a job whose handler returned nothing is kept as well.
     */
    readonly results?: Keep | 'untilDeleted' | 'none'
    /** Dead jobs. Default `'untilDeleted'`. */
    readonly dead?: Keep | 'untilDeleted'
  }
}

/** How long and how many; a number that is absent does not limit. */
export interface Kept {
  readonly ageMs?: number
  readonly count?: number
}

/** What is kept of jobs that completed; `ends`: also of those whose handlers returned nothing. */
interface KeptResults extends Kept {
  readonly ends?: true
}

/** A queue with every default filled in. */
export interface Queue {
  readonly name: string
  readonly weight: number
  readonly claimSize: number
  readonly iterations: number
  readonly longPollMs: number
  readonly leaseMs: number
  readonly renewLease: boolean
  readonly order: 'fifo' | 'lifo'
  readonly ordered: boolean
  readonly fifo: boolean
  readonly shards: number
  /** Means nothing where it is not ordered; nor does `shardOrder`. */
  readonly exclusive: Exclusive
  readonly shardOrder: ShardOrder
  readonly maxPending: number | undefined
  readonly maxCrashes: number
  /** As it is declared; the stored one may be another. */
  readonly throttle: Throttle | undefined
  readonly maxRunning: number | { readonly perGroup: number } | undefined
  readonly results: KeptResults | 'none'
  readonly dead: Kept
}

const keep = exactly({ age: v.optional(duration(1)), count: v.optional(whole(0)) })

/** The largest claim in one call: a larger one holds a store too long. */
const mostPerClaim = 250

const leaseMs = 30_000
/** What a claim that is not renewed takes, and for how long: Kale's batch under SQS's visibility timeout. */
const batchSize = 10
const batchLeaseMs = 600_000

/** @internal */
export const queueOptionsSchema = exactly({
  weight: v.optional(whole(1, 100), 10),
  claimSize: v.optional(whole(1, mostPerClaim)),
  iterations: v.optional(whole(1, 1_000_000), 1),
  longPoll: v.optional(duration(1), '5s'),
  lease: v.optional(duration(3_000)),
  renewLease: v.optional(v.boolean(), true),
  order: v.optional(v.picklist(['fifo', 'lifo']), 'fifo'),
  ordered: v.optional(v.boolean()),
  fifo: v.optional(v.boolean(), false),
  shards: v.optional(whole(1, 1_024)),
  exclusive: v.optional(v.picklist(['id', 'shard'])),
  shardOrder: v.optional(
    v.union(
      [v.picklist(['lag', 'sequential']), callable<Exclude<ShardOrder, string>>()],
      "must be 'lag', 'sequential' or a function",
    ),
  ),
  maxPending: v.optional(whole(1)),
  maxCrashes: v.optional(whole(1), 3),
  // One that is undefined would be no bound at all.
  throttle: v.exactOptional(throttleSchema),
  maxRunning: v.optional(v.union([whole(1), exactly({ perGroup: whole(1) })])),
  retention: v.optional(
    exactly({
      results: v.optional(v.union([v.literal('untilDeleted'), v.literal('none'), keep])),
      dead: v.optional(v.union([v.literal('untilDeleted'), keep])),
    }),
    {},
  ),
})

/**
 * The options of a queue, each of the right form.
 * @internal
 */
export type CheckedQueueOptions = v.InferOutput<typeof queueOptionsSchema>

const defaultResults: Kept = { ageMs: 3_600_000, count: 1_000 }
/** Of a queue with isolated tasks: what took hours is fetched later than what took seconds. */
const longResults: Kept = { ageMs: 7 * 86_400_000, count: 1_000 }
/** Of an ordered queue; any other lies in one. Lowkiq's. */
const defaultShards = 5

/**
 * What the tasks of a queue say of it.
 * @internal
 */
interface TaskTraits {
  /** It belongs to an ordered task. */
  readonly ordered: boolean
  readonly isolated: boolean
}

/**
 * The queue that checked options describe, and, where they leave it open, its tasks.
 * @internal
 */
export function queueOf(
  name: string,
  options: CheckedQueueOptions,
  { ordered, isolated }: TaskTraits = { ordered: false, isolated: false },
): Queue {
  const { results, dead } = options.retention
  const isOrdered = options.ordered ?? ordered
  return {
    name,
    weight: options.weight,
    claimSize: options.claimSize ?? (options.renewLease ? mostPerClaim : batchSize),
    iterations: options.iterations,
    longPollMs: options.longPoll,
    leaseMs: options.lease ?? (options.renewLease ? leaseMs : batchLeaseMs),
    renewLease: options.renewLease,
    order: options.order,
    ordered: isOrdered,
    fifo: options.fifo,
    shards: options.shards ?? (isOrdered ? defaultShards : 1),
    exclusive: options.exclusive ?? 'id',
    shardOrder: options.shardOrder ?? 'lag',
    maxPending: options.maxPending,
    maxCrashes: options.maxCrashes,
    throttle: options.throttle === undefined ? undefined : throttleOf(name, options.throttle),
    maxRunning: options.maxRunning,
    results:
      results === undefined
        ? isolated
          ? longResults
          : defaultResults
        : results === 'none'
          ? 'none'
          : { ...kept(results), ends: true },
    dead: dead === undefined ? {} : kept(dead),
  }
}

function kept(keep: { age?: number | undefined; count?: number | undefined } | 'untilDeleted'): Kept {
  if (keep === 'untilDeleted') return {}
  return {
    ...(keep.age === undefined ? {} : { ageMs: keep.age }),
    ...(keep.count === undefined ? {} : { count: keep.count }),
  }
}

/** Whether of every job that completes in it the end is kept. */
export function keepsEnds(queue: Pick<Queue, 'results'> | undefined): boolean {
  return queue !== undefined && queue.results !== 'none' && queue.results.ends === true
}

/** What is kept of the results of long work: so long, unless the queue says otherwise. */
export function longWorkResults({ results }: Pick<Queue, 'results'>): Queue['results'] {
  return results === defaultResults ? longResults : results
}
