/**
 * The store contract: all that the rest of Millrace knows of where jobs live.
 *
 * Rules that hold for every method of every store:
 * - Only durations cross the contract (`…Ms` counted from the call); the store turns them into instants on its own clock.
 *   Only a user's `runAt` is absolute. Instants in answers (`…At`, `now`) are ms since 1970 on the store's clock.
 * - Each call, settle item and extend item is atomic: wholly done and durable when the promise resolves, or not at all
 *   when it rejects. `StoreUnavailableError` alone leaves it in doubt; everything here may then be sent again.
 * - Answers stand in the order of what was asked.
 * - A lost race is an answer (`'lost'`, `'duplicate'`), never an exception.
 *
 * An ordered queue (`kind: 'ordered'`) holds one job per id, with a set of payloads in the order of `core/payloads`; while
 * it runs, what arrives for its id waits beside it. It lies in shards on every store, `shardOf(id, shards)`, and the rules
 * of this contract hold in each of them: fences and leads are the shard's, bounds are divided by their number. In its morgue
 * an id has an entry of its own beside the live job. The rules of merging are in `core/payloads`.
 *
 * A ready job of a group (`NewJob.group`) waits in the lane of that group; those without stand in the lane `''`. Where any
 * lane of a group is there, or limits count by group, a claim goes round the lanes (`core/turns`): each in its turn, at most
 * its share of what is left to grant, in the queue's order within a lane. Suspects stand in no lane.
 *
 * Limits — a throttle, `maxRunning`, a hold — bound what claims are granted, alone or in company, and nothing else: what
 * they deny stays ready, and is *shut*. A throttle counts the jobs that claims take, by `throttle/tempo`, over all queues and
 * shards of its scope; permits are not given back. `maxRunning` counts claims that are not settled. A shut job is no reason
 * to ring, nor for `wait` to resolve, until it is open again, which is a change like a job's falling due.
 *
 * The memory store is the executable specification; `testing/contract` holds the cases that every store passes.
 */

import type { Exclusive, Kept, Merge } from '../../core/queue/queue.js'
import type { Throttle } from '../../core/queue/throttle.js'
import type { Payload } from '../../core/values/codec.js'
import type { ScoredPayload } from '../rules/payloads.js'
import type { Damage } from './damage.js'
import type { Beat, Checkpoint, EndedRun } from './job-beat.js'
import type { Records } from './job-records.js'
import type { Depth } from './queue-depth.js'
import type { StoreHealth } from './store-health.js'
import type { Throttles } from './throttles.js'
import type { WorkerRegistry } from './worker-registry.js'

export type { Depth } from './queue-depth.js'

