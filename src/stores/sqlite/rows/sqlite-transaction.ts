/** A transaction of a SQLite store: the state that the calls of one connection share while they run. */

import { stepLimit } from '../../rules/bounds.js'
import { mostClaimBytes } from '../../rules/claim-weight.js'
import { dueAt } from '../../rules/sequence.js'
import { isLed } from '../../rules/wake-lead.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import type { SqliteRoom } from '../file/sqlite-room.js'
import { ready, scheduled } from '../file/sqlite-schema.js'
import { SqliteAmnesty } from './sqlite-amnesty.js'
import { SqliteCalls } from './sqlite-calls.js'
import { SqliteCheckpoints } from './sqlite-checkpoints.js'
import { SqliteClaimWeight } from './sqlite-claim-weight.js'
import { SqliteExpected } from './sqlite-expected.js'
import { type JobRow, SqliteJobs } from './sqlite-job.js'
import { SqliteLanes } from './sqlite-lanes.js'
import { SqliteLimits } from './sqlite-limits.js'
import { SqliteOrderedJobs } from './sqlite-ordered-job.js'
import { isStopped, leadOf, type QueueRow, SqliteQueues } from './sqlite-queue.js'
import type { Moment } from './sqlite-throttle.js'
import { SqliteThrottles } from './sqlite-throttles.js'

export class SqliteTransaction {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly lanes: SqliteLanes
  readonly limits: SqliteLimits
  readonly amnesty: SqliteAmnesty
  readonly throttles: SqliteThrottles
  readonly notes: SqliteCheckpoints
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
  readonly room: SqliteRoom
  /** The most jobs that one call changes. */
  stepLimit = stepLimit

  /** The weight, in bytes, at which a claim is full. */
  readonly mostClaimBytes: number
  readonly scales: SqliteClaimWeight

  readonly #run: string
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
    this.scales = new SqliteClaimWeight(db, mostBytes)
    this.queues = new SqliteQueues(db)
    this.lanes = new SqliteLanes(db)
    this.limits = new SqliteLimits(this.queues, this.lanes)
    this.throttles = new SqliteThrottles(db, this.queues)
    this.amnesty = new SqliteAmnesty(db)
    this.notes = new SqliteCheckpoints(db)
    this.jobs = new SqliteJobs(db, this.lanes, this.notes)
    this.orderedJobs = new SqliteOrderedJobs(db, this.lanes, this.notes)
    this.calls = new SqliteCalls(db, clock)
    this.expected = new SqliteExpected(db, clock, this.queues)
    this.#begin = db.prepare('BEGIN IMMEDIATE')
    this.#commit = db.prepare('COMMIT')
    this.#version = db.prepare('PRAGMA data_version')
    this.#run = (db.prepare("SELECT value FROM meta WHERE name = 'boot'").get() as { value: string }).value
  }

  /** Begins a write, and forgets what another connection may have changed. Throws if others hold the write lock. */
  begin(): void {
    this.#begin.run()
    const { data_version } = this.#version.get() as { data_version: unknown }
    if (data_version === this.#seenVersion) return
    this.#seenVersion = data_version
    this.queues.forget()
    this.calls.forgetCurrent()
  }

  /** Makes what was flushed durable. */
  commit(): void {
    this.#commit.run()
  }

  moment(): Moment {
    return { now: this.clock.now(), mono: this.clock.mono(), run: this.#run }
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
    this.#writeRows()
    this.forgetRows()
  }

  /** Writes everything that is held. Called before each commit of a write, after which queue rows are kept. */
  flush(): void {
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
    this.#forgetLimits()
  }

  #forgetLimits(): void {
    this.lanes.forget()
    this.throttles.forget()
  }

  forget(): void {
    this.forgetRows()
    this.calls.forget()
    this.takeRings()
  }

  /** The rings of this transaction. Each is returned once. */
  takeRings(): { readonly rung: string[]; readonly hasEnds: boolean; readonly hasMessages: boolean } {
    const { rung, hasEnds, hasMessages } = this
    this.rung = new Set()
    this.hasEnds = false
    this.hasMessages = false
    return { rung: [...rung], hasEnds, hasMessages }
  }
}

/** Whether a lead can be relied on to ask by then. */
function isLedBy(queue: QueueRow, at: number, mono: number): boolean {
  const lead = leadOf(queue)
  return isLed(lead, mono) && lead.wakeAt <= at
}
