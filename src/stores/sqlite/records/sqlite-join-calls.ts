/** The joins of a SQLite store as the workers and the API see them: what they wait for, and the sweep of what time leaves. */

import type { JobKey } from '../../contract/job-records.js'
import type { Joins, MemberEnd, StoredJoin } from '../../contract/joins.js'
import { type JobRow, noteBits, ready, running, scheduled, waiting } from '../../rows/job-row.js'
import { isNeverSealed } from '../../rows/join-row.js'
import { toStored } from '../../rows/stored-text.js'
import { stepLimit, upkeepLimit } from '../../rules/bounds.js'
import {
  joinDeadReason,
  lateError,
  lateReason,
  neverSealedError,
  neverSealedReason,
  outstandingIn,
  refuseSizes,
} from '../../rules/join-rules.js'
import {
  cancellingJoin,
  dropLeftovers,
  endsIn,
  isSweepDue,
  lookAtJoin,
  overdueJoins,
  takeFailed,
} from '../../sql/sql-joins.js'
import type { Statement } from '../file/sqlite-driver.js'
import { jobColumns } from '../rows/sqlite-job.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

type Swept = Awaited<ReturnType<Joins['sweep']>>

export class SqliteJoinCalls {
  readonly #transaction: SqliteTransaction
  readonly #outstanding: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const columns = jobColumns.replace(/\w+/g, 'job.$&')
    this.#outstanding = transaction.db.prepare(
      `SELECT ${columns} FROM join_member CROSS JOIN job ON job.rid = join_member.rid
       WHERE join_member.sid = ? AND job.cancelling = 0 ORDER BY join_member.number LIMIT ?`,
    )
  }

  seal({ queue, id }: JobKey, sizes: Readonly<Record<string, number>>): 'ok' | 'gone' {
    const { joins, clock } = this.#transaction
    joins.deliver()
    const join = joins.find(queue, id)
    if (join === undefined || !joins.isOpen(join)) return 'gone'
    refuseSizes(id, join.sets, sizes)
    for (const set of join.sets) set.size ??= sizes[set.name]
    joins.resized(join, clock.now())
    return 'ok'
  }

  look(join: JobKey): StoredJoin | undefined {
    const job = this.#jobOf(join)
    return job && this.#transaction.run(lookAtJoin(job.rid, job.state === waiting))
  }

  ends(join: JobKey, set: string, from: number, limit: number): MemberEnd[] {
    const job = this.#jobOf(join)
    return job === undefined ? [] : this.#transaction.run(endsIn(job.rid, set, from, limit))
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
    const isMoreLeft = this.#transaction.run(dropLeftovers())
    const failed = this.#transaction.run(takeFailed(stepLimit))
    return { failed, more: isMoreOverdue || isMoreOutstanding || isMoreLeft || failed.length === stepLimit }
  }

  /** Joins whose time is over die, a bounded number. Returns whether more are left. */
  #endOverdue(now: number): boolean {
    const { joins } = this.#transaction
    joins.flush()
    const rids = this.#transaction.run(overdueJoins(now, upkeepLimit + 1))
    for (const rid of rids.slice(0, upkeepLimit)) {
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
      for (const { sid, queue } of join.sets) {
        const found = this.#outstanding.all(sid, left) as JobRow[]
        for (const job of found) this.#cancel(queue, job, now)
        left -= found.length
        if (left === 0) return true
      }
      join.row.cancelling = 0
      join.isChanged = true
    }
    return false
  }

  /** The next join to see to. A member that was cancelled may have made another join dead. */
  #cancelling(): number | undefined {
    this.#transaction.joins.flush()
    return this.#transaction.run(cancellingJoin())
  }

  #cancel(name: string, job: JobRow, now: number): void {
    const { queues, jobs } = this.#transaction
    const queue = queues.get(name)
    job.reason = toStored(joinDeadReason)
    if (job.state === running) jobs.requestCancel(queue, job)
    else if (job.state === ready || job.state === scheduled || job.state === waiting)
      jobs.end(queue, job, 'cancelled', now)
    this.#transaction.hasEnds = true
  }
}
