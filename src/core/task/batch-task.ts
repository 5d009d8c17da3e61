/** A batch task: a task whose handler gets several jobs at once, each of which is still a job of its own. */

import * as v from 'valibot'
import type { Duration } from '../values/duration.js'
import { duration, exactly, whole } from '../values/option-check.js'
import type { JobsContext } from './contexts.js'
import type { OutcomeValue } from './outcome.js'

export interface BatchOptions {
  /** The most jobs that one call of the handler gets, 1 … 1,000. */
  readonly size: number
  /**
   * How long the first job of an incomplete batch waits for others before the handler is called, at most `'1m'`. It is
   * in hand meanwhile, and its batch has a slot. A batch does not wait if leases are not renewed or the queue has a
   * throttle. Default 0.
   */
  readonly wait?: Duration | undefined
}

/** The batch options with every default filled in. */
export interface Batch {
  readonly size: number
  readonly waitMs: number
}

/**
 * The function that does the work of several jobs. It returns an array with a result or an outcome for each job, in the
 * order of the inputs. It may also return nothing, or one outcome for all. It throws to fail all of them;
 * `ctx.fail(index, error)` fails one.
 */
export type JobsHandler<Output, Return> = (inputs: Output[], ctx: JobsContext) => Return

/** The type of `job.result()` if the handler returns `Return` for all jobs of a batch. */
export type ResultOfEach<Return> = Exclude<EachOf<Exclude<Awaited<Return>, OutcomeValue>>, OutcomeValue>
type EachOf<Returned> = Returned extends readonly (infer Each)[] ? Each : Returned

const longestWaitMs = 60_000

/** @internal */
export const batchSchema = v.pipe(
  exactly({ size: whole(1, 1_000), wait: v.optional(duration(0, longestWaitMs), 0) }),
  v.transform(({ size, wait }): Batch => ({ size, waitMs: wait })),
)
