/** Throttles: the facet of a store that reports what its throttles have counted, and changes their rules. */

import type { Throttle, ThrottleRule } from '../../core/queue/throttle.js'

/** The counts of a throttle, for a queue or for one of its groups. */
export interface ThrottleState {
  readonly throttle: Throttle
  /** The names of all queues that share it. */
  readonly queues: readonly string[]
  /** For each rule, the starts in its window that ends now. */
  readonly hits: readonly number[]
  /** Ms until the next job may start, holds included; 0: at once. */
  readonly forMs: number
  /** Ms for which nothing starts because the store may have forgotten starts; 0: none. Included in `forMs`. */
  readonly quietForMs: number
  /** For a throttle by group: how many groups have started jobs in their windows and are not forgotten yet. */
  readonly groups?: number
}

export interface Throttles {
  /**
   * The state of the queue's throttle; undefined if it has none. For a throttle by group the hits and times are those
   * of `group`; without `group` there are no hits, and `forMs` covers only waits that hold for all groups. For any
   * throttle `forMs` covers the holds of the queue, and of `group` if it is given. Throws `UnknownQueueError`.
   */
  state(queue: string, group?: string): Promise<ThrottleState | undefined>
  /**
   * Gives the throttle of the queue, and so of its whole scope, other rules. Starts so far still count. Waiting jobs
   * may start by the new rules at once. Throws `UnknownQueueError`, and `InvalidArgumentError` if the queue has no
   * throttle.
   */
  set(queue: string, rules: readonly ThrottleRule[]): Promise<void>
}
