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
 * The memory store is the executable specification; `testing/contract` holds the cases that every store passes.
 */

import type { Payload } from '../core/codec.js'
import type { JobState, Progress } from '../core/job.js'
import type { Kept } from '../core/queue.js'

export interface Store {
  readonly traits: StoreTraits
  /**
   * Declares queues. Kind and order are fixed at first use: another value throws `ConfigConflictError` and opens nothing.
   * Every other setting is the latest open's. Opening a queue again is harmless.
   */
  open(queues: readonly QueueSettings[]): Promise<StoredQueue[]>
  /**
   * Puts jobs into one queue per call; all jobs of a call are accepted or none (`'full'`, `'draining'` for each).
   * A call id is remembered for 1 minute (≤ 1,000 a queue): a call sent again is answered as the first time, not repeated.
   */
  enqueue(calls: readonly EnqueueCall[]): Promise<Enqueued[][]>
  /**
   * Takes jobs. One atomic step: recover expired leases, promote due jobs, take, lease, fence.
   * The first queue of `from`, in the order given, that has a ready job grants up to its `limit`; at most 16 entries.
   * A `limit` of 0 recovers and promotes only. Recovery and promotion are bounded (100 each a queue and call); `more` tells.
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
   * Resolves with the queues that were rung (a job may be claimable now) as soon as there is one, and with none after
   * `forMs` or when `signal` aborts. A ring may be spurious or come in the name of every queue; it is lost only so far
   * that an enqueue from any process is noticed within 1 s. Never rejects for being aborted.
   */
  wait(queues: readonly string[], forMs: number, signal: AbortSignal): Promise<string[]>
  /** Releases everything. Calls under way are finished or rejected with `ClosedError`. Closing twice is harmless. */
  close(): Promise<void>
  readonly records?: Records
  readonly workers?: WorkerRegistry
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
  readonly maxBatch: number
  readonly maxDelayMs: number
  readonly maxLeaseMs: number
  readonly maxPayloadBytes: number
  readonly exactDepth: boolean
  /** What an accepted job survives: the process, the machine. */
  readonly durability: 'none' | 'process' | 'machine'
}

/** What a store must know of a queue. */
export interface QueueSettings {
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly order: 'fifo' | 'lifo'
  readonly maxPending?: number
  readonly maxCrashes: number
  /** Bounds for kept results; the age of each comes with its settle. */
  readonly resultsCount?: number
  readonly dead: Kept
}

export interface StoredQueue {
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly order: 'fifo' | 'lifo'
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
  readonly priority: number
  readonly group?: string
  /** Due so long from now; at most one of this and `runAt`. Neither: ready at once. */
  readonly delayMs?: number
  /** Due at this absolute instant; in the past: ready at once, in the place that instant gives it. */
  readonly runAt?: number
  /** How long the id is remembered after the job ended; above 0 where the user gave the id. */
  readonly rememberMs: number
}

/**
 * `'duplicate'`: a job with this id waits, runs or is dead in this queue, or is remembered; nothing changed.
 * A completed job whose result is still kept but whose id is no longer remembered is replaced.
 */
export type Enqueued = 'added' | 'duplicate' | 'full' | 'draining'

export interface ClaimFrom {
  readonly queue: string
  readonly limit: number
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
  readonly now: number
  /** The queue that granted. */
  readonly queue?: string
  /** In the order they should start. */
  readonly claims: Claim[]
  /** Jobs this call buried because they crashed too often. */
  readonly buried: Buried[]
  /** Per queue that was asked and granted nothing: why, and after how long it is worth asking again. */
  readonly waits: Wait[]
  /** With `heads`: per queue of `from`, ms since its oldest ready job was due; absent where none is ready. */
  readonly heads?: { readonly queue: string; readonly ageMs?: number }[]
  /** Whether a queue that was asked has more that is ready now. */
  readonly more: boolean
}

/** A job taken, with what its handler needs. */
export interface Claim {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
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
}

export interface Buried {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly reason: string
}

/**
 * `forMs`: until something changes by itself — a scheduled job falls due or a lease ends; absent where nothing will.
 * 'suspect', 'throttled' and 'full' belong to stores with those traits.
 */
export interface Wait {
  readonly queue: string
  readonly reason: 'empty' | 'scheduled' | 'paused' | 'throttled' | 'full' | 'suspect'
  readonly forMs?: number
  readonly lead?: boolean
}

/** A claim by name: the only right to settle or extend it. */
export interface ClaimKey {
  readonly queue: string
  readonly id: string
  readonly fence: number
}

export type SettleItem = ClaimKey &
  (
    | {
        readonly kind: 'complete'
        readonly result?: { readonly payload: Payload; readonly codec?: string; readonly keepMs?: number }
      }
    /** A counted failure. `last`: no attempts are left, bury it with `reason`. */
    | {
        readonly kind: 'retry'
        readonly delayMs: number
        readonly last?: boolean
        readonly error?: string
        readonly reason?: string
      }
    /** Not counted; due again after `delayMs`, with 0 in its old place. */
    | { readonly kind: 'release'; readonly delayMs: number }
    | { readonly kind: 'bury'; readonly error?: string; readonly reason?: string }
    | { readonly kind: 'cancel'; readonly reason?: string }
  )

export type SettleAnswer = 'ok' | 'lost' | 'gone'

export type ExtendItem = ClaimKey & { readonly leaseMs: number; readonly beat?: Beat }
export type ExtendAnswer = 'ok' | 'lost' | 'cancel'

