/** A listing of jobs: which ones are asked for, and a page of them. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { JobRecord, JobState } from '../../core/job.js'
import type { TaskOf } from '../../core/task/any-task.js'
import { describe } from '../../core/values/describe.js'

export interface JobPage<Input = unknown, Result = unknown> {
  readonly jobs: JobRecord<Input, Result>[]
  /** Hand it to the next call; absent on the last page. */
  readonly cursor?: string
}

export interface ListOptions<Input = unknown, Result = unknown> {
  /**
   * Only jobs of this task, their types known: those among the `limit` jobs that the page looks at, so that it may hold fewer
   * or none and yet have a `cursor`. Default: all.
   */
  readonly task?: TaskOf<Input, Result>
  /** Only jobs in this state. Default: all. */
  readonly state?: JobState
  /** `'time'` (default): running, ready in the order of claiming, scheduled by due time, then the latest ended. `'retry'`: those that failed. */
  readonly by?: 'id' | 'time' | 'retry'
  readonly cursor?: string
  /** 1 … 200. Default 50. */
  readonly limit?: number
}

/**
 * Throws `InvalidArgumentError` for an order that is none of those.
 * @internal
 */
export function orderOf<T extends string>(by: T, known: readonly T[]): T {
  if (known.includes(by)) return by
  throw new InvalidArgumentError(`by must be one of ${known.join(', ')}; got ${describe(by)}.`)
}

/**
 * Throws `InvalidArgumentError` for another than 1 … 200.
 * @internal
 */
export function limitOf(limit: number): number {
  if (Number.isInteger(limit) && limit >= 1 && limit <= 200) return limit
  throw new InvalidArgumentError(`limit must be a whole number from 1 to 200; got ${describe(limit)}.`)
}
