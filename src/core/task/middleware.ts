/** Middleware: functions around each enqueue and each handler call, in onion order: the first given is the outermost. */

import { ConfigError } from '../errors.js'
import type { JobHandle } from '../job-handle.js'
import type { JobOrigin } from '../job-origin.js'
import type { AnyTask } from './any-task.js'
import type { BatchContext } from './batch-context.js'
import type { BatchChildOptions } from './child-options.js'
import type { AnyEnqueueOptions } from './enqueue-options.js'
import type { JobContext } from './job-context.js'
import type { JobsContext } from './jobs-context.js'
import type { AnyOrderedTask } from './ordered-task.js'
import type { AnyBatchTask, AnySingleTask } from './task.js'

/** One job on its way to the store. Middleware may change its input, its options, and the `trace` of its origin. */
export interface EnqueueItem {
  readonly task: AnyTask
  input: unknown
  options: AnyEnqueueOptions
  /** What it comes from; absent where nobody but the caller knows. */
  origin?: JobOrigin
  /** Once `next()` has resolved: the job. */
  job?: JobHandle
  /** Once `next()` has resolved: why the store has refused it, in the place of the job. */
  refusal?: Error
  /**
   * Of what a handler enqueues: the name of the call, and the id of a plain job where its options give none.
   * @internal
   */
  readonly child?: string
  /**
   * Of what a handler enqueues: its options as the handler gave them, with `key` and `parent`.
   * @internal
   */
  readonly asked?: AnyEnqueueOptions & BatchChildOptions
  /**
   * An earlier attempt of its parent has enqueued it: it is checked and answered as a duplicate, and not sent.
   * @internal
   */
  readonly isDone?: boolean
}

/** One call of a handler: of one job, or of the whole batch of an ordered or a batch task. `'jobs' in run.ctx` tells a batch. */
export type Run = JobRun | JobsRun | BatchRun

export interface JobRun {
  readonly task: AnySingleTask
  readonly input: unknown
  readonly ctx: JobContext
}

/** Of a batch task. */
export interface JobsRun {
  readonly task: AnyBatchTask
  /** The inputs, in the order of `ctx.jobs`. */
  readonly input: readonly unknown[]
  readonly ctx: JobsContext
}

export interface BatchRun {
  readonly task: AnyOrderedTask
  /** The payloads by id. */
  readonly input: ReadonlyMap<string, readonly unknown[]>
  readonly ctx: BatchContext
}

/** The end of one job of a run. */
export interface RunEnd {
  readonly id: string
  /** `failed`: it is retried or, after its last attempt, buried; `released`: put back, uncounted. */
  readonly kind: 'completed' | 'failed' | 'buried' | 'released' | 'cancelled'
  /** Why it is buried, released or cancelled. */
  readonly reason?: string
  /** What it failed with. */
  readonly error?: unknown
  /** How long it ran, in ms. */
  readonly runMs: number
}

/** The store's answer to the end of a job. `lost`, `gone`: the job was no longer this run's. Undefined: the store never answered. */
export type EndAnswer = 'ok' | 'lost' | 'gone' | undefined

export interface Middleware {
  /** Client side: around one `enqueue` or the whole of one `enqueueMany`, before anything is validated. Resolve `next()` to send, or throw to refuse. */
  enqueue?(items: EnqueueItem[], next: () => Promise<void>): Promise<void>
  /** Worker side: around one handler call. What it returns is what the handler is taken to have returned; what it throws is a failure of the job, or of every job of the batch. */
  run?(run: Run, next: () => Promise<unknown>): Promise<unknown>
  /**
   * Worker side: hears what becomes of each job of a run, once that is decided and before it is settled, also where the handler
   * was not called or does not end. `answers` resolves, in the order of the ends, when the store has answered. Of an isolated job
   * it is called in the process of the job, and in its worker where that process died. What it returns is waited for only
   * there, for at most 5 s, because the process ends then.
   */
  settle?(run: Run, ends: readonly RunEnd[], answers: Promise<readonly EndAnswer[]>): void | Promise<void>
}

const calledTwice = { path: 'next', message: 'a middleware called next() twice; call it once, or not at all' }

/** Calls `layers` from the outermost in, then `core`. A layer that calls `next` twice is refused: its inner layers would run twice. */
export function throughLayers<T>(
  layers: readonly ((next: () => Promise<T>) => Promise<T>)[],
  core: () => Promise<T>,
): Promise<T> {
  // Async, so that a layer which throws before it returns a promise rejects like any other.
  const call = async (depth: number): Promise<T> => {
    const layer = layers[depth]
    if (layer === undefined) return core()
    let called = false
    return layer(() => {
      if (called) return Promise.reject(new ConfigError('middleware', [calledTwice]))
      called = true
      return call(depth + 1)
    })
  }
  return call(0)
}
