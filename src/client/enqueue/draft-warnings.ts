/** The warnings of an enqueue: what is accepted and will probably not do what its producer expects. Each is given once. */

import type { Events } from '../../core/events.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { delayAfter } from '../../core/task/backoff.js'

export class DraftWarnings {
  readonly #events: Events
  /** The tasks of which each warning was given. */
  readonly #variedBy = new WeakSet<AnyTask>()
  readonly #shortFor = new WeakSet<AnyTask>()
  /** The longest delay of each task's first retry. */
  readonly #retryMs = new WeakMap<AnyTask, number>()

  constructor(events: Events) {
    this.#events = events
  }

  /** The schema of the task made something else of the same input, and what it made cannot be stored. */
  schemaVaries(task: AnyTask): void {
    if (this.#variedBy.has(task)) return
    this.#variedBy.add(task)
    this.#events.emit('schema.varied', { task: task.name, queue: task.queue })
  }

  /** The job expires before its first retry is due, or may do so by the chance of its backoff. */
  expires(task: AnyTask, expiresMs: number): void {
    if (task.retry.max === 0 || this.#shortFor.has(task)) return
    const retryMs = this.#retryMs.get(task) ?? longestRetryMs(task)
    this.#retryMs.set(task, retryMs)
    if (expiresMs > retryMs) return
    this.#shortFor.add(task)
    this.#events.emit('expiry.short', { task: task.name, queue: task.queue, expiresMs, retryMs })
  }
}

/** A backoff that throws is reported when a job fails. */
function longestRetryMs({ retry }: AnyTask): number {
  try {
    return delayAfter(retry.backoff, 1, () => 1)
  } catch {
    return 0
  }
}
