/** Throttles: the facet of a store that tells what its limits of pace have counted, and changes their rules. */

import type { Throttle, ThrottleRule } from '../../core/queue/throttle.js'

/** What a throttle has counted, for a queue or for one of its groups. */
export interface ThrottleState {
  readonly throttle: Throttle
  /** All queues that share it, by name. */
  readonly queues: readonly string[]
  /** Starts in the window of each rule that ends now. */
  readonly hits: readonly number[]
  /** After how long the next job may start; 0: at once. */
  readonly forMs: number
  /** How long nothing starts because the store may have forgotten what did; 0: not at all. Contained in `forMs`. */
  readonly quietForMs: number
  /** By group: how many groups have started jobs in their windows, counted until they are forgotten. */
  readonly groups?: number
}

export interface Throttles {
  /**
   * Undefined where the queue has no throttle. By group the hits and times are those of `group`; where none is asked, there
   * are no hits, and only what holds for all groups is waited for. Throws `UnknownQueueError`.
   */
  state(queue: string, group?: string): Promise<ThrottleState | undefined>
  /**
   * Gives the throttle of the queue, and so of its whole scope, other rules; starts so far count on. What waits may start
   * by the new ones at once. Throws `UnknownQueueError`, and `InvalidArgumentError` where the queue has no throttle.
   */
  set(queue: string, rules: readonly ThrottleRule[]): Promise<void>
}
