/** A queue: its name, its policy, and the meaning of each option. */

import * as v from 'valibot'
import type { Random } from '../platform/clock.js'
import { defined } from '../values/defined.js'
import type { Duration } from '../values/duration.js'
import { groupForm, groupNameOf } from '../values/ids.js'
import { anyRecord, callable, duration, exactly, whole } from '../values/option-check.js'
import { type Kept, keptOf, type MaxRunning, maxRunningSchema, type QueueLimits } from './queue-limits.js'
import type { Throttle } from './throttle.js'
import { type ThrottleOptions, throttleOf, throttleSchema } from './throttle-options.js'

/** Keeps at most `count` jobs, for at most `age`. Both absent: all of them, for ever. */
interface Keep {
  readonly age?: Duration | undefined
  readonly count?: number | undefined
}

/**
 * The unit of an ordered queue that has at most one claim at a time: an id or, as in Lowkiq, a whole shard with one
 * batch.
 */
export type Exclusive = 'id' | 'shard'

/** A shard of an ordered queue, as a `shardOrder` function sees it. */
export interface ShardCandidate {
  readonly shard: number
  /** Ms since its oldest ready job was due; absent if none is ready. */
  readonly headAgeMs?: number
}

/**
 * The order in which a claim asks the shards of an ordered queue. `'lag'`: the shard whose oldest ready job has waited
 * longest comes first. `'sequential'`: the shards take turns. A function returns shard numbers, each at most once; a
 * shard that it leaves out is not asked this time.
 */
export type ShardOrder =
  | 'lag'
  | 'sequential'
  | ((shards: readonly ShardCandidate[], random: Random) => readonly number[])

/**
 * The payloads of an id that an ordered queue keeps. `'all'`: each one that is enqueued; only an equal payload with an
 * equal given score is the same one. `'distinct'`: equal payloads once, with the smallest of their scores, as in
 * Lowkiq. `'latest'`: only the one with the highest score.
 */
export type Merge = 'all' | 'distinct' | 'latest'

export interface QueueOptions {
  /** Lottery tickets of the queue, 1 … 100. Default 10. */
  readonly weight?: number | undefined
  /**
   * How many turns groups have in a round, while the groups of the queue take turns: `{ acme: 3 }` starts three jobs of
   * this one for each job of another. 1 … 100 each, at most 100 groups; `''` is for jobs without one. It holds for the
   * workers and listeners of this mill. Default: each group has one.
   */
  readonly groupWeights?: Readonly<Record<string, number>> | undefined
  /**
   * The most jobs that one claim takes. Default: the free slots plus a measured prefetch, at most 500 or the limit of
   * the store; with `renewLease: false` 10.
   */
  readonly claimSize?: number | undefined
  /** The number of claims on this queue each time the selector puts it first. Default 1. */
  readonly iterations?: number | undefined
  /** The longest time that an idle worker waits for a ring before it looks again. Default `'5s'`. */
  readonly longPoll?: Duration | undefined
  /** How long a claim holds without a beat, at least `'3s'`. Default `'30s'`; with `renewLease: false` `'10m'`. */
  readonly lease?: Duration | undefined
  /**
   * Whether Millrace renews claims while their jobs run. False: a claim takes `claimSize` jobs, and one slot runs them
   * one after the other within one lease. A job is put back if its `timeLimit` is not less than the rest of the lease.
   * If the queue has a throttle or `maxRunning`, a claim takes jobs only for free slots, one job per slot, because a
   * job that a limit counts must start then. Default true.
   */
  readonly renewLease?: boolean | undefined
  /**
   * Order among jobs of equal priority. Not for ordered queues, which go by time. Fixed at first use. Default `'fifo'`.
   */
  readonly order?: 'fifo' | 'lifo' | undefined
  /**
   * Runs the jobs of a group one after the other, in the order in which they were enqueued; jobs without a group are
   * independent. Plain queues on SQS only, where it makes a FIFO queue. Fixed at first use. Default false.
   */
  readonly fifo?: boolean | undefined
  /**
   * Makes the queue ordered: one claim of an id at a time, and payloads merge. Fixed at first use. Default: true if an
   * ordered task names the queue.
   */
  readonly ordered?: boolean | undefined
  /**
   * The number of shards of an ordered queue, or of any queue on a store with several servers; elsewhere it has no
   * effect. The first number given counts. Bounds are divided by it; order and `maxPending` then hold in each shard.
   * Default 1, for an ordered queue 5.
   */
  readonly shards?: number | undefined
  /**
   * Ordered queues only. The unit that has at most one claim at a time: an id (`'id'`), or a whole shard with one batch
   * (`'shard'`, as in Lowkiq). Fixed at first use. Default `'id'`.
   */
  readonly exclusive?: Exclusive | undefined
  /** Ordered queues only. The order in which a claim asks their shards. Default `'lag'`. */
  readonly shardOrder?: ShardOrder | undefined
  /**
   * The most waiting jobs, for an ordered queue the most waiting payloads. More are refused with `QueueFullError`. Left
   * out: the stored one holds. Default: no limit.
   */
  readonly maxPending?: number | undefined
  /**
   * The number of crashes after which a job is buried. Only crashes while the job ran alone count. Left out: the stored
   * one holds. Default 3.
   */
  readonly maxCrashes?: number | undefined
  /**
   * The rate limit over all processes: one throttle, or several with different windows. Changed by `millrace queues
   * throttle`. Left out: the stored one holds. Default: none.
   */
  readonly throttle?: ThrottleOptions | readonly ThrottleOptions[]
  /**
   * The most jobs that run at once over all processes: in all, per group, or both; `perGroup` only in a queue of one
   * shard. A job counts from its claim until it is settled. Left out: the stored one holds. Default: no limit.
   */
  readonly maxRunning?: MaxRunning | undefined
  readonly retention?:
    | {
        /**
         * Retention of completed jobs; ordered queues have no results. Default `{ age: '1h', count: 1000 }`, only for jobs
         * whose handlers returned something or ran for a second or longer. If you set it, all others are kept too. The age
         * is that of the worker that ends the job; the stored count holds for all.
         */
        readonly results?: Keep | 'untilDeleted' | 'none' | undefined
        /** Retention of dead jobs. Left out: the stored one holds. Default `'untilDeleted'`. */
        readonly dead?: Keep | 'untilDeleted' | undefined
      }
    | undefined
}

