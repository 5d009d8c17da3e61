/** The context of several jobs: what the handler of a batch task is given beside the inputs. */

import type { RunningJob } from '../job.js'
import type { BatchChildOptions } from './child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from './enqueue-options.js'
import type { JobContext } from './job-context.js'
import type { HandlesOf, JobsOf } from './many-jobs.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

/** What the handler of a batch task is given beside the inputs. */
export interface JobsContext extends Pick<JobContext, 'progress'> {
  /**
   * Aborted when the time limit is over, a lease is lost, every job of the batch is cancelled or the worker's grace is
   * over; `reason` is a typed error. The cancel of some jobs of a batch never aborts it.
   */
  readonly signal: AbortSignal
  /** What all jobs of the batch have in common. */
  readonly job: Pick<RunningJob, 'task' | 'queue'>
  /** The jobs, in the order of the inputs. */
  readonly jobs: readonly RunningJob[]
  /**
   * The job of the input at this index has failed, the others have not: it alone is retried, whatever is returned for it. A
   * second call for an index replaces its error. Throws `InvalidArgumentError` for an index that is not in this batch, for an
   * outcome such as `snooze('10m')` in the place of the error, and once the run has ended.
   */
  fail(index: number, error: unknown): void
  /**
   * Enqueues a job as a child of one job of the batch, as `ctx.enqueue()` of other tasks does: `parent` is the index of that
   * job, and may be left out where `size` is 1. Rejects with `InvalidArgumentError` for one that is not in this batch.
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
}
