/** A task of any kind: its input and result types, and the check that a value is a task. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import type { AnyOrderedTask, OrderedHandler, OrderedTask } from './ordered-task.js'
import type {
  AnyBatchTask,
  AnyPlainTask,
  BatchHandler,
  BatchTask,
  Handler,
  JoinHandler,
  JoinTask,
  Returnable,
  ReturnableByEach,
  Task,
} from './task.js'
import type { types } from './task-definition.js'

/** Some task of any types. */
export type AnyTask = AnyPlainTask | AnyOrderedTask
/** A task with this input and result. */
export type TaskOf<Input, Result> = AnyTask & {
  readonly [types]?: { readonly input: Input; readonly result: Result }
}

// biome-ignore-start lint/suspicious/noExplicitAny: as of any task
/** A handler that may take the place of that of the task. */
export type HandlerOf<T extends AnyTask> =
  T extends OrderedTask<any, any, infer Output, any, infer Context>
    ? OrderedHandler<Output, Context>
    : T extends BatchTask<any, any, infer Output, infer Result, any, infer Context>
      ? BatchHandler<Output, ReturnableByEach<Result>, Context>
      : T extends JoinTask<any, any, infer Output, infer Result, infer Sets, any, infer Context>
        ? JoinHandler<Output, Returnable<Result>, Sets, Context>
        : T extends Task<any, any, infer Output, infer Result, any, infer Context>
          ? Handler<Output, Returnable<Result>, Context>
          : never
// biome-ignore-end lint/suspicious/noExplicitAny: as of any task

/** Whether a job stored under this name belongs to the task. */
export function isNameOf(task: AnyTask, name: string): boolean {
  return task.name === name || task.aliases.includes(name)
}

/** Throws `InvalidArgumentError` for a value that is not a defined task. */
export function refuseNoTask(value: unknown, where: string): asserts value is AnyTask {
  if (isTask(value)) return
  const byName = typeof value === 'string' ? ' To enqueue by the name of a task, call mill.enqueueNamed().' : ''
  throw new InvalidArgumentError(
    `${where} expects a task made by defineTask() or defineOrderedTask(); got ${describe(value)}. If it is imported, a misspelt name or a circular import leaves it undefined.${byName}`,
  )
}

/** A global symbol, so that every copy of the library in this process knows it. */
const elsewhere = Symbol.for('millrace.elsewhere')

/** Marks a task as run elsewhere: its producer knows that only other workers run it. */
export function runElsewhere<T extends AnyTask>(task: T): T {
  return Object.defineProperty(task, elsewhere, { value: true })
}

export function isRunElsewhere(task: AnyTask): boolean {
  return elsewhere in task
}

/** Whether its handler is given several jobs at once, each still a job of its own. */
export function isBatchTask(task: AnyTask | undefined): task is AnyBatchTask {
  return task?.kind === 'plain' && task.batch !== undefined
}

export function isTask(value: unknown): value is AnyTask {
  return typeof value === 'object' && value !== null && 'kind' in value && 'timeLimitMs' in value && 'handle' in value
}