/** The retention of completed jobs. `ends`: also of those whose handlers returned nothing. */
interface KeptResults extends Kept {
  readonly ends?: true
}

/** A queue with every default filled in. Of its limits it has those that are declared; the stored ones may differ. */
export interface Queue {
  readonly name: string
  readonly weight: number
  readonly groupWeights: Readonly<Record<string, number>> | undefined
  readonly claimSize: number
  readonly iterations: number
  readonly longPollMs: number
  readonly leaseMs: number
  readonly renewLease: boolean
  readonly order: 'fifo' | 'lifo'
  readonly ordered: boolean
  readonly fifo: boolean
  readonly shards: number
  /** Has no meaning for a queue that is not ordered; nor has `shardOrder`. */
  readonly exclusive: Exclusive
  readonly shardOrder: ShardOrder
  readonly maxPending: number | undefined
  readonly maxCrashes: number | undefined
  readonly throttle: Throttle | undefined
  readonly maxRunning: MaxRunning | undefined
  readonly results: KeptResults | 'none'
  readonly dead: Kept | undefined
}

const keep = exactly({ age: v.optional(duration(1)), count: v.optional(whole(0)) })

const mostWeighted = 100

/** The weights of groups, by their names. */
const groupWeights = v.pipe(
  anyRecord<number>(),
  v.check((weights) => Object.keys(weights).length <= mostWeighted, `must have at most ${mostWeighted} groups`),
  v.check(
    (weights) => Object.keys(weights).every((group) => groupNameOf(group) !== undefined),
    `must have names of groups as its keys, each ${groupForm}`,
  ),
  v.check(
    (weights) => Object.values(weights).every((weight) => v.is(whole(1, 100), weight)),
    'must give each group a whole number from 1 to 100',
  ),
)

/**
 * The largest claim in one call. A smaller one makes a worker with short jobs pay more of the cost of a call for each of
 * them; a larger one saves nothing more and blocks a store for longer.
 */
export const mostPerClaim = 500

const leaseMs = 30_000
/** The claim size and lease of claims that are not renewed: Kale's batch under SQS's visibility timeout. */
const batchSize = 10
const batchLeaseMs = 600_000

/** @internal */
export const queueOptionsSchema = exactly({
  weight: v.optional(whole(1, 100), 10),
  groupWeights: v.optional(groupWeights),
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
  maxCrashes: v.optional(whole(1)),
  // Usually imported: undefined would mean no limit at all.
  throttle: v.exactOptional(throttleSchema),
  maxRunning: v.optional(maxRunningSchema),
  retention: v.optional(
    exactly({
      results: v.optional(v.union([v.literal('untilDeleted'), v.literal('none'), keep])),
      dead: v.optional(v.union([v.literal('untilDeleted'), keep])),
    }),
    {},
  ),
})

/**
 * The options of a queue after their check.
 * @internal
 */
export type CheckedQueueOptions = v.InferOutput<typeof queueOptionsSchema>

const defaultResults: Kept = { ageMs: 3_600_000, count: 1_000 }
/** For a queue with isolated tasks: results of long work are fetched later. */
const longResults: Kept = { ageMs: 7 * 86_400_000, count: 1_000 }
/** For an ordered queue, as in Lowkiq; any other queue has one shard. */
const defaultShards = 5

/**
 * The properties of a queue that follow from its tasks.
 * @internal
 */
interface TaskTraits {
  /** The queue belongs to an ordered task. */
  readonly ordered: boolean
  readonly isolated: boolean
}

/**
 * The queue that checked options describe; its tasks decide what the options leave open.
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
    groupWeights: options.groupWeights,
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
          : { ...keptOf(results), ends: true },
    dead: dead === undefined ? undefined : keptOf(dead),
  }
}

/** The limits that the declaration of the queue names. */
export function declaredLimits({ maxRunning, maxPending, maxCrashes, results, dead }: Queue): QueueLimits {
  const namesResults = results !== 'none' && results !== defaultResults && results !== longResults
  return {
    ...defined({ maxRunning, maxPending, maxCrashes }),
    ...(namesResults ? { resultsCount: results.count ?? 'none' } : {}),
    ...defined({ dead }),
  }
}

/** Whether the end of every completed job of the queue is kept. */
export function keepsEnds(queue: Pick<Queue, 'results'> | undefined): boolean {
  return queue !== undefined && queue.results !== 'none' && queue.results.ends === true
}

/** The retention of the results of long work, unless the queue sets its own. */
export function longWorkResults({ results }: Pick<Queue, 'results'>): Queue['results'] {
  return results === defaultResults ? longResults : results
}
