/** A mill's window: the mill as the API uses it, including undeclared queues, and with actions of bounded time. */

import type { FilteredSteps, JobFilter } from '../client/admin/job-filter.js'
import { QueueAdmin } from '../client/admin/queue-admin.js'
import type { JobPage } from '../client/admin/queue-looks.js'
import { StepBudget } from '../client/admin/step-loop.js'
import { type HandleParts, handlePartsOf, StoredJobHandle } from '../client/jobs/stored-job-handle.js'
import { UnknownQueueError } from '../core/errors.js'
import type { JobRecord, Progress } from '../core/job/job.js'
import type { LiveEvent } from '../core/live-event.js'
import { systemClock } from '../core/platform/clock.js'
import { isNameOf } from '../core/task/any-task.js'
import { defined } from '../core/values/defined.js'
import type { Mill } from '../mill/mill.js'
import type { CheckedWebOptions } from './web-options.js'

/** The time for which one request repeats the steps of an action. */
const actionMs = 10_000
/** The same for an action on a filter. */
const filteredMs = 2_000
/** The time for which one request goes on with pages on which a filter has found nothing. */
const searchMs = 1_000

/** The parts of live events that may hold what a handler or an operator has written. */
interface WrittenTexts {
  readonly error?: unknown
  readonly progress?: Progress
  readonly reason?: string
}

export class MillWindow {
  readonly mill: Mill
  readonly options: CheckedWebOptions
  readonly #handleParts: HandleParts

  constructor(mill: Mill, options: CheckedWebOptions) {
    const { connect, closing } = mill.adminParts
    this.mill = mill
    this.options = options
    this.#handleParts = handlePartsOf(connect, mill.runParts, closing)
  }

  /** The administration of a declared or stored queue. Throws `UnknownQueueError` for any other. */
  async known(name: string, budget?: StepBudget): Promise<QueueAdmin> {
    const isKnown =
      this.mill.queues.has(name) || ((await this.mill.storedQueues()) ?? []).some((one) => one.name === name)
    if (!isKnown) throw new UnknownQueueError(name, [...this.mill.queues.keys()])
    return this.queue(name, budget)
  }

  /** The same for a queue that is known to exist. */
  queue(name: string, budget?: StepBudget): QueueAdmin {
    // A filter must not tell by its answer what of a job is hidden.
    const shown = { shown: (job: JobRecord) => this.shown(job), isRedacted: this.options.redact !== undefined }
    return new QueueAdmin(name, { ...this.mill.adminParts, ...shown }, budget?.loop)
  }

  /** A handle to a job of a queue that is known to exist. */
  job(queue: string, id: string): StoredJobHandle {
    return new StoredJobHandle(this.#handleParts, queue, id)
  }

  /** Runs an action for at most 10 s; `more`: another call would find more. */
  async act(name: string, action: (queue: QueueAdmin) => Promise<number>): Promise<{ changed: number; more: boolean }> {
    const budget = new StepBudget(actionMs, systemClock.mono)
    const changed = await action(await this.known(name, budget))
    return { changed, more: budget.more }
  }

  /**
   * Takes steps over the jobs that a filter chooses, for about 2 s, so that who watches sees how it goes on; `cursor`: where
   * another call goes on.
   */
  async actOn(
    name: string,
    open: (queue: QueueAdmin) => Promise<FilteredSteps>,
  ): Promise<{ changed: number; more: boolean; cursor?: string }> {
    const { step, cursor } = await open(await this.known(name))
    const untilAt = systemClock.mono() + filteredMs
    for (let changed = 0; ; ) {
      const done = await step()
      changed += done.changed
      if (done.more && systemClock.mono() < untilAt) continue
      return { changed, more: done.more, ...defined({ cursor: cursor() }) }
    }
  }

  /**
   * The first page of a list that has jobs, of one task if the query names it. Pages without any are passed over, for about a
   * second; then the last of them is the answer, and leads on.
   */
  async pageWithJobs<Query extends { readonly cursor?: string }>(
    { task, ...query }: Query & { readonly task?: string },
    list: (query: Omit<Query & { readonly task?: string }, 'task'>) => Promise<JobPage>,
  ): Promise<JobPage> {
    const isListed = task === undefined ? () => true : this.isOfTask(task)
    const untilAt = searchEnd()
    for (let from = query.cursor; ; ) {
      const { jobs, cursor } = await list({ ...query, ...defined({ cursor: from }) })
      const found = jobs.filter(isListed)
      if (found.length > 0 || cursor === undefined || systemClock.mono() >= untilAt)
        return { jobs: found, ...defined({ cursor }) }
      from = cursor
    }
  }

  /** The filter of a request: a declared task with all its names. */
  filterOf({ task, ...where }: Omit<JobFilter, 'task'> & { readonly task?: string }): JobFilter {
    const declared = [...this.mill.tasks.values()].find((one) => task !== undefined && isNameOf(one, task))
    return { ...where, ...defined({ task: declared ?? task }) }
  }

  /** The shown part of a job. */
  shown(job: JobRecord): JobRecord {
    return shownJob(job, this.options)
  }

  /** The shown part of a live event: `redact` gets records alone, so with it no text that somebody has written. */
  shownEvent(event: LiveEvent): object {
    if (this.options.redact === undefined) return event
    const { error: _, reason: _reason, progress, ...rest } = event as LiveEvent & WrittenTexts
    return { ...rest, ...defined({ progress: this.shownProgress(progress) }) }
  }

  /** The same of a progress that comes without its job. */
  shownProgress(progress: Progress | undefined): Progress | undefined {
    return progress === undefined || this.options.redact === undefined ? progress : { fraction: progress.fraction }
  }

  /** Whether a job belongs to the task, by any of the task's names. */
  isOfTask(name: string): (job: JobRecord) => boolean {
    const task = [...this.mill.tasks.values()].find((one) => isNameOf(one, name))
    return (job) => job.task === name || (task !== undefined && isNameOf(task, job.task))
  }
}

/** The moment, on the monotonic clock, at which a search that begins now ends. */
export function searchEnd(): number {
  return systemClock.mono() + searchMs
}

/** Without its payloads if they are hidden, and as `redact` returns it. */
export function shownJob(
  job: JobRecord,
  { hidePayloads, redact }: Pick<CheckedWebOptions, 'hidePayloads' | 'redact'>,
): JobRecord {
  const shown = redact === undefined ? job : redact(job)
  return hidePayloads ? withoutPayloads(shown) : shown
}

function withoutPayloads(job: JobRecord): JobRecord & { readonly payloadsHidden: true } {
  const { input: _input, meta: _meta, result: _result, checkpoint: _checkpoint, payloads, steps, ...rest } = job
  const scores = payloads?.map(({ input: _ofPayload, meta: _metaOfPayload, ...payload }) => payload)
  const names = steps?.map(({ value: _ofStep, ...step }) => step)
  return { ...rest, ...defined({ payloads: scores, steps: names }), payloadsHidden: true }
}
