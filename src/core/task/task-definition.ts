/**
 * The definition of a task: the properties that tasks of every kind have, the check of their options, and their
 * handler.
 */

import * as v from 'valibot'
import { ConfigError, type ConfigIssue, hasCode } from '../errors.js'
import type { JobHandle } from '../job/job.js'
import { isQueueName, isTaskName, queueNameForm, taskNameForm } from '../values/ids.js'
import { callable, duration, exactly, parsed, whole } from '../values/option-check.js'
import type { Backoff } from './backoff.js'
import { isSchema, type Schema } from './schema.js'

export interface RetryOptions {
  /** Retries after the first run; 4 makes 5 runs, 0 makes one. Default 4. */
  readonly max?: number | undefined
  /** The delay before each retry. Default `exponential()`: full jitter, 1 minute doubling up to 15. */
  readonly backoff?: Backoff | undefined
  /** Whether this error is worth another run; false buries the job at once as `unrecoverable`. Default: always. */
  readonly when?: ((error: unknown) => boolean) | undefined
}

export declare const types: unique symbol

/** The properties that tasks of both kinds have. */
export interface TaskHeader<Name extends string, Input, Output, Result, QueueName extends string, Context = unknown> {
  readonly name: Name
  readonly queue: QueueName
  readonly input: Schema<Input, Output> | undefined
  /** Infinity: none. */
  readonly timeLimitMs: number
  readonly slowAfterMs: number | undefined
  readonly retry: { readonly max: number; readonly backoff: Backoff; readonly when: (error: unknown) => boolean }
  readonly aliases: readonly string[]
  /** Carries the types; absent at run time. */
  readonly [types]?: { input: Input; output: Output; result: Result; needs: Needs<Context> }
}

/** The type of a need: a handler may be given more than it needs, and never less. */
export type Needs<Context> = (context: Context) => void

/** What all of these tasks together need of the context of their mill; `unknown` if they need nothing. */
export type ContextOf<T extends DefinedTask> = [NonNullable<T[typeof types]>['needs']] extends [Needs<infer Context>]
  ? Context
  : unknown

/** Some task, as producers see it. */
// biome-ignore lint/suspicious/noExplicitAny: as of any task
export type DefinedTask = TaskHeader<string, any, any, any, string, any> & { readonly kind: 'plain' | 'ordered' }
export type TaskInput<T extends DefinedTask> = NonNullable<T[typeof types]>['input']
export type TaskResult<T extends DefinedTask> = NonNullable<T[typeof types]>['result']
/** The handle to a job of this task. */
export type HandleOf<T extends DefinedTask> = JobHandle<TaskResult<T>, TaskInput<T>>

/**
 * Whether a value is a defined task. `isTask` of `any-task.ts` is for all who may know the tasks of each kind.
 * @internal
 */
export function isDefinition(value: unknown): value is DefinedTask {
  return typeof value === 'object' && value !== null && 'handle' in value && 'kind' in value
}

/** @internal */
export const taskName = v.custom<string>(isTaskName, `must be ${taskNameForm}`)

const always = () => true

/**
 * Options that every task has, with their defaults.
 * @internal
 */
export const headerOptions = {
  name: taskName,
  queue: v.optional(v.custom<string>(isQueueName, `must be ${queueNameForm}`)),
  input: v.optional(v.custom<Schema>(isSchema, 'must be a Standard Schema (Zod, Valibot, ArkType …)')),
  timeLimit: v.optional(duration(1), '60s'),
  slowAfter: v.optional(duration(1)),
  aliases: v.optional(v.array(taskName), []),
}

const backoffForm = 'a function that gives ms: `exponential()`, or `() => 30_000` for 30 s each time'

/**
 * Options of retrying, with the default of `max`.
 * @internal
 */
export const retryOptions = (max?: number) =>
  v.optional(
    exactly({
      max: v.optional(whole(0, 1_000_000), max),
      backoff: v.optional(callable<Backoff>(backoffForm)),
      when: v.optional(callable<(error: unknown) => boolean>(), () => always),
    }),
    {},
  )

