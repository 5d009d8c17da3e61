/**
 * The store contract: all that the rest of Millrace knows of the place where jobs live.
 *
 * Rules for every method of every store:
 * - Only durations cross the contract (`…Ms`, counted from the call); the store turns them into instants of its own
 * clock. Only a user's `runAt` is absolute. Instants in answers (`…At`, `now`) are ms since 1970 on the store's clock.
 * - Each call, settle item and extend item is atomic: done and durable when the promise resolves, or not done at all
 * when it rejects. Only `StoreUnavailableError` leaves it in doubt; every call here may then be sent again.
 * - Answers come in the order of the items asked.
 * - A lost race is an answer (`'lost'`, `'duplicate'`), never an exception.
 *
 * An ordered queue (`kind: 'ordered'`) holds one job per id, with a set of payloads in the order of `rules/payloads`.
 * While the job runs, new payloads of its id wait until it ends. The queue has shards on every store, `shardOf(id,
 * shards)`, and the rules of this contract hold in each shard: fences and leads belong to the shard, bounds are divided
 * by the number of shards. An id's entry in the morgue is separate from its live job. `rules/payloads` has the rules of
 * merging.
 *
 * A ready job of a group (`NewJob.group`) waits in the lane of that group, a job without a group in the lane `''`. If
 * any group has a lane, or limits count by group, a claim goes round the lanes (`rules/fair-share`): each in its turn,
 * at most its share of the jobs still to grant, in the queue's order within a lane. Suspects are in no lane.
 *
 * Limits (a throttle, `maxRunning`, a hold, the pause of a group) bound the jobs that claims are granted, alone or in company, and nothing
 * else. A job that they deny stays ready, and is *shut*. A throttle counts the jobs that claims take, by
 * `rules/throttle/throttle-counter`, over all queues and shards of its scope; permits are not given back. `maxRunning`
 * counts claims that are not settled. A shut job neither rings nor lets `wait` resolve until its limit opens; the
 * opening is a change like a job's falling due.
 *
 * The memory store is the executable specification; `store-testing/contract` holds the cases that every store passes.
 */

import type { Claimed, Claimer, ClaimFrom, Rung } from './claim.js'
import type { History } from './history.js'
import type { Deaths, Morgue, Records } from './job-records.js'
import type { Joins } from './joins.js'
import type { LiveMessages } from './live-messages.js'
import type { EnqueueCall, Enqueued } from './new-job.js'
import type { Migration, Provision } from './provision.js'
import type { QueueDepth } from './queue-depth.js'
import type { QueueSettings, StoredQueue } from './queue-settings.js'
import type { Schedules } from './schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from './settle.js'
import type { Steps } from './steps.js'
import type { StoreHealth } from './store-health.js'
import type { Throttles } from './throttles.js'
import type { Transactions } from './transactions.js'
import type { WorkerRegistry } from './worker-registry.js'

