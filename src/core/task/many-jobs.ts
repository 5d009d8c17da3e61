/** Many jobs: the types of an `enqueueMany` of several tasks. */

import type { EnqueueArguments } from './enqueue-options.js'
import type { DefinedTask, HandleOf } from './task-definition.js'

/** Jobs of these tasks in their order, each as the arguments of its `enqueue`. `More`: further options. */
export type JobsOf<Tasks extends readonly DefinedTask[], QueueName extends string = string, More = unknown> = {
  readonly [I in keyof Tasks]: readonly [task: Tasks[I], ...args: EnqueueArguments<Tasks[I], QueueName, More>]
}

/** The handles to jobs of these tasks, in their order. */
export type HandlesOf<Tasks extends readonly DefinedTask[]> = { -readonly [I in keyof Tasks]: HandleOf<Tasks[I]> }
