/** A listener's claim, as its caller holds it: the job, and the methods that report on it until it is settled. */

import type { Meta, RunningJob } from '../../core/job.js'
import type { FieldWriter } from '../../core/job-fields.js'
import type { HoldOptions, HoldTime } from '../../core/task/outcome.js'
import type { Duration } from '../../core/values/duration.js'
import type { ExtendAnswer, SettleAnswer } from '../../stores/contract/settle.js'

/** The place where the job runs. */
export interface RunPlace {
  /** Default: this process. */
  readonly pid?: number
  /** Default: this host. */
  readonly host?: string
}

/**
 * A claim from `listener.next()` or `listener.attach()`. Its lease is renewed while the listener lives, also while the
 * store is away: only the store can say that the claim is lost.
 *
 * `complete`, `fail` and `release` settle it, and wait while the store is away. They answer `'ok'`, or that it was too
 * late: `'lost'`, the claim is settled already or its lease has ended and was taken over; `'gone'`, the job no longer
 * exists.
 */
export interface ListenerClaim<Input = unknown> {
  readonly id: string
  /** Any name: the listener does not know the task's definition. */
  readonly task: string
  readonly queue: string
  /** As it was enqueued; no schema has checked it here. */
  readonly input: Input
  readonly meta: Meta
  /** The job whose handler enqueued it by `ctx.enqueue()`; undefined if there is none. */
  readonly parent: RunningJob['parent'] | undefined
  /** The span that enqueued it, if a tracer or a request has named one. */
  readonly trace: RunningJob['trace'] | undefined
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /**
   * Grows with every claim of this job. Pass it to the systems that you write to, and let them refuse a smaller one.
   */
  readonly fence: number
  /** The last value stored by `checkpoint`; undefined if there is none. Throws `CodecError` if it cannot be decoded. */
  readonly lastCheckpoint: unknown
  /** Text for `listener.attach()` in another process. It is no secret: letters, digits, `-`, `_` and `.`. */
  readonly token: string
  /**
   * Aborted with `JobCancelledError`, `LeaseLostError` or `TimeLimitError`, or with `WorkerStoppedError` if the
   * listener was closed. You must still settle the claim after an abort: for a cancelled job call `fail()` or
   * `release()`. The signal is silent once another process has attached.
   */
  readonly signal: AbortSignal
  /**
   * Records that the job runs from now on, and where. A job that runs in another process is not put back when the
   * listener is closed. Waits while the store is away. Answers like `extend()`.
   */
  started(place?: RunPlace): Promise<ExtendAnswer>
  /**
   * Renews the lease now, in addition to the beats. `'cancel'`: renewed, but the job is to be cancelled. Rejects with
   * `StoreUnavailableError`.
   */
  extend(): Promise<ExtendAnswer>
  /** Like `ctx.progress()`: sent within about a second, the latest wins. Never throws. */
  progress(fraction: number, note?: string): void
  /** Like `ctx.log()`: sent within about a second. Never throws. */
  log(text: string): void
  /** Like `ctx.hold()`: comes with the call that settles the claim. */
  hold(when: HoldTime, options?: HoldOptions): void
  /** Like `ctx.fields`: small named values that the job's record shows. */
  readonly fields: FieldWriter
  /** Like `ctx.checkpoint()`: resolves once the store has it. Waits while the store is away. */
  checkpoint(value: unknown): Promise<void>
  /**
   * Completes the job. The store keeps a result for 7 days, unless the queue says otherwise; null is a result,
   * undefined is none. Rejects with `PayloadTooLargeError` or `CodecError` if the result cannot be kept: nothing is
   * settled then.
   */
  complete(result?: unknown): Promise<SettleAnswer>
  /** Settles the job as a counted failure: into the morgue or, with the `retry` of the listener, tried again. */
  fail(error: unknown): Promise<SettleAnswer>
  /** Puts the job back, uncounted: at once in its old place, or after `delay`. */
  release(options?: { readonly delay?: Duration }): Promise<SettleAnswer>
}
