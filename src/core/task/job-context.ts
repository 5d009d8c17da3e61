/** The context of a job: what its handler is given beside the input. */

import type { RunningJob } from '../job.js'
import type { FieldWriter } from '../job-fields.js'
import type { ChildOptions } from './child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from './enqueue-options.js'
import type { HandlesOf, JobsOf } from './many-jobs.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

/** What a handler is given beside its input. */
export interface JobContext {
  /** Aborted when the time limit is over, the lease is lost, the job is cancelled or the worker's grace is over; `reason` is a typed error. */
  readonly signal: AbortSignal
  readonly job: RunningJob
  /**
   * Enqueues a job as a child of this one, as `mill.enqueue()` does, with the same errors. The child knows its parent, and its
   * id follows from this job and this call: an attempt that runs after this one enqueues nothing twice. See `key` for what
   * makes two calls the same. Rejects with the reason of `signal` where that is aborted, and with `InvalidArgumentError` once
   * the run has ended.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, ChildOptions>): Promise<HandleOf<T>>
  /** The same for many, as `mill.enqueueMany()` does. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & ChildOptions,
  ): Promise<HandleOf<T>[]>
  /** The same for many of several tasks: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, ChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /**
   * Reports how far the work is: `fraction` 0 … 1 and an optional note of ≤ 1,000 characters. From 2 on the number is
   * taken for per cent, as other queues have it; other values outside are clamped. Sent with the next beat, at most one a second; the latest wins. Never throws and never delays the handler.
   */
  progress(fraction: number, note?: string): void
  /**
   * Adds a line to the job's log, of which the last 64 KiB are kept over all attempts. Sent within about a second. Never
   * throws and never delays the handler.
   */
  log(text: string): void
  /**
   * Stores how far the work is for certain: whatever becomes of this attempt, the next finds it in `lastCheckpoint`. Replaces
   * the one before. Resolves once the store has it, for which it waits as long as the store is away. Rejects with
   * `PayloadTooLargeError` or `CodecError` for a value that cannot be stored, and with the reason of `signal` where this
   * attempt is over.
   */
  checkpoint(value: unknown): Promise<void>
  /**
   * Writes fields of this job, which its record and listings show: `await ctx.fields.set({ node: 'eu-3' })`. They stay as long as the
   * job does, over all attempts. Resolves once the store has them, for which it waits as long as the store is away. Rejects
   * with the reason of `signal` where this attempt is over, and with `UnsupportedByStoreError` on a store that keeps no records.
   */
  readonly fields: FieldWriter
  /** What an earlier attempt has stored by `checkpoint`; undefined where none has. Throws `CodecError` where it cannot be decoded. */
  readonly lastCheckpoint: unknown
}
