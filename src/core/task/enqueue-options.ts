/** What may be said of one job when it is enqueued. */

import type { Meta } from '../job.js'
import type { Duration } from '../values/duration.js'
import type { DefinedTask, TaskInput } from './task-definition.js'

export interface EnqueueOptions<QueueName extends string = string> {
  /**
   * An id of your own. While a job with this id waits, runs or lies in the morgue, and for the mill's `idempotency`
   * after it ended, enqueueing it again answers `'duplicate'` and stores nothing. Default: a new id.
   */
  readonly id?: string
  /**
   * With an `id`: what becomes of a job that waits under it. `'keep'`, the default: it stays as it is, and the answer is
   * `'duplicate'`. `'replace'`: this one takes its place, with its own input, meta, priority, group and time, as if it came in
   * now, and the answer is `'replaced'`; with `delay` that is a debounce. Its id is not remembered after its end. One that runs or
   * is dead is left alone in both cases (`'duplicate'`).
   */
  readonly ifWaiting?: 'keep' | 'replace'
  /** Not to be run before so long from now, on the store's clock. Not together with `runAt`. */
  readonly delay?: Duration
  /** Not to be run before this moment: a Date, or ISO-8601 text with a zone. A bare number is refused. */
  readonly runAt?: Date | string
  /**
   * A job that no worker has taken for so long, on the store's clock, is cancelled with the reason `expired`. Counted from the
   * enqueue, and longer than `delay`. Once taken it does not expire: a retry runs whenever it is due. Default: never.
   */
  readonly expiresIn?: Duration
  /** −32,768 … 32,767, higher first. Default 0. */
  readonly priority?: number
  /** Sent along with the input and through every retry. */
  readonly meta?: Meta
  /**
   * The group that throttles, `maxRunning` and fairness count this job by, instead of what the task's `group` says: at most
   * 256 bytes, `''` for none; a finite number is turned into text.
   */
  readonly group?: string | number
  /** Another queue than the task's. */
  readonly queue?: QueueName
}

/** What may be said of one payload of an ordered job when it is enqueued. */
export interface OrderedEnqueueOptions extends Pick<EnqueueOptions, 'delay' | 'runAt' | 'meta'> {
  /** The id it belongs to, instead of the task's `id`; a finite number is turned into text. */
  readonly id?: string | number
  /**
   * Where it stands among the payloads of its id, ascending, instead of the task's `score`; a finite number.
   * Default: the store's ms, strictly growing.
   */
  readonly score?: number
}

/** What may be said of a job of this task, in a mill with these queues. */
export type EnqueueOptionsOf<T extends DefinedTask, QueueName extends string = string> = T extends {
  readonly kind: 'ordered'
}
  ? OrderedEnqueueOptions
  : EnqueueOptions<QueueName>

/** What follows the task when one job of it is enqueued; of a task without input nothing need. `More`: further options. */
export type EnqueueArguments<T extends DefinedTask, QueueName extends string = string, More = unknown> =
  undefined extends TaskInput<T>
    ? [input?: TaskInput<T>, options?: EnqueueOptionsOf<T, QueueName> & More]
    : [input: TaskInput<T>, options?: EnqueueOptionsOf<T, QueueName> & More]

/** What may be said of a job of some task, as middleware sees it; the kind of its task decides what of it is refused. */
export interface AnyEnqueueOptions extends Omit<EnqueueOptions, 'id'>, OrderedEnqueueOptions {}