export interface Store {
  readonly traits: StoreTraits
  /**
   * Declares queues. The first use fixes kind, order and `exclusive`: another value throws `ConfigConflictError` and
   * opens nothing. So does another limit than the stored one (`rules/limit-rules`), and another throttle, with
   * `ThrottleConflictError`. The stored number of shards applies, `merge` is that of the latest `open`. Opening again is
   * harmless. `follows`: a queue that is stored stays as it is, and its limits and its throttle are not compared.
   */
  open(queues: readonly QueueSettings[], how?: { readonly follows: boolean }): Promise<StoredQueue[]>
  /**
   * Puts jobs into one queue per call. Of the jobs of a call, those in one shard are all accepted or all refused
   * (`'full'` or `'draining'` for each). The store remembers a call id for 1 minute (≤ 10,000 per queue): a call sent
   * again gets its first answer and changes nothing. A reshard in between forgets the id. With several calls it
   * may throw `CallsApartError`.
   */
  enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]>
  /**
   * Takes jobs, in one atomic step: recover expired leases, promote due jobs, end expired jobs, take, lease, fence.
   *
   * The first queue of `from`, in the given order, that has a ready job grants up to its `limit`; at most 16 entries.
   * Each shard of an ordered queue is an entry of its own. Adjacent entries of one queue are granted together: each
   * grants up to its limit less the grants of those before it. An entry without a shard means all shards, from 0 up.
   * Ordered queues grant jobs by stamp, then by the bytes of their id. With `exclusive: 'shard'` the claims of at most
   * one call run in a shard at any moment; a shard in use answers `'full'`, and a call grants from one shard only.
   *
   * A claim takes no more jobs once the taken ones weigh enough (`rules/claim-weight`), counted over all shards of an
   * ordered queue. The rest stay ready in their places, and `more` is true. A `limit` of 0 recovers, promotes and opens
   * the lanes whose time has come, and takes nothing. Each of these steps is bounded (100 per queue and call); `more`
   * says whether some remain.
   *
   * A waiting job whose `expiresMs` are over ends as cancelled before anything is taken. It takes no permit and no
   * place among running jobs, and the answer lists it. This step is bounded too, and a queue with more such jobs grants
   * nothing: no claim ever receives one.
   *
   * A lease that expired unsettled is a crash. It is charged to its job only if the claim was `alone`; a job charged
   * `maxCrashes` times is buried. Every other crashed job is *suspect*: it is ready in its old place, but only `alone`
   * claims receive it, before any other job. It stays suspect until it is settled by anything but a release without
   * delay.
   *
   * After a server (trait `remote`) was restarted or took over from another, lease holders may be alive and yet unable
   * to renew. The store therefore leaves expired leases alone for one lease of the queue asked, counted from the start
   * or, if that is unknown, from the first claim that finds such a lease.
   *
   * A queue that was asked is rung if ready jobs other than suspects are left behind, so that each woken claimer wakes
   * the next. It is also rung if its lead receives a job at its time; that claimer then leads no more. Nor does a lead
   * that asks at its time and leaves such jobs behind.
   */
  claim(from: readonly ClaimFrom[], by: Claimer): Promise<Claimed>
  /**
   * Ends claims, each item by itself. `'lost'`: the fence is not the current one. `'gone'`: there is no such job. A
   * claim whose lease has expired may still settle if nobody has taken the job over.
   */
  settle(items: readonly SettleItem[]): Promise<SettleAnswer[]>
  /** Renews leases (never shortens one) and records beats. `'cancel'`: renewed, but the job is to be cancelled. */
  extend(items: readonly ExtendItem[]): Promise<ExtendAnswer[]>
  depth(queues: readonly string[]): Promise<{ readonly now: number; readonly depths: QueueDepth[] }>
  /**
   * Resolves with the queues that were rung, as soon as there is one. Resolves at once with queues that hold a ready
   * job, or a change that is due and has no lead. Resolves with none after `forMs` or when `signal` aborts; an abort
   * does not reject.
   *
   * One ring wakes one waiter, in any process. A ring may be spurious. It may be lost only if a ready job is still
   * noticed within 5 s (in a store that several processes share). Suspects and paused queues wake nobody; a scheduled
   * job does if it is due before the lead of its queue wakes.
   */
  wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]>
  /**
   * Waits like `wait`, on the queues of `from`, and may make this claim when the wait ends, however it ends: its jobs
   * then start a trip sooner. An abort does not take the claim back: its answer may bring jobs. Rejects as `claim` does.
   * Absent: the store gains nothing by it.
   */
  claimWhenRung?(from: readonly ClaimFrom[], by: Claimer, forMs: number, signal: AbortSignal): Promise<Rung>
  /** With the trait `metered`: the number of calls of each kind that this handle has made. */
  apiCalls?(): Readonly<Record<string, number>>
  /** Releases everything. Calls under way finish or reject with `ClosedError`. Closing twice is harmless. */
  close(): Promise<void>
  readonly records?: Records
  /** Present on a store that shows dead jobs but keeps no other records. Absent: the morgue of `records`. */
  readonly morgue?: Morgue
  /** With the trait `throttled`. */
  readonly throttles?: Throttles
  /** With the trait `scheduled`. */
  readonly schedules?: Schedules
  readonly workers?: WorkerRegistry
  /** Present if a job can wait for others. */
  readonly joins?: Joins
  /** Present if a job can keep the steps of its run, and wait for signals. */
  readonly steps?: Steps
  /** With the trait `deaths`. */
  readonly deaths?: Deaths
  readonly health?: StoreHealth
  /** Present if processes can send each other messages through the store. */
  readonly live?: LiveMessages
  /** Present if the store counts the outcomes of its jobs by minute and hour. */
  readonly history?: History
  /** Present if the store is in a database to which its users have connections of their own. */
  readonly transactions?: Transactions
  /** Present if `open` makes tables, which not every role of the database may. */
  readonly migration?: Migration
  /** Present if the server of the store may go to sleep while nobody asks it anything, and is to be let sleep. */
  readonly idle?: IdleMode | undefined
  /** Absent: `open` creates queues. */
  readonly provision?: Provision
}

