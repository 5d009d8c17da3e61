/** A batch: the jobs that the handler of an ordered task is given together, as it sees them. */

import type { Meta, RunningJob } from '../job.js'
import type { JobOrigin } from '../job-origin.js'
import type { BatchChildOptions } from './child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from './enqueue-options.js'
import type { JobContext } from './job-context.js'
import type { HandlesOf, JobsOf } from './many-jobs.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

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
  readonly payloads: readonly BatchPayload[]
}

/** One payload of a job of a batch, beside its input. */
interface BatchPayload extends JobOrigin {
  readonly score: number
  readonly meta: Meta
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
   * Enqueues a job as a child of one job of the batch, as `ctx.enqueue()` of a plain task does: `parent` says of which, and
   * may be left out where `batchSize` is 1. A later run of that id enqueues nothing twice while it is given the same payloads,
   * or, with a `key`, whatever it is given. Payloads of an ordered task that were delivered already are delivered again.
   * Rejects with `InvalidArgumentError` for a parent that is not in this batch.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, BatchChildOptions>): Promise<HandleOf<T>>
  /** The same for many, as `mill.enqueueMany()` does. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & BatchChildOptions,
  ): Promise<HandleOf<T>[]>
  /** The same for many of several tasks: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, BatchChildOptions>,
  ): Promise<HandlesOf<Tasks>>
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
