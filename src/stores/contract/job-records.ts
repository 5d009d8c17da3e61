/** Job records: the facet of a store that looks jobs up, lists them and changes them by hand. */

import type { JobState, Progress } from '../../core/job/job.js'
import type { FieldChanges, JobFields } from '../../core/job/job-fields.js'
import type { QueueLimits } from '../../core/queue/queue-limits.js'
import type { Payload } from '../../core/values/codec.js'
import type { Checkpoint, JobProcess } from './job-beat.js'
import type { ScoredPayload } from './new-job.js'
import type { MemberOf } from './new-join.js'
import type { StoredQueue } from './queue-settings.js'

/** The most payloads that a record shows; listings show fewer. */
export const payloadsInRecord = 1_000
export const payloadsInPage = 10

/**
 * The reason in the record of a completed job of which only the id is remembered, if it had a result. Absent: it completed
 * with nothing.
 */
export const resultDropped = 'result-dropped'

/** A job as the store has it. */
export interface StoredJob extends JobProcess {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly state: JobState
  readonly payload: Payload
  readonly codec?: string
  readonly meta?: Payload
  /**
   * Ordered queues only: the payloads in hand if the job runs, otherwise the waiting ones or those in the morgue. At
   * most the first 1,000, in a listing the first 10.
   */
  readonly payloads?: readonly ScoredPayload[]
  /** The number of all those payloads. */
  readonly payloadCount?: number
  /** The number of payloads that wait until the running job ends. */
  readonly pendingCount?: number
  readonly priority: number
  readonly group?: string
  readonly attempt: number
  /** Crashes charged to it. */
  readonly crashes: number
  /** True if the job waits for a claim made `alone`, or runs in one, because its worker died while it held the job. */
  readonly suspect?: true
  readonly createdAt: number
  readonly updatedAt: number
  readonly runAt: number
  /** As in its claim, while it is ready or runs. */
  readonly waitedUntil?: number
  /** Never empty. */
  readonly fields?: JobFields
  /**
   * The instant of expiry; only while the job waits for its first claim. The record may show it after that instant,
   * until a claim finds the job.
   */
  readonly expiresAt?: number
  readonly startedAt?: number
  readonly finishedAt?: number
  readonly worker?: string
  readonly progress?: Progress
  /** Listings leave out the checkpoint and the log. */
  readonly checkpoint?: Checkpoint
  readonly log?: string
  /** The result of a completed job, if it is kept; without a payload if the handler returned nothing. */
  readonly result?: { readonly payload?: Payload; readonly codec?: string }
  readonly error?: string
  readonly reason?: string
  /** The joins that its end is or was reported to. A store may leave out those that are gone. */
  readonly memberOf?: readonly MemberOf[]
  /** It is a join: `Joins.look` has its sets. */
  readonly isJoin?: true
  /** The signal that it waits for, and until when at the longest; since `updatedAt`. */
  readonly awaits?: { readonly signal: string; readonly until?: number }
  /** `Steps.read` may have something of it. */
  readonly hasSteps?: true
}

/**
 * What the record of a cancelled job that had begun shows besides the facts that are remembered of its id: as if it were
 * kept. It goes when the id is no longer remembered, or is used again.
 */
export type JobRemains = Pick<
  StoredJob,
  | 'payload'
  | 'codec'
  | 'meta'
  | 'group'
  | 'fields'
  | 'startedAt'
  | 'worker'
  | keyof JobProcess
  | 'progress'
  | 'checkpoint'
  | 'log'
  | 'error'
>

/** A choice of jobs in one queue: by id, all, or all that failed at least once. */
export type JobSelection = { readonly ids: readonly string[] } | 'all' | 'failed'

/**
 * The changes of one bounded step, and whether another call would find more. A step changes at most 1,000 jobs. In an
 * ordered queue it also ends with the job that brings its changed payloads to 10,000.
 */
export interface Step {
  readonly changed: number
  readonly more: boolean
  /** Others wait for the store: the caller should change few jobs at once, and leave it to them between two steps. */
  readonly isAwaited?: true
}

/** Another place for a job that waits: at least one of its parts, and at most one of `delayMs` and `runAt`. */
export interface NewPlace {
  /** Absent: it keeps its priority. */
  readonly priority?: number
  /** Ms from now until the job is due. */
  readonly delayMs?: number
  /** The instant at which the job is due; one in the past is now. */
  readonly runAt?: number
}

export interface ListQuery {
  /** Only this state; absent: all. */
  readonly state?: JobState
  /**
   * `'id'`: by id. `'time'`: running (oldest claim first), ready (in the order of claims), scheduled (soonest first),
   * waiting (in the order of their enqueues), then completed and dead (latest first). `'retry'`: waiting and running jobs that failed, fewest failures first.
   */
  readonly by: 'id' | 'time' | 'retry'
  /**
   * Only jobs of this group. A page may then have fewer jobs than `limit`, even none, though it has a cursor. Of the ready jobs in
   * the order of time those of other groups cost nothing.
   */
  readonly group?: string
  /** The end of the page before; opaque. Any other text throws `InvalidArgumentError`. */
  readonly cursor?: string
  /** 1 … 200. */
  readonly limit: number
}

