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
 * An ordered queue (`kind: 'ordered'`) holds one job per id, with a set of payloads in the order of `rules/payloads`; while
 * it runs, what arrives for its id waits beside it. It lies in shards on every store, `shardOf(id, shards)`, and the rules
 * of this contract hold in each of them: fences and leads are the shard's, bounds are divided by their number. In its morgue
 * an id has an entry of its own beside the live job. The rules of merging are in `rules/payloads`.
 *
 * A ready job of a group (`NewJob.group`) waits in the lane of that group; those without stand in the lane `''`. Where any
 * lane of a group is there, or limits count by group, a claim goes round the lanes (`rules/turns`): each in its turn, at most
 * its share of what is left to grant, in the queue's order within a lane. Suspects stand in no lane.
 *
 * Limits — a throttle, `maxRunning`, a hold — bound what claims are granted, alone or in company, and nothing else: what
 * they deny stays ready, and is *shut*. A throttle counts the jobs that claims take, by `rules/throttle/throttle-counter`, over all queues and
 * shards of its scope; permits are not given back. `maxRunning` counts claims that are not settled. A shut job is no reason
 * to ring, nor for `wait` to resolve, until it is open again, which is a change like a job's falling due.
 *
 * The memory store is the executable specification; `testing/contract` holds the cases that every store passes.
 */

import type { Claimed, Claimer, ClaimFrom } from './claim.js'
import type { History } from './history.js'
import type { Morgue, Records } from './job-records.js'
import type { LiveMessages } from './live-messages.js'
import type { EnqueueCall, Enqueued } from './new-job.js'
import type { Provision } from './provision.js'
import type { Depth } from './queue-depth.js'
import type { QueueSettings, StoredQueue } from './queue-settings.js'
import type { Schedules } from './schedules.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from './settle.js'
import type { StoreHealth } from './store-health.js'
import type { Throttles } from './throttles.js'
import type { Transactions } from './transactions.js'
import type { WorkerRegistry } from './worker-registry.js'

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
   * Takes jobs. One atomic step: recover expired leases, promote due jobs, end jobs that expired, take, lease, fence.
   * The first queue of `from`, in the order given, that has a ready job grants up to its `limit`; at most 16 entries.
   * Of an ordered queue each shard is an entry of its own, and those that stand in a row are one queue: each is filled up
   * to its limit less what those before it granted. Named without a shard it stands for all its shards, from 0 up.
   * Ordered queues give jobs by stamp, equal ones by the bytes of their id.
   * A claim takes no more jobs once those that it has taken weigh enough (`rules/claim-weight`), of all shards of an ordered
   * queue together; what it leaves stays ready in its place, and `more` tells.
   * `exclusive: 'shard'`: of one shard at most one call's claims run at any moment; a shard in use is `'full'`, and a call
   * grants of one shard only.
   * A `limit` of 0 recovers, promotes and opens the lanes whose time has come, and takes nothing. Each of these is bounded
   * (100 a queue and call); `more` tells.
   *
   * A waiting job whose `expiresMs` are over is ended as cancelled before anything is taken, with no permit and no place among what
   * runs; the answer tells of it. That is bounded likewise, and a queue that has more of them grants nothing: no claim is ever
   * given one.
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
  /** With the trait `metered`: how many calls of each kind this handle has made. */
  apiCalls?(): Readonly<Record<string, number>>
  /** Releases everything. Calls under way are finished or rejected with `ClosedError`. Closing twice is harmless. */
  close(): Promise<void>
  readonly records?: Records
  /** Of a store that can look at dead jobs and keeps no other records. Absent: that of `records`. */
  readonly morgue?: Morgue
  /** With the trait `throttled`. */
  readonly throttles?: Throttles
  /** With the trait `scheduled`. */
  readonly schedules?: Schedules
  readonly workers?: WorkerRegistry
  readonly health?: StoreHealth
  /** Of a store through which processes can tell each other what happens now. */
  readonly live?: LiveMessages
  /** Of a store that keeps what became of the jobs of its queues, minute by minute. */
  readonly history?: History
  /** Of a store in a database to which its users have connections of their own. */
  readonly transactions?: Transactions
  /** Absent: `open` makes queues. */
  readonly provision?: Provision
}

export interface StoreTraits {
  /** The word for it in messages: `memory`, `sqlite`. */
  readonly name: string
  /** Ordered queues: of an id at most one claim runs at a time, and its payloads are handed over in their order. */
  readonly ordered: boolean
  /**
   * Payloads of an ordered id merge while they wait, by their scores. Without it each is handed over as it was sent, in the
   * order in which it came: scores, `merge: 'latest'` and `exclusive: 'shard'` are refused.
   */
  readonly merges: boolean
  /** Plain queues can be FIFO by group (`fifo`). */
  readonly fifo: boolean
  readonly priority: boolean
  /** A job may belong to a group. */
  readonly groups: boolean
  /** Groups have their turns one after the other. Without it, whose turn it is is left to the service. */
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
   * Whether it is a server: asking it costs a trip and the time of others, so that what may be a few seconds old is not asked
   * anew; and it may be away or start anew while those who hold leases live on.
   */
  readonly remote: boolean
  /** Whether each call is paid for: a claim then waits, within reason, until there is room for as many jobs as it can bring. */
  readonly metered: boolean
  readonly maxBatch: number
  readonly maxDelayMs: number
  readonly maxLeaseMs: number
  /**
   * How long a claim can hold a job, however often its lease is renewed. A task is refused whose `timeLimit` does not leave 15
   * minutes of it, or half a lease where that is longer: a beat must still find the job held when it ends.
   */
  readonly maxHoldMs: number
  readonly maxPayloadBytes: number
  /**
   * Jobs start in the order of their queue, equal priorities by their stamps. Without it the order is rough: `order: 'lifo'`
   * is refused.
   */
  readonly inOrder: boolean
  /**
   * An enqueue knows what the queue holds: a second job of an id is a `'duplicate'`, a call sent again is answered as it
   * was, `maxPending` counts, the jobs of a call are added all or none. Without it every job that is sent is added, and one
   * that is sent again twice: ids that a user gives and `maxPending` are refused.
   */
  readonly exactEnqueue: boolean
  /** A job that nobody has begun in time is cancelled (`NewJob.expiresMs`), and told of. */
  readonly expires: boolean
  /**
   * Fences of a queue grow, and once a claim was taken over the old one is `'lost'`. Without it a fence only names a claim,
   * and a late `settle` may end the job that somebody else runs.
   */
  readonly fenced: boolean
  /**
   * A job keeps what became of its runs: failures, releases and crashes are counted apart, the error and the checkpoint of
   * the last run come with the next claim, crashed jobs are suspect and are buried after `maxCrashes`. Without it each claim
   * is one more attempt, `crashes` is 0, and nobody is told of a crash.
   */
  readonly tellsCrashes: boolean
  /**
   * One ring wakes one waiter, `waits` say for how long nothing will change, and appoint leads. Without it `wait` looks for
   * itself, by long polling or by a timer, and who waits may be woken in vain.
   */
  readonly rings: boolean
  /** Whether the counts of `depth` are exact and its counters complete. Without it they are near, and what is not known is 0. */
  readonly exactDepth: boolean
  /** Whether a second handle, in another thread, reaches the same jobs: leases are then kept while the loop is blocked. */
  readonly beatsFromThread: boolean
}
