/**
 * The joins of a SQLite store as one transaction sees them: the ends of members are gathered, and delivered before the
 * commit. So each is a part of its transaction, and a join that many of them reach is read and written once.
 */

import type { JobKey } from '../../contract/job-records.js'
import type { NewJob } from '../../contract/new-job.js'
import type { Fate, MemberOf } from '../../contract/new-join.js'
import { dead, type JobRow, noteBits, ready, running, waiting } from '../../rows/job-row.js'
import { type HeldSet, joinDueAt, type PlaceRow, placeRowsIn, waitingFrom } from '../../rows/join-row.js'
import { stepLimit } from '../../rules/bounds.js'
import {
  effectOf,
  isAt,
  isComplete,
  memberDeadError,
  memberDeadReason,
  memberId,
  mostJoinBytes,
  numberOf,
  tooLargeError,
  tooLargeReason,
} from '../../rules/join-rules.js'
import { expiryOf } from '../../rules/sequence.js'
import { dropJoin, type HeldJoin, joinOf, reportFailed, storeJoin, writeJoin, writeSet } from '../../sql/sql-joins.js'
import type { SqlSteps } from '../../sql/sql-steps.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { JoinNews, SqliteJobs } from './sqlite-job.js'
import { type CompletedRow, completedRow, type ForJoins, type ReportedEnd, SqliteJoinEnds } from './sqlite-join-ends.js'
import type { QueueRow, SqliteQueues } from './sqlite-queue.js'

/** The transaction, as far as joins need it. */
interface JoinHost {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly jobs: SqliteJobs
  hasEnds: boolean
  run<Answer>(steps: SqlSteps<Answer>): Answer
  ringForJob(queue: QueueRow, job: JobRow, now: number): void
}

/** If more joins than this were used in a transaction, none is kept for the next. */
const mostKept = 64
/** Results of more bytes than this, or ends of more members than `stepLimit`, are deleted step by step. */
const mostDropped = 1_048_576

const nothing: ForJoins = {}

/** The end of members of a queue that have the same places, as their rows have them. Only completed ones come together. */
interface MemberReport {
  readonly queue: string
  readonly ids: readonly string[]
  readonly places: readonly PlaceRow[]
  /** Revived: the member was dead, and waits again. */
  readonly fate: Fate | 'revived'
  /** What each leaves. Absent: nothing. */
  readonly left?: readonly (ForJoins | undefined)[] | undefined
}

/** A member, with its places as its row has them. */
interface PlacedRow extends JobKey {
  readonly places: string
}

interface WorkingJoin extends HeldJoin {
  /** The name of its queue, and its id. */
  readonly queue: string
  readonly id: string
  /** The state of its job, once it was needed in this delivery. */
  state: number | undefined
  /** Whether its row has changed. */
  isChanged: boolean
}

/** Up to which numbers the members of a dead join were seen to, by its sets. Its stamp is another once it was revived. */
interface CutPlaces {
  readonly rid: number
  readonly stamp: number
  readonly next: Map<number, number>
}

export class SqliteJoins implements JoinNews {
  readonly #host: JoinHost
  #reports: MemberReport[] = []
  /** The members that have completed in this delivery and are not yet kept, by their sets. */
  #completed = new Map<HeldSet, { readonly join: WorkingJoin; readonly rows: CompletedRow[] }>()
  /** The joins that this transaction and some before it have used, by the numbers of their jobs. */
  #held = new Map<number, WorkingJoin>()
  /** The one that was looked for last: most members of a call belong to one join. */
  #last: WorkingJoin | undefined
  /** The numbers of their jobs, by queue and id; undefined if there is no such join. */
  #rids = new Map<string, number | undefined>()
  /** The sets of these that have changed. */
  #changed = new Set<HeldSet>()
  /** Whether this transaction has used any. */
  #isUsed = false
  /** How far the sweeps of this connection have come with the dead join whose rest they cancel. */
  #cutPlaces: CutPlaces | undefined
  /** Who has ended in the sets of joins. */
  readonly ends: SqliteJoinEnds
  readonly #placesOf: Statement
  readonly #find: Statement
  readonly #stateOf: Statement
  readonly #jobOf: Statement
  readonly #cut: Statement

