/** Settling and extending claims in a SQLite store, and the trimming that comes with settling. */

import { type EndedRun, startedAtOf } from '../../contract/job-beat.js'
import type { Records } from '../../contract/job-records.js'
import type { ClaimKey, ExtendAnswer, ExtendItem, Hold, SettleAnswer, SettleItem } from '../../contract/settle.js'
import { type JobRow, noteBits, running } from '../../rows/job-row.js'
import { bounded, isLimited, morgueOf, share } from '../../rows/queue-row.js'
import type { Moment } from '../../rows/scope-throttle.js'
import { storedOrNull } from '../../rows/stored-text.js'
import { trimLimit } from '../../rules/bounds.js'
import { afterFailure, afterSettle, type ClaimEnd, type EndDetails } from '../../rules/claim-end.js'
import type { Statement } from '../file/sqlite-driver.js'
import { changeOne, jobColumns } from '../rows/sqlite-job.js'
import { byKind, type QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { type Completions, itemsOf, SqliteCompletion } from './sqlite-completion.js'

/** The row of a job whose lease was renewed. */
interface Renewed {
  readonly rid: number
  readonly cancelling: number
}

/** The columns of a running job that its next step needs. */
type RenewedRun = Renewed & Pick<JobRow, 'noted' | 'expires_at'>

export class SqliteSettle {
  readonly #transaction: SqliteTransaction
  readonly #completion: SqliteCompletion
  readonly #extend: Statement
  readonly #extendRun: Statement
  readonly #beat: Statement
  readonly #ran: Statement
  readonly #forget: Statement
  readonly #expiredResults: Statement
  readonly #oldResults: Statement
  readonly #oldDead: ReturnType<typeof byKind>

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    this.#completion = new SqliteCompletion(transaction)
    const extend =
      'UPDATE job SET lease_until = max(lease_until, ?) WHERE qid = ? AND id = ? AND state = 2 AND fence = ? RETURNING cancelling, rid'
    this.#extend = db.prepare(extend)
    this.#extendRun = db.prepare(`${extend}, noted, expires_at`)
    this.#beat = db.prepare(
      `UPDATE job SET lease_until = max(lease_until, ?), started_at = coalesce(started_at, ?), host = coalesce(?, host), boot = coalesce(?, boot), pidns = coalesce(?, pidns),
         pid = coalesce(?, pid), ticks = coalesce(?, ticks), progress = coalesce(?, progress), noted = noted | ?, updated_at = ?
       WHERE qid = ? AND id = ? AND state = 2 AND fence = ? RETURNING cancelling, rid`,
    )
    this.#ran = db.prepare(
      'UPDATE job SET started_at = coalesce(started_at, ?), host = coalesce(host, ?), pid = coalesce(pid, ?) WHERE rid = ?',
    )
    this.#forget = db.prepare(
      `DELETE FROM remembered WHERE qid = ?1 AND id IN
         (SELECT id FROM remembered WHERE qid = ?1 AND until <= ?2 ORDER BY until LIMIT ${trimLimit})`,
    )
    this.#expiredResults = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 3 AND expires_at <= ? ORDER BY expires_at, rid LIMIT ${trimLimit}`,
    )
    this.#oldResults = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 3 ORDER BY finished_at, rid LIMIT ?`,
    )
    this.#oldDead = byKind(
      db,
      (tie) =>
        `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 4 AND finished_at <= ? ORDER BY finished_at, ${tie} LIMIT ?`,
    )
  }

  settle(items: readonly SettleItem[]): SettleAnswer[] {
    const now = this.#transaction.clock.now()
    const queues = this.#transaction.holdingAll(items)
    const touched = new Set<QueueRow>()
    const ended = this.#completion.endSome(items, queues, now)
    const answers = items.map((item, i) => {
      const answer = ended[i] ? 'ok' : this.#settleOne(queues[i]!, item, now)
      if (answer === 'ok') touched.add(queues[i]!)
      return answer
    })
    for (const queue of touched) this.#trim(queue, now)
    const left = [...touched].filter((queue) => !ringsAtOnce(queue))
    if (left.length > 0)
      for (const [i, { id, kind }] of items.entries())
        if (answers[i] === 'ok' && !ended[i] && mayWait(queues[i]!, kind) && !ringsAtOnce(queues[i]!))
          this.#transaction.ringFor(queues[i]!, id, now)
    for (const queue of left) this.ringFreed(queue)
    return answers
  }

  /** Like `settle`; true if all are completed. */
  complete(completions: Completions): true | SettleAnswer[] {
    const queue = this.#transaction.queues.get(completions.queue)
    if (!this.#completion.endAll(queue, completions)) return this.settle(itemsOf(completions))
    this.#trim(queue, this.#transaction.clock.now())
    if (!ringsAtOnce(queue)) this.ringFreed(queue)
    return true
  }

  /** Rings if the end of a claim made room, also room for suspects, of which earlier claims were not told. */
  ringFreed(queue: QueueRow): void {
    if (this.#transaction.limits.isFreed(queue, this.#transaction.clock.mono())) this.#transaction.ring(queue)
  }

  #settleOne(queue: QueueRow, item: SettleItem, now: number): SettleAnswer {
    if (this.#completion.endOne(queue, item)) return 'ok'
    const job = this.#transaction.jobs.find(queue, item.id)
    if (job === undefined) return 'gone'
    if (job.state !== running || job.fence !== item.fence) return 'lost'
    if ('run' in item && item.run !== undefined && queue.kind === 'plain') this.#knowRun(job, item.run, now)
    if ('done' in item && item.done !== undefined && queue.kind === 'ordered')
      this.#transaction.orderedJobs.dropDone(job, item.done)
    this.#end(queue, job, item, now)
    return 'ok'
  }

  #end(queue: QueueRow, job: JobRow, item: SettleItem, now: number): void {
    if (item.kind === 'complete') queue.processed += 1
    if (item.kind === 'retry') queue.failed += 1
    this.#carryOut(
      queue,
      job,
      afterSettle(item, endingJob(job), queue.kind === 'ordered', storedOrNull),
      detailsOf(item),
      now,
    )
    if (item.hold !== undefined) this.#hold(queue, job, item.hold)
  }

  /** Ends the claim of a running job as a counted failure, because an operator says so. */
  fail(queue: QueueRow, job: JobRow, { reason, ...how }: Parameters<Records['fail']>[2], now: number): void {
    queue.failed += 1
    const end = afterFailure({ ...how, error: reason }, endingJob(job), queue.kind === 'ordered', storedOrNull)
    this.#carryOut(queue, job, end, { ...how, reason }, now)
  }

  #carryOut(queue: QueueRow, job: JobRow, end: ClaimEnd<string | null>, how: EndDetails, now: number): void {
    const jobs = this.#transaction.jobsOf(queue)
    const { becomes } = end
    job.attempt = end.attempt
    job.crashes = end.crashes
    job.error = end.error
    job.reason = end.reason
    switch (becomes) {
      case 'completed':
      case 'cancelled':
        jobs.end(queue, job, becomes, now, how.result)
        break
      case 'kept':
        jobs.keep(queue, job, how.result!, this.#transaction.expected.keptMs(queue, job.id, how.result!.keepMs), now)
        break
      case 'dead':
        jobs.bury(queue, job, how.reason, undefined, now)
        break
      case 'exhausted':
        jobs.exhaust(queue, job, how.reason, undefined, now)
        break
      case 'delayed':
        this.#schedule(queue, job, how.delayMs!, now)
        return
      case 'returned':
        jobs.requeue(queue, job, now)
        if (ringsAtOnce(queue)) this.#transaction.ring(queue)
        return
      case 'waiting':
        this.#transaction.jobs.await(queue, job, how.wait!, now)
        return
    }
    this.#transaction.hasEnds = true
  }

  /** Stores when and where the job ran, as far as no beat has reported it. */
  #knowRun({ rid }: JobRow, { startedMs, host, pid }: EndedRun, now: number): void {
    changeOne(this.#ran, startedAtOf(startedMs, now), host ?? null, pid ?? null, rid)
  }

  /** In all shards, because limits are of the whole queue. A job without a group holds the whole queue back. */
  #hold({ name }: QueueRow, job: JobRow, { of, forMs }: Hold): void {
    const { queues, lanes, clock } = this.#transaction
    const mono = clock.mono()
    const until = bounded(mono + forMs)
    for (const shard of queues.rowsOf(name)) {
      if (of === 'group' && job.grp !== null) {
        lanes.endLapsed(shard, mono, trimLimit)
        lanes.hold(shard, job.grp, until)
      } else shard.held_until = Math.max(shard.held_until ?? until, until)
    }
  }

  #schedule(queue: QueueRow, job: JobRow, delayMs: number, now: number): void {
    this.#transaction.jobsOf(queue).schedule(queue, job, delayMs, now)
    if (!ringsAtOnce(queue)) return
    if (delayMs === 0) this.#transaction.ring(queue)
    else this.#transaction.ringForLater(queue, delayMs)
  }

  extend(items: readonly ExtendItem[]): ExtendAnswer[] {
    const at = this.#transaction.moment()
    const rows = this.#transaction.holdingAll(items)
    return items.map((item, i): ExtendAnswer => {
      const found = this.#renew(rows[i]!, item, at)
      if (found === undefined) return 'lost'
      return found.cancelling ? 'cancel' : 'ok'
    })
  }

  /** Renews the lease of one job; an id of an ordered queue has no steps. Undefined if the claim is lost. */
  renewRun({ queue, id, fence }: ClaimKey, leaseMs: number): RenewedRun | undefined {
    const until = bounded(this.#transaction.moment().mono + leaseMs)
    const { qid, kind } = this.#transaction.queues.get(queue)
    if (kind !== 'plain') return undefined
    return this.#extendRun.get(until, qid, id, fence) as RenewedRun | undefined
  }

  /** Undefined if the claim is lost. */
  #renew(queue: QueueRow, { id, fence, leaseMs, beat }: ExtendItem, { now, mono }: Moment): Renewed | undefined {
    const until = bounded(mono + leaseMs)
    const key = [queue.qid, id, fence]
    if (beat === undefined) return this.#extend.get(until, ...key) as Renewed | undefined
    const { startedMs, host, boot, pidns, pid, ticks, progress, checkpoint, log } = beat
    const hasNotes = queue.kind === 'plain' && (checkpoint !== undefined || !!log)
    const found = this.#beat.get(
      until,
      startedMs === undefined ? null : startedAtOf(startedMs, now),
      ...[host, boot, pidns, pid, ticks].map((value) => value ?? null),
      progress === undefined ? null : JSON.stringify(progress),
      hasNotes ? noteBits.notes : 0,
      now,
      ...key,
    ) as Renewed | undefined
    if (hasNotes && found !== undefined) {
      this.#transaction.checkpoints.add(found.rid, beat)
      if (checkpoint !== undefined) this.#transaction.weight.add(queue, checkpoint)
    }
    return found
  }

  /** Drops what has expired or exceeds its bound. Called once for each queue that a settle touched. */
  #trim(queue: QueueRow, now: number): void {
    const { jobs, expected, stepLimit } = this.#transaction
    if (queue.remembered > 0) queue.remembered -= Number(this.#forget.run(queue.qid, now).changes)
    if (queue.completed > 0) {
      jobs.dropResults(queue, this.#expiredResults.all(queue.qid, now) as JobRow[], now)
      const over = Math.min(trimLimit, queue.completed - share(queue, queue.results_limit))
      // Those that somebody waits for stay; no others go in their place.
      if (over > 0) {
        const old = this.#oldResults.all(queue.qid, over) as JobRow[]
        jobs.dropResults(
          queue,
          old.filter(({ id }) => !expected.isExpected(queue, id)),
          now,
        )
      }
    }
    if (queue.dead > 0) {
      // Their deaths may get their payloads, which needs room.
      const most = Math.min(trimLimit, stepLimit)
      if (queue.dead_age_ms !== null) this.#dropDead(queue, now - queue.dead_age_ms, most)
      const over = Math.min(most, queue.dead - share(queue, queue.dead_count))
      if (over > 0) this.#dropDead(queue, Number.MAX_SAFE_INTEGER, over)
    }
  }

  #dropDead(queue: QueueRow, finishedBy: number, limit: number): void {
    const jobs = this.#oldDead[queue.kind].all(morgueOf(queue), finishedBy, limit) as JobRow[]
    for (const job of jobs) {
      queue.lost_at = Math.max(queue.lost_at ?? 0, job.finished_at!)
      this.#transaction.jobsOf(queue).drop(queue, job)
    }
  }
}

function endingJob({ attempt, crashes, error, reason, cancelling }: JobRow) {
  return { attempt, crashes, error, reason, cancelRequested: cancelling === 1 }
}

function detailsOf(item: SettleItem): EndDetails {
  return item.kind === 'wait' ? { wait: item } : item
}

/** Whether a job that was settled in this way may wait again. A plain job that has ended does not. */
function mayWait(queue: QueueRow, kind: SettleItem['kind']): boolean {
  return queue.kind === 'ordered' || kind === 'retry' || kind === 'release' || kind === 'wait'
}

/**
 * Whether a ready job can be claimed whatever else happens in the call. For other queues the call rings at its end,
 * also for successors in an ordered queue.
 */
function ringsAtOnce(queue: QueueRow): boolean {
  return queue.kind === 'plain' && !isLimited(queue)
}
