/** Administration of the jobs of a SQLite store: bounded steps over selected jobs. */

import { stepLimit } from '../../core/upkeep.js'
import type { Step, Where } from '../job-records.js'
import type { StoredQueue } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import { isHidden, type JobRow, jobColumns } from './sqlite-job.js'
import type { QueueRow } from './sqlite-queue.js'
import { completed, dead, ready, running, scheduled, stateNames } from './sqlite-schema.js'
import type { SqliteSession } from './sqlite-session.js'
import type { SqliteSettle } from './sqlite-settle.js'
import { storedOrNull } from './sqlite-text.js'

/** Up to so many failed jobs are sorted; more are found by going along the order instead. */
const sortLimit = 10_000

const waitingStates = [ready, scheduled]

/** How a state's jobs stand in line when a step takes them. */
const orders: Record<number, string> = {
  [scheduled]: 'stamp, rid',
  [ready]: 'suspect, rank, place, rid',
  [running]: 'fence, rid',
  [completed]: 'finished_at DESC, rid DESC',
  [dead]: 'finished_at DESC, rid DESC',
}

/** A step: which jobs, in which states, and what becomes of each. */
interface Change {
  readonly queue: string
  readonly where: Where
  readonly states: readonly number[]
  readonly change: (queue: QueueRow, job: JobRow, now: number) => void
  readonly rings?: boolean
  readonly ends?: boolean
}

export class SqliteRecords {
  readonly #session: SqliteSession
  readonly #settle: SqliteSettle
  readonly #statements = new Map<string, Statement>()
  readonly #flag: Statement
  readonly #state: Statement

  constructor(session: SqliteSession, settle: SqliteSettle) {
    this.#session = session
    this.#settle = settle
    this.#flag = session.db.prepare('UPDATE job SET cancelling = 1, reason = ? WHERE rid = ?')
    this.#state = session.db.prepare('SELECT state FROM job WHERE qid = ? AND id = ?')
  }

  queues(): StoredQueue[] {
    return this.#session.queues
      .all()
      .map(storedQueue)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
  }

  cancel(queue: string, where: Where, reason?: string): Step {
    const change = (row: QueueRow, job: JobRow, now: number) => {
      job.reason = storedOrNull(reason)
      if (job.state === running) this.#flag.run(job.reason, job.rid)
      else this.#session.jobs.end(row, job, 'cancelled', now)
    }
    return this.#step({ queue, where, states: [...waitingStates, running], change, ends: true })
  }

  delete(queue: string, where: Where): Step {
    const states = typeof where === 'object' ? [...waitingStates, completed] : waitingStates
    return this.#step({ queue, where, states, change: (row, job) => this.#session.jobs.drop(row, job), ends: true })
  }

  runNow(queue: string, where: Where): Step {
    const change = (row: QueueRow, job: JobRow, now: number) => this.#session.jobs.enter(row, job, now)
    return this.#step({ queue, where, states: [scheduled], change, rings: true })
  }

  bury(queue: string, where: Where): Step {
    const change = (row: QueueRow, job: JobRow, now: number) =>
      this.#session.jobs.bury(row, job, 'buried', undefined, now)
    return this.#step({ queue, where, states: waitingStates, change, ends: true })
  }

  clear(queue: string): Step {
    const change = (row: QueueRow, job: JobRow) => this.#session.jobs.drop(row, job)
    return this.#step({ queue, where: 'all', states: [...waitingStates, dead], change, ends: true })
  }

  revive(queue: string, where: Where): Step {
    const change = (row: QueueRow, job: JobRow, now: number) =>
      this.#session.jobs.enter(row, { ...job, attempt: 1, crashes: 0, reason: null }, now)
    return this.#step({ queue, where: where === 'failed' ? 'all' : where, states: [dead], change, rings: true })
  }

  deleteDead(queue: string, where: Where): Step {
    const change = (row: QueueRow, job: JobRow) => this.#session.jobs.drop(row, job)
    return this.#step({ queue, where: where === 'failed' ? 'all' : where, states: [dead], change, ends: true })
  }

