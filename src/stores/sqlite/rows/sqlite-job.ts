/** Job rows: the statements that change the state of a job, and the counters that follow. */

import type { Payload } from '../../../core/values/codec.js'
import { type NewPlace, resultDropped } from '../../contract/job-records.js'
import type { ScoredPayload } from '../../contract/new-job.js'
import type { Fate } from '../../contract/new-join.js'
import {
  type CountedJob,
  completed,
  countJob,
  dead,
  hasBegun,
  isRemembered,
  type JobRow,
  noteBits,
  poolOf,
  ready,
  scheduled,
  waiting,
} from '../../rows/job-row.js'
import { bounded, positionOf } from '../../rows/queue-row.js'
import { payloadToStored, type SqlValue, storedOrNull, toStored } from '../../rows/stored-text.js'
import { rememberedForMs } from '../../rules/bounds.js'
import type { SignalWait } from '../../rules/claim-end.js'
import { expiredReason, newDue, stampOf } from '../../rules/sequence.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { SqliteCheckpoints } from './sqlite-checkpoints.js'
import type { ForJoins } from './sqlite-join-ends.js'
import type { SqliteLanes } from './sqlite-lanes.js'
import { type QueueRow, takeStamp } from './sqlite-queue.js'

export const jobColumns =
  'rid, id, task, state, rank, stamp, attempt, crashes, fence, alone, cancelling, suspect, noted, grp, part, successor_stamp, successor_created_at, successor_ready, remember_ms, created_at, finished_at, expires_at, worker, error, reason'

/** The columns that the counters depend on, and those needed to drop a job. */
export const countedColumns = 'rid, state, suspect, attempt, noted, grp'

/** The columns of a job that remain in `remembered`, besides those that its end may change. */
const remains = 'grp, started_at, worker, host, boot, pidns, pid, ticks, progress, codec, meta, payload'

/** A waiting job has no process. */
export const noProcess = 'host = NULL, boot = NULL, pidns = NULL, pid = NULL, ticks = NULL'

/** The most bits of `noted` of a job of whose death nobody hears. */
const unjoined = noteBits.notes

/** The joins of the store, told of what happens to jobs that are joins or members, and of no others. */
export interface JoinNews {
  /** A member has ended so, or a dead one is gone or was revived. Its row is still there. */
  ended(rid: number, fate: Fate | 'revived', left?: ForJoins): void
  /** Whether a dead join must wait for members again. */
  misses(rid: number): boolean
  waitsAgain(rid: number): void
  /** A join waits no more: an operator has buried it, or its members or time have. */
  isDead(rid: number): void
  /** A join has ended, or its job is gone. */
  isOver(rid: number): void
}

/** What jobs have reached, for those whose `noted` says that they have something. */
export interface JobStepRows {
  /** The job has reached a step or a wait: it does not expire any more. */
  mark(rid: number, bit: number): void
  hasSignal(rid: number, signal: string): boolean
  beginWait(rid: number, wait: SignalWait, now: number): void
  endWait(rid: number): void
  endSleeps(rid: number, now: number): void
  /** The job has ended; its row may be gone. */
  drop(rid: number, noted: number): void
}

/** The parts of a transaction that know of what a job has outside its row. */
export interface JobsHost {
  readonly lanes: SqliteLanes
  readonly checkpoints: SqliteCheckpoints
  readonly joins: JoinNews
  readonly jobSteps: JobStepRows
}

export class SqliteJobs {
  protected readonly lanes: SqliteLanes
  protected readonly checkpoints: SqliteCheckpoints
  readonly #joins: JoinNews
  readonly #steps: JobStepRows
  readonly #select: Statement
  readonly #wait: Statement
  readonly #bury: Statement
  readonly #keep: Statement
  readonly #delete: Statement
  readonly #deleteAll: Statement
  readonly #remember: Statement
  readonly #leaveRemains: Statement
  readonly #flag: Statement
  readonly #hasResult: Statement
  readonly #release: Statement
  readonly #endWait: Statement
  readonly #place: Statement
  readonly #keepDeath: Statement
  readonly #completeDeath: Statement
  readonly #nextDeath: Statement

