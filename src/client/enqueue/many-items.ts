/** The items of an `enqueueMany`: many inputs of one task, or jobs of several tasks, each with its own options. */

import { InvalidArgumentError } from '../../core/errors.js'
import { type AnyTask, refuseNoTask } from '../../core/task/any-task.js'
import type { EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { HandleOf } from '../../core/task/task-definition.js'
import { describe } from '../../core/values/describe.js'

/** Jobs of these tasks in their order, each as the arguments of its `enqueue`. */
export type JobsOf<Tasks extends readonly AnyTask[], QueueName extends string = string> = {
  readonly [I in keyof Tasks]: readonly [task: Tasks[I], ...args: EnqueueArguments<Tasks[I], QueueName>]
}

/** The handles to jobs of these tasks, in their order. */
export type HandlesOf<Tasks extends readonly AnyTask[]> = { -readonly [I in keyof Tasks]: HandleOf<Tasks[I]> }

/** As `enqueueMany` is called: with the task, its inputs and what gives each its options, or with a list of jobs alone. */
export type ManyArguments = readonly [
  taskOrJobs: AnyTask | readonly (readonly unknown[])[],
  inputs?: readonly unknown[],
  each?: (input: never, index: number) => object,
]

/** Throws `InvalidArgumentError` for what is neither; a wrong job of several is named by its place. */
export function itemsOf([taskOrJobs, inputs, each]: ManyArguments): EnqueueItem[] {
  if (Array.isArray(taskOrJobs)) return taskOrJobs.map(itemOf)
  refuseNoTask(taskOrJobs, 'enqueueMany()')
  if (!Array.isArray(inputs))
    throw new InvalidArgumentError(`enqueueMany(task, inputs) expects a list of inputs; got ${describe(inputs)}.`)
  return inputs.map((input, i) => ({
    task: taskOrJobs as AnyTask,
    input,
    options: each?.(input as never, i) ?? {},
  }))
}

function itemOf(job: unknown, at: number): EnqueueItem {
  if (!Array.isArray(job))
    throw new InvalidArgumentError(
      `job ${at} of enqueueMany(jobs) must be a list of task, input and options: [task, input, { priority: 1 }]; got ${describe(job)}.`,
    )
  const [task, input, options = {}] = job
  refuseNoTask(task, `job ${at} of enqueueMany(jobs)`)
  return { task, input, options }
}
