/**
 * Job rows of ordered queues: the same changes of state, each with the change of the payloads by `rules/payloads`. Dead
 * jobs have rows of their own, next to the live ones.
 */

import type { NewJob } from '../../contract/new-job.js'
import { dead, groupIn, isHidden, type JobRow, poolOf, ready, running, scheduled } from '../../rows/job-row.js'
import { scoredPayload } from '../../rows/payload-row.js'
import { bounded, morgueOf, positionOf } from '../../rows/queue-row.js'
import { doneOf } from '../../rules/payloads.js'
import { dueAt, stampOf } from '../../rules/sequence.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { buriedAs, changeOne, type JobsHost, noProcess, SqliteJobs } from './sqlite-job.js'
import { type PayloadSetKey, SqlitePayloads, setOf, successorSet, waitingSetOf } from './sqlite-payloads.js'
import { type QueueRow, takeScore, takeStamp } from './sqlite-queue.js'

/** The values of the row of a live job. */
type LiveEntry = Pick<JobRow, 'id' | 'task' | 'grp' | 'state' | 'stamp' | 'part' | 'error'> & {
  /** Null: a new row. */
  readonly rid: number | null
  readonly createdAt: number
}

export class SqliteOrderedJobs extends SqliteJobs {
  readonly payloads: SqlitePayloads
  readonly #insert: Statement
  readonly #wait: Statement
  readonly #setSuccessor: Statement
  readonly #move: Statement
  readonly #toDead: Statement
  readonly #insertDead: Statement
  readonly #updateDead: Statement
  readonly #moveDead: Statement

