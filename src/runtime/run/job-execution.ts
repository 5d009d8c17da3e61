/** A job execution: one claim of a task that is not ordered. */

import type { Meta, Progress, RunningJob } from '../../core/job.js'
import type { FieldWriter } from '../../core/job-fields.js'
import type { JobContext } from '../../core/task/contexts.js'
import { itemsOf, type ManyArguments } from '../../core/task/enqueue-items.js'
import type { ChildOptions, EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { AnySingleTask } from '../../core/task/task.js'
import type { DefinedTask, HandleOf } from '../../core/task/task-definition.js'
import { listOfOne } from '../../core/values/list-of-one.js'
import type { Claim } from '../../stores/contract/claim.js'
import { bindMethods } from './bound-methods.js'
import { ChildCalls, type ChildClient, namesAsOne } from './child-calls.js'
import { Execution, type Leased } from './execution.js'
import type { JobUpdates, Noting } from './job-updates.js'
import { runningJob } from './running-job.js'

export class JobExecution extends Execution implements JobContext, Noting {
  readonly claim: Claim
  readonly task: AnySingleTask
  leased: readonly Leased[]
  /** As stored; later as the schema returns it. */
  input: unknown
  leaseNumber = 0
  unsentProgress: Progress | undefined
  unsentLog = ''
  kept: Noting['kept']
  readonly #meta: Meta
  #fields: FieldWriter | undefined
  readonly #notes: JobUpdates
  readonly #client: ChildClient | undefined
  #children: ChildCalls | undefined
  #job: RunningJob | undefined

  static {
    bindMethods(JobExecution.prototype, ['enqueue', 'enqueueMany', 'progress', 'log', 'checkpoint'])
  }

  /** `meta`: as stored. `client`: enqueues for its handler; absent if no handler runs in this process. */
  constructor(claim: Claim, task: AnySingleTask, input: unknown, meta: Meta, notes: JobUpdates, client?: ChildClient) {
    super()
    this.claim = claim
    this.task = task
    this.leased = listOfOne(this)
    this.input = input
    this.#meta = meta
    this.#notes = notes
    this.#client = client
  }

  get ran(): Execution {
    return this
  }

  /** Made at its first use, like the signal. */
  get job(): RunningJob {
    this.#job ??= runningJob(this.claim, this.task, this.#meta)
    return this.#job
  }

  async enqueue<T extends DefinedTask>(
    task: T,
    ...[input, options]: EnqueueArguments<T, string, ChildOptions>
  ): Promise<HandleOf<T>> {
    this.refuseOver('ctx.enqueue()')
    const item = this.#calls.item(task, input, options)
    const job = await this.#client!.enqueueItem(
      this.#notes.isDone(this, item.child!) ? { ...item, isDone: true } : item,
    )
    this.#notes.done(this, item.child!)
    return job as HandleOf<T>
  }

  async enqueueMany(...args: ManyArguments): Promise<never> {
    this.refuseOver('ctx.enqueueMany()')
    const items = itemsOf(args).map(({ task, input, options }) => this.#calls.item(task, input, options))
    // One mark for all of them: so many children could not be remembered one by one.
    const call = namesAsOne(items)
    const isDone = this.#notes.isDone(this, call)
    const jobs = await this.#client!.enqueueItems(isDone ? items.map((item) => ({ ...item, isDone })) : items)
    this.#notes.done(this, call)
    return jobs as never
  }

  get #calls(): ChildCalls {
    this.#children ??= new ChildCalls(this.claim, this.#meta, this.#client!.encode)
    return this.#children
  }

  override progress(fraction: number, note?: string): void {
    super.progress(fraction, note)
    this.#notes.progressed(this)
  }

  log(text: string): void {
    this.#notes.log(this, text)
  }

  checkpoint(value: unknown): Promise<void> {
    return this.#notes.checkpoint(this, value)
  }

  /** Made at its first use: most handlers write none. */
  get fields(): FieldWriter {
    this.#fields ??= { set: (fields) => this.#notes.setFields(this, fields) }
    return this.#fields
  }

  get lastCheckpoint(): unknown {
    return this.#notes.lastCheckpoint(this.claim)
  }
}

/** Whether it runs in a process of its own. */
export function isIsolated(execution: Execution): execution is JobExecution {
  return execution instanceof JobExecution && execution.task.isolation !== undefined
}
