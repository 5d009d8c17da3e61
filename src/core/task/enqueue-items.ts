/**
 * The items of an enqueue as its caller gives them: many inputs of one task, or jobs of several tasks, each with its own
 * options.
 */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import { type AnyTask, refuseNoTask } from './any-task.js'
import type { AnyEnqueueOptions } from './enqueue-options.js'
import type { EnqueueItem } from './middleware.js'

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
