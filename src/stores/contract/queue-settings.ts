/** The settings of a queue: what a store must know of it, and what it tells of one that is stored. */

import type { Exclusive, Kept, Merge } from '../../core/queue/queue.js'
import type { Throttle } from '../../core/queue/throttle.js'

export type QueueKind = 'plain' | 'ordered'

/** What a store must know of a queue. */
export interface QueueSettings {
  readonly name: string
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  /** Plain queues only, with the trait `fifo`: jobs of a group run one after the other, in the order of their enqueues. */
  readonly fifo?: true
  /** Ordered queues only: of what at most one claim runs at a time. Default `'id'`. */
  readonly exclusive?: Exclusive
  /** Ordered queues only: which payloads of an id are kept. Absent: as stored, at first `'all'`. */
  readonly merge?: Merge
  /** Most waiting jobs; of an ordered queue most waiting payloads. */
  readonly maxPending?: number
  readonly maxCrashes: number
  /**
   * Over how many shards it lies, a plain queue only on a store with several servers; of a queue that is there already the
   * stored number counts. The rules of this contract then hold in each shard, and bounds are divided by their number
   * (rounded up). Default 1.
   */
  readonly shards?: number
  /** Absent: as stored, at first none. */
  readonly throttle?: Throttle
  /**
   * Most claims at a time over all shards, or of each group. Of groups in a queue of one shard only: one that lies in several
   * is refused it with `ConfigConflictError`. Default: no limit.
   */
  readonly maxRunning?: number | { readonly perGroup: number }
  /** Bounds for kept results; the age of each comes with its settle. */
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
}
