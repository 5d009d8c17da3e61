/** The settings of a queue: the part that a store must know, and the part that it reports of a stored queue. */

import type { Exclusive, Merge } from '../../core/queue/queue.js'
import type { MaxRunning, QueueLimits } from '../../core/queue/queue-limits.js'
import type { Throttle } from '../../core/queue/throttle.js'

export type QueueKind = 'plain' | 'ordered'

/** The settings of a queue apart from its limits. */
export interface QueueBasis {
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
  /**
   * The number of shards; a plain queue has several only on a store with several servers. An existing queue keeps its
   * stored number. The rules of this contract hold in each shard; bounds are divided by the number of shards, rounded
   * up. Default 1.
   */
  readonly shards?: number
  /** Absent: as stored, initially none. */
  readonly throttle?: Throttle
}

/**
 * The settings of a queue that a store must know. Its limits are those that its configuration says; `rules/limit-rules`
 * tells what becomes of them. A limit of running jobs per group needs a queue of one shard: with several, `open` throws
 * `ConfigConflictError`.
 */
export interface QueueSettings extends QueueBasis, QueueLimits {}

export interface StoredQueue {
  readonly name: string
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  readonly exclusive: Exclusive
  /** 1 for a plain queue on a store that does not spread it. */
  readonly shards: number
  readonly throttle?: Throttle
  readonly maxRunning?: MaxRunning
  /** The limits that somebody has said. Where nobody has, the defaults hold. */
  readonly limits: QueueLimits
  readonly paused: boolean
  readonly draining: boolean
  /** The number of shards to which it is on its way. Until all jobs have moved, none starts. */
  readonly resharding?: number
}
