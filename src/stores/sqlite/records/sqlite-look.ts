/** Jobs of a SQLite store, read by id or as rows of a listing. */

import { payloadsInPage, payloadsInRecord, resultDropped, type StoredJob } from '../../contract/job-records.js'
import { isHidden, isRemembered, type JobRow, noteBits } from '../../rows/job-row.js'
import { scoredPayload } from '../../rows/payload-row.js'
import { morgueOf } from '../../rows/queue-row.js'
import { storedJob } from '../../rows/stored-job.js'
import type { Row } from '../../rows/stored-text.js'
import { waitOf } from '../../sql/sql-job-steps.js'
import type { Statement } from '../file/sqlite-driver.js'
import { setOf, successorSet } from '../rows/sqlite-payloads.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

interface FoundJobRow {
  readonly queue: QueueRow
  readonly row: Row & JobRow
}

export class SqliteLook {
  readonly #transaction: SqliteTransaction
  readonly #select: Statement
  readonly #memory: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    this.#select = transaction.db.prepare('SELECT * FROM job WHERE qid = ? AND id = ?')
    this.#memory = transaction.db.prepare('SELECT * FROM remembered WHERE qid = ? AND id = ? AND until > ?')
  }

  /** For an ordered queue the live job; only if there is none, the entry in the morgue. */
  get(name: string, id: string): StoredJob | undefined {
    const { queues, clock, checkpoints } = this.#transaction
    const live = this.#find(name, id, ({ qid }) => qid)
    if (queues.get(name).kind === 'ordered')
      return live === undefined ? this.getDead(name, id) : this.#ordered(live, payloadsInRecord)
    const now = clock.now()
    if (live === undefined) {
      const memory = this.#memory.get(queues.get(name).qid, id, now)
      return memory === undefined ? undefined : storedJob(name, memory as Row)
    }
    const { queue, row } = live
    if (!isHidden(queue, row, now))
      return { ...this.#stored(queue, row), ...(row.noted & noteBits.notes ? checkpoints.of(row.rid) : {}) }
    return isRemembered(row, now) ? storedJob(name, endedRow(row)) : undefined
  }

  /** The entry of an id in the morgue. */
  getDead(name: string, id: string): StoredJob | undefined {
    if (this.#transaction.queues.get(name).kind === 'plain') {
      const job = this.get(name, id)
      return job?.state === 'dead' ? job : undefined
    }
    const found = this.#find(name, id, morgueOf)
    const isShown = found !== undefined && !isHidden(found.queue, found.row, this.#transaction.clock.now())
    return isShown ? this.#ordered(found, payloadsInRecord) : undefined
  }

  /** A row as a page shows it. */
  listed(queue: QueueRow, row: Row & JobRow): StoredJob {
    return queue.kind === 'plain' ? this.#stored(queue, row) : this.#ordered({ queue, row }, payloadsInPage)
  }

  #stored(queue: QueueRow, row: Row & JobRow): StoredJob {
    const job = storedJob(queue.name, row)
    const { checkpoints } = this.#transaction
    const fields = row.noted & noteBits.notes ? checkpoints.fieldsOf(row.rid) : {}
    const awaits = row.noted & noteBits.awaiting ? this.#transaction.run(waitOf(row.rid)) : undefined
    return {
      ...job,
      ...(Object.keys(fields).length === 0 ? {} : { fields }),
      ...(awaits === undefined ? {} : { awaits }),
      ...(row.noted & noteBits.steps ? { hasSteps: true as const } : {}),
    }
  }

  /** While its queue is being resharded, a job may still be in its former shard. */
  #find(name: string, id: string, qidOf: (queue: QueueRow) => number): FoundJobRow | undefined {
    const { queues } = this.#transaction
    for (const queue of [queues.holding(name, id), queues.formerlyHolding(name, id)]) {
      const row = queue && (this.#select.get(qidOf(queue), id) as (Row & JobRow) | undefined)
      if (row !== undefined) return { queue: queue!, row }
    }
    return undefined
  }

  #ordered({ queue, row }: FoundJobRow, shown: number): StoredJob {
    const { payloads } = this.#transaction.orderedJobs
    return {
      ...this.#stored(queue, row),
      priority: 0,
      payloads: payloads.head(setOf(row), shown).map(scoredPayload),
      payloadCount: payloads.count(setOf(row)),
      ...(row.successor_stamp === null ? {} : { pendingCount: payloads.count(successorSet(row)) }),
    }
  }
}

/** A completed job whose result has expired, as the row of a remembered job. */
function endedRow({
  id,
  task,
  state,
  rank,
  attempt,
  crashes,
  created_at,
  stamp,
  finished_at,
  result,
}: Row & JobRow): Row {
  const reason = result === null ? null : resultDropped
  return { id, task, state, rank, attempt, crashes, created_at, stamp, finished_at, reason }
}
