/** Administration of the jobs of a SQLite store: bounded steps over selected jobs. */

import type { FieldChanges } from '../../../core/job/job-fields.js'
import type { Throttle } from '../../../core/queue/throttle.js'
import type { JobSelection, NewPlace, Records, Step } from '../../contract/job-records.js'
import type { StoredQueue } from '../../contract/queue-settings.js'
import {
  completed,
  dead,
  isHidden,
  type JobRow,
  noteBits,
  ready,
  running,
  scheduled,
  stateNames,
  waiting,
  waitingStates,
} from '../../rows/job-row.js'
import { morgueOf, storedQueue } from '../../rows/queue-row.js'
import { storedOrNull } from '../../rows/stored-text.js'
import { type ThrottleRow, throttleIn } from '../../rows/throttle-row.js'
import { stepPayloads } from '../../rules/bounds.js'
import { changedFields } from '../../rules/field-changes.js'
import { refuseNewPlace, refuseSelf } from '../../rules/queue-form.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { pools } from '../file/sqlite-schema.js'
import { countedColumns, jobColumns } from '../rows/sqlite-job.js'
import { waitingSetOf } from '../rows/sqlite-payloads.js'
import type { QueueRow, Tie } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import type { SqliteSettle } from '../work/sqlite-settle.js'

/** A step that changes as many jobs has written to pages all over the file. */
const scatteredJobs = 20

/** The most failed jobs that are sorted. If there are more, a step goes along the order instead. */
const sortLimit = 10_000

/** Ready jobs: those without a group, then lane by lane, then the suspects. */
const readyOrder = 'suspect, iif(suspect, NULL, grp), rank, position, rid'

/** The order in which a step takes the jobs of a state; `tie` as in `byKind`. */
const orders: Record<number, (tie: Tie) => string> = {
  // As in their index: jobs that are due at one moment are not sorted, however many there are.
  [scheduled]: (tie) => (tie === 'rid' ? 'stamp, position, rid' : 'stamp, position'),
  [ready]: () => readyOrder,
  [waiting]: () => 'stamp, rid',
  [running]: (tie) => `fence, ${tie}`,
  [completed]: (tie) => `finished_at DESC, ${tie} DESC`,
  [dead]: (tie) => `finished_at DESC, ${tie} DESC`,
}

/** A job and the row of its queue or shard. */
interface SelectedJob {
  readonly queue: QueueRow
  readonly job: JobRow
}

/** Jobs of a state that share one order. `index`: the one that finds them, in that order if it can. */
interface SelectedPool {
  readonly where: string
  readonly order: string
  readonly index: string
}

/** A step: which jobs, in which states, and the change to the jobs of each row. */
interface Change {
  readonly queue: string
  readonly where: JobSelection
  readonly states: readonly number[]
  readonly change: (queue: QueueRow, jobs: readonly JobRow[], now: number) => void
  /** Only running jobs whose successor is due later. Absent: only running jobs that are not being cancelled yet. */
  readonly ofSuccessor?: boolean
  /** The columns of plain jobs that the change needs. Absent: all. Each costs the driver about a µs. */
  readonly plainColumns?: string
  /** Leaves out joins that cannot be revived. */
  readonly revives?: boolean
  /** Leaves suspects, of those by id. */
  readonly sparesSuspects?: boolean
  readonly rings?: boolean
  readonly ends?: boolean
}

export class SqliteRecords {
  readonly #transaction: SqliteTransaction
  readonly #settle: SqliteSettle
  readonly #state: Statement
  readonly #markNoted: Statement

  constructor(transaction: SqliteTransaction, settle: SqliteSettle) {
    this.#transaction = transaction
    this.#settle = settle
    this.#markNoted = transaction.db.prepare(`UPDATE job SET noted = noted | ${noteBits.notes} WHERE rid = ?`)
    this.#state = transaction.db.prepare('SELECT state FROM job WHERE qid = ? AND id = ?')
  }

