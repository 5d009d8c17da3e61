/** A mill's window: the mill as the API asks it, with queues that nobody declared, and actions that take a bounded time. */

import { QueueAdmin } from '../../client/admin/queue-admin.js'
import { StepBudget } from '../../client/admin/step-loop.js'
import { UnknownQueueError } from '../../core/errors.js'
import type { JobRecord } from '../../core/job.js'
import { systemClock } from '../../core/platform/clock.js'
import { isNameOf } from '../../core/task/any-task.js'
import type { Mill } from '../../mill/mill.js'
import { shownJob } from './shown-job.js'
import type { CheckedWebOptions } from './web-options.js'

/** How long one request takes the steps of an action. */
const actionMs = 10_000

export class MillWindow {
  readonly mill: Mill
  readonly options: CheckedWebOptions

  constructor(mill: Mill, options: CheckedWebOptions) {
    this.mill = mill
    this.options = options
  }

  /** Administration of a queue that is declared or stored. Throws `UnknownQueueError` for another. */
  async known(name: string, budget?: StepBudget): Promise<QueueAdmin> {
    const isKnown =
      this.mill.queues.has(name) || ((await this.mill.storedQueues()) ?? []).some((one) => one.name === name)
    if (!isKnown) throw new UnknownQueueError(name, [...this.mill.queues.keys()])
    return this.queue(name, budget)
  }

  /** The same for a queue that is known to be there. */
  queue(name: string, budget?: StepBudget): QueueAdmin {
    return new QueueAdmin(name, this.mill.adminParts, budget?.loop)
  }

  /** Takes an action for at most 10 s; `more`: the same again would find more. */
  async act(name: string, action: (queue: QueueAdmin) => Promise<number>): Promise<{ changed: number; more: boolean }> {
    const budget = new StepBudget(actionMs, systemClock.mono)
    const changed = await action(await this.known(name, budget))
    return { changed, more: budget.more }
  }

  /** The part of a job that is shown. */
  shown(job: JobRecord): JobRecord {
    return shownJob(job, this.options)
  }

  /** Whether a job is one of the task, by any of its names. */
  isOfTask(name: string): (job: JobRecord) => boolean {
    const task = [...this.mill.tasks.values()].find((one) => isNameOf(one, name))
    return (job) => job.task === name || (task !== undefined && isNameOf(task, job.task))
  }
}
