/** A session: what the calls of one connection share while they run. */

import { isLed } from '../../core/lead.js'
import { SqliteCalls } from './sqlite-calls.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database } from './sqlite-driver.js'
import { SqliteJobs } from './sqlite-job.js'
import { leadOf, type QueueRow, SqliteQueues } from './sqlite-queue.js'

export class SqliteSession {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly jobs: SqliteJobs
  readonly calls: SqliteCalls
  /** Queues in which this transaction made something claimable, or due before their lead would ask. */
  readonly rung = new Set<string>()
  /** Whether jobs ended in this transaction. */
  hasEnds = false

  constructor(db: Database, clock: SqliteClock) {
    this.db = db
    this.clock = clock
    this.queues = new SqliteQueues(db)
    this.jobs = new SqliteJobs(db)
    this.calls = new SqliteCalls(db)
  }

  /** To be told to those who wait, after the commit. A paused queue has nothing for them. */
  ring(queue: QueueRow): void {
    if (queue.paused === 0) this.rung.add(queue.name)
  }

  /** A job is due later: its queue's lead asks then, unless there is none or it would come too late. */
  ringForLater(queue: QueueRow, delayMs: number): void {
    const mono = this.clock.mono()
    const lead = leadOf(queue)
    if (!isLed(lead, mono) || mono + delayMs < lead.wakeAt) this.ring(queue)
  }

  flush(): void {
    this.queues.flush()
    this.calls.flush()
  }

  forget(): void {
    this.queues.forget()
    this.calls.forget()
    this.rung.clear()
    this.hasEnds = false
  }
}