  queues(): StoredQueue[] {
    return queuesIn(this.#transaction.db)
  }

  cancel(queue: string, where: JobSelection, reason?: string): Step {
    const change = each((row, job, now) => {
      job.reason = storedOrNull(reason)
      const jobs = this.#transaction.jobsOf(row)
      if (job.state === running) jobs.requestCancel(row, job)
      else jobs.end(row, job, 'cancelled', now)
    })
    return this.#step({ queue, where, states: [...waitingStates, running], change, ends: true })
  }

  delete(queue: string, where: JobSelection): Step {
    const states = typeof where === 'object' ? [...waitingStates, completed] : waitingStates
    return this.#step({ queue, where, states, ...this.#dropping })
  }

  runNow(queue: string, where: JobSelection): Step {
    const change = each((row, job, now) => this.#transaction.jobsOf(row).runNow(row, job, now))
    return this.#step({ queue, where, states: [scheduled, running], change, rings: true, ofSuccessor: true })
  }

  reschedule(queue: string, ids: readonly string[], to: NewPlace): number {
    refuseNewPlace(queue, this.#transaction.queues.get(queue).kind)
    const change = each((row, job, now) => this.#transaction.jobsOf(row).reschedule(row, job, to, now))
    return this.#step({ queue, where: { ids }, states: [ready, scheduled], change, rings: true, sparesSuspects: true })
      .changed
  }

  bury(queue: string, where: JobSelection): Step {
    const change = each((row, job, now) => this.#transaction.jobsOf(row).bury(row, job, 'buried', undefined, now))
    return this.#step({ queue, where, states: waitingStates, change, ends: true })
  }

  clear(queue: string): Step {
    return this.#step({ queue, where: 'all', states: [...waitingStates, dead], ...this.#dropping })
  }

  revive(queue: string, where: JobSelection): Step {
    const change = each((row, job, now) => this.#transaction.jobsOf(row).revive(row, job, now))
    return this.#step({
      queue,
      where: where === 'failed' ? 'all' : where,
      states: [dead],
      change,
      revives: true,
      rings: true,
    })
  }

  deleteDead(queue: string, where: JobSelection): Step {
    return this.#step({
      queue,
      where: where === 'failed' ? 'all' : where,
      states: [dead],
      ...this.#dropping,
    })
  }

  /** Moves the waiting and dead jobs of an ordered queue into another. */
  move(from: string, to: string): Step {
    const { queues, orderedJobs } = this.#transaction
    queues.ordered(to)
    queues.ordered(from)
    refuseSelf(from, to)
    const change = each((row, job, now) => orderedJobs.adopt(row, this.#transaction.holding(to, job.id), job, now))
    const moved = this.#step({ queue: from, where: 'all', states: [...waitingStates, dead], change, ends: true })
    if (moved.changed > 0) this.#transaction.ring(queues.get(to))
    return moved
  }

  readonly #dropping = {
    change: (row: QueueRow, jobs: readonly JobRow[], now: number) => {
      row.lost_at = Math.max(row.lost_at ?? 0, now)
      this.#transaction.jobsOf(row).dropAll(row, jobs)
    },
    plainColumns: countedColumns,
    ends: true,
  }

  fail(name: string, id: string, how: Parameters<Records['fail']>[2]): 'ok' | 'gone' {
    const queue = this.#transaction.holding(name, id)
    const job = this.#transaction.jobs.find(queue, id)
    if (job?.state !== running) return 'gone'
    const now = this.#transaction.clock.now()
    this.#settle.fail(queue, job, how, now)
    this.#transaction.ringFor(queue, id, now)
    this.#settle.ringFreed(queue)
    return 'ok'
  }

  setFields(name: string, id: string, changes: FieldChanges): 'ok' | 'gone' | 'full' {
    const { jobs, checkpoints, clock } = this.#transaction
    const queue = this.#transaction.holding(name, id)
    const job = jobs.find(queue, id)
    if (job === undefined || isHidden(queue, job, clock.now())) return 'gone'
    const fields = changedFields(job.noted ? checkpoints.fieldsOf(job.rid) : {}, changes)
    if (fields === undefined) return 'full'
    checkpoints.writeFields(job.rid, fields)
    this.#markNoted.run(job.rid)
    return 'ok'
  }

  pause(name: string): void {
    for (const row of this.#transaction.queues.rowsOf(name)) row.paused = 1
  }

  resume(name: string): void {
    for (const row of this.#transaction.queues.rowsOf(name)) {
      row.paused = 0
      row.draining = 0
    }
    this.#transaction.ring(this.#transaction.queues.get(name))
  }

  drain(name: string): void {
    for (const row of this.#transaction.queues.rowsOf(name)) row.draining = 1
  }

  /** Those of `jobs` that have ended or do not exist. */
  ended(jobs: readonly { readonly queue: string; readonly id: string }[]): { queue: string; id: string }[] {
    const { queues } = this.#transaction
    return jobs
      .filter(({ queue, id }) => {
        const rows = [queues.holding(queue, id), queues.formerlyHolding(queue, id)]
        return rows.every((row) => row === undefined || this.#hasEnded(row, id))
      })
      .map(({ queue, id }) => ({ queue, id }))
  }

  #hasEnded({ qid }: QueueRow, id: string): boolean {
    const row = this.#state.get(qid, id) as { state: number } | undefined
    return row === undefined || row.state === completed || row.state === dead
  }

  #step({
    queue: name,
    where,
    states,
    change,
    ofSuccessor = false,
    plainColumns = jobColumns,
    revives = false,
    sparesSuspects = false,
    rings,
    ends,
  }: Change): Step {
    const { queues, joins } = this.#transaction
    queues.get(name)
    // Before jobs are selected: it may change what they are.
    joins.deliver()
    const now = this.#transaction.clock.now()
    const found =
      typeof where === 'object'
        ? this.#byId(name, where.ids, states, ofSuccessor, revives, now).filter(
            ({ job }) => !(sparesSuspects && job.suspect),
          )
        : this.#inStates(name, where, states, ofSuccessor, revives, plainColumns, now)
    const rows = new Map<QueueRow, JobRow[]>()
    let changed = 0
    let payloads = 0
    for (const { queue, job } of found) {
      if (changed === this.#transaction.stepLimit || payloads >= stepPayloads) break
      payloads += this.#payloadsOf(queue, job)
      if (rows.has(queue)) rows.get(queue)!.push(job)
      else rows.set(queue, [job])
      changed += 1
    }
    for (const [queue, jobs] of rows) {
      change(queue, jobs, now)
      if (rings) for (const { id } of jobs) this.#transaction.ringFor(queue, id, now)
    }
    if (changed > 0 && ends) this.#transaction.hasEnds = true
    if (changed >= scatteredJobs) this.#transaction.isScattered = true
    const isAwaited = changed > 0 && this.#transaction.haveOthersWritten
    return { changed, more: found.length > changed, ...(isAwaited ? { isAwaited } : {}) }
  }

  /** How many payloads a step changes with this job. */
  #payloadsOf(queue: QueueRow, job: JobRow): number {
    const set = queue.kind === 'ordered' ? waitingSetOf(job) : undefined
    return set === undefined ? 0 : this.#transaction.orderedJobs.payloads.count(set)
  }

  /** Finds at most one job more than a step takes. */
  #byId(
    name: string,
    ids: readonly string[],
    states: readonly number[],
    ofSuccessor: boolean,
    revives: boolean,
    now: number,
  ): SelectedJob[] {
    const found: SelectedJob[] = []
    for (const id of new Set(ids)) {
      const queue = this.#transaction.holding(name, id)
      const jobs = this.#transaction.jobsOf(queue)
      const job = states.includes(dead) ? jobs.findDead(queue, id) : jobs.find(queue, id)
      if (job === undefined || !states.includes(job.state) || (revives && job.noted & noteBits.cut)) continue
      const isIdle = ofSuccessor
        ? job.successor_ready === 1 || (job.successor_stamp ?? 0) < laterThan(now)
        : job.cancelling
      if (!(job.state === running && isIdle) && !isHidden(queue, job, now)) found.push({ queue, job })
      if (found.length > this.#transaction.stepLimit) break
    }
    return found
  }

  /** Finds at most one job more than a step takes, shard by shard and state by state. */
  #inStates(
    name: string,
    where: 'all' | 'failed',
    states: readonly number[],
    ofSuccessor: boolean,
    revives: boolean,
    plainColumns: string,
    now: number,
  ): SelectedJob[] {
    const found: SelectedJob[] = []
    for (const queue of this.#transaction.queues.rowsOf(name))
      for (const state of states) {
        if (queue[stateNames[state]!] === 0) continue
        const qid = state === dead ? morgueOf(queue) : queue.qid
        for (const pool of this.#poolsOf(queue, where, state)) {
          const limit = this.#transaction.stepLimit + 1 - found.length
          if (limit <= 0) break
          const columns = queue.kind === 'plain' ? plainColumns : jobColumns
          const jobs = this.#inPool(columns, where, pool, revives).all(
            qid,
            deadBy(queue, now),
            limit,
            ofSuccessor ? laterThan(now) : null,
          ) as JobRow[]
          found.push(...jobs.map((job) => ({ queue, job })))
        }
      }
    return found
  }

  /** The pools of a state's jobs: ready jobs are in several. */
  #poolsOf(queue: QueueRow, where: 'all' | 'failed', state: number): readonly SelectedPool[] {
    const isSorted = this.#isSorted(queue, where, state)
    if (state !== ready || isSorted) {
      const order = orders[state]!(queue.kind === 'ordered' ? 'position' : 'rid')
      return [{ where: `state = ${state}`, order, index: isSorted ? 'job_retries' : `job_${stateNames[state]!}` }]
    }
    return [
      { where: pools.free, order: 'rank, position, rid', index: 'job_ready' },
      { where: pools.grouped, order: 'grp, rank, position, rid', index: 'job_lane' },
      { where: pools.suspects, order: 'rank, position, rid', index: 'job_ready' },
    ]
  }

