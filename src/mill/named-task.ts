/** A named task: the task of a job that is enqueued by name, from a command line or over HTTP. */

import { InvalidArgumentError, UnknownTaskError } from '../core/errors.js'
import { type AnyTask, isNameOf, runElsewhere } from '../core/task/any-task.js'
import { defineOrderedTask } from '../core/task/ordered-task.js'
import { defineTask } from '../core/task/task.js'
import { isTaskName, taskNameForm } from '../core/values/ids.js'
import type { Mill } from './mill.js'

/**
 * The declared task of this name. If a queue is given, any name is accepted, because workers elsewhere may know it.
 * Throws `UnknownTaskError`, `UnknownQueueError`, or `InvalidArgumentError` for an invalid name.
 */
export function namedTask(mill: Mill, name: string, queue: string | undefined): AnyTask {
  const declared = [...mill.tasks.values()].find((task) => isNameOf(task, name))
  if (declared !== undefined) return declared
  if (queue === undefined) throw new UnknownTaskError(name, [...mill.tasks.keys()])
  if (!isTaskName(name)) throw new InvalidArgumentError(`a task name must be ${taskNameForm}.`)
  // Checked here, because this error can name the declared queues.
  const declaredQueue = mill.queue(queue).name
  const isOrdered = mill.queues.get(declaredQueue)!.ordered
  const options = { name, queue: declaredQueue }
  return runElsewhere<AnyTask>(isOrdered ? defineOrderedTask(options) : defineTask(options))
}
