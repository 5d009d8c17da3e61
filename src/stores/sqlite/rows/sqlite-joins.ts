/**
 * The joins of a SQLite store as one transaction sees them: the ends of members are gathered, and delivered before the
 * commit. So each is a part of its transaction, and a join that many of them reach is read and written once.
 */

import { payloadBytes } from '../../../core/values/codec.js'
import type { NewJob } from '../../contract/new-job.js'
import type { Fate, MemberOf } from '../../contract/new-join.js'
import { dead, type JobRow, noteBits, ready, waiting } from '../../rows/job-row.js'
import { cancelledFate, deadFate, fates, type HeldSet, joinDueAt, placesIn, waitingFrom } from '../../rows/join-row.js'
import { payloadToStored } from '../../rows/stored-text.js'
import {
  effectOf,
  isComplete,
  memberDeadError,
  memberDeadReason,
  memberId,
  mostJoinBytes,
  tooLargeError,
  tooLargeReason,
} from '../../rules/join-rules.js'
import { expiryOf } from '../../rules/sequence.js'
import { dropJoin, type HeldJoin, joinOf, reportFailed, storeJoin, writeJoin } from '../../sql/sql-joins.js'
import type { SqlSteps } from '../../sql/sql-steps.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { ForJoins, JoinNews, SqliteJobs } from './sqlite-job.js'
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

/** The end of a member, with its id and places as its row has them. */
interface MemberReport extends ForJoins {
  readonly id: string
  readonly places: string
  readonly fate: Fate
}

/** The end as it is stored. */
type Ended = ForJoins & { readonly fate: Fate }

interface WorkingJoin extends HeldJoin {
  /** The name of its queue, and its id. */
  readonly queue: string
  readonly id: string
  /** The state of its job, once it was needed in this delivery. */
  state: number | undefined
  isChanged: boolean
}

export class SqliteJoins implements JoinNews {
  readonly #host: JoinHost
  #reports: MemberReport[] = []
  /** The joins that this transaction has used, by the numbers of their jobs; and these numbers by queue and id. */
  #held = new Map<number, WorkingJoin>()
  #rids = new Map<string, number>()
  readonly #placesOf: Statement
  readonly #stateOf: Statement
  readonly #jobOf: Statement
  readonly #enter: Statement
  readonly #leave: Statement
  readonly #keep: Statement
  readonly #goForGood: Statement
  readonly #takeBack: Statement
  readonly #cut: Statement

