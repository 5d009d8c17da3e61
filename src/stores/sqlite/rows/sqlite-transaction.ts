/** A transaction of a SQLite store: the state that the calls of one connection share while they run. */

import type { Payload } from '../../../core/values/codec.js'
import type { JobKey } from '../../contract/job-records.js'
import { type JobRow, noteBits, ready, scheduled } from '../../rows/job-row.js'
import { bounded, isStopped, leadOf } from '../../rows/queue-row.js'
import type { Moment } from '../../rows/scope-throttle.js'
import { ShardLimits } from '../../rows/shard-limits.js'
import { longestExpectMs, stepLimit } from '../../rules/bounds.js'
import { mostClaimBytes, weightOf } from '../../rules/claim-weight.js'
import type { ReadyPool } from '../../rules/fair-share.js'
import { dueAt } from '../../rules/sequence.js'
import { isLed } from '../../rules/wake-lead.js'
import { atOnce, type SqlSteps } from '../../sql/sql-steps.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { SqliteRoom } from '../file/sqlite-room.js'
import { boundPool, type PoolJobs, poolJobs } from '../file/sqlite-schema.js'
import { SqliteAmnesty } from './sqlite-amnesty.js'
import { SqliteCalls } from './sqlite-calls.js'
import { SqliteCheckpoints } from './sqlite-checkpoints.js'
import { SqliteJobs } from './sqlite-job.js'
import { SqliteJobSteps } from './sqlite-job-steps.js'
import { SqliteJoins } from './sqlite-joins.js'
import { SqliteLanes } from './sqlite-lanes.js'
import { SqliteOrderedJobs } from './sqlite-ordered-job.js'
import { type QueueRow, SqliteQueues } from './sqlite-queue.js'
import { SqliteThrottles } from './sqlite-throttle.js'

export class SqliteTransaction {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly lanes: SqliteLanes
  readonly limits: ShardLimits
  readonly amnesty: SqliteAmnesty
  readonly throttles: SqliteThrottles
  readonly checkpoints: SqliteCheckpoints
  readonly joins: SqliteJoins
  readonly jobSteps: SqliteJobSteps
  readonly jobs: SqliteJobs
  readonly orderedJobs: SqliteOrderedJobs
  readonly calls: SqliteCalls
  readonly expected: SqliteExpected
  /** Queues in which this transaction made a job claimable, or due before their lead would ask. */
  rung = new Set<string>()
  /** Whether jobs ended in this transaction. */
  hasEnds = false
  /** Whether this transaction wrote live messages. */
  hasMessages = false
  /** Whether others have written to the file since the transaction of this connection before this one. */
  haveOthersWritten = false
  /** Whether an operator's step wrote to pages all over the file. */
  isScattered = false
  readonly room: SqliteRoom
  /** The most jobs that one call changes. */
  stepLimit = stepLimit

  /** The weight, in bytes, at which a claim is full. */
  mostClaimBytes: number
  readonly #usualClaimBytes: number
  readonly weight: SqliteClaimWeight

  readonly #boot: string
  /** Those of `run`, by their texts. */
  readonly #statements = new Map<string, Statement>()
  readonly #begin: Statement
  readonly #commit: Statement
  readonly #version: Statement
  /** Changes with each commit of another connection (sqlite.org/pragma.html#pragma_data_version). */
  #seenVersion: unknown

  constructor(db: Database, clock: SqliteClock, room: SqliteRoom, mostBytes = mostClaimBytes) {
    this.db = db
    this.clock = clock
    this.room = room
    this.mostClaimBytes = mostBytes
    this.#usualClaimBytes = mostBytes
    this.weight = new SqliteClaimWeight(db, mostBytes)
    this.queues = new SqliteQueues(db)
    this.lanes = new SqliteLanes(db)
    this.limits = new ShardLimits(this.queues, this.lanes)
    this.throttles = new SqliteThrottles(db, this.queues)
    this.amnesty = new SqliteAmnesty(db)
    this.checkpoints = new SqliteCheckpoints(db)
    this.joins = new SqliteJoins(this)
    this.jobSteps = new SqliteJobSteps(this)
    this.jobs = new SqliteJobs(db, this)
    this.orderedJobs = new SqliteOrderedJobs(db, this)
    this.calls = new SqliteCalls(db, clock)
    this.expected = new SqliteExpected(db, clock, this.queues)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#version = db.prepare('PRAGMA data_version')
    this.#boot = (db.prepare("SELECT value FROM meta WHERE name = 'boot'").get() as { value: string }).value
  }

