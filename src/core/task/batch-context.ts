/** A batch: the jobs that the handler of an ordered task is given together, as it sees them. */

import type { Meta, RunningJob } from '../job.js'
import type { JobContext } from './job-context.js'

/** One job of a batch. */
export interface BatchJob {
  readonly id: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** As in `BatchContext.job`. */
  readonly fence: number
  /** Absent where it has none. */
  readonly group?: string
  readonly createdAt: Date
  readonly runAt: Date
  /** The error of the attempt before this one. */
  readonly lastError?: string
  /** What came with each payload, in the order in which the handler is given them. */
  readonly payloads: readonly { readonly score: number; readonly meta: Meta }[]
}

/** What the handler of an ordered task is given beside the payloads. */
export interface BatchContext extends Pick<JobContext, 'progress'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. The cancel of some jobs of a batch never aborts it.
   */
  readonly signal: AbortSignal
  /**
   * What all jobs of the batch have in common. `fence` grows with every claim of any of these ids: hand it to what you
   * write to, and let that refuse a smaller one.
   */
  readonly job: Pick<RunningJob, 'task' | 'queue' | 'fence'>
  /** The jobs by id, in the order of the payloads. */
  readonly jobs: ReadonlyMap<string, BatchJob>
  /**
   * This id has failed, the others have not: it alone is retried. A second call for an id replaces its error. A number is
   * taken as its text. Throws `InvalidArgumentError` for an id that is not in this batch, for an outcome such as
   * `snooze('10m')` in the place of the error, and once the run has ended.
   */
  fail(id: string | number, error: unknown): void
  /**
   * Whether payloads of this id were left for the next run, because there are more than `maxPayloads`. Throws
   * `InvalidArgumentError` for an id that is not in this batch.
   */
  more(id: string | number): boolean
}
