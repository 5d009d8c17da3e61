/** A session: what the calls of one connection share while they run. */

import { SqliteCalls } from './sqlite-calls.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database } from './sqlite-driver.js'
import { SqliteJobs } from './sqlite-job.js'
import { type QueueRow, SqliteQueues } from './sqlite-queue.js'

export class SqliteSession {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly jobs: SqliteJobs
  readonly calls: SqliteCalls
  /** Queues in which this transaction made something claimable, or due at another time than before. */
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