/** What a running job reports with its lease; what is absent stays as it was. */
export interface Beat {
  /** The handler has begun; the first beat that says so sets `startedAt`. */
  readonly started?: true
  readonly host?: string
  readonly pid?: number
  readonly progress?: Progress
}

export interface Depth {
  readonly queue: string
  readonly ready: number
  readonly scheduled: number
  readonly running: number
  readonly dead: number
  /** Waiting jobs (ready or scheduled) that never failed. */
  readonly fresh: number
  /** Waiting jobs that failed at least once. */
  readonly retries: number
  /** Ms since the oldest job that is due should have been started; 0 where none is due. */
  readonly lagMs: number
  /** Jobs completed, and failures counted, since the queue exists. */
  readonly processed: number
  readonly failed: number
  readonly paused: boolean
  readonly draining: boolean
}

/** A job as the store has it. */
export interface StoredJob {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly state: JobState
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
  readonly priority: number
  readonly group?: string
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly updatedAt: number
  readonly runAt: number
  readonly startedAt?: number
  readonly finishedAt?: number
  readonly worker?: string
  readonly host?: string
  readonly pid?: number
  readonly progress?: Progress
  readonly result?: { readonly payload: Payload; readonly codec?: string }
  readonly error?: string
  readonly reason?: string
}

/** Some jobs of a queue: by id, all, or all that failed at least once. */
export type Where = { readonly ids: readonly string[] } | 'all' | 'failed'

/** What one bounded step did, and whether calling again would find more. At most 1,000 jobs a step. */
export interface Step {
  readonly changed: number
  readonly more: boolean
}

export interface ListQuery {
  /** Only this state; absent: all. */
  readonly state?: JobState
  /**
   * `'id'`: by id. `'time'`: running (oldest claim first), ready (as they will be claimed), scheduled (soonest first),
   * then completed and dead (latest first). `'retry'`: waiting and running jobs that failed, fewest failures first.
   */
  readonly by: 'id' | 'time' | 'retry'
  /** Where the page before ended; opaque. `InvalidArgumentError` where it is none. */
  readonly cursor?: string
  /** 1 … 200. */
  readonly limit: number
}

export interface Page {
  readonly jobs: StoredJob[]
  /** Absent on the last page. */
  readonly cursor?: string
}

/** Administration: the jobs as records. Present on every store that can look jobs up. */
export interface Records {
  queues(): Promise<StoredQueue[]>
  /**
   * The job, or undefined where nothing is kept of it. Of a job that ended without a kept result but is remembered,
   * what is remembered is returned: id, task, state and times, with an empty payload. What has expired is never shown.
   */
  get(queue: string, id: string): Promise<StoredJob | undefined>
  list(queue: string, query: ListQuery): Promise<Page>
  /**
   * Waiting jobs are cancelled; running ones are told at their next beat and counted as changed. Dead ones are left. The
   * id of a cancelled job is remembered for its `rememberMs` or, where that is 0, for a minute.
   */
  cancel(queue: string, where: Where, reason?: string): Promise<Step>
  /** Removes waiting jobs and kept results without a trace. By id; `'all'` and `'failed'` take waiting jobs only. Never running or dead ones. */
  delete(queue: string, where: Where): Promise<Step>
  /** Scheduled jobs become ready, due now. Ready and other jobs are left. */
  runNow(queue: string, where: Where): Promise<Step>
  /** Waiting jobs go to the morgue with reason `buried`. */
  bury(queue: string, where: Where): Promise<Step>
  /** Ends the current claim of a running job as a failure, from outside. `'gone'` where it does not run. */
  fail(
    queue: string,
    id: string,
    how: { readonly delayMs: number; readonly last?: boolean; readonly reason: string },
  ): Promise<'ok' | 'gone'>
  /** No claims from now on; running jobs go on. Idempotent. */
  pause(queue: string): Promise<void>
  /** Ends a pause and a drain. Idempotent. */
  resume(queue: string): Promise<void>
  /** Refuses new jobs from now on; jobs that wait are still run. Idempotent. */
  drain(queue: string): Promise<void>
  /** Removes waiting and dead jobs, never running ones. */
  clear(queue: string): Promise<Step>
  readonly morgue: {
    /** Dead jobs: by id, or latest first. */
    list(
      queue: string,
      query: { readonly by: 'id' | 'time'; readonly cursor?: string; readonly limit: number },
    ): Promise<Page>
    /** Back into the queue, ready now, with attempt 1 and crashes 0, the last error kept. `'failed'` means all. */
    revive(queue: string, where: Where): Promise<Step>
    delete(queue: string, where: Where): Promise<Step>
  }
  /**
   * Resolves with those of `jobs` that have ended or are not there, as soon as there is one, and with none after `forMs`
   * or when `signal` aborts.
   */
  watch(
    jobs: readonly { readonly queue: string; readonly id: string }[],
    forMs: number,
    signal: AbortSignal,
  ): Promise<{ readonly queue: string; readonly id: string }[]>
}

/** A worker process that says it lives. */
export interface WorkerRecord {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly concurrency: number
  readonly running: number
  readonly startedAt: number
}

export interface WorkerRegistry {
  /** Writes or renews the record; it lapses after `ttlMs`. */
  beat(worker: WorkerRecord, ttlMs: number): Promise<void>
  /** Takes the record out. Harmless where there is none. */
  remove(id: string): Promise<void>
  /** Those that have not lapsed, by id. */
  list(): Promise<(WorkerRecord & { readonly seenAt: number })[]>
}
