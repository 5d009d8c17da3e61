/**
 * Resharding of an ordered queue of a SQLite store, in bounded steps. When no job runs any more, the queue gets its new
 * shards at once, and is stopped until they have all jobs of the old ones. Until then each call for an id first moves
 * that id over (`SqliteTransaction.holding`), so that jobs can be enqueued all the while.
 */

import type { Step } from '../../contract/job-records.js'
import { isHidden, type JobRow } from '../../rows/job-row.js'
import { morgueOf, storedQueue } from '../../rows/queue-row.js'
import { stepLimit } from '../../rules/bounds.js'
import { refuseSpreading, reshardUnderWay } from '../../rules/queue-form.js'
import type { Statement } from '../file/sqlite-driver.js'
import { jobColumns } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** The columns that new shards take over from the old ones. */
const inherited =
  'resharding, number, kind, ord, exclusive, merge, paused, draining, limits, max_pending, crash_limit, results_limit, dead_age_ms, dead_count, max_running, max_per_group, throttle, throttle_by, held_until, laned'

export class SqliteReshard {
  readonly #transaction: SqliteTransaction
  readonly #rename: Statement
  readonly #insert: Statement
  readonly #jobs: Statement
  readonly #holdLanes: Statement
  readonly #deleteLanes: Statement
  readonly #deleteCalls: Statement
  readonly #delete: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    this.#rename = db.prepare('UPDATE queue SET shard = -1 - shard WHERE name = ?')
    this.#insert = db.prepare(
      `INSERT INTO queue (name, shard, shards, last_stamp, last_fence, last_score, ${inherited})
         SELECT name, ?, ?, ?, ?, ?, ${inherited} FROM queue WHERE name = ? AND shard = -1`,
    )
    this.#jobs = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ?1 UNION ALL SELECT ${jobColumns} FROM job WHERE qid = ?2 LIMIT ?3`,
    )
    this.#holdLanes = db.prepare(
      `INSERT INTO lane (qid, grp, ready, running, held_until, paused)
         SELECT arrived.qid, lane.grp, 0, 0, lane.held_until, lane.paused FROM queue AS old
         JOIN queue AS arrived ON arrived.name = old.name AND arrived.shard >= 0
         JOIN lane ON lane.qid = old.qid AND (lane.held_until IS NOT NULL OR lane.paused = 1)
         WHERE old.name = ? AND old.shard = -1`,
    )
    this.#deleteLanes = db.prepare('DELETE FROM lane WHERE qid = ?')
    this.#deleteCalls = db.prepare('DELETE FROM call WHERE qid = ?')
    this.#delete = db.prepare('DELETE FROM queue WHERE name = ? AND shard < 0')
  }

  /** Throws `ConfigConflictError` if resharding to another number is under way. */
  reshard(name: string, shards: number): Step {
    const { queues } = this.#transaction
    const first = queues.ordered(name)
    const { resharding, shards: before } = first
    if (resharding !== null && resharding !== shards) throw reshardUnderWay(name, resharding, shards)
    if (resharding === null && before === shards) return { changed: 0, more: false }
    refuseSpreading(name, storedQueue(first, undefined).maxRunning, shards)
    for (const row of queues.rowsOf(name)) row.resharding = shards
    if (queues.rowsOf(name).some(({ running }) => running > 0)) return { changed: 0, more: true }
    if (queues.leaving(name).length === 0) this.#setOut(name, shards)
    const changed = this.#bringOver(name)
    if (!queues.leaving(name).every(isEmpty)) return { changed, more: true }
    this.#arrive(name)
    return { changed, more: false }
  }

  /** Makes the new shards, which continue the stamps, fences and scores of the old ones. */
  #setOut(name: string, shards: number): void {
    const { queues } = this.#transaction
    const old = queues.rowsOf(name)
    const [stamp, fence, score] = [
      Math.max(...old.map((row) => row.last_stamp)),
      Math.max(...old.map((row) => row.last_fence)),
      Math.max(...old.map((row) => row.last_score)),
    ]
    // Held rows are written before statements change rows directly.
    this.#transaction.flushRows()
    this.#rename.run(name)
    for (let shard = 0; shard < shards; shard += 1) this.#insert.run(shard, shards, stamp, fence, score, name)
    this.#holdLanes.run(name)
    const first = queues.get(name)
    for (const row of queues.leaving(name)) {
      first.processed += row.processed
      first.failed += row.failed
      first.crashed += row.crashed
      Object.assign(row, { processed: 0, failed: 0, crashed: 0 })
    }
  }

  /** Moves jobs over. Returns their number in this step. */
  #bringOver(name: string): number {
    const { queues, orderedJobs, clock } = this.#transaction
    const now = clock.now()
    let left = stepLimit
    let changed = 0
    for (const row of queues.leaving(name)) {
      const jobs = this.#jobs.all(row.qid, morgueOf(row), left) as JobRow[]
      for (const job of jobs) orderedJobs.adopt(row, queues.holding(name, job.id), job, now)
      changed += jobs.filter((job) => !isHidden(row, job, now)).length
      left -= jobs.length
      if (left === 0) break
    }
    return changed
  }

  #arrive(name: string): void {
    const { queues } = this.#transaction
    const leaving = queues.leaving(name)
    for (const row of queues.shardsOf(name)) row.resharding = null
    this.#transaction.flushRows()
    for (const { qid } of leaving) {
      this.#deleteCalls.run(qid)
      this.#deleteLanes.run(qid)
    }
    this.#delete.run(name)
    const hasJobs = queues.shardsOf(name).some(({ ready, scheduled }) => ready + scheduled > 0)
    if (hasJobs) this.#transaction.ring(queues.get(name))
  }
}

function isEmpty({ scheduled, ready, dead }: QueueRow): boolean {
  return scheduled + ready + dead === 0
}