  fail(
    name: string,
    id: string,
    how: { readonly delayMs: number; readonly last?: boolean; readonly reason: string },
  ): 'ok' | 'gone' {
    const queue = this.#session.queues.get(name)
    const job = this.#session.jobs.find(queue, id)
    if (job?.state !== running) return 'gone'
    this.#settle.failClaim(queue, job, { ...how, error: how.reason }, this.#session.clock.now())
    return 'ok'
  }

  pause(name: string): void {
    this.#session.queues.get(name).paused = 1
  }

  resume(name: string): void {
    const queue = this.#session.queues.get(name)
    queue.paused = 0
    queue.draining = 0
    this.#session.ring(queue)
  }

  drain(name: string): void {
    this.#session.queues.get(name).draining = 1
  }

  /** Those of `jobs` that have ended or are not there. */
  ended(jobs: readonly { readonly queue: string; readonly id: string }[]): { queue: string; id: string }[] {
    const queues = this.#session.queues.of(jobs)
    return jobs
      .filter(({ id }, i) => {
        const row = this.#state.get(queues[i]!.qid, id) as { state: number } | undefined
        return row === undefined || row.state >= completed
      })
      .map(({ queue, id }) => ({ queue, id }))
  }

  #step({ queue: name, where, states, change, rings, ends }: Change): Step {
    const queue = this.#session.queues.get(name)
    const now = this.#session.clock.now()
    const found =
      typeof where === 'object' ? this.#byId(queue, where.ids, states, now) : this.#inStates(queue, where, states, now)
    const taken = found.slice(0, stepLimit)
    for (const job of taken) change(queue, job, now)
    if (taken.length > 0) {
      if (rings) this.#session.ring(queue)
      if (ends) this.#session.hasEnds = true
    }
    return { changed: taken.length, more: found.length > taken.length }
  }

  /** Up to one more than a step takes. */
  #byId(queue: QueueRow, ids: readonly string[], states: readonly number[], now: number): JobRow[] {
    const found: JobRow[] = []
    for (const id of new Set(ids)) {
      const job = this.#session.jobs.find(queue, id)
      if (job === undefined || !states.includes(job.state)) continue
      const isTold = job.state === running && job.cancelling
      if (!isTold && !isHidden(queue, job, now)) found.push(job)
      if (found.length > stepLimit) break
    }
    return found
  }

  /** Up to one more than a step takes, state by state. */
  #inStates(queue: QueueRow, where: 'all' | 'failed', states: readonly number[], now: number): JobRow[] {
    const found: JobRow[] = []
    for (const state of states) {
      const limit = stepLimit + 1 - found.length
      if (limit > 0 && queue[stateNames[state]!] > 0)
        found.push(...(this.#inState(queue, where, state).all(queue.qid, deadBy(queue, now), limit) as JobRow[]))
    }
    return found
  }

  #inState(queue: QueueRow, where: 'all' | 'failed', state: number): Statement {
    const isSorted = where === 'failed' && state !== running && queue.retries <= sortLimit
    const sql = `SELECT ${jobColumns} FROM job ${isSorted ? 'INDEXED BY job_retries' : ''}
      WHERE qid = ?1 AND state = ${state} AND (state <> ${running} OR cancelling = 0) AND (state <> ${dead} OR finished_at > ?2)
      ${where === 'failed' ? 'AND attempt > 1 AND state <= 2' : ''}
      ORDER BY ${orders[state]} LIMIT ?3`
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#session.db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

/** What died by then has expired. */
function deadBy(queue: QueueRow, now: number): number {
  return queue.dead_age_ms === null ? Number.MIN_SAFE_INTEGER : now - queue.dead_age_ms
}

export function storedQueue({ name, kind, ord, paused, draining }: QueueRow): StoredQueue {
  return { name, kind, order: ord, paused: paused === 1, draining: draining === 1 }
}