/**
 * A duration or none, in milliseconds. Not a union, which would report each mistake in a duration as one in a word.
 * @internal
 */
export const boundlessTime = v.lazy((given) => (given === 'none' ? none : duration(1)))
const none = v.pipe(
  v.literal('none'),
  v.transform(() => Number.POSITIVE_INFINITY),
)

/** The name in unchecked options, as messages quote it. */
export function quotedName(options: unknown): string {
  const given = typeof options === 'object' && options !== null && 'name' in options ? options.name : undefined
  return typeof given === 'string' ? ` '${given}'` : ''
}

/**
 * The parsed options of a task. Throws `ConfigError` that lists every mistake. While files are loaded, the error is
 * recorded instead. A stand-in task then takes the name, the queue and the handler, as far as they are valid.
 */
export function checkedTask<S extends v.GenericSchema<unknown, { readonly name: string }>>(
  schema: S,
  options: unknown,
  what: string,
): v.InferOutput<S> {
  const record = loadRecord()
  try {
    const given = parsed(schema, options, what)
    record?.stacks.set(given.name, new Error().stack ?? '')
    return given
  } catch (error) {
    if (record === undefined || !hasCode(error, 'config-invalid')) throw error
    const { name, queue, run } = Object(options) as Record<string, unknown>
    record.mistakes.push({ what, name: isTaskName(name) ? name : undefined, error })
    const standIn = {
      name: isTaskName(name) ? name : `mistaken-${record.mistakes.length}`,
      ...(isQueueName(queue) && { queue }),
      ...(typeof run === 'function' && { run }),
    }
    return parsed(schema, standIn, what)
  }
}

/** Refuses mistakes that no single option of the task has by itself. */
export function refuseTask(what: string, name: string, issues: readonly ConfigIssue[]): void {
  if (issues.length === 0) return
  const error = new ConfigError(what, issues)
  const record = loadRecord()
  if (record === undefined) throw error
  record.mistakes.push({ what, name, error })
}

/** The definition with its handler, which may be attached later, once. */
export function withHandler<Definition extends { readonly name: string }>(
  definition: Definition,
  run: unknown,
): Definition {
  let handler = run
  const handle = (attached: unknown) => {
    const issues =
      typeof attached !== 'function'
        ? [{ path: 'handle', message: 'must be given a function' }]
        : handler !== undefined
          ? [
              {
                path: 'handle',
                message:
                  'the task has a handler already, and takes one. What differs from mill to mill is given to it by `context` of ' +
                  'millrace(); a test gives another handler by `handlers` of testMill()',
              },
            ]
          : []
    if (issues.length > 0) throw new ConfigError(`task '${definition.name}'`, issues)
    handler = attached
    return definition
  }
  return Object.defineProperties(definition, {
    run: { enumerable: true, get: () => handler },
    handle: { enumerable: true, value: handle },
    returns: { enumerable: true, value: () => definition },
  })
}

interface TaskMistakes {
  /** As in `task 'mail'`. */
  readonly what: string
  readonly name: string | undefined
  readonly error: ConfigError
}

/**
 * Mistakes in tasks, recorded instead of thrown while the files of a user are loaded. All mistakes can then be reported
 * at once. Nothing runs meanwhile: the loading fails at its end.
 * @internal
 */
export interface LoadRecord {
  readonly mistakes: TaskMistakes[]
  /** The stack of each definition, by the name of its task. */
  readonly stacks: Map<string, string>
}

/** A global symbol, because the loaded file may have found another copy of the library. */
const key = Symbol.for('millrace.load-record')
const known = globalThis as { [key]?: LoadRecord | undefined }

/** The current record; undefined while no files are loaded. */
function loadRecord(): LoadRecord | undefined {
  return known[key]
}

/**
 * Keeps the record until `load` has ended.
 * @internal
 */
export async function whileRecording<T>(record: LoadRecord, load: () => Promise<T>): Promise<T> {
  const before = known[key]
  known[key] = record
  try {
    return await load()
  } finally {
    if (before === undefined) delete known[key]
    else known[key] = before
  }
}
