/** The joins of a SQLite store as the workers and the API see them: what they wait for, and the sweep of what time leaves. */

import type { JobKey } from '../../contract/job-records.js'
import type { Joins, MemberEnd, Sealed, StoredJoin } from '../../contract/joins.js'
import { type JobRow, noteBits, ready, running, scheduled, waiting } from '../../rows/job-row.js'
import { type HeldSet, isNeverSealed, placeRowsIn, storedSet } from '../../rows/join-row.js'
import { toStored } from '../../rows/stored-text.js'
import { stepLimit, upkeepLimit } from '../../rules/bounds.js'
import {
  byLateness,
  joinDeadReason,
  lateError,
  lateReason,
  memberId,
  neverSealedError,
  neverSealedReason,
  outstandingIn,
  refuseSizes,
} from '../../rules/join-rules.js'
import { cancellingJoin, dropSet, isSweepDue, joinOf, overdueJoins, setLeft, takeFailed } from '../../sql/sql-joins.js'
import type { Statement } from '../file/sqlite-driver.js'
import { jobColumns } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

type Swept = Awaited<ReturnType<Joins['sweep']>>

export class SqliteJoinCalls {
  readonly #transaction: SqliteTransaction
  readonly #members: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#members = transaction.db.prepare(
      `SELECT ${jobColumns}, places FROM job WHERE qid = ?1 AND id IN (SELECT value FROM json_each(?2))
         AND noted & ${noteBits.member} AND cancelling = 0 AND state IN (${scheduled}, ${ready}, ${running}, ${waiting})`,
    )
  }

  seal({ queue, id }: JobKey, sizes: Readonly<Record<string, number>>): Sealed {
    const { joins, clock } = this.#transaction
    joins.deliver()
    const join = joins.find(queue, id)
    if (join === undefined || !joins.isOpen(join)) return 'gone'
    refuseSizes(id, join.sets, sizes)
    for (const set of join.sets) set.size ??= sizes[set.name]
    joins.resized(join, clock.now())
    return joins.hasDied(join) ? 'dead' : 'sealed'
  }

  look(join: JobKey): StoredJoin | undefined {
    const job = this.#jobOf(join)
    const held = job && this.#transaction.run(joinOf(job.rid))
    if (held === undefined) return undefined
    const { ends } = this.#transaction.joins
    const until = held.row.due_at
    return {
      sets: held.sets.map((set) => storedSet(set, ends.oldest(set))),
      ...(job!.state === waiting && until !== null ? { waitsUntil: until } : {}),
    }
  }

  ends(join: JobKey, set: string, from: number, limit: number): MemberEnd[] {
    const job = this.#jobOf(join)
    const found = job && this.#transaction.run(joinOf(job.rid))?.sets.find(({ name }) => name === set)
    return found === undefined ? [] : this.#transaction.joins.ends.ends(found, from, limit)
  }

  #jobOf({ queue: name, id }: JobKey): JobRow | undefined {
    const { queues, jobs } = this.#transaction
    const queue = queues.find(name)
    const job = queue && jobs.find(queue, id)
    return job !== undefined && job.noted & noteBits.join ? job : undefined
  }

  isSweepDue(): boolean {
    return this.#transaction.run(isSweepDue(this.#transaction.clock.now()))
  }

  sweep(): Swept {
    const { clock } = this.#transaction
    const isMoreOverdue = this.#endOverdue(clock.now())
    const isMoreOutstanding = this.#cancelRest(clock.now())
    const isMoreLeft = this.#dropLeftovers()
    const failed = this.#transaction.run(takeFailed(stepLimit))
    return { failed, more: isMoreOverdue || isMoreOutstanding || isMoreLeft || failed.length === stepLimit }
  }

  /** Deletes what is left of joins that have ended, one bounded step. Returns whether more is left. */
  #dropLeftovers(): boolean {
    const sid = this.#transaction.run(setLeft())
    if (sid === undefined) return false
    if (this.#transaction.joins.ends.dropStep(sid)) return true
    this.#transaction.run(dropSet(sid))
    return this.#transaction.run(setLeft()) !== undefined
  }

  /** Joins whose time is over die, a bounded number. Returns whether more are left. */
  #endOverdue(now: number): boolean {
    const { joins } = this.#transaction
    joins.flush()
    const rids = this.#transaction.run(overdueJoins(now, upkeepLimit + 1))
    const due = rids.slice(0, upkeepLimit).map((rid) => {
      const join = joins.of(rid)
      return { rid, until: join?.row.due_at ?? 0, queue: join?.queue ?? '', id: join?.id ?? '' }
    })
    for (const { rid } of due.sort(byLateness)) {
      const join = joins.of(rid)
      if (join === undefined) joins.isOver(rid)
      else if (isNeverSealed(join.sets) && join.row.seal_by <= now)
        joins.fail(join, neverSealedReason, neverSealedError, now)
      else joins.fail(join, lateReason, lateError(outstandingIn(join.sets)), now)
      joins.isDead(rid)
      joins.deliver()
    }
    return rids.length > upkeepLimit
  }

  /** Cancels members of dead joins that ask for it, a bounded number. Returns whether more may be left. */
  #cancelRest(now: number): boolean {
    const { joins } = this.#transaction
    let left = this.#transaction.stepLimit
    for (let rid = this.#cancelling(); rid !== undefined; rid = this.#cancelling()) {
      const join = joins.of(rid)
      if (join === undefined) {
        joins.isOver(rid)
        continue
      }
      const next = joins.placesOfCut(join)
      for (const set of join.sets) {
        left -= this.#cancelIn(join, set, next, left, now)
        if (left === 0) return true
      }
      join.row.cancelling = 0
      join.isChanged = true
    }
    return false
  }

  /**
   * Goes on with the members of a set that have not ended, at most `limit`: cancels those that wait, and asks those that
   * run to end. Returns how many it has seen to.
   */
  #cancelIn(join: JobKey, set: HeldSet, next: Map<number, number>, limit: number, now: number): number {
    const { joins, queues } = this.#transaction
    const queue = queues.find(set.queue)
    if (queue === undefined) return 0
    const numbers: number[] = []
    for (const number of joins.ends.outstanding(set, next.get(set.sid))) {
      numbers.push(number)
      if (numbers.length === limit) break
    }
    next.set(set.sid, numbers.length < limit ? set.added : numbers.at(-1)! + 1)
    const ids = numbers.map((number) => memberId(set, number))
    const rows = this.#members.all(queue.qid, JSON.stringify(ids)) as (JobRow & { places: string })[]
    const found = new Map(rows.filter(({ places }) => isIn(places, join, set)).map((job) => [job.id, job]))
    for (const id of ids) {
      const job = found.get(id)
      if (job !== undefined) this.#cancel(queue, job, now)
    }
    return numbers.length
  }

  /** The next join to see to. A member that was cancelled may have made another join dead. */
  #cancelling(): number | undefined {
    this.#transaction.joins.flush()
    return this.#transaction.run(cancellingJoin())
  }

  #cancel(queue: QueueRow, job: JobRow, now: number): void {
    const { jobs } = this.#transaction
    job.reason = toStored(joinDeadReason)
    if (job.state === running) jobs.requestCancel(queue, job)
    else if (job.state === ready || job.state === scheduled || job.state === waiting)
      jobs.end(queue, job, 'cancelled', now)
    this.#transaction.hasEnds = true
  }
}

/** Whether a job with these places is a member of this set. Another job may have the id of one that was not added. */
function isIn(places: string, join: JobKey, { name }: HeldSet): boolean {
  return placeRowsIn(places).some(([queue, id, set]) => queue === join.queue && id === join.id && set === name)
}
