/** An ordered execution: claims of one shard of an ordered queue, ids with their payloads. */

import { InvalidArgumentError } from '../../core/errors.js'
import { ownError } from '../../core/job-failures.js'
import { originIn, ownMeta } from '../../core/job-origin.js'
import type { BatchContext, BatchJob } from '../../core/task/contexts.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { describe } from '../../core/values/describe.js'
import { orderedIdOf } from '../../core/values/ids.js'
import { BatchExecution, type BatchedJob, type DecodedClaim } from './batch-execution.js'
import { bindMethods } from './bound-methods.js'
import type { ChildClient } from './child-calls.js'

export class OrderedExecution extends BatchExecution implements BatchContext {
  readonly task: AnyOrderedTask
  #byId: ReadonlyMap<string, BatchedJob> | undefined
  #jobs: ReadonlyMap<string, BatchJob> | undefined

  static {
    bindMethods(OrderedExecution.prototype, ['done', 'more'])
  }

  constructor(task: AnyOrderedTask, claims: readonly DecodedClaim[], client?: ChildClient) {
    super(claims, client)
    this.task = task
  }

  get mostJobs(): number {
    return this.task.batchSize
  }

  get job(): BatchContext['job'] {
    const { queue, fence } = this.leased[0]!.claim
    return { task: this.task.name, queue, fence }
  }

  get jobs(): ReadonlyMap<string, BatchJob> {
    this.#jobs ??= new Map(this.given.map((job) => [job.claim.id, batchJob(job)]))
    return this.#jobs
  }

  get payloadsById(): ReadonlyMap<string, readonly unknown[]> {
    return new Map(this.given.map(({ claim, inputs }) => [claim.id, inputs]))
  }

  done(id: string | number, count: number): void {
    const job = this.namedBy(id, 'done')
    this.refuseDecided('done', id)
    if (!Number.isSafeInteger(count) || count < 0 || count > job.inputs.length)
      throw new InvalidArgumentError(
        `ctx.done() was given ${describe(count)} for ${describe(id)}; it takes the number of payloads of the id that are done, from the oldest: a whole number from 0 to ${job.inputs.length}, which is how many the handler was given.`,
      )
    job.done = Math.max(job.done, count)
  }

  more(id: string | number): boolean {
    return this.namedBy(id, 'more').claim.hasMore === true
  }

  protected named(name: unknown): BatchedJob | undefined {
    this.#byId ??= new Map(this.given.map((job) => [job.claim.id, job]))
    const id = orderedIdOf(name)
    return id === undefined ? undefined : this.#byId.get(id)
  }
}

/**
 * The claims of one answer as batches of at most `size`, in their order, each with one fence. Claims of a shard are
 * adjacent and share their fence. If two shards happen to have given the same fence, one batch may hold both.
 */
export function batchesOf(claims: readonly DecodedClaim[], size: number): DecodedClaim[][] {
  const batches: DecodedClaim[][] = []
  for (const decoded of claims) {
    const batch = batches.at(-1)
    if (batch === undefined || batch.length === size || batch[0]!.claim.fence !== decoded.claim.fence)
      batches.push([decoded])
    else batch.push(decoded)
  }
  return batches
}

function batchJob({ claim, metas }: BatchedJob): BatchJob {
  return {
    id: claim.id,
    attempt: claim.attempt,
    crashes: claim.crashes,
    fence: claim.fence,
    ...(claim.group === undefined ? {} : { group: claim.group }),
    createdAt: new Date(claim.createdAt),
    runAt: new Date(claim.runAt),
    ...(claim.error === undefined ? {} : { lastError: ownError(claim.error) }),
    payloads: claim.payloads!.map(({ score }, i) => ({ score, meta: ownMeta(metas[i]!), ...originIn(metas[i]) })),
  }
}
