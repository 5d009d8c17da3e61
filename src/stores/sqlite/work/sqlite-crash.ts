/**
 * Crashes in a SQLite store: the next state of each job whose lease ended unsettled, and the reports of the crashes.
 */

import type { Buried, Crash } from '../../contract/claim.js'
import type { JobRow } from '../../rows/job-row.js'
import { toStored } from '../../rows/stored-text.js'
import { afterCrash } from '../../rules/claim-end.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

export class SqliteCrashes {
  readonly crashed: Crash[] = []
  readonly buried: Buried[] = []
  readonly #transaction: SqliteTransaction

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
  }

  /** Ends the claim of a running job as a crash. `error`: how its worker died, if that is known. */
  add(queue: QueueRow, job: JobRow, now: number, error?: string): void {
    const jobs = this.#transaction.jobsOf(queue)
    const { crashes, becomes } = afterCrash(
      { alone: job.alone === 1, cancelRequested: job.cancelling === 1, crashes: job.crashes },
      queue.crash_limit,
    )
    const ref = { queue: queue.name, id: job.id, task: job.task }
    this.crashed.push({ ...ref, worker: job.worker!, charged: job.alone === 1, crashes })
    queue.crashed += 1
    job.crashes = crashes
    if (error !== undefined) job.error = toStored(error)
    if (becomes === 'suspect') {
      jobs.suspect(queue, job, now)
      return
    }
    this.#transaction.hasEnds = true
    if (becomes === 'cancelled') jobs.end(queue, job, 'cancelled', now)
    else {
      const payload = jobs.exhaust(queue, job, 'crashed', undefined, now)
      this.buried.push({ ...ref, reason: 'crashed', fence: job.fence, ...(payload && { payload }) })
    }
  }
}