  /** Begins a write, and forgets what another connection may have changed. Throws if others hold the write lock. */
  begin(): void {
    this.#begin.run()
    const { data_version } = this.#version.get() as { data_version: unknown }
    this.haveOthersWritten = data_version !== this.#seenVersion && this.#seenVersion !== undefined
    if (data_version === this.#seenVersion) return
    this.#seenVersion = data_version
    this.queues.forget()
    this.joins.forgetHeld()
    this.calls.forgetCurrent()
  }

  /** Makes what was flushed durable. */
  commit(): void {
    this.#commit.run()
  }

  /** The statement of a text that is put together for a call: the same text is prepared once. */
  prepared(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }

  /** Runs a call that is written as steps for any SQL store. */
  run<Answer>(steps: SqlSteps<Answer>): Answer {
    return atOnce(steps, ({ sql, values, gives }) => {
      const statement = this.prepared(sql)
      if (gives === 'all') return statement.all(...values)
      return gives === 'first' ? statement.get(...values) : Number(statement.run(...values).changes)
    })
  }

  /** Claims weigh no more than this, beyond their first job; undefined: as usual. */
  boundClaims(bytes = Number.POSITIVE_INFINITY): void {
    this.mostClaimBytes = Math.min(this.#usualClaimBytes, bytes)
    this.weight.mostBytes = this.mostClaimBytes
  }

  moment(): Moment {
    return { now: this.clock.now(), mono: this.clock.mono(), run: this.#boot }
  }

  /** The job rows of a queue, by the rules of its kind. */
  jobsOf(queue: QueueRow): SqliteJobs {
    return queue.kind === 'ordered' ? this.orderedJobs : this.jobs
  }

  /**
   * The row that holds jobs with this id, for a call that writes. If the queue is being resharded, the id's jobs in the
   * old shard are moved over first, so that no other code needs to know of the old shards. Throws `UnknownQueueError`.
   */
  holding(name: string, id: string): QueueRow {
    const queue = this.queues.holding(name, id)
    const former = queue.resharding === null ? undefined : this.queues.formerlyHolding(name, id)
    if (former === undefined) return queue
    const now = this.clock.now()
    for (const job of [this.orderedJobs.find(former, id), this.orderedJobs.findDead(former, id)])
      if (job !== undefined) this.orderedJobs.adopt(former, queue, job, now)
    return queue
  }

  /**
   * All queues are looked up before the first is changed, so an unknown one changes nothing. Throws
   * `UnknownQueueError`.
   */
  holdingAll(items: readonly { readonly queue: string; readonly id: string }[]): QueueRow[] {
    const rows = items.map(({ queue }) => this.queues.get(queue))
    return rows.map((row, i) => (row.kind === 'plain' ? row : this.holding(row.name, items[i]!.id)))
  }

  /**
   * Rings the queue's waiting workers after the commit. A queue that is paused or being resharded has nothing for them.
   */
  ring(queue: QueueRow): void {
    if (!isStopped(queue)) this.rung.add(queue.name)
  }

  /** Rings for a job that is due in `delayMs`, unless the queue has a lead that asks by then. */
  ringForLater(queue: QueueRow, delayMs: number): void {
    const mono = this.clock.mono()
    if (!isLedBy(queue, mono + delayMs, mono)) this.ring(queue)
  }

  /** Rings if the job with this id, in its new state, is a reason to. */
  ringFor(queue: QueueRow, id: string, now: number): void {
    const job = this.jobs.find(queue, id)
    if (job !== undefined) this.ringForJob(queue, job, now)
  }

  /** Rings if the job is ready and not shut, or will be so before the lead of its queue asks. */
  ringForJob(queue: QueueRow, job: Pick<JobRow, 'state' | 'stamp' | 'suspect' | 'grp'>, now: number): void {
    if (job.state === scheduled) this.ringForLater(queue, dueAt(job.stamp) - now)
    if (job.state !== ready) return
    const mono = this.clock.mono()
    const readyAt = this.limits.readyAt(queue, job)
    if (readyAt !== undefined && (readyAt <= mono || !isLedBy(queue, readyAt, mono))) this.ring(queue)
  }

  /**
   * Writes the held rows of queues and limits and forgets them, because a statement is about to change the rows
   * directly.
   */
  flushRows(): void {
    this.joins.flush()
    this.#writeRows()
    this.forgetRows()
  }

  /** Writes everything that is held. Called before each commit of a write, after which queue rows are kept. */
  flush(): void {
    this.joins.flush()
    this.#writeRows()
    this.queues.keep()
    this.#forgetLimits()
    this.calls.flush()
  }

  #writeRows(): void {
    this.lanes.flush()
    this.throttles.flush()
    this.queues.flush()
  }

  /**
   * Forgets the held rows: those of a transaction that was rolled back, or only read, must not be used in the next. Each
   * holder takes a new map: a map that is cleared for years leaves what it held in the old generation of the heap, which
   * is seldom collected.
   */
  forgetRows(): void {
    this.queues.forget()
    this.joins.forgetHeld()
    this.#forgetLimits()
  }

  #forgetLimits(): void {
    this.lanes.forget()
    this.throttles.forget()
  }

  forget(): void {
    this.forgetRows()
    this.joins.forget()
    this.calls.forget()
    this.takeRings()
  }

  /** The rings of this transaction. Each is returned once. */
  takeRings(): { readonly rung: string[]; readonly hasEnds: boolean; readonly hasMessages: boolean } {
    const { rung, hasEnds, hasMessages } = this
    this.rung = new Set()
    this.hasEnds = false
    this.hasMessages = false
    this.isScattered = false
    return { rung: [...rung], hasEnds, hasMessages }
  }
}

/** Whether a lead can be relied on to ask by then. */
function isLedBy(queue: QueueRow, at: number, mono: number): boolean {
  const lead = leadOf(queue)
  return isLed(lead, mono) && lead.wakeAt <= at
}

/** A claim of this many jobs cannot weigh too much if each, with its checkpoint, is light. */
const lightJobs = 512

/** The weight of a claim of plain jobs: how many of the first jobs it can carry. */
class SqliteClaimWeight {
  mostBytes: number
  readonly #lightBytes: number
  readonly #weights: Record<PoolJobs, Statement>

