/** A job: one enqueued instance of a task, as records show it, as its handler sees it, and the handle to it. */

import type { Duration } from '../values/duration.js'
import type { JobFailure } from './job-failures.js'
import type { FieldWriter, JobFields } from './job-fields.js'
import type { JobOrigin } from './job-origin.js'
import type { WaitReason } from './wait-reason.js'

export const jobStates = ['waiting', 'scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'] as const

/**
 * `scheduled → ready → running → completed | dead | cancelled`; a retry is scheduled again. `waiting`: until other jobs
 * have ended. docs/job-lifecycle.md has the chart.
 */
export type JobState = (typeof jobStates)[number]

/** The outcome of an enqueue. `'duplicate'`: nothing was stored, because the id was there already. */
export type EnqueueOutcome = 'added' | 'merged' | 'replaced' | 'duplicate'

/** Why a job is in the morgue. An operator or a handler may give a reason of its own instead. */
export type BuryReason = 'max-retries' | 'no-retries' | 'unrecoverable' | 'bad-payload' | 'crashed' | 'buried'

/** Everything that is known of a job. An absent field does not apply, or not yet. */
export interface JobRecord<Input = unknown, Result = unknown> extends JobOrigin {
  readonly id: string
  readonly task: string
  readonly queue: string
  readonly state: JobState
  /** Absent if the payload cannot be decoded (`error` then says why), or if only the id of an ended job is remembered. */
  readonly input?: Input
  /**
   * Jobs of ordered queues only, instead of `input` and `meta`: the payloads that the job runs with, that wait, or that
   * are in the morgue. From old to new; the first 1,000 of them, in a listing the first 10.
   */
  readonly payloads?: readonly PayloadRecord<Input>[]
  /** The number of these payloads in all. */
  readonly payloadCount?: number
  /** The number of payloads that wait while the job runs. */
  readonly pendingCount?: number
  readonly meta?: JobMeta
  readonly priority: number
  readonly group?: string
  /** Why a ready job does not start although it is due: its group, or its queue, is held, or its group is paused. */
  readonly held?: JobHold
  /** The attempt that runs or comes next: the failures so far + 1. Of a job that has ended: the last one made. */
  readonly attempt: number
  /** Crashes charged to the job: its worker died while the job ran alone. `attempt` counts failures. */
  readonly crashes: number
  /** The worker of this job died with it in hand. It waits to run alone in a process, or runs alone. */
  readonly suspect?: true
  readonly createdAt: Date
  readonly updatedAt: Date
  /** When the job is, or was, due. */
  readonly runAt: Date
  /** While it is ready or runs: until when it waited for other jobs or a signal, if that was later than `runAt`. */
  readonly waitedUntil?: Date
  /**
   * From then on the job does not begin, and is cancelled as `expired` if it waits. Present while it waits or runs.
   */
  readonly expiresAt?: Date
  /** When its handler began; a running job without it is only reserved. */
  readonly startedAt?: Date
  readonly finishedAt?: Date
  /** Where it runs, or ran last: host and process. */
  readonly host?: string
  readonly pid?: number
  /** The worker that holds the job, or held it last: its id. */
  readonly worker?: string
  readonly progress?: Progress
  /** The fields set by `fields.set()` of its context, of a listener's claim or of a handle. */
  readonly fields?: JobFields
  /** The value that its handler stored last by `ctx.checkpoint()`. Listings leave out this and the log. */
  readonly checkpoint?: unknown
  /** The last 64 KiB of the text that its attempts logged and, for isolated tasks, printed. */
  readonly log?: string
  readonly result?: Result
  /** Message and bounded stack of the last failure; also why a part of the record cannot be shown, or was not kept. */
  readonly error?: string
  /**
   * The latest failed attempts, at most 10, oldest first. The last has the text of `error`, unless that is about
   * something else.
   */
  readonly failures?: readonly JobFailure[]
  /** Why the job was buried or cancelled. */
  readonly reason?: string
  /** Of a job that waits for others, until it has ended: what has become of these. Listings leave it out. */
  readonly join?: JoinProgress
  /** The jobs that wait, or waited, for this one. */
  readonly joins?: readonly JoinPlace[]
  /** The signal that it waits for, and until when at the longest; since `updatedAt`. */
  readonly awaits?: { readonly signal: string; readonly until?: Date }
  /** What its runs have reached, and the signals that it got, in their order. Listings leave it out. */
  readonly steps?: readonly StepRecord[]
}

/** A step, a sleep or a signal of a job. */
export interface StepRecord {
  readonly name: string
  /** `'timeout'`: a wait for the signal of this name ended without it. */
  readonly kind: 'step' | 'sleep' | 'signal' | 'timeout'
  /** When it was stored. */
  readonly at: Date
  /** The end of a sleep. */
  readonly until?: Date
  /** The result of a step, or the data of a signal. Absent also if it cannot be decoded; the job's `error` then says why. */
  readonly value?: unknown
}

