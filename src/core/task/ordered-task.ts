/**
 * An ordered task: a task whose jobs have an id each. An id has at most one claim at a time, and its payloads gather
 * while they wait. An ordered queue belongs to one ordered task.
 */

import * as v from 'valibot'
import type { JobMeta } from '../job/job.js'
import type { Merge } from '../queue/queue.js'
import type { Duration } from '../values/duration.js'
import { isQueueName, queueNameForm } from '../values/ids.js'
import { callable, exactly, whole } from '../values/option-check.js'
import { polynomial } from './backoff.js'
import type { OrderedContext } from './contexts.js'
import type { Schema } from './schema.js'
import {
  checkedTask,
  headerOptions,
  quotedName,
  type RetryOptions,
  refuseTask,
  retryOptions,
  type TaskHeader,
  withHandler,
} from './task-definition.js'

/**
 * The function that does the work of a batch: its argument has the payloads of each id, old to new by score. It returns
 * nothing, or an outcome such as `snooze('10m')` for the whole batch. It throws to fail the whole batch; `ctx.fail(id,
 * error)` fails one id.
 */
export type OrderedHandler<Output, Context = unknown> = (
  payloadsById: ReadonlyMap<string, readonly Output[]>,
  ctx: OrderedContext<Context>,
) => unknown

/** A payload that was just buried because its id has failed or crashed too often. */
export interface ExhaustedPayload<Output> {
  readonly id: string
  readonly input: Output
  readonly score: number
  readonly meta: JobMeta
  readonly error: unknown
}

export interface OrderedTaskOptions<
  Name extends string,
  Input,
  Output,
  QueueName extends string = string,
  Context = unknown,
> {
  /** Stored with every job; to rename a task, list the old name in `aliases`. */
  readonly name: Name
  /** The queue of the task; no other task may use it. Default: the task's name, if that is a valid queue name. */
  readonly queue?: QueueName | undefined
  /**
   * The schema for each payload, any Standard Schema. It validates a payload when it is enqueued and again before it
   * runs. Default: anything is accepted, and the payloads have the type of `run`'s first parameter.
   */
  readonly input?: Schema<Input, Output> | undefined
  /** The handler. May be left out and attached on the worker's side with `task.handle(run)`. */
  readonly run?: OrderedHandler<Output, Context> | undefined
  /** The id of a job, from its payload; a finite number is converted to text. Absent: each enqueue must give an id. */
  readonly id?: ((input: Input) => string | number) | undefined
  /**
   * The position of a payload among those of its id: ascending, finite. Default: the store's time in ms, strictly
   * growing.
   */
  readonly score?: ((input: Input) => number) | undefined
  /**
   * The group of a job, from its id: throttles, `maxRunning` and fairness count by it. At most 256 bytes, `''` for
   * none; a finite number is converted to text. Default: none.
   */
  readonly group?: ((id: string) => string | number) | undefined
  /** The most ids that one run gets. Default 1. */
  readonly batchSize?: number | undefined
  /**
   * The payloads of an id that are kept until they run. `'all'`: each one; only an equal payload with an equal given
   * score is the same one, so enqueueing it again adds nothing. `'distinct'`: equal payloads once, with the smallest of
   * their scores; so of `active`, `paused`, `active` the last change is dropped. `'latest'`: only the one with the
   * highest score. What is stored under another rule stays until it runs. Default `'all'`.
   */
  readonly merge?: Merge | undefined
  /** The most payloads of one id that one run gets, oldest first; `Infinity` for all. Default 1,000. */
  readonly maxPayloads?: number | undefined
  /** A run that takes longer is aborted, abandoned and counted as a failure. Default `'60s'`. */
  readonly timeLimit?: Duration | undefined
  /** A run that takes longer is reported as `job.slow` and goes on. Default: no report. */
  readonly slowAfter?: Duration | undefined
  /**
   * The retry policy. `max` defaults to 25, `backoff` to `polynomial()`: about 20 days in all. The last failure buries only
   * the oldest payload that is not done (`ctx.done`).
   */
  readonly retry?: RetryOptions | undefined
  /**
   * Called with the payloads of a batch that were buried because retries are exhausted, as `max-retries` or
   * `no-retries`, or because the id crashed too often, as `crashed`: then at most once, by the worker that finds the
   * crash. An error that it throws is reported and changes nothing.
   */
  readonly onExhausted?: ((payloads: readonly ExhaustedPayload<Output>[]) => void | Promise<void>) | undefined
  /** Former names, under which jobs may still be stored. */
  readonly aliases?: readonly string[] | undefined
}

