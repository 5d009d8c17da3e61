/**
 * Executions of several claims of one queue, which a handler receives together. Each claim has a lease of its own and
 * is settled by itself; they share one time limit, one signal and one slot. `BatchExecution`, for batch tasks, names its
 * jobs by index; `OrderedExecution`, for the ids of ordered tasks, names them by id.
 */

import { hasCode, InvalidArgumentError } from '../../core/errors.js'
import type { JobHandle, JobMeta, Progress, RunningJob } from '../../core/job/job.js'
import { ownError } from '../../core/job/job-failures.js'
import { originIn, ownMeta } from '../../core/job/job-origin.js'
import { describe } from '../../core/messages/describe.js'
import type { BatchContext, OrderedContext, OrderedJob } from '../../core/task/contexts.js'
import type { BatchChildOptions, EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { Flow, FlowHandles } from '../../core/task/flow.js'
import { type EnqueueItem, itemsOf, type ManyArguments } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { outcomeOf } from '../../core/task/outcome.js'
import type { AnyBatchTask } from '../../core/task/task.js'
import type { DefinedTask, HandleOf } from '../../core/task/task-definition.js'
import { orderedIdOf } from '../../core/values/ids.js'
import type { Claim } from '../../stores/contract/claim.js'
import { ChildCalls, type ChildClient } from './child-calls.js'
import { bindMethods, Execution, type HeldLease, type Leased, refuseWait, runningJob } from './execution.js'
import type { Verdict } from './verdict.js'

/** A claim of a batch, decoded. */
export interface DecodedClaim {
  readonly claim: Claim
  /** The input and the stored meta of each payload, oldest first; a plain job has one. */
  readonly inputs: readonly unknown[]
  readonly metas: readonly JobMeta[]
}

/** Several claims in one call: jobs of a batch task, or ids of an ordered one. */
export abstract class ManyExecution extends Execution {
  abstract override readonly task: AnyOrderedTask | AnyBatchTask
  leased: readonly BatchedJob[]
  #given: readonly BatchedJob[] | undefined
  readonly #client: ChildClient | undefined

  static {
    bindMethods(ManyExecution.prototype, ['enqueue', 'enqueueMany', 'flow', 'fail'])
  }

  constructor(claims: readonly DecodedClaim[], client?: ChildClient) {
    super()
    this.leased = claims.map((decoded) => new BatchedJob(this, decoded))
    this.#client = client
  }

  get context(): unknown {
    return this.#client!.context
  }

  /** The most jobs that it may have. */
  abstract get mostJobs(): number

  /** The job that the handler means by `name`; undefined if there is none. */
  protected abstract named(name: unknown): BatchedJob | undefined

  /**
   * Each job's part of the return value, if the handler returned one for each; otherwise undefined: an outcome, or
   * nothing, is for all. Throws for parts of another number.
   */
  partsOf(_returned: unknown): ReadonlyMap<BatchedJob, unknown> | undefined {
    return undefined
  }

  /** Throws for a result that belongs to no job. An ordered id has none, and what its handler returns is ignored. */
  refuseResult(_result: unknown): void {}

  /** The jobs that the handler receives: those without a verdict when it first asked for them. */
  get given(): readonly BatchedJob[] {
    this.#given ??= this.leased.filter(({ refusal, failure }) => refusal === undefined && failure === undefined)
    return this.#given
  }

  async enqueue<T extends DefinedTask>(
    task: T,
    ...[input, options]: EnqueueArguments<T, string, BatchChildOptions>
  ): Promise<HandleOf<T>> {
    this.refuseOver('ctx.enqueue()')
    const job = await this.#client!.enqueueItem(this.#child(task, input, options))
    refuseWait(this, this.leased[0]!.claim, job)
    return job as HandleOf<T>
  }

  async enqueueMany(...args: ManyArguments): Promise<never> {
    this.refuseOver('ctx.enqueueMany()')
    const items = itemsOf(args).map(({ task, input, options }) => this.#child(task, input, options))
    const jobs = await this.#client!.enqueueItems(items)
    for (const job of jobs) refuseWait(this, this.leased[0]!.claim, job)
    return jobs as never
  }

  async flow<Returned>(
    build: (flow: Flow) => Returned,
    { key, parent }: BatchChildOptions = {},
  ): Promise<FlowHandles<Returned>> {
    this.refuseOver('ctx.flow()')
    const done = (_: string, jobs: readonly JobHandle[]) => {
      for (const job of jobs) refuseWait(this, this.leased[0]!.claim, job)
    }
    return this.#client!.flow(
      build,
      this.#callsOf(parent, 'flow').flow(key, () => false, done),
    )
  }

  #child(task: unknown, input: unknown, options: object | undefined): EnqueueItem {
    const asked = (options ?? {}) as BatchChildOptions
    const { parent, ...own } = asked
    return { ...this.#callsOf(parent, 'enqueue').item(task, input, own), asked }
  }

  /** The calls of the job of the batch that enqueues. */
  #callsOf(parent: BatchChildOptions['parent'], verb: string): ChildCalls {
    if (parent === undefined && this.mostJobs > 1)
      throw new InvalidArgumentError(
        `ctx.${verb}() needs \`parent\` in a batch, which names the job that enqueues as ctx.fail() does. A later run of that job then enqueues nothing twice.`,
      )
    const job = parent === undefined ? this.given[0]! : this.namedBy(parent, verb)
    job.children ??= new ChildCalls(job.claim, job.metas[0]!, this.#client!)
    return job.children
  }

  fail(name: string | number, error: unknown): void {
    const job = this.namedBy(name, 'fail')
    this.refuseDecided('fail', name)
    if (isOutcome(error))
      throw new InvalidArgumentError(
        `ctx.fail() was given an outcome for ${describe(name)}; it takes an error. snooze(), cancel(), bury() and hold() are for ${this.task.kind === 'ordered' ? 'the whole batch: return them from the handler' : 'what the handler returns, for this job or for all'}.`,
      )
    job.failure = { error }
  }

  /** For a call that says something of a job of the batch. */
  protected refuseDecided(verb: string, name: string | number): void {
    if (this.isDecided)
      throw new InvalidArgumentError(
        `ctx.${verb}() was called for ${describe(name)} when the run had ended, and changes nothing: its handler had returned, or was given up at its time limit or a stop. Await everything that may call it before the handler returns, and stop when ctx.signal is aborted.`,
      )
  }

  /**
   * One of its jobs is to stop. A job that was settled or put back before the handler begins does not concern the
   * others.
   */
  jobAborted(reason: Error): void {
    if (this.begunAt === undefined) return
    const goesOn = ({ abortReason, refusal }: BatchedJob) =>
      refusal === undefined && !hasCode(abortReason, 'job-cancelled')
    // A cancel does not concern the others. A lost lease does: another worker may run one of these ids.
    if (hasCode(reason, 'job-cancelled') && this.leased.some(goesOn)) return
    this.abort(reason)
  }

  protected namedBy(name: string | number, verb: string): BatchedJob {
    const job = this.named(name)
    if (job !== undefined) return job
    const form = this.task.kind === 'ordered' ? 'id' : 'index'
    const message = `ctx.${verb}() was given ${describe(name)}, which is no ${form} of this batch; ctx.jobs has those that are.`
    throw new InvalidArgumentError(message)
  }
}

function isOutcome(value: unknown): boolean {
  try {
    return outcomeOf(value) !== undefined
  } catch {
    // A proxy that throws when looked at: treat it as an error.
    return false
  }
}

/** One job of a batch, with its own outcome. */
export class BatchedJob implements Leased {
  readonly claim: Claim
  /** As stored; later as the schema returns them. */
  inputs: readonly unknown[]
  readonly metas: readonly JobMeta[]
  lease: HeldLease | undefined
  unsentProgress: Progress | undefined
  abortReason: Error | undefined
  /** The verdict if the handler does not receive it. */
  refusal: Verdict | undefined
  /** Its own failure. */
  failure: { readonly error: unknown } | undefined
  /** How many of its payloads, from the oldest, are done. */
  done = 0
  /** The jobs that the handler enqueues for it. */
  children: ChildCalls | undefined
  /** It may join another batch before that begins. */
  batch: ManyExecution

  constructor(batch: ManyExecution, { claim, inputs, metas }: DecodedClaim) {
    this.batch = batch
    this.claim = claim
    this.inputs = inputs
    this.metas = metas
  }

  /** Of a batch task: an id has payloads. */
  get input(): unknown {
    return this.inputs[0]
  }

  get job(): RunningJob {
    return runningJob(this.claim, this.batch.task, this.metas[0]!)
  }

  get isDecided(): boolean {
    return this.batch.isDecided
  }

  get ran(): Execution | undefined {
    return this.batch.task.kind === 'ordered' ? undefined : this.batch
  }

  /** A lease that is lost after a cancel counts; nothing follows a lost lease. */
  abort(reason: Error): void {
    this.abortReason = reason
    this.batch.jobAborted(reason)
  }
}

/** Claims of a batch task, whose handler receives an array of inputs. */
export class BatchExecution extends ManyExecution implements BatchContext {
  readonly task: AnyBatchTask
  #jobs: readonly RunningJob[] | undefined

  constructor(task: AnyBatchTask, claims: readonly DecodedClaim[], client?: ChildClient) {
    super(claims, client)
    this.task = task
  }

  get mostJobs(): number {
    return this.task.batch.size
  }

  get job(): BatchContext['job'] {
    return { task: this.task.name, queue: this.leased[0]!.claim.queue }
  }

  get jobs(): readonly RunningJob[] {
    this.#jobs ??= this.given.map(({ job }) => job)
    return this.#jobs
  }

  get input(): unknown[] {
    return this.given.map(({ input }) => input)
  }

  /** Takes over the jobs of another execution that has not begun, as many as there is room for. */
  join(other: BatchExecution): void {
    const joining = other.leased.slice(0, this.mostJobs - this.leased.length)
    for (const job of joining) job.batch = this
    this.leased = [...this.leased, ...joining]
    other.leased = other.leased.slice(joining.length)
  }

  override partsOf(returned: unknown): ReadonlyMap<BatchedJob, unknown> | undefined {
    if (!Array.isArray(returned)) return undefined
    const { length } = this.given
    if (returned.length === length) return new Map(this.given.map((job, i) => [job, returned[i]]))
    throw new InvalidArgumentError(
      `the handler of batch task '${this.task.name}' must return an array of ${length} results, one for each input, or nothing; got one of ${returned.length}.`,
    )
  }

  override refuseResult(result: unknown): void {
    if (result === undefined) return
    throw new InvalidArgumentError(
      `the handler of batch task '${this.task.name}' must return an array of ${this.given.length} results, one for each input, or nothing; got ${describe(result)}.`,
    )
  }

  protected named(name: unknown): BatchedJob | undefined {
    return Number.isInteger(name) ? this.given[name as number] : undefined
  }
}

/** Claims of one shard of an ordered queue, ids with their payloads. */
export class OrderedExecution extends ManyExecution implements OrderedContext {
  readonly task: AnyOrderedTask
  #byId: ReadonlyMap<string, BatchedJob> | undefined
  #jobs: ReadonlyMap<string, OrderedJob> | undefined

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

  get job(): OrderedContext['job'] {
    const { queue, fence } = this.leased[0]!.claim
    return { task: this.task.name, queue, fence }
  }

  get jobs(): ReadonlyMap<string, OrderedJob> {
    this.#jobs ??= new Map(this.given.map((job) => [job.claim.id, orderedJob(job)]))
    return this.#jobs
  }

  get input(): ReadonlyMap<string, readonly unknown[]> {
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

function orderedJob({ claim, metas }: BatchedJob): OrderedJob {
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
