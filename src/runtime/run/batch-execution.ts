/**
 * A batch execution: claims of one shard that the handler of an ordered task is given together. Each keeps a lease of its
 * own and is settled by itself; they have one time limit, one signal and one slot.
 */

import { hasCode } from '../../core/error-codes.js'
import { InvalidArgumentError } from '../../core/errors.js'
import type { Meta, Progress } from '../../core/job.js'
import { originIn, ownMeta } from '../../core/job-origin.js'
import type { BatchContext, BatchJob } from '../../core/task/batch-context.js'
import type { BatchChildOptions } from '../../core/task/child-options.js'
import type { EnqueueArguments, EnqueueOptionsOf } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { outcomeOf } from '../../core/task/outcome.js'
import type { DefinedTask, HandleOf, TaskInput } from '../../core/task/task-definition.js'
import { describe } from '../../core/values/describe.js'
import { orderedIdOf } from '../../core/values/ids.js'
import type { Claim } from '../../stores/contract/claim.js'
import { ChildCalls, type ChildClient } from './child-calls.js'
import { Execution, type Leased } from './execution.js'
import type { Verdict } from './verdict.js'

/** A claim of an ordered queue, decoded. */
export interface DecodedClaim {
  readonly claim: Claim
  /** Of each payload the input and the meta as it is stored, old to new. */
  readonly inputs: readonly unknown[]
  readonly metas: readonly Meta[]
}

export class BatchExecution extends Execution implements BatchContext {
  readonly task: AnyOrderedTask
  leased: readonly BatchedJob[]
  #given: ReadonlyMap<string, BatchedJob> | undefined
  #jobs: ReadonlyMap<string, BatchJob> | undefined
  readonly #client: ChildClient | undefined

  constructor(task: AnyOrderedTask, claims: readonly DecodedClaim[], client?: ChildClient) {
    super()
    this.task = task
    this.leased = claims.map((decoded) => new BatchedJob(this, decoded))
    this.#client = client
  }

  get job(): BatchContext['job'] {
    const { queue, fence } = this.leased[0]!.claim
    return { task: this.task.name, queue, fence }
  }

  get jobs(): ReadonlyMap<string, BatchJob> {
    this.#jobs ??= new Map([...this.given].map(([id, job]) => [id, batchJob(job)]))
    return this.#jobs
  }

  /** Those that the handler is given: all that nothing was decided on when it was first asked for them. */
  get given(): ReadonlyMap<string, BatchedJob> {
    this.#given ??= new Map(
      this.leased
        .filter(({ refusal, failure }) => refusal === undefined && failure === undefined)
        .map((job) => [job.claim.id, job]),
    )
    return this.#given
  }

  get payloadsById(): ReadonlyMap<string, readonly unknown[]> {
    return new Map([...this.given].map(([id, { inputs }]) => [id, inputs]))
  }

  async enqueue<T extends DefinedTask>(
    task: T,
    ...[input, options]: EnqueueArguments<T, string, BatchChildOptions>
  ): Promise<HandleOf<T>> {
    this.refuseOver('ctx.enqueue()')
    const job = await this.#client!.enqueueItem(this.#child(task, input, options))
    return job as HandleOf<T>
  }

  async enqueueMany<T extends DefinedTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T> & BatchChildOptions,
  ): Promise<HandleOf<T>[]> {
    this.refuseOver('ctx.enqueueMany()')
    const items = inputs.map((input, i) => this.#child(task, input, each?.(input, i)))
    return (await this.#client!.enqueueItems(items)) as HandleOf<T>[]
  }

  #child(task: unknown, input: unknown, options: object | undefined): EnqueueItem {
    const { parent, ...own } = (options ?? {}) as { readonly parent?: string | number }
    if (parent === undefined && this.task.batchSize > 1)
      throw new InvalidArgumentError(
        'ctx.enqueue() needs `parent` in a batch: the id of the job that enqueues, as { parent: id }. A later run of that job then enqueues nothing twice.',
      )
    const job = parent === undefined ? this.leased[0]! : this.#named(parent, 'enqueue')
    job.children ??= new ChildCalls(job.claim, this.#client!.encode)
    return job.children.item(task, input, own)
  }

  fail(id: string | number, error: unknown): void {
    const job = this.#named(id, 'fail')
    if (this.isDecided)
      throw new InvalidArgumentError(
        `ctx.fail() was called for ${describe(id)} when the run had ended, and changes nothing: its handler had returned, or was given up at its time limit or a stop. Await everything that may call it before the handler returns, and stop when ctx.signal is aborted.`,
      )
    if (isOutcome(error))
      throw new InvalidArgumentError(
        `ctx.fail() was given an outcome for ${describe(id)}; it takes an error. snooze(), cancel(), bury() and throttle() are for the whole batch: return them from the handler.`,
      )
    job.failure = { error }
  }

  more(id: string | number): boolean {
    return this.#named(id, 'more').claim.hasMore === true
  }

  /** One of its jobs was told to stop. What was settled or put back before the handler begins is no matter of the others. */
  jobAborted(reason: Error): void {
    if (this.begunAt === undefined) return
    const goesOn = ({ abortReason, refusal }: BatchedJob) =>
      refusal === undefined && !hasCode(abortReason, 'job-cancelled')
    // The others have nothing to do with a cancel, but a lost lease means that somebody else may run one of these ids.
    if (hasCode(reason, 'job-cancelled') && this.leased.some(goesOn)) return
    this.abort(reason)
  }

  #named(id: string | number, verb: string): BatchedJob {
    const text = orderedIdOf(id)
    const job = text === undefined ? undefined : this.given.get(text)
    if (job !== undefined) return job
    const message = `ctx.${verb}() was given ${describe(id)}, which is no id of this batch; ctx.jobs has those that are.`
    throw new InvalidArgumentError(message)
  }
}

/** One job of a batch, with what becomes of it apart from the others. */
export class BatchedJob implements Leased {
  readonly claim: Claim
  /** As stored, then as the schema hands them on. */
  inputs: readonly unknown[]
  readonly metas: readonly Meta[]
  leaseNumber = 0
  unsentProgress: Progress | undefined
  abortReason: Error | undefined
  /** What is settled where the handler is not given it. */
  refusal: Verdict | undefined
  /** It has failed by itself. */
  failure: { readonly error: unknown } | undefined
  /** What the handler enqueues for it. */
  children: ChildCalls | undefined
  readonly #batch: BatchExecution

  constructor(batch: BatchExecution, { claim, inputs, metas }: DecodedClaim) {
    this.#batch = batch
    this.claim = claim
    this.inputs = inputs
    this.metas = metas
  }

  /** A lease that is lost after a cancel counts; nothing follows a lost lease. */
  abort(reason: Error): void {
    this.abortReason = reason
    this.#batch.jobAborted(reason)
  }
}

/**
 * The claims of one answer as batches of at most `size`, in their order, each with one fence. Those of a shard stand in a row
 * and share theirs; where two shards happen to have given the same, they are as good as one.
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

function isOutcome(value: unknown): boolean {
  try {
    return outcomeOf(value) !== undefined
  } catch {
    // A proxy that throws when looked at: whatever it is, it is an error.
    return false
  }
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
    ...(claim.error === undefined ? {} : { lastError: claim.error }),
    payloads: claim.payloads!.map(({ score }, i) => ({ score, meta: ownMeta(metas[i]!), ...originIn(metas[i]) })),
  }
}
