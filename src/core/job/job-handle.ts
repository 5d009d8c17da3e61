/** A job handle: a reference to one job, from any process. An enqueue returns one. */

import type { Duration } from '../values/duration.js'
import type { EnqueueOutcome, JobRecord, JobState } from './job.js'
import type { FieldWriter } from './job-fields.js'

/** A handle to one job. `Result` is what its handler returns, `Input` what it was enqueued with. */
export interface JobHandle<Result = unknown, Input = unknown> {
  readonly id: string
  /**
   * The outcome of the enqueue. `'duplicate'`: a job with this id was there already. `'replaced'`: a waiting job with
   * this id was replaced, because of `ifWaiting: 'replace'`. `'merged'`, ordered tasks only: the payload joined those
   * of a job that waits or runs. Undefined on a handle made by id.
   */
  readonly outcome: EnqueueOutcome | undefined
  /** The queue of the job; undefined on a handle made by id alone until the job was found. */
  readonly queue: string | undefined
  /**
   * Everything that is known of the job, or undefined if nothing is kept of it. For an ordered id the same job as in
   * `status()`.
   */
  record(): Promise<JobRecord<Input, Result> | undefined>
  /**
   * The state of the job, or undefined if nothing is kept of it: it ended without a kept result, or never existed. For
   * an ordered id this is the job that waits or runs; only if there is none, the dead one.
   */
  status(): Promise<JobState | undefined>
  /**
   * The handler's result, as soon as the job has completed; undefined if the handler returned nothing or the queue
   * keeps no results. Throws `JobDeadError`, `JobCancelledError`, `ResultTimeoutError` after `timeout` (default: none)
   * and `CodecError` for a result that this mill cannot read. A caller that waits gets the result,
   * even if `retention` keeps none. Throws `ResultNotKeptError` if nothing is kept of the job: it had ended before the call, or it was
   * deleted or cleared meanwhile, perhaps among others of its queue. It throws that also for a result that could not be kept (an instance of a class, too many
   * bytes); `error.why` then says what is wrong with it.
   *
   * An ordered job has no result, and its handle is about the id, not about the enqueued payload. It resolves to
   * undefined once no job of that id waits or runs, even if the job was cancelled or never existed. It throws
   * `JobDeadError` if payloads of the id are in the morgue then, even older ones.
   */
  result(options?: { readonly timeout?: Duration }): Promise<Result>
  /** Writes the job's fields, whatever its state; for an ordered id those of the job that waits or runs. */
  readonly fields: FieldWriter
  /**
   * Cancels the job. A waiting job never runs; a running job has its signal aborted at the next beat. For an ordered
   * id, all waiting payloads are cancelled too. Resolves to false if there was nothing to cancel.
   */
  cancel(reason?: string): Promise<boolean>
}