  /** `mostBytes`: see `rules/claim-weight`. */
  constructor(db: Database, mostBytes: number) {
    this.mostBytes = mostBytes
    this.#lightBytes = Math.floor(mostBytes / lightJobs / 2)
    // The sizes are in the head of a row: no page of a large payload is read for them.
    const weights = (jobs: string) =>
      db.prepare(
        `SELECT json_group_array(bytes) AS bytes FROM
           (SELECT octet_length(payload) + ifnull(octet_length(meta), 0)
              + iif(noted & ${noteBits.notes}, ifnull((SELECT octet_length(payload) FROM checkpoint WHERE checkpoint.rid = job.rid), 0), 0) AS bytes
            FROM ${jobs} ORDER BY rank, position, rid LIMIT ?)`,
      )
    this.#weights = {
      free: weights(poolJobs.free),
      suspectsOf: weights(poolJobs.suspectsOf),
      lane: weights(poolJobs.lane),
    }
  }

  /**
   * Takes note of a stored job or checkpoint. One that is not light marks its queue: from then on its claims are
   * weighed.
   */
  add(queue: QueueRow, stored: { readonly payload: Payload; readonly meta?: Payload | undefined }): void {
    if (queue.weighed === 1) return
    const most = this.#lightBytes
    const { payload, meta } = stored
    // No character takes more than three bytes, so few texts have to be measured.
    if (3 * (payload.length + (meta?.length ?? 0)) > most) this.addWeight(queue, weightOf(stored))
  }

