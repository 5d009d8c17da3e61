/** The steps and waits of the jobs of a SQLite store, as the rules of their rows need them. */

import { noteBits } from '../../rows/job-row.js'
import type { SignalWait } from '../../rules/claim-end.js'
import { beginWait, dropSteps, endSleeps, endWait, signalEntry } from '../../sql/sql-job-steps.js'
import type { SqlSteps } from '../../sql/sql-steps.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { changeOne, type JobStepRows } from './sqlite-job.js'

interface StepsHost {
  readonly db: Database
  run<Answer>(steps: SqlSteps<Answer>): Answer
}

export class SqliteJobSteps implements JobStepRows {
  readonly #host: StepsHost
  readonly #mark: Statement
  readonly #markSignalled: Statement
  readonly #unmark: Statement

  constructor(host: StepsHost) {
    this.#host = host
    this.#mark = host.db.prepare('UPDATE job SET noted = noted | ?, expires_at = NULL WHERE rid = ?')
    this.#markSignalled = host.db.prepare('UPDATE job SET noted = noted | ? WHERE rid = ?')
    this.#unmark = host.db.prepare('UPDATE job SET noted = noted & ~? WHERE rid = ?')
  }

  mark(rid: number, bit: number): void {
    changeOne(this.#mark, bit, rid)
  }

  unmark(rid: number, bit: number): void {
    changeOne(this.#unmark, bit, rid)
  }

  /** The job has a signal. */
  markSignalled(rid: number): void {
    changeOne(this.#markSignalled, noteBits.steps, rid)
  }

  hasSignal(rid: number, signal: string): boolean {
    return this.#host.run(signalEntry(rid, signal)) !== undefined
  }

  beginWait(rid: number, wait: SignalWait, now: number): void {
    this.#host.run(beginWait(rid, wait, now))
    this.mark(rid, noteBits.awaiting)
  }

  endWait(rid: number): void {
    this.#host.run(endWait(rid))
    this.unmark(rid, noteBits.awaiting)
  }

  endSleeps(rid: number, now: number): void {
    this.#host.run(endSleeps(rid, now))
  }

  drop(rid: number, noted: number): void {
    if (noted & noteBits.steps) this.#host.run(dropSteps(rid))
    if (noted & noteBits.awaiting) this.#host.run(endWait(rid))
  }
}
