/** The context of a job: the second argument of its handler. */

import type { RunningJob } from '../job.js'
import type { FieldWriter } from '../job-fields.js'
import type { ChildOptions } from './child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from './enqueue-options.js'
import type { HoldOptions, HoldTime } from './hold-time.js'
import type { HandlesOf, JobsOf } from './many-jobs.js'
import type { DefinedTask, HandleOf, TaskInput } from './task-definition.js'

/** The second argument of a handler, after the input. */
export interface JobContext {
  /** Aborted when the time limit is over, the lease is lost, the job is cancelled or the worker's grace is over; `reason` is a typed error. */
  readonly signal: AbortSignal
  readonly job: RunningJob
  /**
   * The number of the slot in which the job runs: 0 … `concurrency` − 1 of its worker. No other job that runs in this
   * worker has the same, so it can choose one of several devices. A process that another worker adopts keeps its
   * number, and so the slot, unless that slot is taken.
   */
  readonly slot: number
  /**
   * Enqueues a job as a child of this one, like `mill.enqueue()` and with the same errors. The child knows its parent.
   * Its id follows from this job and this call, so a later attempt does not enqueue it again; `key` says which calls
   * count as the same. Rejects with the reason of `signal` once that is aborted, and with `InvalidArgumentError` once
   * the run has ended.
   */
  enqueue<T extends DefinedTask>(task: T, ...args: EnqueueArguments<T, string, ChildOptions>): Promise<HandleOf<T>>
  /** Enqueues many jobs of one task as children, like `mill.enqueueMany()`. */
  enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & ChildOptions,
  ): Promise<HandleOf<T>[]>
  /** Enqueues jobs of several tasks as children: `[[a, input], [b, input, { priority: 2 }]]`. */
  enqueueMany<const Tasks extends readonly DefinedTask[]>(
    jobs: JobsOf<Tasks, string, ChildOptions>,
  ): Promise<HandlesOf<Tasks>>
  /**
   * Reports the progress: `fraction` 0 … 1 and an optional note of at most 1,000 characters. A number from 2 on counts
   * as a percentage, as in other queues; other values out of range are clamped. The next beat sends it, at most one a
   * second; the latest wins. Never throws and never delays the handler.
   */
  progress(fraction: number, note?: string): void
  /**
   * Adds a line to the job's log. The last 64 KiB are kept over all attempts. Sent within about a second. Never throws
   * and never delays the handler.
   */
  log(text: string): void
  /**
   * Holds the job's group, or its queue if it has no group, from the end of this run on: none of their jobs is started
   * for that time. For an answer that is no failure but says that no more calls are allowed: `ctx.hold(answer)`. Takes
   * what `throttle()` takes, and never throws for what a server sends; the hold lasts at most `atMost` (default 1 h).
   * The longest hold of a run counts, and comes with its end whatever that is: a result, an error, an outcome. A lost
   * lease holds nothing, and so does a store without throttles. For a batch the groups of all its jobs are held. Throws
   * `InvalidArgumentError` once the run has ended.
   */
  hold(when: HoldTime, options?: HoldOptions): void
  /**
   * Stores a value that the next attempt finds in `lastCheckpoint`, whatever happens to this attempt. It replaces the
   * checkpoint before. Resolves once the store has it, and waits as long as the store is unavailable. Rejects with
   * `PayloadTooLargeError` or `CodecError` for a value that cannot be stored, and with the reason of `signal` if this
   * attempt is over.
   */
  checkpoint(value: unknown): Promise<void>
  /**
   * Writes fields of this job, which its record and listings show: `await ctx.fields.set({ node: 'eu-3' })`. They stay
   * as long as the job does, over all attempts. Resolves once the store has them, and waits as long as the store is
   * unavailable. Rejects with the reason of `signal` if this attempt is over, and with `UnsupportedByStoreError` on a
   * store that keeps no records.
   */
  readonly fields: FieldWriter
  /**
   * The last value that an earlier attempt stored by `checkpoint`; undefined if there is none. Throws `CodecError` if
   * it cannot be decoded.
   */
  readonly lastCheckpoint: unknown
}
