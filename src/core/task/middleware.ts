/**
 * Middleware: functions around each enqueue and each handler call. They form an onion: the first one given is the
 * outermost. An enqueue's items are made here, too, as its caller gives them.
 */

import { ConfigError, InvalidArgumentError } from '../errors.js'
import type { JobHandle } from '../job/job.js'
import type { JobOrigin } from '../job/job-origin.js'
import { describe } from '../messages/describe.js'
import { type AnyTask, refuseNoTask } from './any-task.js'
import type { BatchContext, JobContext, OrderedContext } from './contexts.js'
import type { AnyEnqueueOptions, BatchChildOptions } from './enqueue-options.js'
import type { AnyOrderedTask } from './ordered-task.js'
import type { AnyBatchTask, AnySingleTask } from './task.js'

/** One job on its way to the store. Middleware may change its input, its options, and the `trace` of its origin. */
export interface EnqueueItem {
  readonly task: AnyTask
  input: unknown
  options: AnyEnqueueOptions
  /** Where the job comes from; absent if only the caller knows. */
  origin?: Omit<JobOrigin, 'schedule'>
  /** The job, once `next()` has resolved. */
  job?: JobHandle
  /** The reason why the store refused the job, once `next()` has resolved; `job` is then absent. */
  refusal?: Error
  /**
   * A name by which the job is known again if it is enqueued again: for a child job, that of its call. The id of a plain
   * job whose options give none, and the arrival of an ordered payload without a score.
   * @internal
   */
  readonly child?: string
  /**
   * The name of the schedule, for the job of its ticks.
   * @internal
   */
  readonly schedule?: string
  /**
   * For a child job: its options as the handler gave them, with `key` and `parent`.
   * @internal
   */
  readonly asked?: AnyEnqueueOptions & BatchChildOptions
  /**
   * An earlier attempt of its parent enqueued this job. It is checked and answered as a duplicate, and not sent.
   * @internal
   */
  readonly isDone?: boolean
  /**
   * For a job of a graph: what it waits for, and who waits for it.
   * @internal
   */
  readonly graph?: GraphPlace
}

/** The place of a job in a graph of jobs that wait for others. */
interface GraphPlace {
  /** Its id, which the joins know. */
  readonly id: string
  /** Its queue, which the joins know. */
  readonly queue: string
  /** The name of its set and its number there, for messages; absent for a join, or a job of a flow. */
  readonly as?: string
}

/**
 * One call of a handler: for one job, or for the whole batch of an ordered or a batch task. `'jobs' in run.ctx` is true
 * for a batch.
 */
export type TaskRun<Context = unknown> = JobRun<Context> | BatchRun<Context> | OrderedRun<Context>

export interface JobRun<Context = unknown> {
  readonly task: AnySingleTask
  readonly input: unknown
  readonly ctx: JobContext<Context>
}

/** A call of a batch task's handler. */
export interface BatchRun<Context = unknown> {
  readonly task: AnyBatchTask
  /** The inputs, in the order of `ctx.jobs`. */
  readonly input: readonly unknown[]
  readonly ctx: BatchContext<Context>
}

export interface OrderedRun<Context = unknown> {
  readonly task: AnyOrderedTask
  /** The payloads by id. */
  readonly input: ReadonlyMap<string, readonly unknown[]>
  readonly ctx: OrderedContext<Context>
}

/** The end of one job of a run. */
export interface RunEnd {
  readonly id: string
  /** `failed`: the job is retried or, after its last attempt, buried. `released`: it is put back, uncounted. */
  readonly kind: 'completed' | 'failed' | 'buried' | 'released' | 'cancelled'
  /** Why the job is buried, released or cancelled. */
  readonly reason?: string
  /** The error it failed with. */
  readonly error?: unknown
  /** The duration of the run, in ms. */
  readonly runMs: number
}

/**
 * The store's answer to the end of a job. `lost`, `gone`: the job no longer belonged to this run. Undefined: the store
 * never answered.
 */
export type EndAnswer = 'ok' | 'lost' | 'gone' | undefined

/** `Context`: what it needs of the `context` of its mill; the compiler does not check that the mill has it. */
export interface Middleware<Context = unknown> {
  /**
   * Client side: runs around one `enqueue` or the whole of one `enqueueMany`, before anything is validated. Await
   * `next()` to send, or throw to refuse.
   */
  enqueue?(items: EnqueueItem[], next: () => Promise<void>): Promise<void>
  /**
   * Worker side: runs around one handler call. Its return value replaces the handler's. If it throws, the job fails, or
   * every job of the batch.
   */
  run?(run: TaskRun<Context>, next: () => Promise<unknown>): Promise<unknown>
  /**
   * Worker side: called with the end of each job of a run, after the end is decided and before it is settled. It is
   * also called if the handler was not called or does not end. `answers` resolves, in the order of the ends, when the
   * store has answered. For an isolated job it is called in the job's process, or in its worker if that process died.
   * Only in the job's process does Millrace wait for the returned promise, for at most 5 s, because the process ends
   * then.
   */
  settle?(run: TaskRun<Context>, ends: readonly RunEnd[], answers: Promise<readonly EndAnswer[]>): void | Promise<void>
}

const calledTwice = { path: 'next', message: 'a middleware called next() twice; call it once, or not at all' }

/**
 * Calls `layers` from the outermost in, then `core`. Refuses a layer that calls `next` twice, because its inner layers
 * would run twice.
 */
export function throughLayers<T>(
  layers: readonly ((next: () => Promise<T>) => Promise<T>)[],
  core: () => Promise<T>,
): Promise<T> {
  // Async, so that a layer that throws before it returns a promise rejects like any other.
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

/**
 * The arguments of `enqueueMany`: the task, its inputs and a function that returns the options of each, or only a list
 * of jobs.
 */
export type ManyArguments = readonly [
  taskOrJobs: unknown,
  inputs?: readonly unknown[],
  each?: (input: never, index: number) => object,
]

/**
 * The items of a call. Throws `InvalidArgumentError` for other arguments; the message names a wrong job by its index.
 */
export function itemsOf([taskOrJobs, inputs, each]: ManyArguments): EnqueueItem[] {
  if (Array.isArray(taskOrJobs)) return taskOrJobs.map(itemOf)
  refuseNoTask(taskOrJobs, 'enqueueMany()')
  if (!Array.isArray(inputs))
    throw new InvalidArgumentError(`enqueueMany(task, inputs) expects a list of inputs; got ${describe(inputs)}.`)
  return inputs.map((input, i) => new GivenItem(taskOrJobs as AnyTask, input, each?.(input as never, i) ?? {}))
}

function itemOf(job: unknown, at: number): EnqueueItem {
  if (!Array.isArray(job))
    throw new InvalidArgumentError(
      `job ${at} of enqueueMany(jobs) must be a list of task, input and options: [task, input, { priority: 1 }]; got ${describe(job)}.`,
    )
  const [task, input, options = {}] = job
  refuseNoTask(task, `job ${at} of enqueueMany(jobs)`)
  return new GivenItem(task, input, options)
}

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
