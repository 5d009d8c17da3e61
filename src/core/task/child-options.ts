/** What may be said of a job that a handler enqueues. */

export interface ChildOptions {
  /**
   * What this call is, in the life of the job that makes it: a second call with this key, of the same or of a later attempt,
   * enqueues nothing. 1 to 256 bytes; a finite number is turned into text. Default: the input, and which of the calls with
   * this input it is.
   */
  readonly key?: string | number
}

/** In a batch each job enqueues for itself. */
export interface BatchChildOptions extends ChildOptions {
  /** Which job of the batch enqueues, named as for `ctx.fail()`. May be left out where the task takes one at a time. */
  readonly parent?: string | number
}
