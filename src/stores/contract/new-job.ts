/** A new job: the input of an enqueue, and its outcome. */

import type { JobFields } from '../../core/job/job-fields.js'
import type { Payload } from '../../core/values/codec.js'
import type { MemberOf, NewJoin } from './new-join.js'

export interface EnqueueCall {
  /**
   * Unique to this call; the same when the call is sent again. If it is the id of the call's only job, that id was made
   * for the job, and no other job has it.
   */
  readonly callId: string
  /** The call may have been sent before. Only then does the store need to look whether it remembers it. */
  readonly isResent?: boolean
  /** All ids were made for the jobs of this call: no other job has one of them, and the store need not look for any. */
  readonly hasNewIds?: boolean
  readonly queue: string
  readonly jobs: readonly NewJob[]
}

export interface NewJob {
  readonly id: string
  readonly task: string
  readonly payload: Payload
  /** The codec of `payload` and `meta`; absent: `json`. */
  readonly codec?: string
  readonly meta?: Payload
  /** 0 in an ordered queue. */
  readonly priority: number
  /**
   * The job waits in the lane of this group, and limits by group count it there. An ordered job has the group of its
   * id's first payload.
   */
  readonly group?: string
  /**
   * Ordered queues only: the place of the payload among those of its id; finite. Absent: the stamp of its arrival, in
   * ms with the µs as a fraction, or just above the last one given in the shard. The default therefore strictly grows,
   * even if the clock steps back, and across a reshard or a move.
   */
  readonly score?: number
  /**
   * Ordered queues only, without `score`: the payload is the one that came by this name before, if that waits and is
   * equal. Absent: the id of the call and the place of the job in it. Names matter unless the queue merges `'distinct'`
   * payloads: then equal payloads are one anyway.
   */
  readonly arrival?: string
  /**
   * Ms from now until the job is due. Give at most one of this and `runAt`; without either the job is ready at once.
   */
  readonly delayMs?: number
  /**
   * The absolute instant at which the job is due. An instant in the past makes the job ready at once, behind all ready
   * jobs: a client with a slow clock gains no precedence. In an ordered queue such a job takes the place of its
   * instant.
   */
  readonly runAt?: number
  /**
   * Plain queues only; longer than `delayMs`. From then on no claim takes the job. If it waits, for the first time or
   * again, it ends as cancelled, with the reason `expired`; a claim that was made before goes on. A job that was revived
   * from the morgue does not expire.
   */
  readonly expiresMs?: number
  /**
   * Plain queues only: replaces a waiting job of this id as if the new one came in now, but keeps `createdAt`. Replaces
   * a dead one as well, which needs room and keeps nothing. A running job stays (`'duplicate'`), and so does a waiting
   * one that is a join or a member of one. A memory of the id is dropped.
   */
  readonly ifWaiting?: 'replace'
  /**
   * With `ifWaiting` and `delayMs`, and at least `delayMs`: the job is due at most this time after its `createdAt`,
   * which stays when it is replaced.
   */
  readonly atMostMs?: number
  /**
   * How long the store remembers the id after the job ended; above 0 if the user gave the id. 0 in an ordered queue,
   * which remembers none.
   */
  readonly rememberMs: number
  /**
   * Plain queues of a store with the trait `fields` only, never empty, within the bounds of `rules/field-changes`: the
   * fields that the job has from the beginning, as if they were set in the same step. A duplicate keeps those that it has.
   */
  readonly fields?: JobFields
  /** Plain queues of a store with the facet `joins` only: the job waits for its members. */
  readonly join?: NewJoin
  /** Plain queues of a store with the facet `joins` only, never empty: its end is reported to these joins. */
  readonly memberOf?: readonly MemberOf[]
  /** Plain queues of a store with the trait `deaths` only: each of its deaths is kept until it is reported. */
  readonly reportsDeath?: true
}

/**
 * The outcome for one job. `'duplicate'`: a job with this id waits or runs in this queue, or is remembered; nothing
 * changed. `'dead'`: the same, and a job with this id is in the morgue. (A completed job with a kept result but a
 * forgotten id is replaced.) `'replaced'`: by `ifWaiting`; in the place of a waiting job this needs no room in a bounded
 * queue. `'merged'`, in ordered queues only: the id waits or runs, and the payload
 * joined its others.
 */
export type Enqueued = 'added' | 'merged' | 'replaced' | 'duplicate' | 'dead' | 'full' | 'draining'

/**
 * Calls of one enqueue cannot be carried out together, because one of them waits for somebody else: each is to be sent by itself,
 * as one that was sent before.
 */
export class CallsApartError extends Error {
  readonly callsApart = true

  constructor() {
    super('these calls cannot be enqueued together: send each by itself, as one that was sent before.')
  }
}

/** Whether it is a `CallsApartError`, of whichever copy of this package. */
export function areApart(error: unknown): error is CallsApartError {
  return (error as Partial<CallsApartError> | undefined)?.callsApart === true
}

/** A payload of an ordered job, with its place among the others. */
export interface ScoredPayload {
  /** Its place among the payloads of its id: ascending, finite. */
  readonly score: number
  readonly payload: Payload
  /** Absent: `json`. */
  readonly codec?: string
  readonly meta?: Payload
}