  constructor(host: JoinHost) {
    this.#host = host
    const { db } = host
    this.ends = new SqliteJoinEnds(db)
    this.#find = db.prepare(`SELECT rid FROM job WHERE qid = ? AND id = ? AND noted & ${noteBits.join}`)
    this.#placesOf = db.prepare('SELECT queue.name AS queue, id, places FROM job JOIN queue USING (qid) WHERE rid = ?')
    // A join that waits for a signal has run.
    this.#stateOf = db.prepare(
      `SELECT iif(noted & ${noteBits.awaiting}, ${running}, state) AS state FROM job WHERE rid = ?`,
    )
    this.#jobOf = db.prepare('SELECT queue.name AS queue, id FROM job JOIN queue USING (qid) WHERE rid = ?')
    this.#cut = db.prepare(`UPDATE job SET noted = noted | ${noteBits.cut} WHERE rid = ?`)
  }

  // What comes in

  /** A join waits for its members, unless it has none. Its job was stored as waiting. */
  begin(queue: QueueRow, rid: number, job: NewJob, now: number): void {
    this.#host.run(storeJoin(rid, job, now))
    this.resized(this.#hold(queue.name, job.id, rid)!, now)
  }

  /** Whether one of the places of a new member was taken before. */
  hasMember(member: JobKey, places: readonly MemberOf[]): boolean {
    return places.some((place) => place.number < (this.#setOf(place, member)?.added ?? 0))
  }

  /** A job was added that is a member. In a join that is gone it has no place. */
  enter(member: JobKey, places: readonly MemberOf[]): void {
    for (const place of places) {
      const found = this.#setOf(place, member)
      if (found === undefined) continue
      this.ends.enter(found, place.number)
      this.#changed.add(found)
    }
  }

  // What happens to their jobs

  ended(rid: number, fate: MemberReport['fate'], left?: ForJoins): void {
    const { queue, id, places } = this.#placesOf.get(rid) as PlacedRow
    this.report({ queue, ids: [id], places: placeRowsIn(places), fate, left: [left] })
  }

  /** Takes the end of members, or that one was revived, to be delivered before the commit. */
  report(report: MemberReport): void {
    this.#reports.push(report)
  }

  misses(rid: number): boolean {
    return !(this.of(rid)?.sets.every(isComplete) ?? true)
  }

  waitsAgain(rid: number): void {
    const join = this.of(rid)!
    Object.assign(join.row, waitingFrom(join.row, this.#host.clock.now()), { cancelling: 0 })
    this.#wait(join)
  }

  isDead(rid: number): void {
    const join = this.of(rid)
    if (join === undefined) return
    join.row.due_at = null
    join.isChanged = true
  }

  isOver(rid: number): void {
    const held = this.#held.get(rid)
    if (held !== undefined) {
      this.#last = undefined
      this.#held.delete(rid)
      this.#rids.delete(keyOf(held.queue, held.id))
    }
    const join = held ?? this.#host.run(joinOf(rid))
    if (join === undefined) return
    for (const set of join.sets) this.#changed.delete(set)
    const members = join.sets.reduce((sum, { added }) => sum + added, 0)
    const isMuch = members > stepLimit || bytesOf(join) > mostDropped
    if (!isMuch) for (const { sid } of join.sets) this.ends.drop(sid)
    this.#host.run(dropJoin(join, isMuch))
  }

  // What becomes of them

  /** Delivers the ends that were reported: one after the other, and before the next those that follow from it. */
  deliver(): void {
    if (this.#reports.length === 0) return
    this.#forgetStates()
    const now = this.#host.clock.now()
    const left = this.#takeReports()
    for (let report = left.pop(); report !== undefined; report = left.pop()) {
      this.#take(report, now)
      if (left.length === 0) this.#keepCompleted(now)
      if (this.#reports.length > 0) left.push(...this.#takeReports())
    }
  }

  /** The last comes first. */
  #takeReports(): MemberReport[] {
    const reports = this.#reports
    this.#reports = []
    return reports.reverse()
  }

  #take({ queue: from, ids, places, fate, left }: MemberReport, now: number): void {
    if (fate === 'revived') this.#keepCompleted(now)
    for (const [queue, id, name, place] of places) {
      const join = this.find(queue, id)
      const set = join?.sets.find((one) => one.name === name)
      if (join === undefined || set === undefined || set.queue !== from || !this.isOpen(join)) continue
      for (let i = 0; i < ids.length; i += 1) {
        const number = numberAt(set, place, ids[i]!)
        if (number !== undefined) this.#takeEnd(join, set, number, fate, left?.[i] ?? nothing, now)
      }
    }
  }

  #takeEnd(
    join: WorkingJoin,
    set: HeldSet,
    number: number,
    fate: MemberReport['fate'],
    left: ForJoins,
    now: number,
  ): void {
    if (fate === 'revived') {
      if (this.ends.takeBack(set, number)) this.#changed.add(set)
      return
    }
    const row = fate === 'completed' ? completedRow(number, set.keepsResults, left) : undefined
    if (row === undefined) this.#keep(join, set, number, { ...left, fate }, now)
    else this.#keepLater(join, set, row)
  }

  #keepLater(join: WorkingJoin, set: HeldSet, row: CompletedRow): void {
    const others = this.#completed.get(set)
    if (others === undefined) this.#completed.set(set, { join, rows: [row] })
    else others.rows.push(row)
  }

  #keepCompleted(now: number): void {
    if (this.#completed.size === 0) return
    const completed = this.#completed
    this.#completed = new Map()
    for (const [set, { join, rows }] of completed) {
      this.#keeps(set, this.ends.keepCompleted(set, rows))
      this.#judge(join, now)
    }
  }

  #keep(join: WorkingJoin, set: HeldSet, number: number, end: ReportedEnd, now: number): void {
    this.#keepCompleted(now)
    const bytes = this.ends.keep(set, number, end)
    if (bytes === undefined) return
    this.#keeps(set, bytes)
    const { fate } = end
    if (set.onDead !== 'go-on' && (fate === 'cancelled' || fate === 'expired')) this.#cut.run(join.row.rid)
    if (effectOf(fate, set.onDead) === 'fails')
      this.#fail(join, memberDeadReason, memberDeadError(set, number, fate), now)
    else this.#judge(join, now)
  }

  #keeps(set: HeldSet, bytes: number): void {
    this.#changed.add(set)
    set.bytes += bytes
  }

  #judge(join: WorkingJoin, now: number): void {
    if (bytesOf(join) > mostJoinBytes) this.#fail(join, tooLargeReason, tooLargeError, now)
    else this.#check(join, now)
  }

  /** The join is ready once nobody is outstanding. A server would look for one row of `join_member`. */
  #check(join: WorkingJoin, now: number): void {
    if (!join.sets.every(isComplete) || this.#state(join) !== waiting) return
    const { row } = join
    const queue = this.#host.queues.get(join.queue)
    const job = this.#host.jobs.find(queue, join.id)!
    const expiresAt = row.expires_ms === null ? undefined : expiryOf({ expiresMs: row.expires_ms }, now)
    const released = this.#host.jobs.release(queue, job, row.run_at ?? now + row.delay_ms, expiresAt, now)
    join.state = ready
    row.due_at = null
    join.isChanged = true
    this.#host.ringForJob(queue, released, now)
    this.#host.hasEnds = true
  }

  /** Time has made the join dead, if it waits. */
  fail(join: WorkingJoin, reason: string, error: string, now: number): void {
    this.#forgetStates()
    this.#fail(join, reason, error, now)
  }

  #fail(join: WorkingJoin, reason: string, error: string, now: number): void {
    if (this.#state(join) !== waiting) return
    const { queue: name, id, row } = join
    const queue = this.#host.queues.get(name)
    const job = this.#host.jobs.find(queue, id)!
    this.#host.jobs.bury(queue, job, reason, error, now)
    join.state = dead
    row.cancelling = reason === memberDeadReason ? row.cancels_rest : 0
    join.isChanged = true
    this.#host.run(reportFailed({ queue: name, id, task: job.task, reason }))
    this.#host.hasEnds = true
  }

  /** The join is new, or sets of it were sealed. */
  resized(join: WorkingJoin, now: number): void {
    this.#forgetStates()
    for (const set of join.sets) this.#changed.add(set)
    if (this.#state(join) === waiting) this.#wait(join)
    this.#check(join, now)
  }

  #wait(join: WorkingJoin): void {
    join.row.due_at = joinDueAt(join.row, join.sets)
    join.isChanged = true
  }

  /**
   * Where the cancelling of the rest of a dead join goes on: the next number, by the number of the set. Only what was
   * committed is passed over, and what another connection has cancelled is found to be so.
   */
  placesOfCut({ queue, id, row: { rid } }: WorkingJoin): Map<number, number> {
    const { stamp } = this.#host.jobs.find(this.#host.queues.get(queue), id)!
    if (this.#cutPlaces?.rid !== rid || this.#cutPlaces.stamp !== stamp)
      this.#cutPlaces = { rid, stamp, next: new Map() }
    return this.#cutPlaces.next
  }

  // What is held

  /** Undefined: there is no such join, or it has ended. */
  find(queue: string, id: string): WorkingJoin | undefined {
    this.#isUsed = true
    const last = this.#last
    if (last !== undefined && last.id === id && last.queue === queue) return last
    const key = keyOf(queue, id)
    const known = this.#rids.get(key)
    if (known !== undefined) {
      this.#last = this.#held.get(known)
      return this.#last
    }
    if (this.#rids.has(key)) return undefined
    const row = this.#host.queues.find(queue)
    const job = row && (this.#find.get(row.qid, id) as { rid: number } | undefined)
    if (job !== undefined) return this.#hold(queue, id, job.rid)
    this.#rids.set(key, undefined)
    return undefined
  }

  /** The join of this job. */
  of(rid: number): WorkingJoin | undefined {
    this.#isUsed = true
    const held = this.#held.get(rid)
    if (held !== undefined) return held
    const job = this.#jobOf.get(rid) as { queue: string; id: string } | undefined
    return job && this.#hold(job.queue, job.id, rid)
  }

  #hold(queue: string, id: string, rid: number): WorkingJoin | undefined {
    this.#isUsed = true
    const held = this.#host.run(joinOf(rid))
    if (held === undefined) return undefined
    const join = { ...held, queue, id, state: undefined, isChanged: false }
    this.#held.set(rid, join)
    this.#rids.set(keyOf(queue, id), rid)
    return join
  }

  /** The members of an earlier join of this id have other ids or queues, and no place in it. */
  #setOf({ join: key, set: name, number }: MemberOf, member: JobKey): HeldSet | undefined {
    const set = this.find(key.queue, key.id)?.sets.find((one) => one.name === name)
    return set !== undefined && isAt(set, number, member) ? set : undefined
  }

  /** Once it will run, the ends of its members are what they are. */
  isOpen(join: WorkingJoin): boolean {
    const state = this.#state(join)
    return state === waiting || state === dead
  }

  hasDied(join: WorkingJoin): boolean {
    return this.#state(join) === dead
  }

  #state(join: WorkingJoin): number {
    join.state ??= (this.#stateOf.get(join.row.rid) as { state: number }).state
    return join.state
  }

  /** Called before states are needed: other code may have changed them since. */
  #forgetStates(): void {
    for (const join of this.#held.values()) join.state = undefined
  }

  /** Delivers what is left, and writes what has changed. Called before each commit of a write; joins are kept. */
  flush(): void {
    this.deliver()
    if (!this.#isUsed) return
    this.#isUsed = false
    for (const join of this.#held.values()) {
      if (!join.isChanged) continue
      this.#host.run(writeJoin(join.row))
      join.isChanged = false
    }
    for (const set of this.#changed) this.#host.run(writeSet(set))
    this.#changed = new Set()
    this.ends.flush()
    if (this.#held.size > mostKept) this.forgetHeld()
    else this.#rids = new Map([...this.#held].map(([rid, { queue, id }]) => [keyOf(queue, id), rid]))
  }

  /** Forgets joins that somebody else may have changed. Everything was written. */
  forgetHeld(): void {
    this.#last = undefined
    this.#held = new Map()
    this.#rids = new Map()
    this.#changed = new Set()
    this.ends.forget()
  }

  /** Called after a rollback. */
  forget(): void {
    this.#reports = []
    this.#completed = new Map()
    this.#cutPlaces = undefined
    this.forgetHeld()
  }
}

/** Of the results that it keeps. */
function bytesOf({ sets }: HeldJoin): number {
  return sets.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The number of the member with this place; undefined: another job has its id. */
function numberAt(set: HeldSet, place: number | null | undefined, id: string): number | undefined {
  if (place === undefined || place === null) return numberOf(set, id)
  return memberId(set, place) === id ? place : undefined
}

/** No queue name contains a space. */
function keyOf(queue: string, id: string): string {
  return `${queue} ${id}`
}