/** The members of a set by how they have ended; deleted ones were cancelled. */
export type FateCounts = Readonly<Record<'completed' | 'dead' | 'cancelled' | 'expired', number>>

/** What a job waits for. */
export interface JoinProgress {
  /** Its sets, in the order of its task's `joins`; none once it has ended, as its members are then no longer listed. */
  readonly sets: readonly JoinSetProgress[]
  /** When it dies as `join-late` or `join-never-sealed`, if it still waits then. Absent: it waits no more, or without a bound. */
  readonly waitsUntil?: Date
}

/** One set of a job that waits. */
export interface JoinSetProgress {
  readonly name: string
  /** The queue of its members. */
  readonly queue: string
  readonly isMany: boolean
  readonly onDead: 'fail' | 'go-on' | 'hold'
  /** The number of its members; absent while they are being added. */
  readonly size?: number
  /** How many of them were added. */
  readonly added: number
  /** How many of them it no longer waits for. */
  readonly done: number
  /** Its members by how they have ended. */
  readonly counts: FateCounts
  /** The id of the first member that has not ended, or is held. */
  readonly oldest?: string
}

/** The place of a job in what another one waits for. */
export interface JoinPlace {
  readonly queue: string
  readonly id: string
  /** The name of the set. */
  readonly set: string
}

/** The hold of a ready job: it starts when the hold has ended. */
export interface JobHold {
  /** When the hold ends by itself; absent if the group is paused. */
  readonly until?: Date
  /** The group waits for `queue.resume({ group })`. */
  readonly paused?: true
}

/** One payload of a job of an ordered queue. */
export interface PayloadRecord<Input = unknown> extends JobOrigin {
  /** Absent if it cannot be decoded; the job's `error` then says why. */
  readonly input?: Input
  readonly score: number
  readonly meta?: JobMeta
}

/** Data that the user sends with a job besides its input; retries keep it unchanged. */
export type JobMeta = Readonly<Record<string, unknown>>

export interface Progress {
  /** 0 … 1. */
  readonly fraction: number
  readonly note?: string
}

/** The job as its handler sees it. */
export interface RunningJob extends JobOrigin {
  readonly id: string
  readonly task: string
  readonly queue: string
  readonly priority: number
  /** Absent if it has none. */
  readonly group?: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** Grows with every claim of this job. Pass it to the systems you write to, and let them refuse a smaller one. */
  readonly fence: number
  readonly meta: JobMeta
  readonly createdAt: Date
  readonly runAt: Date
  /** Until when it waited for other jobs or a signal, if that was later than `runAt`: it could not begin before. */
  readonly waitedUntil?: Date
  /** From then on the job does not begin again: a retry later than this is cancelled as `expired`. Absent: never. */
  readonly expiresAt?: Date
  /** The error of the attempt before this one, or why no worker could run the job since. */
  readonly lastError?: string
}

export const lowestPriority = -32_768
export const highestPriority = 32_767
export const priorityForm = `a whole number from ${lowestPriority} to ${highestPriority}`

export function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= lowestPriority && (value as number) <= highestPriority
}

/** Other queues' words for the states of a job. */
const foreign: Readonly<Record<string, JobState>> = {
  active: 'running',
  delayed: 'scheduled',
  failed: 'dead',
}

/** A sentence with Millrace's name for this state; empty if no known queue has a state of that name. */
export function stateHint(word: unknown): string {
  if (typeof word !== 'string' || !Object.hasOwn(foreign, word)) return ''
  return ` What others call ${word} is here ${foreign[word]}.`
}

/**
 * What a feed tells of its job.
 *
 * - `'job'`: its record, without its log: as it is when the feed begins, and whenever that has changed.
 * - `'log'`: the text that was added to its log since the last one. `isGap`: more was added than is kept, so some before
 *   this text is missing.
 * - `'end'`: the last event, once. `state`: how the job has ended; undefined if that is not known, as nothing of it is kept:
 *   it had ended before the feed began, it was deleted, or it never existed. An ordered id has ended once no job of it waits
 *   or runs. `job`: its last record, if it is kept.
 */
export type JobEvent<Result = unknown, Input = unknown> =
  | { readonly type: 'job'; readonly job: JobRecord<Input, Result> }
  | { readonly type: 'log'; readonly text: string; readonly isGap: boolean }
  | {
      readonly type: 'end'
      readonly state: 'completed' | 'dead' | 'cancelled' | undefined
      readonly job?: JobRecord<Input, Result>
    }

