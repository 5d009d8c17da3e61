/** Administration: the facet of a store that knows jobs as records — looked up, listed, changed by hand. */

import type { JobState, Progress } from '../../core/job.js'
import type { FieldChanges, JobFields } from '../../core/job-fields.js'
import type { Payload } from '../../core/values/codec.js'
import type { Checkpoint, JobProcess } from './job-beat.js'
import type { StoredQueue } from './queue-settings.js'
import type { ScoredPayload } from './scored-payload.js'

/** Most payloads that a job is shown with, by itself and in a listing. */
export const payloadsInRecord = 1_000
export const payloadsInPage = 10

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
   * Of a job of an ordered queue: the payloads it has in hand while it runs, else those that wait, or lie in the morgue;
   * the first 1,000 of them, in a listing the first 10.
   */
  readonly payloads?: readonly ScoredPayload[]
  /** How many those are in all. */
  readonly payloadCount?: number
  /** Payloads that wait beside a running job. */
  readonly pendingCount?: number
  readonly priority: number
  readonly group?: string
  readonly attempt: number
  /** Crashes charged to it. */
  readonly crashes: number
  /** It waits for, or runs in, a process of its own because its worker died with it in hand. */
  readonly suspect?: true
  readonly createdAt: number
  readonly updatedAt: number
  readonly runAt: number
  /** Never empty. */
  readonly fields?: JobFields
  /** Only while it waits to be claimed for the first time: when it expires. Until a claim comes by, it is shown beyond that. */
  readonly expiresAt?: number
  readonly startedAt?: number
  readonly finishedAt?: number
  readonly worker?: string
  readonly progress?: Progress
  /** This and the log are not in listings. */
  readonly checkpoint?: Checkpoint
  readonly log?: string
  /** Of a completed job of which the end is kept; without a payload where its handler returned nothing. */
  readonly result?: { readonly payload?: Payload; readonly codec?: string }
  readonly error?: string
  readonly reason?: string
}

/** Some jobs of a queue: by id, all, or all that failed at least once. */
export type Where = { readonly ids: readonly string[] } | 'all' | 'failed'

/**
 * What one bounded step did, and whether calling again would find more. At most 1,000 jobs a step; and in an ordered queue
 * a step ends with the job by which it has changed 10,000 payloads.
 */
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

/** A job by name. */
export interface JobKey {
  readonly queue: string
  readonly id: string
}

/** The morgue: dead jobs, looked at, revived and removed. */
export interface Morgue {
  /** The entry of an id in the morgue. */
  get(queue: string, id: string): Promise<StoredJob | undefined>
  /** Dead jobs: by id, or latest first. */
  list(
    queue: string,
    query: { readonly by: 'id' | 'time'; readonly cursor?: string; readonly limit: number },
  ): Promise<Page>
  /**
   * Back into the queue, ready now, with attempt 1 and crashes 0, the last error kept. `'failed'` means all.
   * In an ordered queue the payloads join those that wait, which are then ready now with attempt 1 too (crashes, error and
   * suspicion stay theirs); where the id runs, they join what waits beside it, which is then due now.
   */
  revive(queue: string, where: Where): Promise<Step>
  delete(queue: string, where: Where): Promise<Step>
}

/**
 * Administration: the jobs as records. Present on every store that can look jobs up. In an ordered queue an id may have a
 * live job and an entry in the morgue; listings of all states have both, the live one first where they are by id.
 */
export interface Records {
  queues(): Promise<StoredQueue[]>
  /**
   * The job, or undefined where nothing is kept of it. Of a job that ended without a kept result but is remembered,
   * what is remembered is returned: id, task, state and times, with an empty payload. What has expired is never shown.
   * In an ordered queue the live job, and only where there is none the entry in the morgue.
   */
  get(queue: string, id: string): Promise<StoredJob | undefined>
  list(queue: string, query: ListQuery): Promise<Page>
  /**
   * Waiting jobs are cancelled; running ones are told at their next beat and counted as changed. Dead ones are left. The
   * id of a cancelled job is remembered for its `rememberMs` or, where that is 0, for a minute; in an ordered queue it is
   * not. There what waits beside a running job goes at once, and what it has in hand when its claim ends, unless that completes.
   */
  cancel(queue: string, where: Where, reason?: string): Promise<Step>
  /** Removes waiting jobs and kept results without a trace. By id; `'all'` and `'failed'` take waiting jobs only. Never running or dead ones. */
  delete(queue: string, where: Where): Promise<Step>
  /**
   * Scheduled jobs become ready, due now. Ready and other jobs are left. What waits beside a running job for later is due
   * as soon as its claim ends.
   */
  runNow(queue: string, where: Where): Promise<Step>
  /** Waiting jobs go to the morgue with reason `buried`. */
  bury(queue: string, where: Where): Promise<Step>
  /** Ends the current claim of a running job as a failure, from outside. `'gone'` where it does not run. */
  fail(
    queue: string,
    id: string,
    how: { readonly delayMs: number; readonly last?: boolean; readonly reason: string },
  ): Promise<'ok' | 'gone'>
  /**
   * Sets fields of a job in whatever state, dead and completed ones too, and leaves its other fields; the last write of a name
   * counts, whoever holds the job. They stay as long as the job does, and are in its record and in listings. `'gone'` where nothing
   * but its id is kept of the job, `'full'`, and nothing changed, where it would have too many (`rules/field-changes`). In an ordered
   * queue they are those of the live job of an id, and end with it: neither an entry in the morgue nor a successor has them.
   */
  setFields(queue: string, id: string, changes: FieldChanges): Promise<'ok' | 'gone' | 'full'>
  /** No claims from now on; running jobs go on. Idempotent. */
  pause(queue: string): Promise<void>
  /** Ends a pause and a drain. Idempotent. */
  resume(queue: string): Promise<void>
  /** Refuses new jobs from now on; jobs that wait are still run. Idempotent. */
  drain(queue: string): Promise<void>
  /** Removes waiting and dead jobs, never running ones; nor what waits beside those. */
  clear(queue: string): Promise<Step>
  /**
   * One bounded step towards so many shards of an ordered queue; to be called until `more` is false. While it is under
   * way nothing is granted (`'paused'`), and jobs are accepted; running ones are waited for. Interrupted anywhere, it is
   * gone on with by calling it again; `ConfigConflictError` where another number is under way, `InvalidArgumentError` for
   * a plain queue, and for one that bounds what runs of each group, where it is to have several. Every job keeps its payloads, times and counts. Until it is done `maxPending` counts new shards alone, and
   * the other verbs may miss a job that is just between two shards; remembered call ids are forgotten.
   */
  reshard(queue: string, shards: number): Promise<Step>
  /**
   * One bounded step of bringing the waiting and dead jobs of `from` into `to`, both ordered; to be called until `more` is
   * false. A job keeps its payloads, scores, times and counts; where `to` has its id already, the payloads join that one by
   * the rules of enqueueing, in the morgue by those of burying. Running jobs are left. Interrupted anywhere, nothing is
   * lost, and repeating changes nothing; other verbs may miss a job that is just between two shards. `InvalidArgumentError` where one of them is plain, or both are one.
   */
  move(from: string, to: string): Promise<Step>
  readonly morgue: Morgue
  /**
   * Resolves with those of `jobs` that have ended or are not there, as soon as there is one, and with none after `forMs`
   * or when `signal` aborts.
   */
  watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]>
}
