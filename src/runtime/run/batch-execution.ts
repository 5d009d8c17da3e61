/**
 * A batch execution: claims of one queue that a handler receives together. Each has a lease of its own and is settled
 * by itself; they share one time limit, one signal and one slot.
 */

import { hasCode } from '../../core/error-codes.js'
import { InvalidArgumentError } from '../../core/errors.js'
import type { Meta, Progress } from '../../core/job.js'
import { itemsOf, type ManyArguments } from '../../core/task/enqueue-items.js'
import type { BatchChildOptions, EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { EnqueueItem } from '../../core/task/middleware.js'
import type { AnyOrderedTask } from '../../core/task/ordered-task.js'
import { outcomeOf } from '../../core/task/outcome.js'
import type { AnyBatchTask } from '../../core/task/task.js'
import type { DefinedTask, HandleOf } from '../../core/task/task-definition.js'
import { describe } from '../../core/values/describe.js'
import type { Claim } from '../../stores/contract/claim.js'
import { bindMethods } from './bound-methods.js'
import { ChildCalls, type ChildClient } from './child-calls.js'
import { Execution, type Leased } from './execution.js'
import type { Verdict } from './verdict.js'

/** A claim of a batch, decoded. */
export interface DecodedClaim {
  readonly claim: Claim
  /** The input and the stored meta of each payload, oldest first; a plain job has one. */
  readonly inputs: readonly unknown[]
  readonly metas: readonly Meta[]
}

export abstract class BatchExecution extends Execution {
  abstract override readonly task: AnyOrderedTask | AnyBatchTask
  leased: readonly BatchedJob[]
  #given: readonly BatchedJob[] | undefined
  readonly #client: ChildClient | undefined

  static {
    bindMethods(BatchExecution.prototype, ['enqueue', 'enqueueMany', 'fail'])
  }

  constructor(claims: readonly DecodedClaim[], client?: ChildClient) {
    super()
    this.leased = claims.map((decoded) => new BatchedJob(this, decoded))
    this.#client = client
  }

  /** The most jobs that it may have. */
  abstract get mostJobs(): number

  /** The job that the handler means by `name`; undefined if there is none. */
  protected abstract named(name: unknown): BatchedJob | undefined

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
    return job as HandleOf<T>
  }

  async enqueueMany(...args: ManyArguments): Promise<never> {
    this.refuseOver('ctx.enqueueMany()')
    const items = itemsOf(args).map(({ task, input, options }) => this.#child(task, input, options))
    return (await this.#client!.enqueueItems(items)) as never
  }

  #child(task: unknown, input: unknown, options: object | undefined): EnqueueItem {
    const asked = (options ?? {}) as BatchChildOptions
    const { parent, ...own } = asked
    if (parent === undefined && this.mostJobs > 1)
      throw new InvalidArgumentError(
        'ctx.enqueue() needs `parent` in a batch, which names the job that enqueues as ctx.fail() does. A later run of that job then enqueues nothing twice.',
      )
    const job = parent === undefined ? this.given[0]! : this.namedBy(parent, 'enqueue')
    job.children ??= new ChildCalls(job.claim, job.metas[0]!, this.#client!.encode)
    return { ...job.children.item(task, input, own), asked }
  }

  fail(name: string | number, error: unknown): void {
    const job = this.namedBy(name, 'fail')
    this.refuseDecided('fail', name)
    if (isOutcome(error))
      throw new InvalidArgumentError(
        `ctx.fail() was given an outcome for ${describe(name)}; it takes an error. snooze(), cancel(), bury() and throttle() are for ${this.task.kind === 'ordered' ? 'the whole batch: return them from the handler' : 'what the handler returns, for this job or for all'}.`,
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
   * One of its jobs was told to stop. A job that was settled or put back before the handler begins does not concern the
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

/** One job of a batch, with its own outcome. */
export class BatchedJob implements Leased {
  readonly claim: Claim
  /** As stored; later as the schema returns them. */
  inputs: readonly unknown[]
  readonly metas: readonly Meta[]
  leaseNumber = 0
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
  batch: BatchExecution

  constructor(batch: BatchExecution, { claim, inputs, metas }: DecodedClaim) {
    this.batch = batch
    this.claim = claim
    this.inputs = inputs
    this.metas = metas
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

function isOutcome(value: unknown): boolean {
  try {
    return outcomeOf(value) !== undefined
  } catch {
    // A proxy that throws when looked at: treat it as an error.
    return false
  }
}
