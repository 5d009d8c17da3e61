/** A session: what the calls of one connection share while they run. */

import { isLed } from '../../core/lead.js'
import { dueAt } from '../../core/stamp.js'
import { SqliteCalls } from './sqlite-calls.js'
import type { SqliteClock } from './sqlite-clock.js'
import type { Database } from './sqlite-driver.js'
import { SqliteJobs } from './sqlite-job.js'
import { SqliteOrderedJobs } from './sqlite-ordered-job.js'
import { isFull, isStopped, leadOf, type QueueRow, SqliteQueues } from './sqlite-queue.js'
import { ready, scheduled } from './sqlite-schema.js'

export class SqliteSession {
  readonly db: Database
  readonly clock: SqliteClock
  readonly queues: SqliteQueues
  readonly jobs: SqliteJobs
  readonly orderedJobs: SqliteOrderedJobs
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
    this.orderedJobs = new SqliteOrderedJobs(db)
    this.calls = new SqliteCalls(db)
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

  /** A job is ready. A shard that grants nothing before a claim has ended has nothing for those who wait. */
  ringForReady(queue: QueueRow): void {
    if (!isFull(queue)) this.ring(queue)
  }

  /** A job is due later: its queue's lead asks then, unless there is none or it would come too late. */
  ringForLater(queue: QueueRow, delayMs: number): void {
    const mono = this.clock.mono()
    const lead = leadOf(queue)
    if (!isLed(lead, mono) || mono + delayMs < lead.wakeAt) this.ring(queue)
  }

  /** Rings where the job of this id, as it has just become, is a reason to. */
  ringFor(queue: QueueRow, id: string, now: number): void {
    const job = this.jobs.find(queue, id)
    if (job?.state === ready) this.ringForReady(queue)
    else if (job?.state === scheduled) this.ringForLater(queue, dueAt(job.stamp) - now)
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
