/** What a test sees of a handler's calls, whatever the kind of its task. */

import type { Progress } from '../core/job/job.js'
import type { BatchChildOptions } from '../core/task/enqueue-options.js'
import type { EnqueueItem } from '../core/task/middleware.js'

/** The part of a context for the test, whatever the kind of the task. */
export interface Observed {
  /** The jobs that the handler has enqueued; none was sent. */
  readonly enqueued: readonly ChildRecord[]
  /** The progress that the handler has reported, in order. */
  readonly progressed: readonly Progress[]
  /** The ms for which the handler has held its group by `ctx.hold()`, the longest of its calls; undefined: not at all. */
  readonly heldMs: number | undefined
  /** Aborts `signal`. Default: with the reason of a worker whose grace is over. */
  abort(reason?: Error): void
}

/** A job that a handler has enqueued, with the options that it gave. */
export interface ChildRecord extends Pick<EnqueueItem, 'task' | 'input'> {
  readonly options: EnqueueItem['options'] & BatchChildOptions
}