export interface Store {
  readonly traits: StoreTraits
  /**
   * Declares queues. Kind, order and `exclusive` are fixed at first use: another value throws `ConfigConflictError` and
   * opens nothing; so does `ThrottleConflictError` for another throttle than the stored one. Of shards the stored number
   * counts. Every other setting is the latest open's. Opening again is harmless.
   */
  open(queues: readonly QueueSettings[]): Promise<StoredQueue[]>
  /**
   * Puts jobs into one queue per call; all jobs of a call that lie in one shard are accepted or none (`'full'`,
   * `'draining'` for each).
   * A call id is remembered for 1 minute (≤ 1,000 a queue): a call sent again is answered as the first time, not
   * repeated, unless a reshard has come between, which forgets it.
   */
  enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]>
  /**
   * Takes jobs. One atomic step: recover expired leases, promote due jobs, take, lease, fence.
   * The first queue of `from`, in the order given, that has a ready job grants up to its `limit`; at most 16 entries.
   * Of an ordered queue each shard is an entry of its own, and those that stand in a row are one queue: each is filled up
   * to its limit less what those before it granted. Named without a shard it stands for all its shards, from 0 up.
   * Ordered queues give jobs by stamp, equal ones by the bytes of their id.
   * A claim takes no more jobs once those that it has taken weigh enough (`core/claim-weight`), of all shards of an ordered
   * queue together; what it leaves stays ready in its place, and `more` tells.
   * `exclusive: 'shard'`: of one shard at most one call's claims run at any moment; a shard in use is `'full'`, and a call
   * grants of one shard only.
   * A `limit` of 0 recovers, promotes and opens the lanes whose time has come, and takes nothing. Each of these is bounded
   * (100 a queue and call); `more` tells.
   *
   * A lease that ended unsettled is a crash. It is charged to its job only if the claim was `alone`; a job charged
   * `maxCrashes` times is buried. Every other crashed job is *suspect*: it is ready in its old place, but only `alone`
   * claims are given it, before any other job. It stays suspect until it is settled by anything but a release without delay.
   *
   * Where a server is asked (the trait `remote`) that was started anew, or took over from another, those who hold leases may
   * live, and could not say so: leases that have ended are left alone for one lease of the queue asked, counted from the start
   * or, where that is not known, from when a claim first finds such a lease.
   *
   * A queue asked that leaves ready jobs behind, suspects apart, is rung, so that whoever is woken wakes the next; so is one
   * whose lead is granted a job at its time. It leads no more then, nor where it asks at its time and leaves such jobs.
   */
  claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed>
  /**
   * Ends claims, each item by itself. `'lost'`: the fence is not the current one. `'gone'`: there is no such job.
   * An expired lease that nobody has taken over may still settle: late is fine, superseded is not.
   */
  settle(items: readonly SettleItem[]): Promise<SettleAnswer[]>
  /** Renews leases (never shortens one) and records beats. `'cancel'`: renewed, and the job is to be cancelled. */
  extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]>
  depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: Depth[] }>
  /**
   * Resolves with the queues that were rung as soon as there is one, at once with those that hold a ready job or a change
   * that is due and that nobody leads, and with none after `forMs` or when `signal` aborts. One ring wakes one waiter,
   * in whatever process; it may be spurious, and is lost only so far that a job which is ready is noticed within 5 s
   * (by a store that several processes share).
   * Suspects and paused queues wake nobody; a job for later does where it is due before the lead of its queue wakes.
   * Never rejects for being aborted.
   */
  wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]>
  /** Releases everything. Calls under way are finished or rejected with `ClosedError`. Closing twice is harmless. */
  close(): Promise<void>
  readonly records?: Records
  /** With the trait `throttled`. */
  readonly throttles?: Throttles
  readonly workers?: WorkerRegistry
  readonly health?: StoreHealth
}

export interface StoreTraits {
  /** The word for it in messages: `memory`, `sqlite`. */
  readonly name: string
  readonly ordered: boolean
  readonly priority: boolean
  readonly groups: boolean
  readonly throttled: boolean
  /** `maxRunning`. */
  readonly limited: boolean
  /** Whether several processes can share it. */
  readonly shared: boolean
  /** Whether an enqueue can wait until replicas have it. */
  readonly replicated: boolean
  /**
   * Whether it is a server: asking it costs a trip and the time of others, so that what may be a few seconds old is not asked
   * anew; and it may be away or start anew while those who hold leases live on.
   */
  readonly remote: boolean
  readonly maxBatch: number
  readonly maxDelayMs: number
  readonly maxLeaseMs: number
  readonly maxPayloadBytes: number
  readonly exactDepth: boolean
  /** Whether a second handle, in another thread, reaches the same jobs: leases are then kept while the loop is blocked. */
  readonly beatsFromThread: boolean
  /** What an accepted job survives: the process, the machine. */
  readonly durability: 'none' | 'process' | 'machine'
}

/** What a store must know of a queue. */
export interface QueueSettings {
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly order: 'fifo' | 'lifo'
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
  readonly kind: 'plain' | 'ordered'
  readonly order: 'fifo' | 'lifo'
  readonly exclusive: Exclusive
  /** 1 for a plain queue on a store that does not spread it. */
  readonly shards: number
  readonly throttle?: Throttle
  readonly maxRunning?: number | { readonly perGroup: number }
  readonly paused: boolean
  readonly draining: boolean
}

