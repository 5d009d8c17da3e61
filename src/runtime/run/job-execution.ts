/** A job execution: one claim of a task that is not ordered. */

import type { Meta, Progress, RunningJob } from '../../core/job.js'
import { isNameOf } from '../../core/task/any-task.js'
import type { JobContext } from '../../core/task/job-context.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import type { Claim } from '../../stores/contract/claim.js'
import { Execution, type Leased } from './execution.js'
import type { JobUpdates, Noting } from './job-updates.js'

export class JobExecution extends Execution implements JobContext, Noting {
  readonly claim: Claim
  readonly task: AnyPlainTask
  leased: readonly Leased[]
  /** As stored, then as the schema hands it on. */
  input: unknown
  leaseNumber = 0
  unsentProgress: Progress | undefined
  unsentLog = ''
  readonly #meta: Meta
  readonly #notes: JobUpdates
  #job: RunningJob | undefined

  constructor(claim: Claim, task: AnyPlainTask, input: unknown, meta: Meta, notes: JobUpdates) {
    super()
    this.claim = claim
    this.task = task
    this.leased = [this]
    this.input = input
    this.#meta = meta
    this.#notes = notes
  }

  /** Made when it is first asked for, as the signal is. */
  get job(): RunningJob {
    const { claim, task } = this
    // Of a task that runs whatever comes the job keeps its own name.
    this.#job ??= runningJob(claim, isNameOf(task, claim.task) ? task.name : claim.task, this.#meta)
    return this.#job
  }

  log(text: string): void {
    this.#notes.log(this, text)
  }

  checkpoint(value: unknown): Promise<void> {
    return this.#notes.checkpoint(this, value)
  }

  get lastCheckpoint(): unknown {
    return this.#notes.lastCheckpoint(this.claim)
  }
}

function runningJob(claim: Claim, task: string, meta: Meta): RunningJob {
  return {
    id: claim.id,
    task,
    queue: claim.queue,
    priority: claim.priority,
    ...(claim.group === undefined ? {} : { group: claim.group }),
    attempt: claim.attempt,
    crashes: claim.crashes,
    fence: claim.fence,
    meta,
    createdAt: new Date(claim.createdAt),
    runAt: new Date(claim.runAt),
    ...(claim.error === undefined ? {} : { lastError: claim.error }),
  }
}
