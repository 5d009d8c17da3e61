/** A jobs execution: claims of a batch task, whose handler receives an array of inputs. */

import { InvalidArgumentError } from '../../core/errors.js'
import type { RunningJob } from '../../core/job.js'
import type { JobsContext } from '../../core/task/contexts.js'
import type { AnyBatchTask } from '../../core/task/task.js'
import { describe } from '../../core/values/describe.js'
import { BatchExecution, type BatchedJob, type DecodedClaim } from './batch-execution.js'
import type { ChildClient } from './child-calls.js'
import { runningJob } from './running-job.js'

export class JobsExecution extends BatchExecution implements JobsContext {
  readonly task: AnyBatchTask
  #jobs: readonly RunningJob[] | undefined

  constructor(task: AnyBatchTask, claims: readonly DecodedClaim[], client?: ChildClient) {
    super(claims, client)
    this.task = task
  }

  get mostJobs(): number {
    return this.task.batch.size
  }

  get job(): JobsContext['job'] {
    return { task: this.task.name, queue: this.leased[0]!.claim.queue }
  }

  get jobs(): readonly RunningJob[] {
    this.#jobs ??= this.given.map((job) => this.jobOf(job))
    return this.#jobs
  }

  get inputs(): unknown[] {
    return this.given.map(({ inputs }) => inputs[0])
  }

  jobOf({ claim, metas }: BatchedJob): RunningJob {
    return runningJob(claim, this.task, metas[0]!)
  }

  /** Takes over the jobs of another execution that has not begun, as many as there is room for. */
  join(other: JobsExecution): void {
    const joining = other.leased.slice(0, this.mostJobs - this.leased.length)
    for (const job of joining) job.batch = this
    this.leased = [...this.leased, ...joining]
    other.leased = other.leased.slice(joining.length)
  }

  /** Each job's part of the return value; undefined if one outcome is for all. */
  partsOf(returned: unknown): ReadonlyMap<BatchedJob, unknown> | undefined {
    if (!Array.isArray(returned)) return undefined
    const { length } = this.given
    if (returned.length === length) return new Map(this.given.map((job, i) => [job, returned[i]]))
    throw new InvalidArgumentError(
      `the handler of batch task '${this.task.name}' must return an array of ${length} results, one for each input, or nothing; got one of ${returned.length}.`,
    )
  }

  /** Accepts nothing, or one outcome for all jobs. Throws for a single result, which would belong to no job. */
  refuseResult(result: unknown): void {
    if (result === undefined) return
    throw new InvalidArgumentError(
      `the handler of batch task '${this.task.name}' must return an array of ${this.given.length} results, one for each input, or nothing; got ${describe(result)}.`,
    )
  }

  protected named(name: unknown): BatchedJob | undefined {
    return Number.isInteger(name) ? this.given[name as number] : undefined
  }
}
