/** Settling and extending claims in a SQLite store, and the trimming that goes with settling. */

import { trimLimit } from '../../core/upkeep.js'
import type { ExtendAnswer, ExtendItem, SettleAnswer, SettleItem } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import { type JobRow, jobColumns } from './sqlite-job.js'
import { bounded, type QueueRow } from './sqlite-queue.js'
import { running } from './sqlite-schema.js'
import type { SqliteSession } from './sqlite-session.js'
import { storedOrNull } from './sqlite-text.js'

export class SqliteSettle {
  readonly #session: SqliteSession
  readonly #complete: Statement
  readonly #extend: Statement
  readonly #beat: Statement
  readonly #forget: Statement
  readonly #expiredResults: Statement
  readonly #oldResults: Statement
  readonly #oldDead: Statement

  constructor(session: SqliteSession) {
    this.#session = session
    const { db } = session
    this.#complete = db.prepare(
      'DELETE FROM job WHERE qid = ? AND id = ? AND state = 2 AND fence = ? AND remember_ms = 0',
    )
    this.#extend = db.prepare(
      `UPDATE job SET lease_until = max(lease_until, ?) WHERE qid = ? AND id = ? AND state = 2 AND fence = ? RETURNING cancelling`,
    )
    this.#beat = db.prepare(
      `UPDATE job SET lease_until = max(lease_until, ?), started_at = coalesce(started_at, ?), host = coalesce(?, host), pid = coalesce(?, pid),
         progress = coalesce(?, progress), updated_at = ? WHERE qid = ? AND id = ? AND state = 2 AND fence = ? RETURNING cancelling`,
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
    this.#oldDead = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 4 AND finished_at <= ? ORDER BY finished_at, rid LIMIT ?`,
    )
  }

  settle(items: readonly SettleItem[]): SettleAnswer[] {
    const now = this.#session.clock.now()
    const queues = this.#session.queues.of(items)
    const touched = new Set<QueueRow>()
    const answers = items.map((item, i) => {
      const answer = this.#settleOne(queues[i]!, item, now)
      if (answer === 'ok') touched.add(queues[i]!)
      return answer
    })
    for (const queue of touched) this.#trim(queue, now)
    return answers
  }

  #settleOne(queue: QueueRow, item: SettleItem, now: number): SettleAnswer {
    if (item.kind === 'complete' && item.result === undefined && this.#completeQuickly(queue, item)) return 'ok'
    const job = this.#session.jobs.find(queue, item.id)
    if (job === undefined) return 'gone'
    if (job.state !== running || job.fence !== item.fence) return 'lost'
    this.#end(queue, job, item, now)
    return 'ok'
  }

  /** Most jobs end well, with nothing kept of them: one statement. False where this job is another case. */
  #completeQuickly(queue: QueueRow, { id, fence }: SettleItem): boolean {
    if (this.#complete.run(queue.qid, id, fence).changes === 0) return false
    queue.running -= 1
    queue.processed += 1
    this.#session.hasEnds = true
    return true
  }

  #end(queue: QueueRow, job: JobRow, item: SettleItem, now: number): void {
    const { jobs } = this.#session
    switch (item.kind) {
      case 'complete':
        queue.processed += 1
        job.reason = null
        if (item.result === undefined) jobs.end(queue, job, 'completed', now)
        else jobs.keep(queue, job, item.result, now)
        this.#session.hasEnds = true
        break
      case 'retry':
        this.failClaim(queue, job, item, now)
        break
      case 'release':
        this.#backToQueue(queue, job, item.delayMs, now)
        break
      case 'bury':
        jobs.bury(queue, job, item.reason, item.error, now)
        this.#session.hasEnds = true
        break
      case 'cancel':
        job.reason = storedOrNull(item.reason)
        this.#cancel(queue, job, now)
        break
    }
  }

  #cancel(queue: QueueRow, job: JobRow, now: number): void {
    this.#session.jobs.end(queue, job, 'cancelled', now)
    this.#session.hasEnds = true
  }

  /** A counted failure of a running job. */
  failClaim(
    queue: QueueRow,
    job: JobRow,
    how: { readonly delayMs: number; readonly last?: boolean; readonly error?: string; readonly reason?: string },
    now: number,
  ): void {
    const { jobs } = this.#session
    queue.failed += 1
    job.attempt += 1
    job.error = storedOrNull(how.error)
    if (how.last) {
      jobs.bury(queue, job, how.reason, undefined, now)
      this.#session.hasEnds = true
    } else if (job.cancelling) this.#cancel(queue, job, now)
    else this.#schedule(queue, job, how.delayMs, now)
  }

  /** Not counted: with no delay the job is back in its old place, and as suspect as it was. */
  #backToQueue(queue: QueueRow, job: JobRow, delayMs: number, now: number): void {
    if (job.cancelling) {
      this.#cancel(queue, job, now)
      return
    }
    if (delayMs > 0) {
      this.#schedule(queue, job, delayMs, now)
      return
    }
    this.#session.jobs.requeue(queue, job, now)
    this.#session.ring(queue)
  }

  #schedule(queue: QueueRow, job: JobRow, delayMs: number, now: number): void {
    this.#session.jobs.schedule(queue, job, delayMs, now)
    if (delayMs === 0) this.#session.ring(queue)
    else this.#session.ringForLater(queue, delayMs)
  }

  extend(items: readonly ExtendItem[]): ExtendAnswer[] {
    const { clock, queues } = this.#session
    const now = clock.now()
    const mono = clock.mono()
    const rows = queues.of(items)
    return items.map(({ id, fence, leaseMs, beat }, i): ExtendAnswer => {
      const until = bounded(mono + leaseMs)
      const key = [rows[i]!.qid, id, fence]
      const found = (
        beat === undefined
          ? this.#extend.get(until, ...key)
          : this.#beat.get(
              until,
              beat.started ? now : null,
              beat.host ?? null,
              beat.pid ?? null,
              beat.progress === undefined ? null : JSON.stringify(beat.progress),
              now,
              ...key,
            )
      ) as { cancelling: number } | undefined
      if (found === undefined) return 'lost'
      return found.cancelling ? 'cancel' : 'ok'
    })
  }

  /** Drops what has expired or is over its bound; called once for every queue that a settle touched. */
  #trim(queue: QueueRow, now: number): void {
    const { jobs } = this.#session
    if (queue.remembered > 0) queue.remembered -= Number(this.#forget.run(queue.qid, now).changes)
    if (queue.completed > 0) {
      for (const job of this.#expiredResults.all(queue.qid, now) as JobRow[]) jobs.dropResult(queue, job, now)
      const over = Math.min(trimLimit, queue.completed - (queue.results_count ?? Number.POSITIVE_INFINITY))
      if (over > 0)
        for (const job of this.#oldResults.all(queue.qid, over) as JobRow[]) jobs.dropResult(queue, job, now)
    }
    if (queue.dead > 0) {
      if (queue.dead_age_ms !== null) this.#dropDead(queue, now - queue.dead_age_ms, trimLimit)
      const over = Math.min(trimLimit, queue.dead - (queue.dead_count ?? Number.POSITIVE_INFINITY))
      if (over > 0) this.#dropDead(queue, Number.MAX_SAFE_INTEGER, over)
    }
  }

  #dropDead(queue: QueueRow, finishedBy: number, limit: number): void {
    for (const job of this.#oldDead.all(queue.qid, finishedBy, limit) as JobRow[]) this.#session.jobs.drop(queue, job)
  }
}