/** The options of following a job. */
export interface FollowOptions {
  /** Ends the feed. Default: leaving the loop or `mill.close()` ends it. */
  readonly signal?: AbortSignal | undefined
}

/** Whether a job in this state never runs again by itself. */
export function isEndState(state: JobState): state is 'completed' | 'dead' | 'cancelled' {
  return state === 'completed' || state === 'dead' || state === 'cancelled'
}

/** A handle to one job, from any process; an enqueue returns one. `Result` is what its handler returns, `Input` what it was enqueued with. */
export interface JobHandle<Result = unknown, Input = unknown> {
  readonly id: string
  /**
   * The outcome of the enqueue. `'duplicate'`: a job with this id was there already. `'replaced'`: a waiting job with
   * this id was replaced, because of `ifWaiting: 'replace'`. `'merged'`, ordered tasks only: the payload joined those
   * of a job that waits or runs. Undefined on a handle made by id.
   */
  readonly outcome: EnqueueOutcome | undefined
  /** The queue of the job; undefined on a handle made by id alone until the job was found. */
  readonly queue: string | undefined
  /**
   * Everything that is known of the job, or undefined if nothing is kept of it. For an ordered id the same job as in
   * `status()`.
   */
  record(): Promise<JobRecord<Input, Result> | undefined>
  /**
   * The state of the job, or undefined if nothing is kept of it: it ended without a kept result, or never existed. For
   * an ordered id this is the job that waits or runs; only if there is none, the dead one.
   */
  status(): Promise<JobState | undefined>
  /**
   * Why the job has not begun, the most decisive reason first, such as that its queue is paused, that no worker has its
   * task, or when its throttle permits it. Empty: it has begun or ended, or nothing is kept of it.
   *
   * @example
   * const [reason] = await job.explain()
   * console.log(reason?.text) // no worker takes jobs of queue 'mail'; start one, such as by `millrace work --queues mail`
   */
  explain(): Promise<WaitReason[]>
  /**
   * The handler's result, as soon as the job has completed; undefined if the handler returned nothing or the queue
   * keeps no results. Throws `JobDeadError`, `JobCancelledError`, `ResultTimeoutError` after `timeout` (default: none)
   * and `CodecError` for a result that this mill cannot read. A caller that waits gets the result,
   * even if `retention` keeps none. Throws `ResultNotKeptError` if nothing is kept of the job: it had ended before the call, or it was
   * deleted or cleared meanwhile, perhaps among others of its queue. It throws that also for a result that could not be kept (an instance of a class, too many
   * bytes); `error.why` then says what is wrong with it.
   *
   * Without a worker the wait has no end: if no worker has served the queue for 10 s, the event `queue.unserved` says so,
   * once for a queue.
   *
   * An ordered job has no result, and its handle is about the id, not about the enqueued payload. It resolves to
   * undefined once no job of that id waits or runs, even if the job was cancelled or never existed. It throws
   * `JobDeadError` if payloads of the id are in the morgue then, even older ones.
   */
  result(options?: { readonly timeout?: Duration }): Promise<Result>
  /**
   * Follows the job: an async iterable of its present state, its changes, its log as it grows and, last, its end. No end is
   * missed, however short the job. Changes before it are looked for every half second while something changes, otherwise
   * every two seconds. While the store is unavailable it waits. It ends, without an `'end'`, when
   * `signal` aborts, the loop is left or the mill is closed. While it is read, a result stays, however few of them
   * `retention` keeps. Rejects with `UnsupportedByStoreError` on a store without records. Throws `InvalidArgumentError` in
   * a handler of the same queue.
   *
   * @example
   * for await (const event of job.events()) {
   *   if (event.type === 'job') console.log(event.job.state, event.job.progress?.fraction)
   *   if (event.type === 'log') process.stdout.write(event.text)
   *   if (event.type === 'end') console.log('it is', event.state ?? 'gone')
   * }
   */
  events(options?: FollowOptions): AsyncGenerator<JobEvent<Result, Input>, undefined>
  /**
   * Why its result must not be waited for now; absent: it may be.
   * @internal
   */
  noWait?: () => Error | undefined
  /** Writes the job's fields, whatever its state; for an ordered id those of the job that waits or runs. */
  readonly fields: FieldWriter
  /**
   * Cancels the job. A waiting job never runs; a running job has its signal aborted at the next beat. For an ordered
   * id, all waiting payloads are cancelled too. Resolves to false if there was nothing to cancel.
   */
  cancel(reason?: string): Promise<boolean>
}

/** The phase of a run. `aborted`: asked to stop, and not ended yet; `abandoned`: its job was given up, and its handler goes on. */
export type Phase = 'claimed' | 'running' | 'aborted' | 'abandoned'
