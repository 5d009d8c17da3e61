/** The schedules of a SQLite store, ticked in the transaction that enqueues. */

import type { Enqueued } from '../../contract/new-job.js'
import type {
  DueSchedules,
  ScheduleChange,
  ScheduleState,
  ScheduleTick,
  StoredSchedule,
  TickAnswer,
} from '../../contract/schedules.js'
import { ready, running, scheduled, waiting } from '../../rows/job-row.js'
import {
  dueSchedules,
  isTickDue,
  passTick,
  putSchedule,
  removeSchedule,
  resignLead,
  scheduleOf,
  schedulesAfter,
} from '../../sql/sql-schedules.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { scheduleBell } from '../sqlite-wake-token.js'
import type { SqliteEnqueue } from '../work/sqlite-enqueue.js'

export class SqliteSchedules {
  readonly #transaction: SqliteTransaction
  readonly #enqueue: SqliteEnqueue

  constructor(transaction: SqliteTransaction, enqueue: SqliteEnqueue) {
    this.#transaction = transaction
    this.#enqueue = enqueue
  }

  put(change: ScheduleChange, expects: ScheduleState | undefined): boolean {
    this.#transaction.queues.get(change.definition.queue)
    const answer = this.#transaction.run(putSchedule(change, expects, this.#transaction.clock.now()))
    if (answer === 'written') this.#transaction.rung.add(scheduleBell)
    return answer !== 'lost'
  }

  remove(name: string, expects?: string): boolean {
    return this.#transaction.run(removeSchedule(name, expects))
  }

  get(name: string): StoredSchedule | undefined {
    return this.#transaction.run(scheduleOf(name))
  }

  list(after: string | undefined, limit: number): StoredSchedule[] {
    return this.#transaction.run(schedulesAfter(after, limit))
  }

  tick(tick: ScheduleTick): TickAnswer {
    const { queue, jobs, unless, callId } = tick
    if (!this.#transaction.run(isTickDue(tick))) return { outcome: 'lost' }
    const isSkipped = unless !== undefined && jobs.length > 0 && this.#isThere(queue, unless)
    const enqueued: Enqueued[] =
      isSkipped || jobs.length === 0 ? [] : this.#enqueue.enqueue([{ callId, queue, jobs }])[0]!
    if (enqueued[0] === 'full' || enqueued[0] === 'draining') return { outcome: enqueued[0] }
    this.#transaction.run(passTick(tick, isSkipped))
    return isSkipped ? { outcome: 'skipped' } : { outcome: 'ticked', enqueued }
  }

  due(worker: string, leadMs: number, limit: number): DueSchedules {
    return this.#transaction.run(dueSchedules(worker, leadMs, limit, this.#transaction.clock.now()))
  }

  resign(worker: string): void {
    this.#transaction.run(resignLead(worker))
  }

  #isThere(queue: string, id: string): boolean {
    const row = this.#transaction.holding(queue, id)
    const state = this.#transaction.jobsOf(row).find(row, id)?.state
    return state === scheduled || state === ready || state === waiting || state === running
  }
}