export interface Page {
  readonly jobs: StoredJob[]
  /** Absent on the last page. */
  readonly cursor?: string
}

/** The name of a job. */
export interface JobKey {
  readonly queue: string
  readonly id: string
}

/** The morgue: dead jobs, which can be listed, revived and removed. */
export interface Morgue {
  /** The morgue's entry for an id. */
  get(queue: string, id: string): Promise<StoredJob | undefined>
  /** Lists dead jobs by id, or latest first. */
  list(
    queue: string,
    query: Pick<ListQuery, 'group' | 'cursor' | 'limit'> & { readonly by: 'id' | 'time' },
  ): Promise<Page>
  /**
   * Puts dead jobs back into the queue: ready now, attempt 1, 0 crashes, with the last error. `'failed'` means all. In
   * an ordered queue the payloads join the waiting ones. These are then ready now with attempt 1 too, but keep their
   * crashes, error and suspicion. If the id runs, they join the payloads that wait until it ends, and those are due
   * now.
   */
  revive(queue: string, where: JobSelection): Promise<Step>
  delete(queue: string, where: JobSelection): Promise<Step>
}

/**
 * Job records: administration of single jobs and whole queues. Every store that can look jobs up has this facet. In an
 * ordered queue one id may have a live job and an entry in the morgue. Listings of all states show both; listings by id
 * show the live one first.
 */
export interface Records {
  queues(): Promise<StoredQueue[]>
  /**
   * The job, or undefined if nothing of it is kept. If a job ended without a kept result but its id is remembered, the
   * record holds id, task, state, times and an empty payload; with the reason `resultDropped` if it had a result. The
   * record of a job that was cancelled after it had begun also holds its `JobRemains`. Remembered ids and results past
   * their time are never returned. In an ordered queue it is the live job, and the entry in the morgue only if there is none.
   */
  get(queue: string, id: string): Promise<StoredJob | undefined>
  list(queue: string, query: ListQuery): Promise<Page>
  /**
   * Cancels waiting jobs at once. Running jobs learn of it at their next beat and count as changed; dead jobs stay. The
   * store remembers the id of a cancelled job for its `rememberMs`; if that is 0 for a minute, or for an hour if the job
   * had begun. An ordered queue remembers none. In an ordered queue payloads that wait behind a running job go at once. The payloads in hand go
   * when the claim ends, unless it completes.
   */
  cancel(queue: string, where: JobSelection, reason?: string): Promise<Step>
  /**
   * Removes waiting jobs and kept results without a trace. Kept results go by id only: `'all'` and `'failed'` remove
   * waiting jobs. Running and dead jobs stay.
   */
  delete(queue: string, where: JobSelection): Promise<Step>
  /**
   * Makes scheduled jobs ready and due now, and ends their sleeps. Other jobs stay as they are. Payloads that wait behind a running job for a
   * later time are due as soon as its claim ends.
   */
  runNow(queue: string, where: JobSelection): Promise<Step>
  /**
   * Gives jobs that wait for a claim another priority, another due time, or both, each in one step; at most 1,000 ids of a
   * plain queue. Resolves to how many it found so: a job that runs or has ended, that waits for members or a signal, and a
   * suspect stay as they are. With a later due time a job is scheduled. A scheduled one that is due now goes behind the
   * ready jobs of its priority; one that was ready, and stays it, keeps its place among those of its priority, as does a
   * job whose due time is not said. Group, attempts, `createdAt`, expiry and the end of a sleep stay. Throws
   * `InvalidArgumentError` for an ordered queue.
   */
  reschedule(queue: string, ids: readonly string[], to: NewPlace): Promise<number>
  /** Moves waiting jobs to the morgue with reason `buried`. */
  bury(queue: string, where: JobSelection): Promise<Step>
  /** Ends the current claim of a running job as a failure, from outside. `'gone'` if the job does not run. */
  fail(
    queue: string,
    id: string,
    how: { readonly delayMs: number; readonly last?: boolean; readonly reason: string },
  ): Promise<'ok' | 'gone'>
  /**
   * Sets fields of a job in any state, dead and completed included; its other fields stay. The last write of a name
   * wins, also beside the worker that holds the job. Fields last as long as the job and appear in its record and in listings. `'gone'` if
   * only the id is remembered. `'full'`, with nothing changed, if the job would have too many fields
   * (`rules/field-changes`). In an ordered queue the fields belong to the live job of an id and end with it: an entry
   * in the morgue or a successor has none of them.
   */
  setFields(queue: string, id: string, changes: FieldChanges): Promise<'ok' | 'gone' | 'full'>
  /** Grants no claims from now on; running jobs go on. Idempotent. */
  pause(queue: string): Promise<void>
  /** Ends a pause and a drain. Idempotent. */
  resume(queue: string): Promise<void>
  /** Refuses new jobs from now on; waiting jobs still run. Idempotent. */
  drain(queue: string): Promise<void>
  /**
   * Gives the queue these limits, whatever was said before; the others stay. Waiting jobs may start by them at once.
   * Resolves with all limits that have been said. Throws `ConfigConflictError` for a limit that the queue's shards
   * cannot keep.
   */
  setLimits(queue: string, change: QueueLimits): Promise<QueueLimits>
  /** Removes waiting and dead jobs. Running jobs stay, and so do payloads that wait behind them. */
  clear(queue: string): Promise<Step>
  /**
   * Takes one bounded step towards `shards` shards of an ordered queue; call it until `more` is false. Meanwhile the
   * queue grants nothing (`'paused'`) but accepts jobs; the reshard waits for running jobs. After an interruption, call
   * it again to go on. Every job keeps its payloads, times and counts. Until it is done, `maxPending` counts new shards
   * only and other verbs may miss a job that is between two shards. Remembered call ids are forgotten.
   *
   * Throws `ConfigConflictError` if a reshard to another number is under way. Throws `InvalidArgumentError` for a plain
   * queue, and for several shards of a queue that limits running jobs per group.
   */
  reshard(queue: string, shards: number): Promise<Step>
  /**
   * Takes one bounded step of moving the waiting and dead jobs of `from` to `to`, both ordered; call it until `more` is
   * false. A job keeps its payloads, scores, times and counts. If `to` already has the id, payloads merge as in an
   * enqueue, and in the morgue as in a burial. Running jobs stay. An interruption loses nothing, and repeating changes
   * nothing. Other verbs may miss a job that is between two shards. Throws `InvalidArgumentError` if one of them is
   * plain, or both are the same queue.
   */
  move(from: string, to: string): Promise<Step>
  readonly morgue: Morgue
  /**
   * Waits until at least one of `jobs` has ended or does not exist; resolves with all of those. Resolves with none
   * after `forMs` or when `signal` aborts.
   */
  watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]>
  /**
   * Says that `by` waits for the ends of these jobs for the next `forMs` (at most a minute), or no longer with 0. Until
   * then no retention drops the result of one of them, whatever its age and however many results there are; it counts
   * among those that are kept. An id of which the store has no job is passed over, and ordered jobs have no results.
   * `by` has 8 characters of A-Z a-z 0-9.
   */
  expect(jobs: readonly JobKey[], by: string, forMs: number): Promise<void>
}