  constructor(host: JoinHost) {
    this.#host = host
    const { db } = host
    this.#placesOf = db.prepare('SELECT id, places FROM job WHERE rid = ?')
    this.#stateOf = db.prepare('SELECT state FROM job WHERE rid = ?')
    this.#jobOf = db.prepare('SELECT queue.name AS queue, id FROM job JOIN queue USING (qid) WHERE rid = ?')
    this.#enter = db.prepare('INSERT OR IGNORE INTO join_member (sid, number, rid) VALUES (?, ?, ?)')
    this.#leave = db.prepare('DELETE FROM join_member WHERE sid = ? AND number = ?')
    this.#keep = db.prepare('INSERT INTO join_end (sid, number, fate, codec, error, payload) VALUES (?, ?, ?, ?, ?, ?)')
    this.#goForGood = db.prepare(
      `UPDATE join_end SET fate = ${cancelledFate}, error = NULL WHERE sid = ? AND number = ? AND fate = ${deadFate}`,
    )
    this.#takeBack = db.prepare(`DELETE FROM join_end WHERE sid = ? AND number = ? AND fate = ${deadFate}`)
    this.#cut = db.prepare(`UPDATE job SET noted = noted | ${noteBits.cut} WHERE rid = ?`)
  }

  // What comes in

  /** A join waits for its members, unless it has none. Its job was stored as waiting. */
  begin(queue: QueueRow, rid: number, job: NewJob, now: number): void {
    this.#host.run(storeJoin(rid, job, now))
    this.resized(this.find(queue.name, job.id)!, now)
  }

  /** Whether one of the places of a new member was taken before. */
  hasMember(places: readonly MemberOf[]): boolean {
    return places.some((place) => place.number < (this.#setOf(place)?.set.added ?? 0))
  }

  /** A job was added that is a member. In a join that is gone it has no place. */
  enter(rid: number, places: readonly MemberOf[]): void {
    for (const place of places) {
      const found = this.#setOf(place)
      if (found === undefined) continue
      const { join, set } = found
      this.#enter.run(set.sid, place.number, rid)
      set.added = place.number + 1
      join.isChanged = true
    }
  }

  // What happens to their jobs

  ended(rid: number, fate: Fate, left: ForJoins = {}): void {
    const { id, places } = this.#placesOf.get(rid) as { id: string; places: string }
    this.report({ ...left, id, places, fate })
  }

  /** Takes the end of a member, to be delivered before the commit. */
  report(report: MemberReport): void {
    this.#reports.push(report)
  }

  revived(rid: number): void {
    this.deliver()
    this.#forgetStates()
    const { id, places } = this.#placesOf.get(rid) as { id: string; places: string }
    for (const place of placesIn(places)) {
      const found = this.#setOf(place)
      if (found === undefined || memberId(found.set, place.number) !== id || !this.isOpen(found.join)) continue
      const { join, set } = found
      if (this.#takeBack.run(set.sid, place.number).changes === 0) continue
      this.#enter.run(set.sid, place.number, rid)
      set.counts.dead -= 1
      join.isChanged = true
    }
  }

  misses(rid: number): boolean {
    this.deliver()
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
      this.#held.delete(rid)
      this.#rids.delete(keyOf(held.queue, held.id))
    }
    const join = held ?? this.#host.run(joinOf(rid))
    if (join !== undefined) this.#host.run(dropJoin(join))
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
      if (this.#reports.length > 0) left.push(...this.#takeReports())
    }
  }

  /** The last comes first. */
  #takeReports(): MemberReport[] {
    const reports = this.#reports
    this.#reports = []
    return reports.reverse()
  }

  #take(report: MemberReport, now: number): void {
    for (const { join: key, set: name, number } of placesIn(report.places)) {
      const join = this.find(key.queue, key.id)
      const set = join?.sets.find((one) => one.name === name)
      if (join === undefined || set === undefined || !this.isOpen(join)) continue
      // The members of an earlier join of this id have other ids.
      if (memberId(set, number) !== report.id || !this.#keepEnd(join, set, number, report)) continue
      const { fate } = report
      if (join.row.bytes > mostJoinBytes) this.#fail(join, tooLargeReason, tooLargeError, now)
      else if (effectOf(fate, set.onDead) === 'fails')
        this.#fail(join, memberDeadReason, memberDeadError(set, number, fate), now)
      else this.#check(join, now)
    }
  }

  /**
   * False, with nothing changed: this end was reported before. Of such ends only one changes: a dead member may go for
   * good.
   */
  #keepEnd(join: WorkingJoin, set: HeldSet, number: number, { fate, payload, codec, error }: Ended): boolean {
    if (this.#leave.run(set.sid, number).changes === 0) {
      if (fate !== 'cancelled' || set.onDead === 'go-on') return false
      if (this.#goForGood.run(set.sid, number).changes === 0) return false
      set.counts.dead -= 1
    } else if (!set.keepsResults) this.#keep.run(set.sid, number, fates.indexOf(fate), null, null, null)
    else {
      const stored = payload === undefined ? null : payloadToStored(payload)
      this.#keep.run(set.sid, number, fates.indexOf(fate), codec ?? null, error ?? null, stored)
      if (payload !== undefined) join.row.bytes += payloadBytes(payload)
    }
    set.counts[fate] += 1
    join.isChanged = true
    if (set.onDead !== 'go-on' && (fate === 'cancelled' || fate === 'expired')) this.#cut.run(join.row.rid)
    return true
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
    if (this.#state(join) !== waiting) join.isChanged = true
    else this.#wait(join)
    this.#check(join, now)
  }

  #wait(join: WorkingJoin): void {
    join.row.due_at = joinDueAt(join.row, join.sets)
    join.isChanged = true
  }

  // What is held

  /** Undefined: there is no such join, or it has ended. */
  find(queue: string, id: string): WorkingJoin | undefined {
    const known = this.#rids.get(keyOf(queue, id))
    if (known !== undefined) return this.#held.get(known)
    const row = this.#host.queues.find(queue)
    const job = row && this.#host.jobs.find(row, id)
    return job === undefined || !(job.noted & noteBits.join) ? undefined : this.#hold(queue, id, job.rid)
  }

  /** The join of this job. */
  of(rid: number): WorkingJoin | undefined {
    const held = this.#held.get(rid)
    if (held !== undefined) return held
    const job = this.#jobOf.get(rid) as { queue: string; id: string } | undefined
    return job && this.#hold(job.queue, job.id, rid)
  }

  #hold(queue: string, id: string, rid: number): WorkingJoin | undefined {
    const held = this.#host.run(joinOf(rid))
    if (held === undefined) return undefined
    const join = { ...held, queue, id, state: undefined, isChanged: false }
    this.#held.set(rid, join)
    this.#rids.set(keyOf(queue, id), rid)
    return join
  }

  #setOf({ join: key, set: name }: MemberOf): { readonly join: WorkingJoin; readonly set: HeldSet } | undefined {
    const join = this.find(key.queue, key.id)
    const set = join?.sets.find((one) => one.name === name)
    return join === undefined || set === undefined ? undefined : { join, set }
  }

  /** Once it will run, the ends of its members are what they are. */
  isOpen(join: WorkingJoin): boolean {
    const state = this.#state(join)
    return state === waiting || state === dead
  }

  #state(join: WorkingJoin): number {
    join.state ??= (this.#stateOf.get(join.row.rid) as { state: number }).state
    return join.state
  }

  /** Called before states are needed: other code may have changed them since. */
  #forgetStates(): void {
    for (const join of this.#held.values()) join.state = undefined
  }

  /** Delivers what is left, and writes what has changed. Called before each commit of a write. */
  flush(): void {
    this.deliver()
    if (this.#held.size === 0) return
    for (const join of this.#held.values()) if (join.isChanged) this.#host.run(writeJoin(join))
    this.#held = new Map()
    this.#rids = new Map()
  }

  /** Called after a rollback. */
  forget(): void {
    this.#reports = []
    this.#held = new Map()
    this.#rids = new Map()
  }
}

/** No queue name contains a space. */
function keyOf(queue: string, id: string): string {
  return `${queue} ${id}`
}
