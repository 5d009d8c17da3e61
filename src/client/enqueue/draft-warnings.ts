/** The warnings of an enqueue: what is accepted and will probably not do what its producer expects. Each is given once. */

import type { Events } from '../../core/events.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { delayAfter } from '../../core/task/backoff.js'

export class DraftWarnings {
  readonly #events: Events
  /** The tasks of which each warning was given. */
  readonly #variedBy = new WeakSet<AnyTask>()
  readonly #shortFor = new WeakSet<AnyTask>()
  /** The least delay of each task's first retry. */
  readonly #leastMs = new WeakMap<AnyTask, number>()

  constructor(events: Events) {
    this.#events = events
  }

  /** The schema of the task made something else of the same input, and what it made cannot be stored. */
  schemaVaries(task: AnyTask): void {
    if (this.#variedBy.has(task)) return
    this.#variedBy.add(task)
    this.#events.emit('schema.varied', { task: task.name, queue: task.queue })
  }

  /** The job expires before its first retry can be due. */
  expires(task: AnyTask, expiresMs: number): void {
    if (task.retry.max === 0 || this.#shortFor.has(task)) return
    const leastMs = this.#leastMs.get(task) ?? leastRetryMs(task)
    this.#leastMs.set(task, leastMs)
    if (expiresMs > leastMs) return
    this.#shortFor.add(task)
    this.#events.emit('expiry.short', { task: task.name, queue: task.queue, expiresMs, retryMs: leastMs })
  }
}

/** A backoff that throws is reported when a job fails. */
function leastRetryMs({ retry }: AnyTask): number {
  try {
    return delayAfter(retry.backoff, 1, () => 0)
  } catch {
    return 0
  }
}
