/**
 * Throttles: the facet of a store that reports what its throttles have counted, and changes their rules; and that shows
 * and ends what else keeps a queue or a group from starting jobs: holds (`Hold` of a settle), and pauses of groups.
 */

import type { Throttle, ThrottleRule } from '../../core/queue/throttle.js'

/** The counts of a throttle, for a queue or for one of its groups. */
export interface ThrottleState {
  readonly throttle: Throttle
  /** The names of all queues that share it. */
  readonly queues: readonly string[]
  /** For each rule, the starts in its window that ends now. */
  readonly hits: readonly number[]
  /** For a throttle with rules for each group besides: the starts of the group that was asked for, by its rules. */
  readonly groupHits?: readonly number[]
  /** Ms until the next job may start, holds included; 0: at once. */
  readonly forMs: number
  /** Ms for which nothing starts because the store may have forgotten starts; 0: none. Included in `forMs`. */
  readonly quietForMs: number
  /** The rules of the group that was asked for, if it has some of its own. They have its hits. */
  readonly rate?: readonly ThrottleRule[]
  /** For a throttle by group, or with rules for each group: how many groups have started jobs in their windows and are not forgotten yet. */
  readonly groups?: number
}

/** The rules that a group has instead of those of all groups. */
export interface GroupRate {
  readonly group: string
  readonly rules: readonly ThrottleRule[]
}

export interface GroupRates {
  /** By the names of the groups. */
  readonly rates: readonly GroupRate[]
  /** How many there are in all. */
  readonly total: number
}

/** A hold of the queue, or of a group of it; or the pause of a group. */
export interface StoredHold {
  /** Absent: the whole queue is held. */
  readonly group?: string
  /** Ms until it ends by itself, more than 0. Absent: the group is paused, and only `resume` ends that. */
  readonly forMs?: number
}

export interface StoredHolds {
  /** First the hold of the queue, then the paused groups by name, then the held ones by their ends and names. */
  readonly holds: readonly StoredHold[]
  /** How many there are in all. */
  readonly total: number
}

export interface HoldsQuery {
  /** Only the hold of the queue, and what holds these groups. Absent: all groups. */
  readonly groups?: readonly string[]
  /** The most holds to return, 0 … 1,000. */
  readonly limit: number
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
   * may start by the new rules at once. `by`: which rules, if it has some for all jobs and some for each group; default:
   * those for all. Throws `UnknownQueueError`, and `InvalidArgumentError` if the queue has no throttle, or none by that.
   */
  set(queue: string, rules: readonly ThrottleRule[], by?: Throttle['by']): Promise<void>
  /**
   * Gives `group` rules of its own in place of those of all groups; without `rules` it goes by those of all groups
   * again. They hold in all queues of the scope, and whatever sets other rules for all groups. Starts so far still
   * count. Waiting jobs of the group may start by them at once. Throws `UnknownQueueError`, and `InvalidArgumentError`
   * if the queue has no throttle by group.
   */
  setRate(queue: string, group: string, rules: readonly ThrottleRule[] | undefined): Promise<void>
  /** The groups that have rules of their own, at most `limit` of them. Throws `UnknownQueueError`. */
  rates(queue: string, limit: number): Promise<GroupRates>
  /**
   * What keeps the queue, or groups of it, from starting jobs. A group that is held and paused is there twice. Throws
   * `UnknownQueueError`.
   */
  holds(queue: string, query: HoldsQuery): Promise<StoredHolds>
  /**
   * Ends the hold of `group`; without `group` that of the queue and those of all its groups. Lanes that a throttle has
   * shut are looked at anew. Rings. Pauses stay. Returns how many holds it ended. Throws `UnknownQueueError`.
   */
  release(queue: string, group?: string): Promise<number>
  /**
   * Grants no job of the group until `resume`, whatever its holds. Until then the group is like one that has no room:
   * its jobs wait in their places, ring nobody, and are no reason to ask again. `group` is not `''`. Throws
   * `UnknownQueueError`.
   */
  pause(queue: string, group: string): Promise<void>
  /** Ends the pause of the group, and rings. Holds stay. Throws `UnknownQueueError`. */
  resume(queue: string, group: string): Promise<void>
}
