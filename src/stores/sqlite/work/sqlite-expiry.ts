/** Expiry in a SQLite store: the end of waiting jobs whose time to begin is over. */

import type { Expired } from '../../contract/claim.js'
import { upkeepLimit } from '../../rules/bounds.js'
import { expiredReason } from '../../rules/expiry.js'
import type { Statement } from '../file/sqlite-driver.js'
import { ready, scheduled } from '../file/sqlite-schema.js'
import { toStored } from '../file/sqlite-text.js'
import { type JobRow, jobColumns } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** The states in which a job waits. */
const waiting = [scheduled, ready] as const

export class SqliteExpiry {
  readonly #session: SqliteTransaction
  readonly #due: readonly Statement[]
  readonly #first: readonly Statement[]

  constructor(session: SqliteTransaction) {
    this.#session = session
    const { db } = session
    const found = (state: number) => `FROM job INDEXED BY job_expires WHERE qid = ? AND state = ${state} AND expires_at`
    this.#due = waiting.map((state) =>
      db.prepare(`SELECT ${jobColumns} ${found(state)} <= ? ORDER BY expires_at, rid LIMIT ${upkeepLimit}`),
    )
    this.#first = waiting.map((state) =>
      db.prepare(`SELECT expires_at ${found(state)} IS NOT NULL ORDER BY expires_at LIMIT 1`),
    )
  }

  /** Ends expired jobs, a bounded number. */
  end(queue: QueueRow, now: number): Expired[] {
    if (!hasExpired(queue, now)) return []
    const due = this.#due.flatMap((statement) => statement.all(queue.qid, now) as JobRow[])
    due.sort((a, b) => a.expires_at! - b.expires_at! || a.rid - b.rid)
    const ended = due.slice(0, upkeepLimit)
    for (const job of ended) {
      job.reason = toStored(expiredReason)
      this.#session.jobs.end(queue, job, 'cancelled', now)
    }
    queue.expired += ended.length
    queue.expiring_at = this.#firstAt(queue)
    if (ended.length > 0) this.#session.hasEnds = true
    return ended.map(({ id, task }) => ({ queue: queue.name, id, task }))
  }

  #firstAt({ qid }: QueueRow): number | null {
    const firsts = this.#first.flatMap((statement) => (statement.get(qid) as { expires_at: number } | undefined) ?? [])
    return firsts.length === 0 ? null : Math.min(...firsts.map(({ expires_at }) => expires_at))
  }
}

/** Whether there may be an expired job. */
export function hasExpired({ expiring_at }: QueueRow, now: number): boolean {
  return expiring_at !== null && expiring_at <= now
}
