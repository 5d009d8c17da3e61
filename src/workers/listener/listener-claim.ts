/** A claim as a listener gives it to its caller: the job, and what can be said of it until it is settled. */

import type { Meta, RunningJob } from '../../core/job.js'
import type { FieldWriter } from '../../core/job-fields.js'
import type { Duration } from '../../core/values/duration.js'
import type { ExtendAnswer, SettleAnswer } from '../../stores/contract/settle.js'

/** Where the job runs. */
export interface RunPlace {
  /** Default: this process. */
  readonly pid?: number
  /** Default: this host. */
  readonly host?: string
}

/**
 * What `listener.next()` and `listener.attach()` give. Its lease is renewed while the listener lives, also while the store is
 * away: that the claim is lost only the store can say.
 *
 * `complete`, `fail` and `release` settle it, and wait while the store is away. They answer `'ok'`, or that it was too late:
 * `'lost'`, the claim is settled already or its lease has ended and was taken over; `'gone'`, there is no such job any more.
 */
export interface ListenerClaim<Input = unknown> {
  readonly id: string
  /** Any name: the listener has no definition of it. */
  readonly task: string
  readonly queue: string
  /** As it was enqueued; no schema has seen it here. */
  readonly input: Input
  readonly meta: Meta
  /** The job whose handler enqueued it by `ctx.enqueue()`; undefined where none did. */
  readonly parent: RunningJob['parent'] | undefined
  /** The span that enqueued it, where a tracer or a request has told one. */
  readonly trace: RunningJob['trace'] | undefined
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** Grows with every claim of this job: hand it to what you write to, and let that refuse a smaller one. */
  readonly fence: number
  /** What was stored last by `checkpoint`; undefined where nothing was. Throws `CodecError` where it cannot be decoded. */
  readonly lastCheckpoint: unknown
  /** Text for `listener.attach()` in another process. It is no secret: letters, digits, `-`, `_` and `.`. */
  readonly token: string
  /**
   * Aborted with `JobCancelledError`, `LeaseLostError`, `TimeLimitError`, or `WorkerStoppedError` where the listener was closed.
   * Who aborts must still settle: of a cancelled job `fail()` and `release()` are its end. It hears nothing any more once
   * another process has attached.
   */
  readonly signal: AbortSignal
  /**
   * The job runs from now on, there: its record says so. One that runs in another process is not put back when the listener
   * is closed. Waits while the store is away. Answers as `extend()` does.
   */
  started(place?: RunPlace): Promise<ExtendAnswer>
  /** Renews the lease now, beside the beats. `'cancel'`: renewed, and the job is to be cancelled. Rejects with `StoreUnavailableError`. */
  extend(): Promise<ExtendAnswer>
  /** As `ctx.progress()`: sent within about a second, the latest wins. Never throws. */
  progress(fraction: number, note?: string): void
  /** As `ctx.log()`: sent within about a second. Never throws. */
  log(text: string): void
  /** As `ctx.fields`: small named values that the job's record shows. */
  readonly fields: FieldWriter
  /** As `ctx.checkpoint()`: resolves once the store has it, for which it waits. */
  checkpoint(value: unknown): Promise<void>
  /**
   * The job is done. A result is kept for 7 days, unless the queue says otherwise; null is one, undefined is none. Rejects with
   * `PayloadTooLargeError` or `CodecError` for one that cannot be kept: nothing is settled then.
   */
  complete(result?: unknown): Promise<SettleAnswer>
  /** A counted failure: into the morgue, or, with the `retry` of the listener, tried again. */
  fail(error: unknown): Promise<SettleAnswer>
  /** Back into the queue, uncounted: at once in its old place, or after `delay`. */
  release(options?: { readonly delay?: Duration }): Promise<SettleAnswer>
}
