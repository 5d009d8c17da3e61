/** The registry: the tasks and queues that a mill knows, by name. */

import { type ConfigIssue, InvalidArgumentError, UnknownQueueError, UnknownTaskError } from './errors.js'
import type { Queue } from './queue/queue.js'
import { type AnyTask, runElsewhere } from './task/any-task.js'
import { type AnyOrderedTask, defineOrderedTask } from './task/ordered-task.js'
import { defineTask } from './task/task.js'
import { isTaskName, taskNameForm } from './values/ids.js'

export class Registry {
  readonly tasks: ReadonlyMap<string, AnyTask>
  readonly queues: ReadonlyMap<string, Queue>
  readonly #byAnyName = new Map<string, AnyTask>()
  readonly #every: AnyTask | undefined
  readonly #ordered = new Map<string, AnyOrderedTask>()
  /** By queue. A map, because every claim asks. */
  readonly #batchSizes = new Map<string, number>()
  readonly #isolated = new Set<string>()

  /** `every`: the task for all jobs that name none of the others. */
  constructor(tasks: readonly AnyTask[], queues: readonly Queue[], every?: AnyTask) {
    this.#every = every
    this.tasks = new Map(tasks.map((task) => [task.name, task]))
    this.queues = new Map(queues.map((queue) => [queue.name, queue]))
    for (const task of tasks) {
      for (const name of [task.name, ...task.aliases]) this.#byAnyName.set(name, task)
      if (isolationOf(task) !== undefined) this.#isolated.add(task.queue)
      if (task.kind === 'ordered') this.#ordered.set(task.queue, task)
      this.#batchSizes.set(
        task.queue,
        Math.min(this.#batchSizes.get(task.queue) ?? Number.POSITIVE_INFINITY, sizeOf(task)),
      )
    }
  }

  /** The task that a stored job names by its name or an alias. */
  find(name: string): AnyTask | undefined {
    return this.#byAnyName.get(name) ?? this.#every
  }

  /** The task that an ordered queue belongs to, whatever task a stored job names; undefined if none is known. */
  orderedTask(queue: string): AnyOrderedTask | undefined {
    return this.#ordered.get(queue)
  }

  /**
   * The number of jobs of a queue that one call of a handler takes. For an ordered queue the task says. For any other
   * queue it is the smallest size of its tasks: 1 unless all of them are batch tasks.
   */
  batchSize(queue: string): number {
    return this.#ordered.get(queue)?.batchSize ?? this.#batchSizes.get(queue) ?? 1
  }

  /** Whether jobs of this queue run in processes of their own. */
  isolates(queue: string): boolean {
    return this.#isolated.has(queue)
  }

  /** Whether a task of this queue says the groups of its jobs. */
  saysGroups(queue: string): boolean {
    return [...this.tasks.values()].some((task) => task.queue === queue && task.group !== undefined)
  }

  /** Whether this mill can run any job: a task has a handler. */
  get hasHandler(): boolean {
    return this.#every !== undefined || this.runnable.length > 0
  }

  /** The tasks that this mill can run. */
  get runnable(): readonly AnyTask[] {
    // The handler of an isolated task is found in the job's own process.
    return [...this.tasks.values()].filter((task) => task.run !== undefined || isolationOf(task) !== undefined)
  }

  /** Whether a handler would be called in a worker's own process. */
  get runsHere(): boolean {
    return this.runnable.some((task) => isolationOf(task) === undefined)
  }

  /** The names, old ones included, of jobs that this mill can run; undefined if it can run any. */
  get runnableNames(): readonly string[] | undefined {
    return this.#every === undefined ? this.runnable.flatMap(({ name, aliases }) => [name, ...aliases]) : undefined
  }

  task(name: string): AnyTask {
    const task = this.find(name)
    if (task === undefined) throw new UnknownTaskError(name, [...this.tasks.keys()])
    return task
  }

  /**
   * The declared task of this name or alias. If a queue is given, any name is accepted, because workers elsewhere may know
   * it. Throws `UnknownTaskError`, `UnknownQueueError`, or `InvalidArgumentError` for an invalid name.
   */
  named(name: string, queue: string | undefined): AnyTask {
    const declared = this.#byAnyName.get(name)
    if (declared !== undefined) return declared
    if (queue === undefined) throw new UnknownTaskError(name, [...this.tasks.keys()])
    if (!isTaskName(name)) throw new InvalidArgumentError(`a task name must be ${taskNameForm}.`)
    // Checked here, because this error can name the declared queues.
    const { ordered } = this.queue(queue)
    return runElsewhere<AnyTask>(ordered ? defineOrderedTask({ name, queue }) : defineTask({ name, queue }))
  }

  queue(name: string): Queue {
    const queue = this.queues.get(name)
    if (queue === undefined) throw new UnknownQueueError(name, [...this.queues.keys()])
    return queue
  }
}

function sizeOf(task: AnyTask): number {
  return task.kind === 'plain' ? (task.batch?.size ?? 1) : 1
}

function isolationOf(task: AnyTask): unknown {
  return task.kind === 'plain' ? task.isolation : undefined
}

/** The mistakes for names that two tasks share. */
export function nameClashes(tasks: readonly AnyTask[]): ConfigIssue[] {
  const owners = new Map<string, AnyTask>()
  const issues: ConfigIssue[] = []
  for (const task of tasks) {
    for (const name of [task.name, ...task.aliases]) {
      const owner = owners.get(name)
      if (owner !== undefined && owner !== task) {
        issues.push({
          path: 'tasks',
          message: `'${name}' names two tasks: '${owner.name}' and '${task.name}'; each needs names of its own`,
        })
      }
      owners.set(name, task)
    }
  }
  return issues
}