  /** Whether all failed jobs are read and sorted. */
  #isSorted(queue: QueueRow, where: 'all' | 'failed', state: number): boolean {
    return where === 'failed' && state < running && queue.retries <= sortLimit
  }

  #inPool(columns: string, where: 'all' | 'failed', pool: SelectedPool, revives: boolean): Statement {
    return this.#transaction.prepared(`SELECT ${columns} FROM job INDEXED BY ${pool.index}
      WHERE qid = ?1 AND ${pool.where} AND (state <> ${running} OR iif(?4 IS NULL, cancelling = 0, successor_ready = 0 AND successor_stamp >= ?4)) AND (state <> ${dead} OR finished_at > ?2)
      ${where === 'failed' ? 'AND attempt > 1' : ''}${pool.index === 'job_retries' ? ' AND state <= 2' : ''}${revives ? `AND noted & ${noteBits.cut} = 0` : ''}
      ORDER BY ${pool.order} LIMIT ?3`)
  }
}

/** A change that takes one job after the other. */
function each(change: (queue: QueueRow, job: JobRow, now: number) => void): Change['change'] {
  return (queue, jobs, now) => {
    for (const job of jobs) change(queue, job, now)
  }
}

/** The first stamp, in µs, of jobs that are not due yet. */
function laterThan(now: number): number {
  return (now + 1) * 1_000
}

/** Jobs that died by this instant have expired. */
function deadBy(queue: QueueRow, now: number): number {
  return queue.dead_age_ms === null ? Number.MIN_SAFE_INTEGER : now - queue.dead_age_ms
}

/** The queues of a store, by name. */
export function queuesIn(db: Database): StoredQueue[] {
  const rows = db.prepare('SELECT * FROM queue').all() as QueueRow[]
  const throttles = rows.some(({ throttle }) => typeof throttle === 'string') ? throttlesIn(db) : new Map()
  return rows
    .filter(({ shard }) => shard === 0)
    .map((row) => storedQueue(row, throttles.get(row.throttle)))
    .sort((a, b) => (a.name < b.name ? -1 : 1))
}

function throttlesIn(db: Database): ReadonlyMap<string | null, Throttle> {
  const rows = db.prepare('SELECT * FROM throttle').all() as ThrottleRow[]
  return new Map(rows.map((row) => [row.scope, throttleIn(row)]))
}
