/** A listing of jobs: which ones are asked for, and a page of them. */

import type { JobRecord, JobState } from '../../core/job.js'
import type { TaskOf } from '../../core/task/any-task.js'

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