  constructor(db: Database, host: JobsHost) {
    super(db, host)
    this.payloads = new SqlitePayloads(db)
    this.#insert = db.prepare(
      `INSERT OR IGNORE INTO job (rid, qid, id, task, state, rank, position, stamp, error, part, grp, pool, remember_ms, created_at, updated_at, payload)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, '')`,
    )
    this.#wait = db.prepare(
      `UPDATE job SET state = ?, stamp = ?, rank = ?, suspect = ?, pool = ?, attempt = ?, crashes = ?, error = ?, reason = ?, updated_at = ?, part = ?,
         successor_stamp = NULL, successor_created_at = NULL, successor_ready = 0, lease_until = 0, alone = 0, cancelling = 0, worker = NULL, ${noProcess},
         progress = NULL, started_at = NULL WHERE rid = ?`,
    )
    this.#setSuccessor = db.prepare(
      'UPDATE job SET successor_stamp = ?, successor_created_at = ?, successor_ready = ? WHERE rid = ?',
    )
    this.#move = db.prepare('UPDATE job SET qid = ?, state = ?, rank = ? WHERE rid = ?')
    this.#toDead = db.prepare(
      `UPDATE job SET qid = ?, state = ${dead}, rank = 0, attempt = ?, crashes = ?, error = ?, reason = ?, updated_at = ?6, finished_at = ?6,
         suspect = 0, fence = 0, lease_until = 0, alone = 0, cancelling = 0, worker = NULL, ${noProcess}, progress = NULL, started_at = NULL, noted = 0
       WHERE rid = ?7`,
    )
    this.#insertDead = db.prepare(
      `INSERT INTO job (qid, id, task, state, rank, position, stamp, attempt, crashes, error, reason, grp, remember_ms, created_at, updated_at, finished_at, payload)
       VALUES (?1, ?2, ?3, ${dead}, 0, ?4, ?5, ?6, ?7, ?8, ?9, ?10, 0, ?11, ?12, ?12, '')`,
    )
    this.#updateDead = db.prepare(
      'UPDATE job SET task = ?, stamp = ?, attempt = ?, crashes = ?, error = ?, reason = ?, grp = ?, updated_at = ?8, finished_at = ?8 WHERE rid = ?9',
    )
    this.#moveDead = db.prepare('UPDATE job SET qid = ? WHERE rid = ?')
  }

  override findDead(queue: QueueRow, id: string): JobRow | undefined {
    return this.rowOf(morgueOf(queue), id)
  }

  /**
   * Adds a payload. Returns the ms until its new job is due, 0 if that is ready; undefined if the id was already there.
   */
  push(queue: QueueRow, job: NewJob, digest: Uint8Array, now: number): number | undefined {
    const { id, task, payload, codec, meta, runAt, delayMs } = job
    const arrival = takeStamp(queue, now)
    const due = runAt ?? (delayMs ? now + delayMs : undefined)
    const stamp = due === undefined ? arrival : bounded(stampOf(due))
    const scored = {
      score: job.score ?? takeScore(queue, arrival) / 1_000,
      payload,
      ...(codec === undefined ? {} : { codec }),
      ...(meta === undefined ? {} : { meta }),
    }
    // Inserts first, because most ids are new or few: the index that a new id is written to also finds an existing one.
    const state = due !== undefined && due > now ? scheduled : ready
    const grp = groupIn(job)
    const rid = this.#enter(
      queue,
      { rid: null, part: 0, id, task, grp, state, stamp, createdAt: now, error: null },
      now,
    )
    const set = rid === undefined ? this.#waiting(queue, id, { stamp, state }, now) : { rid, part: 0 }
    queue.pending += this.payloads.add(set, scored, digest, queue.merge)
    if (rid === undefined) return undefined
    return state === ready ? 0 : due! - now
  }

  /** The waiting payloads of an id, also those of the successor of a running job; undefined if none wait. */
  waitingSet(queue: QueueRow, id: string): PayloadSetKey | undefined {
    const job = this.find(queue, id)
    return job && waitingSetOf(job)
  }

  /** The set that a payload joins if its id is already there. */
  #waiting(queue: QueueRow, id: string, at: { stamp: number; state: number }, now: number): PayloadSetKey {
    const job = this.find(queue, id)!
    if (waitingSetOf(job) === undefined) this.#setSuccessor.run(at.stamp, now, Number(at.state === ready), job.rid)
    return waitingSetOf(job) ?? successorSet(job)
  }

  protected override toWaiting(
    queue: QueueRow,
    job: JobRow,
    state: number,
    stamp: number,
    suspect: number,
    now: number,
  ): void {
    const { rid, attempt, crashes, error, reason } = job
    const part = job.state === running ? this.#giveBack(queue, job) : job.part
    const rank = positionOf(queue, stamp)
    changeOne(
      this.#wait,
      state,
      stamp,
      rank,
      suspect,
      poolOf(suspect, job.grp),
      attempt,
      crashes,
      error,
      reason,
      now,
      part,
      rid,
    )
    this.moved(queue, job, { ...job, state, suspect })
  }

  /** Puts the payloads in hand back, merged with those of the successor. Returns the part that they are in then. */
  #giveBack(queue: QueueRow, job: JobRow): number {
    const { payloads } = this
    if (job.successor_stamp !== null) {
      const successor = successorSet(job)
      queue.pending += payloads.join(setOf(job), successor, queue.merge)
      return successor.part
    }
    this.#trimOnEntry(queue, setOf(job))
    queue.pending += payloads.count(setOf(job))
    return job.part
  }

  /** The oldest `done` payloads in hand are completed; the others begin with this run. */
  dropDone(job: JobRow, done: number): void {
    const count = doneOf(this.payloads.count(setOf(job)), done)
    if (count === 0) return
    this.payloads.dropFirst(setOf(job), count)
    Object.assign(job, { attempt: 1, crashes: 0, error: null })
  }

  /** Trims a set that was made under another merge rule. Returns the number of payloads removed. */
  #trimOnEntry(queue: QueueRow, set: PayloadSetKey): number {
    return queue.merge === 'latest' ? this.payloads.trim(set) : 0
  }

  /** Buries only the oldest payload. The rest begins anew; if nothing is left, the successor does. */
  override exhaust(queue: QueueRow, job: JobRow, reason: string | undefined, error: string | undefined, now: number) {
    const [oldest, next] = this.payloads.head(setOf(job), 2)
    this.#toMorgue(queue, buriedAs(job, reason, error), this.payloads.oldest(setOf(job), oldest!), now)
    if (next === undefined) this.#leave(queue, job, now)
    else this.enter(queue, { ...job, attempt: 1, crashes: 0, error: null, reason: null }, now)
    return scoredPayload(oldest!)
  }

  override bury(
    queue: QueueRow,
    job: JobRow,
    reason: string | undefined,
    error: string | undefined,
    now: number,
  ): void {
    if (job.state !== running) queue.pending -= this.payloads.count(setOf(job))
    const buried = buriedAs(job, reason, error)
    if (job.successor_stamp === null && this.#shownDead(queue, job.id, now) === undefined) {
      this.#die(queue, buried, now)
      return
    }
    this.#toMorgue(queue, buried, setOf(job), now)
    this.#leave(queue, job, now)
  }

  /** Everything that the id has is dead: its row goes into the morgue, and its payloads stay where they are. */
  #die(queue: QueueRow, job: JobRow, now: number): void {
    this.#trimOnEntry(queue, setOf(job))
    const { attempt, crashes, error, reason, rid } = job
    if (job.noted) this.checkpoints.drop(rid)
    changeOne(this.#toDead, morgueOf(queue), attempt, crashes, error, reason, now, rid)
    this.moved(queue, job, { ...job, state: dead })
  }

  /** Nothing is remembered: the id may come again at once. */
  override end(queue: QueueRow, job: JobRow, _state: 'completed' | 'cancelled', now: number): void {
    this.dropRest(queue, job)
    this.#leave(queue, job, now)
  }

  /** An ordered queue keeps no results. */
  override keep(queue: QueueRow, job: JobRow, _result: unknown, _keepMs: number | undefined, now: number): void {
    this.end(queue, job, 'completed', now)
  }

  protected override dropRest(queue: QueueRow, job: JobRow): void {
    const dropped = this.payloads.drop(setOf(job))
    if (isWaiting(job)) queue.pending -= dropped
  }

  /** If the job runs, this is for its successor, which is then due when the claim has ended. */
  override runNow(queue: QueueRow, job: JobRow, now: number): void {
    if (job.state === running) this.#setSuccessor.run(takeStamp(queue, now), job.successor_created_at, 1, job.rid)
    else super.runNow(queue, job, now)
  }

  override requestCancel(queue: QueueRow, job: JobRow): void {
    super.requestCancel(queue, job)
    if (job.successor_stamp === null) return
    queue.pending -= this.payloads.drop(successorSet(job))
    this.#setSuccessor.run(null, null, 0, job.rid)
  }

  override revive(queue: QueueRow, job: JobRow, now: number): void {
    const { rid, id, task, grp, part, created_at, error } = job
    const stamp = takeStamp(queue, now)
    const live = this.find(queue, id)
    this.remove(queue, job)
    if (live === undefined) {
      this.#trimOnEntry(queue, setOf(job))
      this.#enter(queue, { rid, part, id, task, grp, state: ready, stamp, createdAt: created_at, error }, now)
      queue.pending += this.payloads.count(setOf(job))
      return
    }
    const isRunning = live.state === running
    queue.pending += this.payloads.join(setOf(job), isRunning ? successorSet(live) : setOf(live), queue.merge)
    if (isRunning) this.#setSuccessor.run(stamp, live.successor_created_at ?? created_at, 1, live.rid)
    else {
      if (live.attempt > 1) queue.retries -= 1
      this.toWaiting(queue, { ...live, attempt: 1 }, ready, stamp, live.suspect, now)
    }
  }

  /**
   * Moves a waiting or dead job here from another shard or queue, with its times and counts. If its id is already here,
   * only its payloads join. Payloads are rewritten only if the id has others here. A dead job past its age is dropped.
   */
  adopt(from: QueueRow, queue: QueueRow, job: JobRow, now: number): void {
    queue.last_score = Math.max(queue.last_score, from.last_score)
    if (isHidden(from, job, now)) this.drop(from, job)
    else if (job.state === dead) this.#adoptDead(from, queue, job, now)
    else this.#adoptLive(from, queue, job, now)
  }

  #adoptLive(from: QueueRow, queue: QueueRow, job: JobRow, now: number): void {
    const { payloads } = this
    const { rid, stamp, created_at } = job
    from.pending -= payloads.count(setOf(job))
    const here = this.find(queue, job.id)
    if (here === undefined) {
      if (this.findDead(queue, job.id) !== undefined) payloads.join(payloads.renumbered(setOf(job)), setOf(job), 'all')
      this.#trimOnEntry(queue, setOf(job))
      const state = job.state === ready ? ready : stateAt(stamp, now)
      changeOne(this.#move, queue.qid, state, positionOf(queue, stamp), rid)
      this.#cross(from, queue, job, state)
      queue.pending += payloads.count(setOf(job))
      return
    }
    const isRunning = here.state === running
    const into = isRunning ? successorSet(here) : setOf(here)
    queue.pending += payloads.join(payloads.renumbered(setOf(job)), into, queue.merge)
    if (isRunning && here.successor_stamp === null)
      this.#setSuccessor.run(stamp, created_at, Number(job.state === ready), here.rid)
    this.remove(from, job)
  }

  /** Counts the job as moved here, in this state. */
  #cross(from: QueueRow, queue: QueueRow, job: JobRow, state: number): void {
    this.leave(from, job)
    this.lanes.refresh(from, job.grp)
    this.arrive(queue, { ...job, state })
    this.lanes.refresh(queue, job.grp)
  }

  /** If the id has a dead job here too, the entry keeps the columns of the one that died last. */
  #adoptDead(from: QueueRow, queue: QueueRow, job: JobRow, now: number): void {
    const here = this.#shownDead(queue, job.id, now)
    if (here === undefined && this.find(queue, job.id) === undefined) {
      this.#trimOnEntry(queue, setOf(job))
      changeOne(this.#moveDead, morgueOf(queue), job.rid)
      this.#cross(from, queue, job, dead)
      return
    }
    const set = this.payloads.renumbered(setOf(job))
    this.remove(from, job)
    if (here !== undefined && here.finished_at! > job.finished_at!) this.payloads.join(set, setOf(here), queue.merge)
    else this.#toMorgue(queue, job, set, job.finished_at!)
  }

  /** Inserts the row of a live job. Returns its number; undefined, with nothing changed, if the id is live. */
  #enter(
    queue: QueueRow,
    { rid, id, task, grp, state, stamp, part, createdAt, error }: LiveEntry,
    now: number,
  ): number | undefined {
    const rank = positionOf(queue, stamp)
    const { qid } = queue
    const { changes, lastInsertRowid } = this.#insert.run(
      rid,
      qid,
      id,
      task,
      state,
      rank,
      Buffer.from(id),
      stamp,
      error,
      part,
      grp,
      poolOf(0, grp),
      createdAt,
      now,
    )
    if (Number(changes) === 0) return undefined
    this.arrive(queue, { state, suspect: 0, attempt: 1, grp })
    this.lanes.refresh(queue, grp)
    return Number(lastInsertRowid)
  }

  /** Removes the job. Its successor, if there is one, becomes a new job. */
  #leave(queue: QueueRow, job: JobRow, now: number): void {
    const {
      rid,
      id,
      task,
      grp,
      successor_stamp: stamp,
      successor_created_at: createdAt,
      successor_ready: isReady,
    } = job
    this.remove(queue, job)
    if (stamp === null) return
    const successor = successorSet(job)
    queue.pending -= this.#trimOnEntry(queue, successor)
    const state = isReady === 1 ? ready : stateAt(stamp, now)
    this.#enter(
      queue,
      { rid, part: successor.part, id, task, grp, state, stamp, createdAt: createdAt!, error: null },
      now,
    )
  }

  #toMorgue(queue: QueueRow, job: JobRow, set: PayloadSetKey, at: number): void {
    const { id, task, grp, stamp, attempt, crashes, error, reason, created_at } = job
    const before = this.#shownDead(queue, id, at)
    if (before !== undefined) {
      changeOne(this.#updateDead, task, stamp, attempt, crashes, error, reason, grp, at, before.rid)
      this.payloads.join(set, setOf(before), queue.merge)
      return
    }
    const values = [id, task, Buffer.from(id), stamp, attempt, crashes, error, reason, grp, created_at, at]
    const { lastInsertRowid } = this.#insertDead.run(morgueOf(queue), ...values)
    queue.dead += 1
    this.payloads.join(set, { rid: Number(lastInsertRowid), part: 0 }, queue.merge)
  }

  /** The dead job of an id. One past its age is dropped and not returned. */
  #shownDead(queue: QueueRow, id: string, now: number): JobRow | undefined {
    const job = this.findDead(queue, id)
    if (job === undefined || !isHidden(queue, job, now)) return job
    this.drop(queue, job)
    return undefined
  }
}

function isWaiting({ state }: JobRow): boolean {
  return state === ready || state === scheduled
}

function stateAt(stamp: number, now: number): number {
  return dueAt(stamp) > now ? scheduled : ready
}
