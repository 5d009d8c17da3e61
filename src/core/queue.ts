/** A queue: its name, its policy, and what each of its options means. */

import * as v from 'valibot'
import type { Duration } from './duration.js'
import { ConfigConflictError } from './errors.js'
import { duration, exactly, whole } from './option-check.js'

/** Keep at most so many, for at most so long; both absent: as many and as long as the store lasts. */
export interface Keep {
  readonly age?: Duration
  readonly count?: number
}

/** Limits how many jobs may start in every window of time. */
export interface ThrottleOptions {
  readonly limit: number
  readonly window: Duration
  readonly moderate?: boolean
  readonly elastic?: { readonly buffer: number }
  readonly by?: 'queue' | 'group'
  readonly scope?: string
}

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
   * the other within one lease, and a job whose `timeLimit` is not less than what is left of it is put back. Default true.
   */
  readonly renewLease?: boolean
  /** Order among equal priorities. Fixed at first use. Default `'fifo'`. */
  readonly order?: 'fifo' | 'lifo'
  /** One id never runs twice at once, payloads merge. Fixed at first use. Default false. */
  readonly ordered?: boolean
  /**
   * Over how many shards a store with several servers spreads it; on others it has no effect. The number that was given
   * first counts. Bounds are divided by it; order and `maxPending` then hold in each shard. Default 1.
   */
  readonly shards?: number
  /** Most waiting jobs; more are refused with `QueueFullError`. Default: no limit. */
  readonly maxPending?: number
  /** A job that took its worker with it so often, while alone, is buried. Default 3. */
  readonly maxCrashes?: number
  /** Limits of pace, one or several. */
  readonly throttle?: ThrottleOptions | readonly ThrottleOptions[]
  /** Most jobs that run at once over all processes. */
  readonly maxRunning?: number | { readonly perGroup: number }
  readonly retention?: {
    /** Results of completed jobs. Default `{ age: '1h', count: 1000 }`. */
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
  readonly shards: number
  readonly maxPending: number | undefined
  readonly maxCrashes: number
  readonly throttled: boolean
  readonly maxRunning: number | { readonly perGroup: number } | undefined
  readonly results: Kept | 'none'
  readonly dead: Kept
}

const keep = exactly({ age: v.optional(duration(1)), count: v.optional(whole(0)) })

const throttle = exactly({
  limit: whole(1),
  window: duration(1),
  moderate: v.optional(v.boolean()),
  elastic: v.optional(exactly({ buffer: whole(0) })),
  by: v.optional(v.picklist(['queue', 'group'])),
  scope: v.optional(v.string()),
})

/** The largest claim in one call: a larger one holds a store too long. */
export const mostPerClaim = 250

const leaseMs = 30_000
/** What a claim that is not renewed takes, and for how long: Kale's batch under SQS's visibility timeout. */
const batchSize = 10
const batchLeaseMs = 600_000

export const queueOptionsSchema = exactly({
  weight: v.optional(whole(1, 100), 10),
  claimSize: v.optional(whole(1, mostPerClaim)),
  iterations: v.optional(whole(1, 1_000_000), 1),
  longPoll: v.optional(duration(1), '5s'),
  lease: v.optional(duration(3_000)),
  renewLease: v.optional(v.boolean(), true),
  order: v.optional(v.picklist(['fifo', 'lifo']), 'fifo'),
  ordered: v.optional(v.boolean(), false),
  shards: v.optional(whole(1, 1_024), 1),
  maxPending: v.optional(whole(1)),
  maxCrashes: v.optional(whole(1), 3),
  // Not a union: an array of throttles passes for an object of them, and each mistake would be told twice.
  throttle: v.optional(v.lazy((given) => (Array.isArray(given) ? v.array(throttle) : throttle))),
  maxRunning: v.optional(v.union([whole(1), exactly({ perGroup: whole(1) })])),
  retention: v.optional(
    exactly({
      results: v.optional(v.union([v.literal('untilDeleted'), v.literal('none'), keep])),
      dead: v.optional(v.union([v.literal('untilDeleted'), keep])),
    }),
    {},
  ),
})

const defaultResults: Kept = { ageMs: 3_600_000, count: 1_000 }

/** The queue that checked options describe. */
export function queueOf(name: string, options: v.InferOutput<typeof queueOptionsSchema>): Queue {
  const { results, dead } = options.retention
  return {
    name,
    weight: options.weight,
    claimSize: options.claimSize ?? (options.renewLease ? mostPerClaim : batchSize),
    iterations: options.iterations,
    longPollMs: options.longPoll,
    leaseMs: options.lease ?? (options.renewLease ? leaseMs : batchLeaseMs),
    renewLease: options.renewLease,
    order: options.order,
    ordered: options.ordered,
    shards: options.shards,
    maxPending: options.maxPending,
    maxCrashes: options.maxCrashes,
    throttled: options.throttle !== undefined,
    maxRunning: options.maxRunning,
    results: results === undefined ? defaultResults : results === 'none' ? 'none' : kept(results),
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

/** What of a queue is fixed at its first use. */
export interface QueueForm {
  readonly kind: 'plain' | 'ordered'
  readonly order: 'fifo' | 'lifo'
}

/** Throws `ConfigConflictError` where a stored queue is opened in another form. */
export function refuseOtherForm(queue: string, stored: QueueForm, asked: QueueForm): void {
  if (stored.kind !== asked.kind) {
    const remedy = 'Give the new queue another name, or drain and delete the old one.'
    throw new ConfigConflictError(queue, 'kind', stored.kind, asked.kind, remedy)
  }
  if (stored.order !== asked.order) {
    const remedy = 'Use the stored order, or give the queue another name.'
    throw new ConfigConflictError(queue, 'order', stored.order, asked.order, remedy)
  }
}
