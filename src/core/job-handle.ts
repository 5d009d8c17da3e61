/** A job handle: one job by name, from anywhere; what an enqueue gives. */

import type { EnqueueOutcome, JobRecord, JobState } from './job.js'
import type { FieldWriter } from './job-fields.js'
import type { Duration } from './values/duration.js'

/** `Result` is what its handler returns, `Input` what it was enqueued with. */
export interface JobHandle<Result = unknown, Input = unknown> {
  readonly id: string
  /**
   * What enqueuing said: `'duplicate'` where a job with this id was there already, `'replaced'` where that waited and
   * `ifWaiting: 'replace'` was given; of an ordered task `'merged'`, where it joined the payloads of a job that waits or runs. Absent on handles made by id.
   */
  readonly outcome: EnqueueOutcome | undefined
  /** The queue it is in; undefined on a handle made by id alone until it was found. */
  readonly queue: string | undefined
  /** Everything that is known of the job, or undefined where nothing is kept of it. Of an ordered id as for `status()`. */
  record(): Promise<JobRecord<Input, Result> | undefined>
  /**
   * Its state, or undefined where nothing is kept of it: it ended without a kept result, or never was. Of an ordered id the
   * job that waits or runs, and only where there is none the dead one.
   */
  status(): Promise<JobState | undefined>
  /**
   * The handler's result, as soon as the job has completed; undefined where it returned none, or the queue keeps none.
   * Throws `JobDeadError`, `JobCancelledError`, `ResultTimeoutError` after `timeout` (default: none), `CodecError` for a result
   * that this mill cannot read, and `ResultNotKeptError` if nothing is kept of the job: it had ended before the call, or it,
   * or perhaps it among others of its queue, was deleted, cleared or dropped by `retention` meanwhile.
   *
   * An ordered job has no result, and its handle is about the id, not about the payload that was enqueued: it resolves
   * undefined once no job of that id waits or runs, also where it was cancelled or never was, and throws `JobDeadError` where
   * payloads of the id lie in the morgue then, be they older ones.
   */
  result(options?: { readonly timeout?: Duration }): Promise<Result>
  /** Writes its fields, in whatever state it is; of an ordered id those of the job that waits or runs. */
  readonly fields: FieldWriter
  /**
   * Cancels the job: it never runs, or, if it runs, its signal is aborted at the next beat. Of an ordered id with all payloads
   * that wait. False where there was nothing to cancel.
   */
  cancel(reason?: string): Promise<boolean>
}
