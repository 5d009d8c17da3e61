/** A claim: the request, the jobs that the store grants, and the other changes that the store makes on the way. */

import type { Payload } from '../../core/values/codec.js'
import type { Damage } from './damage.js'
import type { Checkpoint } from './job-beat.js'
import type { ScoredPayload } from './new-job.js'

export interface ClaimFrom {
  readonly queue: string
  /** Ordered queues only. A shard that does not exist answers `'empty'`. */
  readonly shard?: number
  readonly limit: number
  /**
   * Ordered queues only: the most payloads of one id that the claim hands over. The rest join the payloads that arrive
   * while the job runs. A store may hand over fewer if they are large. Default and Infinity: all.
   */
  readonly maxPayloads?: number
  /** The lease of this queue, if it differs from the call's. */
  readonly leaseMs?: number
  /**
   * Throttled queues only: by how many ms, whole, a handler of this claim may begin after the spread. Its starts, and
   * those that come after them in their counter, count for so much longer. Default 0.
   */
  readonly lateMs?: number
  /**
   * How many turns groups have while they take turns: 1 … 100 each, of at most 100 groups. A group has its turns one after
   * the other. Absent, and for groups that are not named: one.
   */
  readonly weights?: Readonly<Record<string, number>>
}

export interface Claimer {
  readonly worker: string
  readonly leaseMs: number
  /**
   * True if the claimer holds no other claim and takes none until it settles: a crash is then charged to this job. The
   * call takes at most one job.
   */
  readonly alone?: boolean
  /** Asks for the age of each queue's oldest ready job. */
  readonly heads?: boolean
}

export interface Claimed {
  /** Exact if something was granted. Otherwise the store may derive it from an earlier answer. */
  readonly now: number
  /** The queue that granted jobs. */
  readonly queue?: string
  /** In the order in which they should start. */
  readonly claims: Claim[]
  /** Leases that this call found expired and unsettled, whatever became of their jobs. */
  readonly crashed: Crash[]
  /** Jobs that this call buried because they crashed too often. */
  readonly buried: Buried[]
  /** Waiting jobs that this call ended because their time to begin was over; absent: none. */
  readonly expired?: readonly Expired[]
  /**
   * For each queue that was asked and granted nothing: why, and when it is worth asking again. Further entries may come
   * for any queue that was asked, even if it granted: `'suspect'` if suspects are left behind (some claimer must make
   * room for an `alone` claim), `'throttled'` or `'full'` if ready jobs are left behind and limits deny all of them,
   * and the reason for granting no more if fewer jobs than asked for were ready.
   */
  readonly waits: Wait[]
  /** With `heads`: for each entry of `from`, ms since its oldest ready job could begin, as for `lagMs`; absent if none is ready. */
  readonly heads?: { readonly queue: string; readonly shard?: number; readonly ageMs?: number }[]
  /** Whether a queue that was asked has more ready jobs now. */
  readonly more: boolean
  /**
   * Damaged shards of the queues asked: the call left them out and asked the others. If the whole store is damaged, the
   * call rejects.
   */
  readonly damaged?: readonly Damage[]
  /** A part of the call failed and may have made claims that this answer lacks: `workers.held` lists them. */
  readonly isInDoubt?: true
}

/** The end of a wait with which a claim went along. */
export interface Rung {
  /** The queues that were rung. */
  readonly rung: string[]
  /** The answer to the claim; absent: it was not made. */
  readonly claimed?: Claimed
}

/** A claimed job, with all that its handler needs. */
export interface Claim {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** Empty in an ordered queue. */
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
  /** Ordered queues only: the payloads handed over, at least one, in the order of `rules/payloads`. */
  readonly payloads?: readonly ScoredPayload[]
  /** Ordered queues only: some payloads are left for the next claim. */
  readonly hasMore?: true
  readonly priority: number
  readonly group?: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** Greater than every earlier fence of this queue; all jobs of one call share it. */
  readonly fence: number
  readonly createdAt: number
  readonly runAt: number
  /** Until when it waited for other jobs or for a signal, if that was later than `runAt`: its lag counts from then. */
  readonly waitedUntil?: number
  /** From then on no claim takes the job; absent: it does not expire. */
  readonly expiresAt?: number
  readonly error?: string
  /** The last checkpoint that an earlier attempt set. */
  readonly checkpoint?: Checkpoint
  /** It is a join: `Joins` has the ends of its members. */
  readonly isJoin?: true
  /** Its end is reported to a join: its result is worth sending. */
  readonly isMember?: true
}

/** A lease that expired unsettled. */
export interface Crash {
  readonly queue: string
  readonly id: string
  readonly task: string
  /** The worker that held it. */
  readonly worker: string
  /** Whether the crash counts against the job, which is so if the claim was `alone`. */
  readonly charged: boolean
  /** Crashes charged to the job so far, this one included. */
  readonly crashes: number
}

export interface Buried {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly reason: string
  /** The fence of the claim that crashed; absent if none did. */
  readonly fence?: number
  /** Ordered queues only: the payload that went to the morgue. */
  readonly payload?: ScoredPayload
}

/** A waiting job whose time to begin was over. */
export interface Expired {
  readonly queue: string
  readonly id: string
  readonly task: string
}

/**
 * Why a queue granted nothing. `'full'`: running jobs must end, or a paused group be resumed. If time denies some jobs and running jobs deny
 * others, the reason is `'throttled'`.
 */
export interface Wait {
  readonly queue: string
  /** Set if the queue was asked by shard, or is ordered. */
  readonly shard?: number
  readonly reason: 'empty' | 'scheduled' | 'paused' | 'throttled' | 'full' | 'suspect'
  /**
   * Ms until something changes by itself: a scheduled job falls due, a lease ends, a limit opens. Absent if nothing
   * will.
   */
  readonly forMs?: number
  /**
   * This claimer leads: it alone asks again when `forMs` is over, if only with a limit of 0; the others wait for a
   * ring. A queue has one lead for jobs that fall due and one for its suspects. A lead lapses if it has not asked
   * `leadLapseMs` after its time; the next claimer then takes its place. So does a claimer that learns of an earlier
   * change. The lead for suspects must claim `alone` or with a limit of 0 to keep the lead: a claimer that takes jobs
   * in company cannot make room.
   */
  readonly lead?: true
}