/** A defined ordered task. `Input` is what producers pass, `Output` what the handler gets. */
export interface OrderedTask<
  Name extends string = string,
  Input = unknown,
  Output = unknown,
  QueueName extends string = string,
  Context = unknown,
> extends TaskHeader<Name, Input, Output, undefined, QueueName, Context> {
  readonly kind: 'ordered'
  readonly joins: undefined
  readonly onDead: undefined
  readonly id: ((input: Input) => string | number) | undefined
  readonly score: ((input: Input) => number) | undefined
  readonly group: ((id: string) => string | number) | undefined
  readonly batchSize: number
  readonly merge: Merge
  readonly maxPayloads: number
  readonly onExhausted: ((payloads: readonly ExhaustedPayload<Output>[]) => void | Promise<void>) | undefined
  /** The handler; undefined if only producers know this task. */
  readonly run: OrderedHandler<Output, Context> | undefined
  /** Attaches the handler, once, and returns the same task. Throws `ConfigError` when there is one already. */
  handle<Needed = unknown>(run: OrderedHandler<Output, Needed>): OrderedTask<Name, Input, Output, QueueName, Needed>
}

/** Some ordered task, whatever its types. */
// biome-ignore lint/suspicious/noExplicitAny: a task's types are contravariant in its handler; only `any` accepts them all
export type AnyOrderedTask = OrderedTask<string, any, any, string, any>

function isCountOrAll(value: unknown): boolean {
  return value === Number.POSITIVE_INFINITY || (Number.isSafeInteger(value) && (value as number) >= 1)
}

const optionsSchema = exactly({
  ...headerOptions,
  run: v.optional(callable<OrderedHandler<unknown>>()),
  id: v.optional(callable<(input: unknown) => string | number>()),
  score: v.optional(callable<(input: unknown) => number>()),
  group: v.optional(callable<(id: string) => string | number>()),
  batchSize: v.optional(whole(1, 1_000), 1),
  merge: v.optional(v.picklist(['all', 'distinct', 'latest'], "must be 'all', 'distinct' or 'latest'"), 'all'),
  maxPayloads: v.optional(v.custom<number>(isCountOrAll, 'must be a whole number of at least 1, or Infinity'), 1_000),
  retry: retryOptions(25),
  onExhausted: v.optional(callable<(payloads: readonly ExhaustedPayload<unknown>[]) => void | Promise<void>>()),
})

/**
 * Defines an ordered task. Its payloads have the type that `id`, `score` or `run` names; with a schema `run` is given what that
 * makes. Throws `ConfigError` that lists everything wrong with the options.
 *
 * @example
 * export const syncAccount = defineOrderedTask({
 *   name: 'sync-account',
 *   id: (change: { account: string; email: string }) => change.account,
 *   async run(changesById) {
 *     for (const [account, changes] of changesById) console.log(account, changes.at(-1)?.email)
 *   },
 * })
 */
export function defineOrderedTask<
  const Name extends string,
  Output,
  Input,
  const QueueName extends string = Name,
  Context = unknown,
>(
  options: OrderedTaskOptions<Name, Input, Output, QueueName, Context> & { readonly input: Schema<Input, Output> },
): OrderedTask<Name, Input, Output, QueueName, Context>
export function defineOrderedTask<
  const Name extends string,
  Payload = unknown,
  const QueueName extends string = Name,
  Context = unknown,
>(
  options: OrderedTaskOptions<Name, Payload, Payload, QueueName, Context>,
): OrderedTask<Name, Payload, Payload, QueueName, Context>
export function defineOrderedTask<Name extends string, Input, Output, QueueName extends string>(
  options: OrderedTaskOptions<Name, Input, Output, QueueName>,
): OrderedTask<Name, Input, Output, QueueName> {
  const what = `ordered task${quotedName(options)}`
  const { retry, timeLimit, slowAfter, run, ...rest } = checkedTask(optionsSchema, options, what)
  const { name, queue = name } = rest
  if (!isQueueName(queue)) {
    const message = `must be given if the name of the task is not a valid queue name, which is ${queueNameForm}`
    refuseTask(what, name, [{ path: 'queue', message }])
  }
  const definition = {
    kind: 'ordered',
    joins: undefined,
    ...rest,
    onDead: undefined,
    queue,
    timeLimitMs: timeLimit,
    slowAfterMs: slowAfter,
    retry: { ...retry, backoff: retry.backoff ?? polynomial() },
  }
  return withHandler(definition, run) as unknown as OrderedTask<Name, Input, Output, QueueName>
}
