/** The options of a job that a handler enqueues. */

export interface ChildOptions {
  /**
   * The name of this call within the life of the job that makes it. A second call with this key enqueues nothing, in
   * the same or a later attempt. 1 to 256 bytes; a finite number is converted to text. Default: the input, and the
   * position among the calls with this input.
   */
  readonly key?: string | number | undefined
}

/** The same for a batch, in which each job enqueues for itself. */
export interface BatchChildOptions extends ChildOptions {
  /**
   * The job of the batch that enqueues, named as for `ctx.fail()`. May be left out if the task takes one job at a time.
   */
  readonly parent?: string | number | undefined
}
