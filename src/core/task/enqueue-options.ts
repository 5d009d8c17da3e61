/** The options of one job when it is enqueued, and the arguments of the calls that take them. */

import type { JobMeta } from '../job/job.js'
import type { JobFields } from '../job/job-fields.js'
import type { Duration } from '../values/duration.js'
import type { JoinSets, ManyMembers, MemberTask } from './join-sets.js'
import type { DefinedTask, HandleOf, TaskInput, types } from './task-definition.js'

/**
 * The options of one job when it is enqueued. `QueueName`: the names of the mill's queues, for options that name one; without
 * it they fit every mill.
 */
export interface EnqueueOptions<QueueName extends string = never> {
  /**
   * An id of your own. If you enqueue the same id again, the outcome is `'duplicate'` and nothing is stored. This holds
   * while a job with the id waits, runs or is in the morgue, and after its end for `idempotency`. At most 256 bytes;
   * `idOf(text)` makes an id of a longer text. Default: a new id.
   */
  readonly id?: string | undefined
  /**
   * With an `id`: how long the id is remembered after its job has ended; 0: not at all. Default: the task's
   * `idempotency`, otherwise the mill's.
   */
  readonly idempotency?: Duration | undefined
  /**
   * With an `id`: what happens to a waiting or dead job with the same id. `'keep'`, the default: that job stays as it
   * is, and the outcome is `'duplicate'`. `'replace'`: this job takes its place as if it were new, with its own input,
   * meta, priority, group and time; the outcome is `'replaced'`. The id of an ended job is free for it. With
   * `delay` this is a debounce; bound it by `atMost`. The id of such a job is not remembered after its end, unless
   * `idempotency` is given with it. A running job stays as it is in both cases (`'duplicate'`).
   */
  readonly ifWaiting?: 'keep' | 'replace' | undefined
  /**
   * With `delay` and `ifWaiting: 'replace'`: later enqueues put the job off until at most this time after the first of
   * them, which created it. At least `delay`. Default: no bound, so a job that is replaced again and again never runs.
   */
  readonly atMost?: Duration | undefined
  /**
   * The job does not run before this time has passed, on the store's clock. Not together with `runAt`. Default: none.
   */
  readonly delay?: Duration | undefined
  /**
   * The job does not run before this moment: a Date, or ISO-8601 text with a zone. A bare number is refused. Default:
   * now.
   */
  readonly runAt?: Date | string | undefined
  /**
   * The job does not begin after this time, on the store's clock: neither its first run nor a retry. It is then
   * cancelled with the reason `expired`. A run that has begun goes on. The time counts from the enqueue, and must be
   * longer than `delay`. Default: the task's `expiresIn`, otherwise `'never'`.
   */
  readonly expiresIn?: Duration | 'never' | undefined
  /** −32,768 … 32,767, higher first. Default 0. */
  readonly priority?: number | undefined
  /** Data that is stored with the input and kept through every retry. */
  readonly meta?: JobMeta | undefined
  /**
   * The group by which throttles, `maxRunning` and fairness count this job, instead of the task's `group`. At most 256
   * bytes, `''` for none; a finite number is converted to text.
   */
  readonly group?: string | number | undefined
  /**
   * Small named values that the job has from the beginning, by which lists choose jobs: `{ order: '4711' }`. Anybody may
   * change them by `FieldWriter.set`, which names their bounds. A job that replaces another by `ifWaiting` has its own; a
   * duplicate changes none. Default: none.
   */
  readonly fields?: JobFields | undefined
  /** The queue of the job. Default: the task's queue. */
  readonly queue?: QueueName | undefined
}

/** The options of one payload of an ordered job when it is enqueued. */
export interface OrderedEnqueueOptions extends Pick<EnqueueOptions, 'delay' | 'runAt' | 'meta'> {
  /** The id of the payload, instead of the task's `id`; a finite number is converted to text. */
  readonly id?: string | number | undefined
  /**
   * The position among the payloads of its id, ascending, instead of the task's `score`; a finite number. Default: the
   * store's time in ms, strictly growing.
   */
  readonly score?: number | undefined
}

/** The enqueue options for a job of this task, in a mill with these queues. */
export type EnqueueOptionsOf<T extends DefinedTask, QueueName extends string = string> = T extends {
  readonly kind: 'ordered'
}
  ? OrderedEnqueueOptions
  : EnqueueOptions<QueueName>

/** The sets of a task whose jobs wait for others; `never` for other tasks. */
export type SetsOf<T extends DefinedTask> =
  NonNullable<T[typeof types]> extends { readonly sets: infer Sets extends JoinSets } ? Sets : never

