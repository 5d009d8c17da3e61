/** A transaction of a SQLite store: what the calls of one connection share while they run. */

import { stepLimit } from '../../rules/bounds.js'
import { mostClaimBytes } from '../../rules/claim-weight.js'
import { dueAt } from '../../rules/sequence.js'
import { isLed } from '../../rules/wake-lead.js'
import type { SqliteClock } from '../file/sqlite-clock.js'
import type { Database } from '../file/sqlite-driver.js'
import type { SqliteRoom } from '../file/sqlite-room.js'
import { ready, scheduled } from '../file/sqlite-schema.js'
import { SqliteCalls } from './sqlite-calls.js'
import { SqliteCheckpoints } from './sqlite-checkpoints.js'
import { SqliteClaimWeight } from './sqlite-claim-weight.js'
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
  readonly throttles: SqliteThrottles
  readonly notes: SqliteCheckpoints
  readonly jobs: SqliteJobs
  readonly orderedJobs: SqliteOrderedJobs
  readonly calls: SqliteCalls
  /** Queues in which this transaction made something claimable, or due before their lead would ask. */
  rung = new Set<string>()
  /** Whether jobs ended in this transaction. */
  hasEnds = false
  /** Whether there are live messages of this transaction. */
  hasMessages = false
  readonly room: SqliteRoom
  /** How many jobs one call changes at most. */
  stepLimit = stepLimit

  /** At this weight, in bytes, a claim is full. */
  readonly mostClaimBytes: number
  readonly scales: SqliteClaimWeight

  readonly #run: string

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
    this.notes = new SqliteCheckpoints(db)
    this.jobs = new SqliteJobs(db, this.lanes, this.notes)
    this.orderedJobs = new SqliteOrderedJobs(db, this.lanes, this.notes)
    this.calls = new SqliteCalls(db, clock)
    this.#run = (db.prepare("SELECT value FROM meta WHERE name = 'boot'").get() as { value: string }).value
  }

  moment(): Moment {
    return { now: this.clock.now(), mono: this.clock.mono(), run: this.#run }
  }

  /** The job rows of a queue, by the rules of its kind. */
  jobsOf(queue: QueueRow): SqliteJobs {
    return queue.kind === 'ordered' ? this.orderedJobs : this.jobs
  }

  /**
   * Where jobs with this id lie, for a call that writes: what a queue on its way to other shards has of the id comes over
   * first, so that nobody else needs to know of the way. Throws `UnknownQueueError`.
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

  /** All are looked up before the first is changed: an unknown one changes nothing. Throws `UnknownQueueError`. */
  holdingAll(items: readonly { readonly queue: string; readonly id: string }[]): QueueRow[] {
    const rows = items.map(({ queue }) => this.queues.get(queue))
    return rows.map((row, i) => (row.kind === 'plain' ? row : this.holding(row.name, items[i]!.id)))
  }

  /** To be told to those who wait, after the commit. A paused queue has nothing for them. */
  ring(queue: QueueRow): void {
    if (!isStopped(queue)) this.rung.add(queue.name)
  }

  /** A job is due later: its queue's lead asks then, unless there is none or it would come too late. */
  ringForLater(queue: QueueRow, delayMs: number): void {
    const mono = this.clock.mono()
    if (!isLedBy(queue, mono + delayMs, mono)) this.ring(queue)
  }

  /** Rings where the job of this id, as it has just become, is a reason to. */
  ringFor(queue: QueueRow, id: string, now: number): void {
    const job = this.jobs.find(queue, id)
    if (job !== undefined) this.ringForJob(queue, job, now)
  }

  /** It is ready and not shut, or will be before the lead of its queue asks. */
  ringForJob(queue: QueueRow, job: Pick<JobRow, 'state' | 'stamp' | 'suspect' | 'grp'>, now: number): void {
    if (job.state === scheduled) this.ringForLater(queue, dueAt(job.stamp) - now)
    if (job.state !== ready) return
    const mono = this.clock.mono()
    const readyAt = this.limits.readyAt(queue, job)
    if (readyAt !== undefined && (readyAt <= mono || !isLedBy(queue, readyAt, mono))) this.ring(queue)
  }

  /** Writes what is held of queues and their limits, and forgets it: rows are about to be changed behind their back. */
  flushRows(): void {
    this.lanes.flush()
    this.throttles.flush()
    this.queues.flush()
    this.forgetRows()
  }

  flush(): void {
    this.flushRows()
    this.calls.flush()
  }

  /**
   * Nothing of a transaction that was rolled back, only read or is over may be used in the next. Each takes a new map: one
   * that is cleared for years hands what it held on to the old generation of the heap, which is collected seldom.
   */
  forgetRows(): void {
    this.queues.forget()
    this.lanes.forget()
    this.throttles.forget()
  }

  forget(): void {
    this.forgetRows()
    this.calls.forget()
    this.takeRings()
  }

  /** Who is to be rung, told once. */
  takeRings(): { readonly rung: string[]; readonly hasEnds: boolean; readonly hasMessages: boolean } {
    const { rung, hasEnds, hasMessages } = this
    this.rung = new Set()
    this.hasEnds = false
    this.hasMessages = false
    return { rung: [...rung], hasEnds, hasMessages }
  }
}

/** Whether somebody can be relied on to ask by then. */
function isLedBy(queue: QueueRow, at: number, mono: number): boolean {
  const lead = leadOf(queue)
  return isLed(lead, mono) && lead.wakeAt <= at
}
