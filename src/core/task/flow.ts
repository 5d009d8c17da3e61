/** Flows: graphs of jobs, in which several jobs may wait for the same one, and the calls that build them. */

import type { JobHandle } from '../job/job.js'
import type { JobOrigin } from '../job/job-origin.js'
import type { EnqueueOptions, JoinEnqueueOptions, SetsOf, WaitsOf } from './enqueue-options.js'
import type { JoinSets, ManyMembers, MemberTask } from './join-sets.js'
import type { HandleOf, TaskInput } from './task-definition.js'

/** One job of a flow, for the `after` of another one. It has its id once the flow is stored. */
export class FlowJob<T extends MemberTask = MemberTask> {
  readonly kind = 'job'
  readonly task: T

  /** @internal */
  constructor(task: T) {
    this.task = task
  }
}

/** Jobs of one task in a flow, for the `after` of another one. */
export class FlowJobs<T extends MemberTask = MemberTask> {
  readonly kind = 'jobs'
  readonly task: T
  readonly jobs: readonly FlowJob<T>[]

  /** @internal */
  constructor(task: T, jobs: readonly FlowJob<T>[]) {
    this.task = task
    this.jobs = jobs
  }
}

/** The jobs that a job of a flow waits for, by the names of its task's `joins`. */
export type FlowAfter<Sets extends JoinSets> = {
  readonly [Name in keyof Sets]: Sets[Name] extends ManyMembers<infer T>
    ? FlowJobs<T> | readonly FlowJob<T>[]
    : Sets[Name] extends { readonly task: infer T extends MemberTask }
      ? FlowJob<T>
      : Sets[Name] extends MemberTask
        ? FlowJob<Sets[Name]>
        : never
}

/** The options of a job of a flow that waits for others of it. */
export type FlowJoinOptions<Sets extends JoinSets, QueueName extends string = string> = Omit<
  JoinEnqueueOptions<Sets, QueueName>,
  'after' | 'sealWithin' | 'within'
> & { readonly after: FlowAfter<Sets> } & Pick<JoinEnqueueOptions<Sets>, 'within'>

type FlowOptions<QueueName extends string> = Omit<EnqueueOptions<QueueName>, 'ifWaiting' | 'atMost'>

/** The arguments of `f.job` after the task. */
export type FlowArguments<T extends MemberTask, QueueName extends string> =
  WaitsOf<T> extends 'joins'
    ? [input: TaskInput<T>, options: FlowJoinOptions<SetsOf<T>, QueueName>]
    : undefined extends TaskInput<T>
      ? [input?: TaskInput<T>, options?: FlowOptions<QueueName>]
      : [input: TaskInput<T>, options?: FlowOptions<QueueName>]

/** Builds a flow. A job must be there before another one can wait for it, so none can wait for itself. */
export interface Flow<QueueName extends string = string> {
  /**
   * Adds a job. For a task with `joins`, `after` names the jobs of this flow that it waits for: for a set of one a job
   * of `f.job()`, for a set of many a list of `f.jobs()` or an array of jobs of `f.job()`. The jobs of an array may wait for
   * others themselves.
   *
   * @example
   * const summary = defineTask({ name: 'summary', joins: { reports: many(report) }, run: async () => {} })
   * await mill.flow((f) => {
   *   const page = f.job(crawl, { url: 'https://example.com' })
   *   const mails = f.jobs(sendEmail, [{ to: 'ada@example.com' }])
   *   const reports = ['2026-10', '2026-11'].map((month) => f.job(report, { month }, { after: { page, mails } }))
   *   return f.job(summary, undefined, { after: { reports } })
   * })
   */
  job<T extends MemberTask>(task: T, ...args: FlowArguments<T, QueueName>): FlowJob<T>
  /**
   * Adds jobs of one task, one for each input, for a set of many. Their options are the same. A task with `joins` is for
   * `job()`.
   */
  jobs<T extends MemberTask>(
    task: T,
    inputs: Iterable<TaskInput<T>>,
    options?: Omit<FlowOptions<QueueName>, 'id'>,
  ): FlowJobs<T>
}

/** Objects of a flow's value that have no handles in them. */
type KeptAsItIs = Date | ReadonlyMap<unknown, unknown> | ReadonlySet<unknown> | ((...args: never[]) => unknown)

/**
 * The value of a flow: that of its function, with handles in the place of jobs; without one, the handles of all jobs. Its
 * lists and plain objects are copied; objects of a class, such as dates and maps, are those that its function returned,
 * with whatever is in them.
 */
export type FlowHandles<Returned> =
  Returned extends FlowJob<infer T>
    ? HandleOf<T>
    : Returned extends FlowJobs<infer T>
      ? HandleOf<T>[]
      : Returned extends KeptAsItIs
        ? Returned
        : Returned extends object
          ? { -readonly [Key in keyof Returned]: FlowHandles<Returned[Key]> }
          : Returned extends void
            ? JobHandle[]
            : Returned

/**
 * The call of a handler that enqueues a flow.
 * @internal
 */
export interface FlowCall {
  readonly origin: JobOrigin
  /** The name of the call by its jobs, in their order: a later run gives it the same. `isDone`: an earlier one made it. */
  named(jobs: readonly FlowContent[]): { readonly name: string; readonly isDone: boolean }
  /** The flow is stored. */
  enqueued(name: string, jobs: readonly JobHandle[]): void
}

/**
 * What a job of a flow is, before it has an id.
 * @internal
 */
export interface FlowContent {
  readonly task: Pick<MemberTask, 'name'>
  readonly input: unknown
  /** An id of the user's own. */
  readonly id: string | undefined
}