/**
 * Whether jobs of the task wait for others. In this form the compiler answers `'none'` for a task that it does not know
 * yet, so that a function that is generic in its task can pass on what most tasks take.
 */
export type WaitsOf<T extends DefinedTask> = { of: NonNullable<T[typeof types]> } extends {
  of: { readonly input: unknown; readonly sets?: undefined }
}
  ? 'none'
  : 'joins'

/** The inputs of the jobs that a join waits for, by the names of its sets. */
export type AfterOf<Sets extends JoinSets> = {
  readonly [Name in keyof Sets]: Sets[Name] extends ManyMembers<infer T>
    ? Iterable<TaskInput<T>> | AsyncIterable<TaskInput<T>>
    : Sets[Name] extends { readonly task: infer T extends MemberTask }
      ? TaskInput<T>
      : Sets[Name] extends MemberTask
        ? TaskInput<Sets[Name]>
        : never
}

/** The bounds of a wait. A set that holds needs one. */
type WaitBounds<Sets extends JoinSets> = SealBound &
  ('hold' extends OnDeadIn<Sets[keyof Sets]>
    ? { readonly within: Duration }
    : { readonly within?: Duration | undefined })

type OnDeadIn<Set> =
  Set extends ManyMembers<MemberTask, infer Dead> ? Dead : Set extends { readonly onDead: infer Dead } ? Dead : never

interface SealBound {
  /**
   * How long its members may take to be added in all, if they are more than fit into one step. If its producer dies
   * meanwhile, or is slower, the join is then dead as `join-never-sealed`. Default `'1h'`.
   */
  readonly sealWithin?: Duration | undefined
}

/** The enqueue options of a job that waits for others. */
export type JoinEnqueueOptions<Sets extends JoinSets, QueueName extends string = string> = Omit<
  EnqueueOptions<QueueName>,
  'ifWaiting' | 'atMost'
> & {
  /**
   * The inputs of the jobs that this one waits for, by the names of its task's `joins`: one input, or for many a list
   * or an async iterable of inputs. They are enqueued with it. `within` bounds the wait: a job that still waits then is
   * dead as `join-late`. Default: no bound.
   *
   * @example
   * const after = { page: { url: 'https://example.com' }, mails: [{ to: 'ada@example.com' }, { to: 'alan@example.com' }] }
   * await mill.enqueue(report, { month: '2026-11' }, { after, within: '2d' })
   */
  readonly after: AfterOf<Sets>
} & WaitBounds<Sets>

/** The arguments of `enqueue` after the task; optional for a task without input. `More`: further options. */
export type EnqueueArguments<T extends DefinedTask, QueueName extends string = string, More = unknown> =
  WaitsOf<T> extends 'joins'
    ? [input: TaskInput<T>, options: JoinEnqueueOptions<SetsOf<T>, QueueName> & More]
    : undefined extends TaskInput<T>
      ? [input?: TaskInput<T>, options?: EnqueueOptionsOf<T, QueueName> & More]
      : [input: TaskInput<T>, options?: EnqueueOptionsOf<T, QueueName> & More]

/** Jobs of these tasks in their order, each as the arguments of its `enqueue`. `More`: further options. */
export type JobsOf<Tasks extends readonly DefinedTask[], QueueName extends string = string, More = unknown> = {
  readonly [I in keyof Tasks]: readonly [task: Tasks[I], ...args: EnqueueArguments<Tasks[I], QueueName, More>]
}

/** The handles to jobs of these tasks, in their order. */
export type HandlesOf<Tasks extends readonly DefinedTask[]> = { -readonly [I in keyof Tasks]: HandleOf<Tasks[I]> }

/** The further options of a job that a handler enqueues. */
export interface ChildOptions {
  /**
   * The name of this call within the life of the job that makes it. A second call with this key enqueues nothing, in
   * the same or a later attempt. 1 to 256 bytes; a finite number is converted to text. Default: the input, with `id` and
   * `queue` if given, and the position among the calls that are equal in these.
   */
  readonly key?: string | number | undefined
}

/** The same for a batch, in which each job enqueues for itself. */
export interface BatchChildOptions extends ChildOptions {
  /**
   * The job of the batch that enqueues, named as for `ctx.fail()`. May be left out if the task takes one job at a time.
   */
  readonly parent?: string | number | undefined
}

/**
 * The enqueue options of some task, as middleware sees them. The kind of the task decides which of them are refused.
 */
export interface AnyEnqueueOptions extends Omit<EnqueueOptions<string>, 'id'>, OrderedEnqueueOptions {
  readonly within?: Duration | undefined
  readonly sealWithin?: Duration | undefined
}
