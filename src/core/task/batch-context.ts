/** A batch: the jobs that one run of an ordered task is given together, as its handler sees them. */

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
  /** Absent if it has none. */
  readonly group?: string
  readonly createdAt: Date
  readonly runAt: Date
  /** The error of the attempt before this one. */
  readonly lastError?: string
  /** Score, meta and origin of each payload, in the order in which the handler gets the payloads. */
  readonly payloads: readonly BatchPayload[]
}

/** One payload of a job of a batch, without its input. */
interface BatchPayload extends JobOrigin {
  readonly score: number
  readonly meta: Meta
}

/** The second argument of an ordered task's handler, after the payloads. */
export interface BatchContext extends Pick<JobContext, 'slot' | 'progress' | 'hold'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. It is not aborted while only some jobs of the batch are cancelled.
   */
  readonly signal: AbortSignal
  /**
   * The properties that all jobs of the batch share. `fence` grows with every claim of any of these ids. Pass it to the
   * systems you write to, and let them refuse a smaller one.
   */
  readonly job: Pick<RunningJob, 'task' | 'queue' | 'fence'>
  /** The jobs by id, in the order of the payloads. */
  readonly jobs: ReadonlyMap<string, BatchJob>
  /**
   * Enqueues a job as a child of one job of the batch, like `ctx.enqueue()` of a plain task. `parent` names that job,
   * and may be left out if `batchSize` is 1. A later run of that id enqueues nothing twice as long as it gets the same
   * payloads; with a `key` the payloads do not matter. Payloads of an ordered task that were delivered already are
   * delivered again. Rejects with `InvalidArgumentError` for a parent that is not in this batch.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, BatchChildOptions>): Promise<HandleOf<T>>
  /** Enqueues many jobs of one task as children, like `mill.enqueueMany()`. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & BatchChildOptions,
  ): Promise<HandleOf<T>[]>
  /** Enqueues jobs of several tasks as children: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, BatchChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /**
   * Fails this id only: it is retried, the others are not. A second call for an id replaces its error. A number is
   * converted to text. Throws `InvalidArgumentError` for an id that is not in this batch, for an outcome such as
   * `snooze('10m')` instead of an error, and after the run has ended.
   */
  fail(id: string | number, error: unknown): void
  /**
   * Says that the oldest `count` payloads of this id are done. They are completed, whatever becomes of the run: a
   * failure, a throw, a stop, `snooze()` or `bury()` is then for the others alone, which begin with this run as their
   * first attempt. So a last failure buries the payload after those that are done. If all are done, the id is
   * completed. A smaller count than before changes nothing. Nothing of it is stored before the run ends: after a crash
   * all payloads come again. Throws `InvalidArgumentError` for an id that is not in this batch, for a number that is
   * not from 0 to that of its payloads, and after the run has ended.
   */
  done(id: string | number, count: number): void
  /**
   * Whether payloads of this id were left for the next run, because there are more than `maxPayloads`. Throws
   * `InvalidArgumentError` for an id that is not in this batch.
   */
  more(id: string | number): boolean
}
