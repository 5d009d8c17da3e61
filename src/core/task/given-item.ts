/** An enqueue item as its caller gave it. */

import type { AnyTask } from './any-task.js'
import type { AnyEnqueueOptions } from './enqueue-options.js'
import type { EnqueueItem } from './middleware.js'

/** A class for the reason that `listOfOne` gives. */
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
