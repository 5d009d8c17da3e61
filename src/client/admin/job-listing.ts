/** A listing of jobs: its filter, and a page of it. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobRecord, JobState } from '../../core/job/job.js'
import { describe } from '../../core/messages/describe.js'
import type { TaskOf } from '../../core/task/any-task.js'

export interface JobPage<Input = unknown, Result = unknown> {
  readonly jobs: JobRecord<Input, Result>[]
  /** Pass it to the next call; absent on the last page. */
  readonly cursor?: string
}

export interface ListOptions<Input = unknown, Result = unknown> {
  /**
   * Lists only jobs of this task, and types them. A page examines `limit` jobs, so it may hold fewer or none and still
   * have a `cursor`. Default: all tasks.
   */
  readonly task?: TaskOf<Input, Result> | undefined
  /** Only jobs in this state. Default: all. */
  readonly state?: JobState | undefined
  /**
   * The order. `'time'` (default): running jobs, ready jobs in the order of claiming, scheduled jobs by due time, then
   * the latest ended. `'retry'`: only jobs that have failed.
   */
  readonly by?: 'id' | 'time' | 'retry' | undefined
  readonly cursor?: string | undefined
  /** The most jobs on the page, 1 … 200. Default 50. */
  readonly limit?: number | undefined
}

/**
 * The order. Throws `InvalidArgumentError` for an unknown one.
 * @internal
 */
export function orderOf<T extends string>(by: T, known: readonly T[]): T {
  if (known.includes(by)) return by
  throw new InvalidArgumentError(`by must be one of ${known.join(', ')}; got ${describe(by)}.`)
}

/**
 * The limit. Throws `InvalidArgumentError` if it is not 1 … 200.
 * @internal
 */
export function limitOf(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 200) return limit
  throw new InvalidArgumentError(`limit must be a whole number from 1 to 200; got ${describe(limit)}.`)
}
