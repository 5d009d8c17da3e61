/** The context of several jobs: the second argument of a batch task's handler. */

import type { RunningJob } from '../job.js'
import type { BatchChildOptions } from './child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from './enqueue-options.js'
import type { JobContext } from './job-context.js'
import type { HandlesOf, JobsOf } from './many-jobs.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

/** The second argument of a batch task's handler, after the inputs. */
export interface JobsContext extends Pick<JobContext, 'slot' | 'progress' | 'hold'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. It is not aborted while only some jobs of the batch are cancelled.
   */
  readonly signal: AbortSignal
  /** The properties that all jobs of the batch share. */
  readonly job: Pick<RunningJob, 'task' | 'queue'>
  /** The jobs, in the order of the inputs. */
  readonly jobs: readonly RunningJob[]
  /**
   * Fails the job of the input at this index only: it is retried, whatever the handler returns for it. A second call
   * for an index replaces its error. Throws `InvalidArgumentError` for an index that is not in this batch, for an
   * outcome such as `snooze('10m')` instead of an error, and after the run has ended.
   */
  fail(index: number, error: unknown): void
  /**
   * Enqueues a job as a child of one job of the batch, like `ctx.enqueue()` of other tasks. `parent` is the index of
   * that job, and may be left out if `size` is 1. Rejects with `InvalidArgumentError` for a parent that is not in this
   * batch.
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
}