export interface IdleMode {
  /**
   * Whether this process is to ask nothing now. A part that only looks for changes looks later. The process wakes in time
   * for every change that the store foresees, and its waits and `schedules.changed` resolve only then.
   */
  isAsleep(): boolean
}

export interface StoreTraits {
  /** The name of the store in messages: `memory`, `sqlite`. */
  readonly name: string
  /** Ordered queues: at most one claim runs per id, and it receives the payloads in their order. */
  readonly ordered: boolean
  /**
   * Waiting payloads of an ordered id merge by their scores. Without this trait each payload is handed over as sent, in
   * the order of arrival; scores, every `merge` but `'all'` and `exclusive: 'shard'` are refused.
   */
  readonly merges: boolean
  /** Plain queues can be FIFO by group (`fifo`). */
  readonly fifo: boolean
  readonly priority: boolean
  /** A job may belong to a group. */
  readonly groups: boolean
  /** Groups take turns. Without this trait the service chooses the next group. */
  readonly inTurns: boolean
  readonly throttled: boolean
  /** Keeps schedules. */
  readonly scheduled: boolean
  /** `maxRunning`. */
  readonly limited: boolean
  /** Whether several processes can share it. */
  readonly shared: boolean
  /** Whether an enqueue can wait until replicas have it. */
  readonly replicated: boolean
  /**
   * The store is a server: asking it costs a round trip and the time of others. Answers that are a few seconds old are
   * therefore used again. The server may be away, or restart, while lease holders live on.
   */
  readonly remote: boolean
  /**
   * Each call is paid for. A claim then waits, within reason, until there is room for all the jobs that it can bring.
   */
  readonly metered: boolean
  /** The most jobs of one call that enqueues, settles or extends. */
  readonly maxBatch: number
  /** The most jobs of one claim. */
  readonly maxClaim: number
  readonly maxDelayMs: number
  readonly maxLeaseMs: number
  /**
   * The longest that one claim can hold a job, however often its lease is renewed, in ms. A task is refused unless its
   * `timeLimit` leaves 15 minutes of it, or half a lease if that is longer: the beat at the end must still find the job
   * held.
   */
  readonly maxHoldMs: number
  readonly maxPayloadBytes: number
  /**
   * Jobs start in the order of their queue, those of equal priority by their stamps. Without this trait the order is
   * rough, and `order: 'lifo'` is refused.
   */
  readonly inOrder: boolean
  /**
   * An enqueue knows the queue's contents: a second job of an id is a `'duplicate'`, a call sent again gets its first
   * answer, `maxPending` counts, and the jobs of a call are added all or none. Without this trait every job sent is
   * added, and one sent again is added twice; ids from users and `maxPending` are refused.
   */
  readonly exactEnqueue: boolean
  /** A job that nobody begins in time is cancelled (`NewJob.expiresMs`) and reported. */
  readonly expires: boolean
  /** A new job may have fields from the beginning (`NewJob.fields`). */
  readonly fields: boolean
  /** Keeps the deaths of jobs until they are reported (`NewJob.reportsDeath`). */
  readonly deaths: boolean
  /**
   * Fences of a queue grow, and after a takeover the old fence is `'lost'`. Without this trait a fence only names a
   * claim, a late `settle` may end a job that another worker runs, and no lease that has ended is renewed.
   */
  readonly fenced: boolean
  /**
   * A job keeps the outcomes of its runs: failures, releases and crashes count apart, the next claim receives the last
   * run's error and checkpoint, crashed jobs become suspect and are buried after `maxCrashes`. Without this trait each
   * claim is one more attempt, `crashes` is 0, and no crash is reported.
   */
  readonly tellsCrashes: boolean
  /**
   * One ring wakes one waiter; `waits` say for how long nothing will change, and appoint leads. Without this trait
   * `wait` looks for itself, by long polling or a timer, and may wake a waiter for nothing.
   */
  readonly rings: boolean
  /**
   * The counts of `depth` are exact and its counters complete. Without this trait counts are approximate, and unknown
   * ones are 0.
   */
  readonly exactDepth: boolean
  /**
   * A second handle, in another thread, reaches the same jobs: leases are then renewed while the event loop is blocked.
   */
  readonly beatsFromThread: boolean
}
