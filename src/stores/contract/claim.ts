/** A claim: what is asked for, what is granted, and what else the store found. */

import type { Payload } from '../../core/values/codec.js'
import type { Damage } from './damage.js'
import type { Checkpoint } from './job-beat.js'
import type { ScoredPayload } from './scored-payload.js'

export interface ClaimFrom {
  readonly queue: string
  /** Ordered queues only. One that is not there is `'empty'`. */
  readonly shard?: number
  readonly limit: number
  /**
   * Ordered queues only: most payloads that are handed over of one id; those beyond join what arrives while it runs.
   * A store may hand over fewer where they are large. Default and Infinity: all.
   */
  readonly maxPayloads?: number
  /** This queue's lease where it is not the call's. */
  readonly leaseMs?: number
}

export interface Claimer {
  readonly worker: string
  readonly leaseMs: number
  /** The claimer holds no other claim and takes none until it settles: a crash is then this job's doing. Takes at most one job. */
  readonly alone?: boolean
  /** Whether the age of each queue's oldest ready job is wanted. */
  readonly heads?: boolean
}

export interface Claimed {
  /** Exact where something was granted, and else perhaps reckoned from an earlier answer. */
  readonly now: number
  /** The queue that granted. */
  readonly queue?: string
  /** In the order they should start. */
  readonly claims: Claim[]
  /** Leases that this call found ended unsettled, whatever became of their jobs. */
  readonly crashed: Crash[]
  /** Jobs this call buried because they crashed too often. */
  readonly buried: Buried[]
  /** Waiting jobs this call ended because their time to begin was over; absent: none. */
  readonly expired?: readonly Expired[]
  /**
   * Per queue that was asked and granted nothing: why, and after how long it is worth asking again. Besides, and also
   * where the queue granted, `'suspect'` where suspects are left behind: somebody must make room for an `alone` claim; and
   * `'throttled'` or `'full'` where ready jobs are left behind and its limits deny all of them.
   */
  readonly waits: Wait[]
  /** With `heads`: per entry of `from`, ms since its oldest ready job was due; absent where none is ready. */
  readonly heads?: { readonly queue: string; readonly shard?: number; readonly ageMs?: number }[]
  /** Whether a queue that was asked has more that is ready now. */
  readonly more: boolean
  /** Shards of the queues asked that are left out; the others were asked as ever. A store that is damaged as a whole rejects. */
  readonly damaged?: readonly Damage[]
  /** A part of the call failed and may have made claims that are not in the answer: `workers.held` has them. */
  readonly isInDoubt?: true
}

/** A job taken, with what its handler needs. */
export interface Claim {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Empty in an ordered queue. */
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
  /** Ordered queues only: what is handed over, in the order of `rules/payloads`; never none. */
  readonly payloads?: readonly ScoredPayload[]
  /** Ordered queues only: payloads were left behind for the next claim. */
  readonly hasMore?: true
  readonly priority: number
  readonly group?: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** Greater than every fence given in this queue before; one for all jobs of a call. */
  readonly fence: number
  readonly createdAt: number
  readonly runAt: number
  readonly error?: string
  /** The last that an attempt before this one set. */
  readonly checkpoint?: Checkpoint
}

/** A lease that ended unsettled. */
export interface Crash {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Who held it. */
  readonly worker: string
  /** Whether it counts against the job: the claim was `alone`. */
  readonly charged: boolean
  /** Crashes charged to the job so far, this one included. */
  readonly crashes: number
}

export interface Buried {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly reason: string
}

/** A job that nobody began in time. */
export interface Expired {
  readonly queue: string
  readonly id: string
  readonly task: string
}

/** `'full'`: what runs must end first. Where some jobs are held back by time and others by what runs, it is `'throttled'`. */
export interface Wait {
  readonly queue: string
  /** Where the queue was asked by shard, or is ordered. */
  readonly shard?: number
  readonly reason: 'empty' | 'scheduled' | 'paused' | 'throttled' | 'full' | 'suspect'
  /** Until something changes by itself — a scheduled job falls due, a lease ends, a limit opens; absent where nothing will. */
  readonly forMs?: number
  /**
   * This claimer leads: it alone asks again when `forMs` is over, be it with a limit of 0; the others wait for a ring.
   * A queue has one lead for what falls due and one for its suspects. A lead that has not asked `leadLapseMs` after its
   * time has lapsed, and the next claimer takes its place; so does one that learns of an earlier change. The lead of the
   * suspects leads on only by claims alone or with a limit of 0: one that takes jobs in company cannot make room.
   */
  readonly lead?: true
}
