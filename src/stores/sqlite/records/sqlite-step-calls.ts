/** The steps of a SQLite store as the workers and the API see them. */

import { payloadBytes } from '../../../core/values/codec.js'
import type { JobKey } from '../../contract/job-records.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { EntryKind, NewSignal, NewStep, SignalAnswer, StepList, StoredStep } from '../../contract/steps.js'
import { isSignalEntry } from '../../contract/steps.js'
import { completed, isHidden, type JobRow, noteBits } from '../../rows/job-row.js'
import { mostSignalBytes, mostSignals, upkeepLimit } from '../../rules/bounds.js'
import {
  addStep,
  hasSteps,
  removeStep,
  signalEntry,
  signalLoad,
  stepsOf,
  vainWaits,
  waitOf,
} from '../../sql/sql-job-steps.js'
import type { Statement } from '../file/sqlite-driver.js'
import { jobColumns } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import type { SqliteSettle } from '../work/sqlite-settle.js'

/** The columns of a job that a call on its steps reads. */
type SteppedRow = Pick<JobRow, 'rid' | 'state' | 'noted' | 'expires_at' | 'finished_at'>

export class SqliteStepCalls {
  readonly #transaction: SqliteTransaction
  readonly #settle: SqliteSettle
  readonly #byId: Statement
  readonly #byNumber: Statement
  readonly #queueOf: Statement

  constructor(transaction: SqliteTransaction, settle: SqliteSettle) {
    this.#transaction = transaction
    this.#settle = settle
    const columns = 'rid, state, noted, expires_at, finished_at'
    this.#byId = transaction.db.prepare(`SELECT ${columns} FROM job WHERE qid = ? AND id = ?`)
    this.#byNumber = transaction.db.prepare(`SELECT ${jobColumns} FROM job WHERE rid = ?`)
    this.#queueOf = transaction.db.prepare('SELECT queue.name AS name FROM job JOIN queue USING (qid) WHERE rid = ?')
  }

  keep(claim: ClaimKey, { name, ...step }: NewStep, leaseMs: number): 'ok' | 'lost' | 'cancel' {
    const job = this.#settle.renewRun(claim, leaseMs)
    if (job === undefined) return 'lost'
    const at = this.#transaction.clock.now()
    this.#add(
      job,
      step.kind === 'sleep' ? { name, kind: step.kind, at, until: at + step.forMs } : { name, ...step, at },
    )
    return job.cancelling ? 'cancel' : 'ok'
  }

  read(key: JobKey): StepList | undefined {
    const job = this.#find(key)
    if (job === undefined) return undefined
    const steps = job.noted & noteBits.steps && job.state !== completed ? this.#transaction.run(stepsOf(job.rid)) : []
    return { now: this.#transaction.clock.now(), steps }
  }

  forget(key: JobKey, name: string, of: EntryKind): boolean {
    const job = this.#find(key)
    if (job === undefined || !this.#transaction.run(removeStep(job.rid, name, of))) return false
    const { rid } = job
    if (!this.#transaction.run(hasSteps(rid))) this.#transaction.jobSteps.unmark(rid, noteBits.steps)
    return true
  }

  signal(key: JobKey, { name, ...data }: NewSignal): SignalAnswer {
    const job = this.#find(key)
    if (job === undefined || job.state === completed) return 'gone'
    const before = this.#transaction.run(signalEntry(job.rid, name))
    if (before !== undefined) return before === 'signal' ? 'duplicate' : 'gone'
    const wait = job.noted & noteBits.awaiting ? this.#transaction.run(waitOf(job.rid)) : undefined
    const isAwaited = wait?.signal === name
    if (!isAwaited && !this.#hasRoom(job, data)) return 'full'
    const now = this.#transaction.clock.now()
    this.#add(job, { name, kind: 'signal', ...data, at: now })
    if (!isAwaited) return 'kept'
    this.#wake(this.#transaction.queues.get(key.queue), job.rid, now)
    return 'delivered'
  }

  /** The signal that a job waits for always has room. */
  #hasRoom({ rid }: SteppedRow, { payload }: Omit<NewSignal, 'name'>): boolean {
    const { count, bytes } = this.#transaction.run(signalLoad(rid))
    return count < mostSignals && bytes + (payload === undefined ? 0 : payloadBytes(payload)) <= mostSignalBytes
  }

  isWaitOver(): boolean {
    return this.#transaction.run(vainWaits(this.#transaction.clock.now(), 1)).length > 0
  }

  sweep(): { readonly woken: number; readonly more: boolean } {
    const { queues, clock } = this.#transaction
    const now = clock.now()
    const rids = this.#transaction.run(vainWaits(now, upkeepLimit + 1))
    for (const rid of rids.slice(0, upkeepLimit)) {
      const { name } = this.#queueOf.get(rid) as { name: string }
      const job = this.#byNumber.get(rid) as JobRow
      this.#add(job, { name: this.#transaction.run(waitOf(rid))!.signal, kind: 'timeout', at: now })
      this.#wake(queues.get(name), rid, now)
    }
    return { woken: Math.min(rids.length, upkeepLimit), more: rids.length > upkeepLimit }
  }

  #add(job: Pick<SteppedRow, 'rid' | 'noted' | 'expires_at'>, step: StoredStep): void {
    const { jobSteps } = this.#transaction
    this.#transaction.run(addStep(job.rid, step))
    if (isSignalEntry(step)) jobSteps.markSignalled(job.rid)
    else if (!(job.noted & noteBits.steps) || job.expires_at !== null) jobSteps.mark(job.rid, noteBits.steps)
  }

  #wake(queue: QueueRow, rid: number, now: number): void {
    const job = this.#byNumber.get(rid) as JobRow
    this.#transaction.jobs.wake(queue, job, now)
    this.#transaction.ringFor(queue, job.id, now)
  }

  #find({ queue: name, id }: JobKey): SteppedRow | undefined {
    const { queues, clock } = this.#transaction
    const queue = queues.get(name)
    const job = this.#byId.get(queue.qid, id) as SteppedRow | undefined
    return job === undefined || isHidden(queue, job, clock.now()) ? undefined : job
  }
}
