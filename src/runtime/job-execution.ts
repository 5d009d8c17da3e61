/** A job execution: one claim of a task that is not ordered. */

import type { JobContext, Meta, Progress, RunningJob } from '../core/job.js'
import type { AnyPlainTask } from '../core/task.js'
import type { Claim } from '../stores/store.js'
import { Execution, type Leased } from './execution.js'

export class JobExecution extends Execution implements JobContext, Leased {
  readonly claim: Claim
  readonly task: AnyPlainTask
  leased: readonly Leased[]
  /** As stored, then as the schema hands it on. */
  input: unknown
  leaseNumber = 0
  unsentProgress: Progress | undefined
  readonly #meta: Meta
  #job: RunningJob | undefined

  constructor(claim: Claim, task: AnyPlainTask, input: unknown, meta: Meta) {
    super()
    this.claim = claim
    this.task = task
    this.leased = [this]
    this.input = input
    this.#meta = meta
  }

  /** Made when it is first asked for, as the signal is. */
  get job(): RunningJob {
    this.#job ??= runningJob(this.claim, this.task.name, this.#meta)
    return this.#job
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