export interface EnqueueCall {
  /** Unique to this call, the same when it is sent again. */
  readonly callId: string
  readonly queue: string
  readonly jobs: readonly NewJob[]
}

export interface NewJob {
  readonly id: string
  readonly task: string
  readonly payload: Payload
  /** The codec that made `payload` and `meta`; absent: `json`. */
  readonly codec?: string
  readonly meta?: Payload
  /** 0 in an ordered queue. */
  readonly priority: number
  /** The lane it waits in, and what limits by group count it by. The one of the first payload of an id is the job's. */
  readonly group?: string
  /**
   * Ordered queues only: where the payload stands among those of its id; finite. Absent: the stamp with which it
   * arrives, in ms with the µs as a fraction, or just more than the last that was given in the shard. So it strictly grows,
   * though the clock steps back, and over a reshard or a move.
   */
  readonly score?: number
  /** Due so long from now; at most one of this and `runAt`. Neither: ready at once. */
  readonly delayMs?: number
  /**
   * Due at this absolute instant. One in the past is ready at once, behind all that is ready: a client's clock that is slow
   * gives nobody precedence. In an ordered queue such a job takes the place that its instant gives it.
   */
  readonly runAt?: number
  /** How long the id is remembered after the job ended; above 0 where the user gave the id. 0 in an ordered queue, which remembers none. */
  readonly rememberMs: number
}

/**
 * `'duplicate'`: a job with this id waits, runs or is dead in this queue, or is remembered; nothing changed.
 * A completed job whose result is still kept but whose id is no longer remembered is replaced.
 * `'merged'`, in an ordered queue only: the id waits or runs, and the payload joined its others.
 */
export type Enqueued = 'added' | 'merged' | 'duplicate' | 'full' | 'draining'

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
  /** Ordered queues only: what is handed over, in the order of `core/payloads`; never none. */
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

/** A claim by name: the only right to settle or extend it. */
export interface ClaimKey {
  readonly queue: string
  readonly id: string
  readonly fence: number
}

/**
 * How a claim ends. `run`, in a plain queue: where a record of the job is kept, it says when and where the job ran. What a beat has
 * said already stays.
 */
export type SettleItem = ClaimKey &
  (
    | {
        readonly kind: 'complete'
        /** Absent: nothing is kept. Without a payload: that it completed with no value. */
        readonly result?: { readonly payload?: Payload; readonly codec?: string; readonly keepMs?: number }
        readonly run?: EndedRun
      }
    /**
     * A counted failure. `last`: no attempts are left, bury it with `reason`; in an ordered queue its oldest payload only,
     * and what is left begins anew.
     */
    | {
        readonly kind: 'retry'
        readonly delayMs: number
        readonly last?: boolean
        readonly error?: string
        readonly reason?: string
        readonly run?: EndedRun
      }
    /**
     * Not counted; due again after `delayMs`, with 0 in its old place and, if it was suspect, still suspect. `error`: why, kept with
     * the job as that of a failure is; absent, the last one stays.
     */
    | {
        readonly kind: 'release'
        readonly delayMs: number
        readonly error?: string
        readonly hold?: Hold
      }
    | { readonly kind: 'bury'; readonly error?: string; readonly reason?: string; readonly run?: EndedRun }
    /** Where it was asked for with a reason, that one stays. */
    | { readonly kind: 'cancel'; readonly reason?: string }
  )

/**
 * Nothing of the queue, or of the job's group in it, is granted for so long; a longer hold stays. A job without a group holds
 * the whole queue. Where shards cannot be changed in one step the others are held before the claim ends: an item whose call
 * failed has held some of them or all, and sent again it holds all of them and ends.
 */
export interface Hold {
  readonly of: 'queue' | 'group'
  readonly forMs: number
}

export type SettleAnswer = 'ok' | 'lost' | 'gone'

export type ExtendItem = ClaimKey & { readonly leaseMs: number; readonly beat?: Beat }
export type ExtendAnswer = 'ok' | 'lost' | 'cancel'
