/** An enqueue item as its caller gave it. */

import type { AnyTask } from './any-task.js'
import type { AnyEnqueueOptions } from './enqueue-options.js'
import type { EnqueueItem } from './middleware.js'

/**
 * A class, as is everything else that is made for each enqueued job. V8 allocates the objects of a literal in the old
 * generation for good, once many of them have outlived a collection: the items of a single large call do. Each enqueue
 * of such a process takes half as long again.
 */
export class GivenItem implements EnqueueItem {
  readonly task: AnyTask
  input: unknown
  options: AnyEnqueueOptions

  constructor(task: AnyTask, input: unknown, options: AnyEnqueueOptions) {
    this.task = task
    this.input = input
    this.options = options
  }
}