  constructor(db: Database, { lanes, checkpoints, joins, jobSteps }: JobsHost) {
    this.lanes = lanes
    this.checkpoints = checkpoints
    this.#joins = joins
    this.#steps = jobSteps
    this.#select = db.prepare(`SELECT ${jobColumns} FROM job WHERE qid = ? AND id = ?`)
    this.#wait = db.prepare(
      `UPDATE job SET state = ?, stamp = ?, position = ?, suspect = ?, pool = ?, attempt = ?, crashes = ?, error = ?, reason = ?, updated_at = ?,
         lease_until = 0, alone = 0, cancelling = 0, worker = NULL, ${noProcess}, progress = NULL, started_at = NULL, finished_at = NULL
       WHERE rid = ?`,
    )
    this.#bury = db.prepare(
      'UPDATE job SET state = 4, suspect = 0, expires_at = NULL, attempt = ?, crashes = ?, error = ?, reason = ?, finished_at = ?5, updated_at = ?5 WHERE rid = ?6',
    )
    this.#keep = db.prepare(
      `UPDATE job SET state = 3, suspect = 0, result = ?, result_codec = ?, error = NULL, reason = NULL, finished_at = ?3, updated_at = ?3, expires_at = ?4,
         noted = noted & ~${noteBits.steps}
       WHERE rid = ?5`,
    )
    this.#delete = db.prepare('DELETE FROM job WHERE rid = ?')
    this.#deleteAll = db.prepare('DELETE FROM job WHERE rid IN (SELECT value FROM json_each(?))')
    this.#remember = db.prepare(
      `INSERT INTO remembered (qid, id, until, task, state, rank, attempt, crashes, created_at, stamp, finished_at, reason)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    this.#leaveRemains = db.prepare(
      `INSERT INTO remembered (qid, id, until, task, state, rank, attempt, crashes, created_at, stamp, finished_at, reason, error,
         ${remains}, fields, checkpoint_codec, checkpoint, log)
       SELECT ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ${remains.replace(/\w+/g, 'job.$&')}, fields.json, checkpoint.codec, checkpoint.payload, log.text
       FROM job LEFT JOIN fields USING (rid) LEFT JOIN checkpoint USING (rid) LEFT JOIN log USING (rid) WHERE job.rid = ?`,
    )
    this.#hasResult = db.prepare('SELECT 1 FROM job WHERE rid = ? AND result IS NOT NULL')
    this.#release = db.prepare(
      'UPDATE job SET state = ?, stamp = ?, position = ?, expires_at = ?, updated_at = ?5, waited_until = ?5 WHERE rid = ?6',
    )
    this.#endWait = db.prepare('UPDATE job SET waited_until = ? WHERE rid = ?')
    this.#place = db.prepare(
      'UPDATE job SET state = ?, rank = ?, stamp = ?, position = ?, updated_at = ? WHERE rid = ?',
    )
    this.#keepDeath = db.prepare(
      `INSERT INTO death (qid, n, id, task, attempt, crashes, died_at, error, reason, codec, rid)
       SELECT qid, ?, id, task, attempt, crashes, finished_at, error, reason, codec, rid FROM job WHERE rid = ?`,
    )
    this.#completeDeath = db.prepare(
      'UPDATE death SET payload = (SELECT payload FROM job WHERE job.rid = ?1), rid = NULL WHERE rid = ?1',
    )
    this.#nextDeath = db.prepare(
      "INSERT INTO meta VALUES ('deaths', '1') ON CONFLICT (name) DO UPDATE SET value = value + 1 RETURNING CAST(value AS INTEGER) AS n",
    )
    this.#flag = db.prepare('UPDATE job SET cancelling = 1, reason = ? WHERE rid = ?')
  }

  find(queue: QueueRow, id: string): JobRow | undefined {
    return this.rowOf(queue.qid, id)
  }

  /** The entry of an id in the morgue. */
  findDead(queue: QueueRow, id: string): JobRow | undefined {
    const job = this.find(queue, id)
    return job?.state === dead ? job : undefined
  }

  protected rowOf(qid: number, id: string): JobRow | undefined {
    return this.#select.get(qid, id) as JobRow | undefined
  }

  /** Puts the job back to wait in its old place; a suspect stays one. */
  requeue(queue: QueueRow, job: JobRow, now: number): void {
    this.toWaiting(queue, job, ready, job.stamp, job.suspect, now)
  }

  /** Puts the job back to wait in its old place as a suspect, for claims made alone. */
  suspect(queue: QueueRow, job: JobRow, now: number): void {
    this.toWaiting(queue, job, ready, job.stamp, 1, now)
  }

  /** Makes the job ready, behind all ready jobs. */
  enter(queue: QueueRow, job: JobRow, now: number): void {
    this.toWaiting(queue, job, ready, takeStamp(queue, now), 0, now)
  }

  runNow(queue: QueueRow, job: JobRow, now: number): void {
    if (job.noted & noteBits.steps) this.#steps.endSleeps(job.rid, now)
    this.enter(queue, job, now)
  }

  /** Gives a job that waits for a claim another place. */
  reschedule(queue: QueueRow, job: JobRow, to: NewPlace, now: number): void {
    const due = newDue(job.stamp, to, now)
    const state = typeof due === 'number' ? scheduled : due === 'kept' ? job.state : ready
    const stamp = typeof due === 'number' ? bounded(stampOf(due)) : due === 'behind' ? takeStamp(queue, now) : job.stamp
    const rank = to.priority === undefined ? job.rank : 0 - to.priority
    changeOne(this.#place, state, rank, stamp, positionOf(queue, stamp), now, job.rid)
    this.moved(queue, job, { ...job, state })
  }

  schedule(queue: QueueRow, job: JobRow, delayMs: number, now: number): void {
    if (delayMs === 0) this.enter(queue, job, now)
    else this.toWaiting(queue, job, scheduled, bounded(stampOf(now + delayMs)), 0, now)
  }

  /** A claimed job waits for a signal, unless that came before. It does not expire any more, and is suspect no more. */
  await(queue: QueueRow, job: JobRow, wait: SignalWait, now: number): void {
    const isThere = this.#steps.hasSignal(job.rid, wait.signal)
    this.toWaiting(queue, { ...job, expires_at: null }, isThere ? ready : waiting, job.stamp, 0, now)
    if (isThere) {
      changeOne(this.#endWait, now, job.rid)
      this.#steps.mark(job.rid, noteBits.steps)
    } else this.#steps.beginWait(job.rid, wait, now)
  }

  /** The wait of a job is over: it is ready in its old place. */
  wake(queue: QueueRow, job: JobRow, now: number): void {
    this.#steps.endWait(job.rid)
    changeOne(this.#endWait, now, job.rid)
    this.toWaiting(queue, job, ready, job.stamp, 0, now)
  }

  /** Makes a dead job ready again, with all its attempts. A join that misses members waits for them again. */
  revive(queue: QueueRow, job: JobRow, now: number): void {
    this.#leaveMorgue(job)
    const anew = { ...job, attempt: 1, crashes: 0, reason: null }
    if (job.noted & noteBits.join && this.#joins.misses(job.rid)) {
      this.toWaiting(queue, anew, waiting, takeStamp(queue, now), 0, now)
      this.#joins.waitsAgain(job.rid)
    } else this.enter(queue, anew, now)
    if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'revived')
  }

  /** A join whose members have ended takes the place of its enqueue, or waits until it is due. */
  release(queue: QueueRow, job: JobRow, dueAt: number, expiresAt: number | undefined, now: number): JobRow {
    const state = dueAt > now ? scheduled : ready
    const stamp = state === scheduled ? bounded(stampOf(dueAt)) : job.stamp
    const expires_at = expiresAt === undefined ? null : bounded(expiresAt)
    changeOne(this.#release, state, stamp, positionOf(queue, stamp), expires_at, now, job.rid)
    if (expires_at !== null) queue.expiring_at = Math.min(queue.expiring_at ?? Number.POSITIVE_INFINITY, expires_at)
    const released = { ...job, state, stamp, expires_at }
    this.moved(queue, job, released)
    return released
  }

  protected toWaiting(queue: QueueRow, job: JobRow, state: number, stamp: number, suspect: number, now: number): void {
    const { attempt, crashes, error, reason } = job
    changeOne(
      this.#wait,
      state,
      stamp,
      positionOf(queue, stamp),
      suspect,
      poolOf(suspect, job.grp),
      attempt,
      crashes,
      error,
      reason,
      now,
      job.rid,
    )
    if (job.expires_at !== null)
      queue.expiring_at = Math.min(queue.expiring_at ?? Number.POSITIVE_INFINITY, job.expires_at)
    this.moved(queue, job, { ...job, state, suspect })
  }

  /** Handles the last failure of a job, or one crash too many. Returns the payload that is buried, if it has several. */
  exhaust(
    queue: QueueRow,
    job: JobRow,
    reason: string | undefined,
    error: string | undefined,
    now: number,
  ): ScoredPayload | undefined {
    this.bury(queue, job, reason, error, now)
    return undefined
  }

  /** Marks a running job to be cancelled. */
  requestCancel(_queue: QueueRow, job: JobRow): void {
    changeOne(this.#flag, job.reason, job.rid)
  }

  bury(queue: QueueRow, job: JobRow, reason: string | undefined, error: string | undefined, now: number): void {
    changeOne(
      this.#bury,
      job.attempt,
      job.crashes,
      error === undefined ? job.error : toStored(error),
      storedOrNull(reason),
      now,
      job.rid,
    )
    this.moved(queue, job, { ...job, state: dead })
    if (job.noted & noteBits.awaiting) this.#steps.endWait(job.rid)
    if (job.noted > unjoined) this.#tellOfDeath(buriedAs(job, reason, error))
  }

  #tellOfDeath({ rid, noted, error, state }: JobRow): void {
    if (noted & noteBits.reports) changeOne(this.#keepDeath, (this.#nextDeath.get() as { n: number }).n, rid)
    if (noted & noteBits.join && state === waiting) this.#joins.isDead(rid)
    if (noted & noteBits.member) this.#joins.ended(rid, 'dead', { error })
  }

  /** Called before a job changes or goes: if it is dead, its death gets what it had of the job. */
  #leaveMorgue({ rid, noted, state }: Pick<JobRow, 'rid' | 'noted' | 'state'>): void {
    if (noted & noteBits.reports && state === dead) this.#completeDeath.run(rid)
  }

  keep(
    queue: QueueRow,
    job: JobRow,
    result: { readonly payload?: Payload; readonly codec?: string },
    keepMs: number | undefined,
    now: number,
  ): void {
    const expiresAt = keepMs === undefined ? null : bounded(now + keepMs)
    const payload = result.payload === undefined ? null : payloadToStored(result.payload)
    changeOne(this.#keep, payload, result.codec ?? null, now, expiresAt, job.rid)
    if (job.noted & noteBits.notes) this.checkpoints.dropCheckpoint(job.rid)
    if (job.noted & noteBits.steps) this.#steps.drop(job.rid, job.noted)
    this.moved(queue, job, { ...job, state: completed })
    if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'completed', result)
    if (job.noted & noteBits.join) this.#joins.isOver(job.rid)
  }

  /** Ends a job that nobody has begun in time. */
  expire(queue: QueueRow, job: JobRow, now: number): void {
    job.reason = toStored(expiredReason)
    if (job.noted & noteBits.member) this.#joins.ended(job.rid, 'expired')
    this.#end(queue, job, 'cancelled', now)
  }

  /**
   * Removes the job. Its id is remembered if the user gave it or the job was cancelled, then with its remains. `left` goes
   * to its joins.
   */
  end(queue: QueueRow, job: JobRow, state: 'completed' | 'cancelled', now: number, left?: ForJoins): void {
    if (job.noted & noteBits.member) this.#joins.ended(job.rid, state, left)
    this.#end(queue, job, state, now)
  }

  #end(queue: QueueRow, job: JobRow, state: 'completed' | 'cancelled', now: number): void {
    const hasRemains = state === 'cancelled' && hasBegun(job, this.#hasNotes(job))
    const forMs = rememberedForMs(state, job.remember_ms, hasRemains)
    if (forMs > 0) this.#rememberJob(queue, job, state, now, forMs, hasRemains)
    this.#discard(queue, job)
  }

  #hasNotes({ rid, noted }: JobRow): boolean {
    return (noted & noteBits.notes) !== 0 && Object.keys(this.checkpoints.of(rid)).length > 0
  }

  /** Removes kept results. An id stays remembered for as long as it would have been without a result. */
  dropResults(queue: QueueRow, jobs: readonly JobRow[], now: number): void {
    const remembered = jobs.filter((job) => isRemembered(job, now))
    for (const job of remembered) {
      const reason = this.#hasResult.get(job.rid) === undefined ? null : resultDropped
      this.#rememberJob(queue, { ...job, reason }, 'completed', job.finished_at!, job.remember_ms)
    }
    if (jobs.length > 0) this.dropAll(queue, jobs)
  }

  #rememberJob(
    queue: QueueRow,
    job: JobRow,
    state: 'completed' | 'cancelled',
    finishedAt: number,
    forMs: number,
    hasRemains = false,
  ): void {
    const until = bounded(finishedAt + forMs)
    const { rid, id, task, rank, attempt, crashes, created_at, stamp, reason, error } = job
    const facts = [task, state, rank, attempt, crashes, created_at, stamp, finishedAt, reason]
    if (hasRemains) changeOne(this.#leaveRemains, queue.qid, id, until, ...facts, error, rid)
    else this.#remember.run(queue.qid, id, until, ...facts)
    queue.remembered += 1
  }

  /** Removes the job without a trace. To its joins it is as good as cancelled, unless it has completed. */
  drop(queue: QueueRow, job: JobRow): void {
    this.#leaveMorgue(job)
    this.#tellOfLoss(job)
    this.#discard(queue, job)
  }

  #tellOfLoss({ rid, noted, state }: Pick<JobRow, 'rid' | 'noted' | 'state'>): void {
    if (noted & noteBits.member && state !== completed) this.#joins.ended(rid, 'cancelled')
  }

  #discard(queue: QueueRow, job: JobRow): void {
    this.dropRest(queue, job)
    this.remove(queue, job)
  }

  /** Like `drop`, for many jobs with one statement. */
  dropAll(queue: QueueRow, jobs: readonly JobRow[]): void {
    for (const job of jobs) {
      this.#leaveMorgue(job)
      this.#tellOfLoss(job)
      this.dropRest(queue, job)
    }
    this.deleteRows(JSON.stringify(jobs.map(({ rid }) => rid)), jobs.length)
    for (const job of jobs) this.#left(queue, job)
  }

  /** Deletes `count` rows, whose numbers are given as JSON. The caller changes the counters. */
  deleteRows(rids: string, count: number): void {
    changeSome(this.#deleteAll, count, rids)
  }

  /** Drops the payloads that a job has outside its row. A plain job has none there. */
  protected dropRest(_queue: QueueRow, _job: JobRow): void {}

  protected remove(queue: QueueRow, job: JobRow): void {
    changeOne(this.#delete, job.rid)
    this.#left(queue, job)
  }

  /** Updates notes and counters after the row of a job was deleted. */
  #left(queue: QueueRow, job: JobRow): void {
    if (job.noted & noteBits.notes) this.checkpoints.drop(job.rid)
    if (job.noted & (noteBits.steps | noteBits.awaiting)) this.#steps.drop(job.rid, job.noted)
    if (job.noted & noteBits.join) this.#joins.isOver(job.rid)
    this.leave(queue, job)
    this.lanes.refresh(queue, job.grp)
  }

  /** Counts the job in its new state, and no longer in its old one. */
  moved(queue: QueueRow, before: CountedJob, job: CountedJob): void {
    this.leave(queue, before)
    this.arrive(queue, job)
    this.lanes.refresh(queue, job.grp)
  }

  protected arrive(queue: QueueRow, job: CountedJob): void {
    countJob(queue, job, 1)
    this.lanes.count(queue, job, 1)
  }

  protected leave(queue: QueueRow, job: CountedJob): void {
    countJob(queue, job, -1)
    this.lanes.count(queue, job, -1)
  }
}

/**
 * Runs a statement that must change exactly one row. The counters assume the change, so a missing row undoes the whole
 * transaction.
 */
export function changeOne(statement: Statement, ...values: SqlValue[]): void {
  changeSome(statement, 1, ...values)
}

/** Like `changeOne`, for `rows` rows. */
export function changeSome(statement: Statement, rows: number, ...values: SqlValue[]): void {
  const { changes } = statement.run(...values)
  if (Number(changes) !== rows) throw new Error(`SQLite changed ${changes} rows where it must change ${rows}`)
}

/** The job as it is shown in the morgue. */
export function buriedAs(job: JobRow, reason: string | undefined, error: string | undefined): JobRow {
  return { ...job, reason: storedOrNull(reason), error: error === undefined ? job.error : toStored(error) }
}
