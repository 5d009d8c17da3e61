/** The settings of a queue: the part that a store must know, and the part that it reports of a stored queue. */

import type { Exclusive, Kept, Merge } from '../../core/queue/queue.js'
import type { Throttle } from '../../core/queue/throttle.js'

export type QueueKind = 'plain' | 'ordered'

/** The settings of a queue that a store must know. */
export interface QueueSettings {
  readonly name: string
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  /**
   * Plain queues only, with the trait `fifo`: the jobs of a group run one at a time, in the order of their enqueues.
   */
  readonly fifo?: true
  /** Ordered queues only: whether at most one claim runs per id or per shard. Default `'id'`. */
  readonly exclusive?: Exclusive
  /** Ordered queues only: which payloads of an id are kept. Absent: as stored, initially `'all'`. */
  readonly merge?: Merge
  /** The most waiting jobs; in an ordered queue the most waiting payloads. */
  readonly maxPending?: number
  readonly maxCrashes: number
  /**
   * The number of shards; a plain queue has several only on a store with several servers. An existing queue keeps its
   * stored number. The rules of this contract hold in each shard; bounds are divided by the number of shards, rounded
   * up. Default 1.
   */
  readonly shards?: number
  /** Absent: as stored, initially none. */
  readonly throttle?: Throttle
  /**
   * The most claims at a time over all shards, or of each group. A limit per group needs a queue of one shard: with
   * several, `open` throws `ConfigConflictError`. Default: no limit.
   */
  readonly maxRunning?: number | { readonly perGroup: number }
  /** How many results are kept; each settle brings the age to which its result is kept. */
  readonly resultsCount?: number
  readonly dead: Kept
}

export interface StoredQueue {
  readonly name: string
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  readonly exclusive: Exclusive
  /** 1 for a plain queue on a store that does not spread it. */
  readonly shards: number
  readonly throttle?: Throttle
  readonly maxRunning?: number | { readonly perGroup: number }
  readonly paused: boolean
  readonly draining: boolean
  /** The number of shards to which it is on its way. Until all jobs have moved, none starts. */
  readonly resharding?: number
}
