/** Test handlers: handlers that a test gives to tasks, in the place of those that they have. */

import * as v from 'valibot'
import { ConfigError } from '../core/errors.js'
import { Registry } from '../core/registry.js'
import type { AnyTask } from '../core/task/any-task.js'
import { callable } from '../core/values/option-check.js'

/** Handlers by the names of their tasks. Each must accept and return what the handler of its task does. */
export type TestHandlers<Task extends AnyTask> = {
  readonly [Name in Task['name']]?: Parameters<Extract<Task, { readonly name: Name }>['handle']>[0] | undefined
}

/** The registry with these handlers, for those who run jobs. Throws `ConfigError` for a task that there is not. */
export function withHandlers(registry: Registry, handlers: object): Registry {
  const given = new Map(Object.entries(handlers).filter(([, run]) => run !== undefined))
  const known = [...registry.tasks.keys()]
  const issues = [...given].flatMap(([name, run]) => {
    const path = `handlers.${name}`
    if (!registry.tasks.has(name))
      return [{ path, message: `is no task of this mill; its tasks are ${known.join(', ')}` }]
    return v.is(callable(), run) ? [] : [{ path, message: 'must be a function' }]
  })
  if (issues.length > 0) throw new ConfigError('the test mill', issues)
  const tasks = [...registry.tasks.values()].map((task) =>
    // The task itself stays as it is: it may be shared with other tests.
    given.has(task.name) ? Object.create(task, { run: { value: given.get(task.name), enumerable: true } }) : task,
  )
  return new Registry(tasks as AnyTask[], [...registry.queues.values()])
}