  /** Takes note of stored jobs by the weight of the heaviest, in bytes. */
  addWeight(queue: QueueRow, bytes: number): void {
    if (bytes > this.#lightBytes) queue.weighed = 1
  }

  /** Whether a claim of `limit` jobs of this queue may weigh too much. */
  areNeeded(queue: QueueRow, limit: number): boolean {
    return queue.weighed === 1 || limit > lightJobs || this.#lightBytes === 0
  }

  /**
   * How many of the first jobs of a pool, at most `most`, a claim takes that weighs `before` bytes, and its weight
   * then.
   */
  weigh(
    queue: QueueRow,
    pool: ReadyPool,
    most: number,
    before: number,
  ): { readonly jobs: number; readonly bytes: number } {
    const { jobs: taken, of } = boundPool(queue.qid, pool)
    const { bytes: text } = this.#weights[taken].get(...of, most) as { bytes: string }
    let jobs = 0
    let bytes = before
    for (const weight of JSON.parse(text) as number[]) {
      if (bytes >= this.mostBytes) break
      bytes += weight
      jobs += 1
    }
    return { jobs, bytes }
  }
}

/** The jobs whose results somebody waits for: retention leaves those. */
class SqliteExpected {
  readonly #clock: SqliteClock
  readonly #queues: SqliteQueues
  readonly #lapse: Statement
  readonly #enter: Statement
  readonly #prolong: Statement
  readonly #leave: Statement
  readonly #until: Statement

  constructor(db: Database, clock: SqliteClock, queues: SqliteQueues) {
    this.#clock = clock
    this.#queues = queues
    const named = 'qid = ?1 AND id IN (SELECT value FROM json_each(?2))'
    this.#lapse = db.prepare('DELETE FROM result_wait WHERE until <= ?')
    this.#enter = db.prepare(
      `INSERT OR REPLACE INTO result_wait (qid, id, waiter, until) SELECT qid, id, ?3, ?4 FROM job
       WHERE ${named} AND (state <> 3 OR expires_at IS NULL OR expires_at > ?5)`,
    )
    this.#prolong = db.prepare(
      `UPDATE job INDEXED BY job_id SET expires_at = ?3 WHERE ${named} AND state = 3 AND expires_at > ?4 AND expires_at < ?3`,
    )
    this.#leave = db.prepare(`DELETE FROM result_wait WHERE ${named} AND waiter = ?3`)
    this.#until = db.prepare('SELECT max(until) AS until FROM result_wait WHERE qid = ? AND id = ?')
  }

  expect(jobs: readonly JobKey[], by: string, forMs: number): void {
    const [now, mono, ms] = [this.#clock.now(), this.#clock.mono(), Math.min(forMs, longestExpectMs)]
    this.#lapse.run(mono)
    for (const name of new Set(jobs.map(({ queue }) => queue))) {
      const { kind, qid } = this.#queues.get(name)
      if (kind === 'ordered') continue
      const ids = JSON.stringify(jobs.filter(({ queue }) => queue === name).map(({ id }) => id))
      if (ms > 0) {
        this.#enter.run(qid, ids, by, bounded(mono + ms), now)
        this.#prolong.run(qid, ids, bounded(now + ms), now)
      } else this.#leave.run(qid, ids, by)
    }
  }

  /** Whether somebody waits for the result of the job. */
  isExpected({ qid }: QueueRow, id: string): boolean {
    const { until } = this.#until.get(qid, id) as { until: number | null }
    return until !== null && until > this.#clock.mono()
  }

  /** For how long a result is kept that somebody may be waiting for. */
  keptMs({ qid }: QueueRow, id: string, keepMs: number | undefined): number | undefined {
    if (keepMs === undefined || keepMs >= longestExpectMs) return keepMs
    const { until } = this.#until.get(qid, id) as { until: number | null }
    return until === null ? keepMs : Math.max(keepMs, until - this.#clock.mono())
  }
}