/** A death: a job came to the morgue, and that is not known to be reported yet. It stays as it was then. */
export interface UnreportedDeath extends JobKey {
  /** Names the death among those of its job, now and later. */
  readonly number: number
  readonly task: string
  readonly payload: Payload
  readonly codec?: string
  /** As in the morgue, and so are its crashes, error and reason. */
  readonly attempt: number
  readonly crashes: number
  readonly error?: string
  readonly reason?: string
  readonly diedAt: number
}

/** Names a death. */
export type DeathKey = Pick<UnreportedDeath, 'queue' | 'id' | 'task' | 'number'>

/** The most tasks of a queue that a backlog names. */
export const tasksInBacklog = 100

/** The deaths of jobs of one task in one queue that are not reported yet. */
export interface DeathBacklog {
  readonly queue: string
  readonly task: string
  /** How many they are; if it is as many as were to be counted, there may be more. */
  readonly count: number
  /** The `diedAt` of the oldest. */
  readonly since: number
}

/**
 * The deaths of jobs with `NewJob.reportsDeath`. Whatever brings such a job to the morgue keeps its death in the same step.
 * A death stays until it is reported, whatever becomes of the job meanwhile: revived, deleted, trimmed or replaced. A job that
 * is revived and dies again has another death.
 */
export interface Deaths {
  /**
   * Deaths of jobs of these tasks in these queues, at most `limit`, those of a task in a queue from the oldest on. Those of
   * other tasks cost nothing, however many are kept: perhaps nobody knows these tasks any more. Those of `except`, at most
   * 1,000, are passed over.
   */
  unreported(
    queues: readonly string[],
    tasks: readonly string[],
    limit: number,
    except?: readonly DeathKey[],
  ): Promise<UnreportedDeath[]>
  /**
   * Which deaths in these queues are not reported yet, for each task that has some: of a queue at most 100 tasks, and of a
   * task at most `most` deaths are counted. The time that it takes does not grow with the number of deaths.
   */
  backlog(queues: readonly string[], most: number): Promise<DeathBacklog[]>
  /** Forgets these deaths; one that is not kept is passed over. */
  reported(queue: string, deaths: readonly Pick<UnreportedDeath, 'id' | 'task' | 'number'>[]): Promise<void>
}
