/**
 * An execution: one call of a handler in this process, from the decoding of its claims to their verdicts. It is also
 * the context that its handler receives. Most executions are of one job (`JobExecution`); those of several are in
 * `batch-execution.ts`.
 */

import { CodecError, hasCode, InvalidArgumentError, InvalidJobError } from '../../core/errors.js'
import type { JobHandle, JobMeta, Phase, Progress, RunningJob } from '../../core/job/job.js'
import { ownError } from '../../core/job/job-failures.js'
import type { FieldWriter } from '../../core/job/job-fields.js'
import { lifeIn, originIn, ownMeta } from '../../core/job/job-origin.js'
import { systemClock } from '../../core/platform/clock.js'
import type { Span } from '../../core/queue/throttle.js'
import { type AnyTask, isNameOf } from '../../core/task/any-task.js'
import type { JobContext, StepCall } from '../../core/task/contexts.js'
import type { ChildOptions, EnqueueArguments } from '../../core/task/enqueue-options.js'
import type { Flow, FlowHandles } from '../../core/task/flow.js'
import type { Joined, JoinSets, MemberSet } from '../../core/task/join-sets.js'
import { itemsOf, type ManyArguments, type TaskRun } from '../../core/task/middleware.js'
import { type HoldOptions, type HoldTime, holdTimeMs } from '../../core/task/outcome.js'
import type { AnySignal } from '../../core/task/signal.js'
import type { AnySingleTask } from '../../core/task/task.js'
import type { DefinedTask, HandleOf } from '../../core/task/task-definition.js'
import type { Duration } from '../../core/values/duration.js'
import { ListNode } from '../../core/values/linked-list.js'
import { listOfOne } from '../../core/values/list-of-one.js'
import type { Claim } from '../../stores/contract/claim.js'
import { ChildCalls, type ChildClient, namesAsOne } from './child-calls.js'
import { JobSteps } from './job-steps.js'
import type { JobUpdates, Noting } from './job-updates.js'
import type { Suspension } from './verdict.js'

const longestNote = 1_000

/** The terms on which leases are kept. */
export interface LeaseTerms {
  readonly leaseMs: number
  /** The time before the claim, or the beat that last renewed it, was sent. */
  readonly sentAt: number
  readonly maxBlockMs: number
  readonly isPatient?: boolean
}

/** A claim of an execution, with a lease of its own. */
export interface Leased {
  readonly claim: Claim
  /** Undefined before the lease is kept. */
  lease: HeldLease | undefined
  /** The latest progress, which a beat may have sent or not; undefined once the end has sent it. */
  unsentProgress: Progress | undefined
  /** Why it was told to stop; undefined if it was not. */
  readonly abortReason: Error | undefined
  /** There is a verdict on it. */
  readonly isDecided: boolean
  /** The execution that describes its run in the job's record; undefined for an ordered id. */
  readonly ran: Execution | undefined
  /** The job is cancelled, or its lease is lost. */
  abort(reason: Error): void
}

/** A lease that the keeper keeps, as long as it is in its list. */
export class HeldLease extends ListNode {
  readonly number: number
  readonly job: Leased
  readonly terms: LeaseTerms
  /** The time before the claim, or the beat that last renewed it, was sent. */
  sentAt: number
  /** When its handler began. */
  begunAt: number | undefined
  isBegunTold = false
  /** The progress that the beats know. */
  toldProgress: Progress | undefined

  constructor(number: number, job: Leased, terms: LeaseTerms) {
    super()
    this.number = number
    this.job = job
    this.terms = terms
    this.sentAt = terms.sentAt
  }
}

export abstract class Execution {
  abstract readonly task: AnyTask
  /** The first argument of its handler. */
  abstract readonly input: unknown
  /** Its claims: one, or those of a batch. Some may be taken out before it begins. */
  abstract leased: readonly Leased[]
  lastProgress: Progress | undefined
  /** For how long its end holds the groups of its jobs; undefined: they are not held. */
  heldMs: number | undefined
  /** When the claim that brought it was sent, on the monotonic clock. */
  claimedAt = 0
  /** When its handler was called, on the monotonic clock; undefined while it waits for a slot. */
  begunAt: number | undefined
  /** The number of its slot, from the time when it has one. */
  slot = 0
  /** For a throttled queue: the span, on the monotonic clock, in which its handler must begin. */
  start: Span | undefined
  /**
   * When the first line of its handler was about to run, on the monotonic clock. Only for jobs of throttled queues and
   * jobs in processes of their own.
   */
  handlerAt: number | undefined
  /** It was too late to begin, so its handler was not called. */
  isLate = false
  /** Its time limits, from its begin on. */
  limits: { stop(): void }[] | undefined
  /** There is a verdict on it. */
  isDecided = false
  #isGivenUp = false
  #abort: AbortController | undefined
  #abortReason: Error | undefined

  static {
    bindMethods(Execution.prototype, ['progress', 'hold'])
  }

  /** Made at its first use: most handlers do not look at it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#abortReason !== undefined) this.#abort.abort(this.#abortReason)
    }
    return this.#abort.signal
  }

  /** Why this execution was told to stop; undefined if it was not. */
  get abortReason(): Error | undefined {
    return this.#abortReason
  }

  get phase(): Phase {
    if (this.#isGivenUp) return 'abandoned'
    if (this.begunAt === undefined) return 'claimed'
    return this.#abortReason === undefined ? 'running' : 'aborted'
  }

  /** Tells the handler to stop; its return value or error still counts. The first reason stays. */
  abort(reason: Error): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#abort?.abort(reason)
  }

  /** Aborts, and no longer waits for the handler. */
  giveUp(reason: Error): void {
    this.abort(reason)
    this.#isGivenUp = true
  }

  /**
   * Throws the reason of its abort, and `InvalidArgumentError` if its run has ended otherwise. `call`: the method that
   * was called.
   */
  refuseOver(call: string): void {
    if (this.#abortReason !== undefined) throw this.#abortReason
    if (!this.isDecided) return
    throw new InvalidArgumentError(
      `${call} was called when the run had ended, and does nothing: its handler had returned. Await everything that may call it before the handler returns.`,
    )
  }

  hold(when: HoldTime, options?: HoldOptions): void {
    if (this.isDecided)
      throw new InvalidArgumentError('ctx.hold() was called when the run had ended, and holds nothing.')
    const forMs = holdTimeMs(when, options, systemClock.now(), 'ctx.hold')
    this.heldMs = Math.max(this.heldMs ?? 0, forMs)
  }

  progress(fraction: number, note?: string): void {
    const part = fraction >= 2 ? fraction / 100 : fraction
    const clamped = Number.isFinite(part) ? Math.min(Math.max(part, 0), 1) : 0
    const progress =
      note === undefined
        ? { fraction: clamped }
        : { fraction: clamped, note: String(note).slice(0, longestNote).toWellFormed() }
    for (const job of this.leased) job.unsentProgress = progress
    this.lastProgress = progress
  }
}

/** The execution of one job: the fast path, because nearly every job takes it. */
export class JobExecution extends Execution implements JobContext, Noting {
  readonly claim: Claim
  readonly task: AnySingleTask
  leased: readonly Leased[]
  /** As stored; later as the schema returns it. */
  input: unknown
  lease: HeldLease | undefined
  unsentProgress: Progress | undefined
  unsentLog = ''
  kept: Noting['kept']
  /** Of a join, once it is loaded. Declared only: other jobs have no such field. */
  declare joined?: Joined<JoinSets>
  /** Of a run whose handler has ended the job in a transaction, if that commits. Declared only, too. */
  declare endsInside?: boolean
  /** Of a run whose handler sleeps or waits: how it is to end. Declared only, too. */
  declare suspension?: Suspension
  #steps: JobSteps | undefined
  readonly #meta: JobMeta
  #fields: FieldWriter | undefined
  readonly #notes: JobUpdates
  readonly #client: ChildClient | undefined
  #children: ChildCalls | undefined
  #job: RunningJob | undefined

  static {
    const sends = [
      'enqueue',
      'enqueueMany',
      'enqueueIn',
      'completeIn',
      'flow',
      'progress',
      'log',
      'checkpoint',
    ] as const
    bindMethods(JobExecution.prototype, [...sends, 'step', 'sleep', 'waitFor'])
  }

  /** `meta`: as stored. `client`: enqueues for its handler; absent if no handler runs in this process. */
  constructor(
    claim: Claim,
    task: AnySingleTask,
    input: unknown,
    meta: JobMeta,
    notes: JobUpdates,
    client?: ChildClient,
  ) {
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

  /** Looked up at its use: most handlers do not look at it. */
  get context(): unknown {
    return this.#client!.context
  }

  /** For a task with joins, before its handler is called. Throws the errors of `joinedMembers`. */
  async loadJoined(sets: ReadonlyMap<string, MemberSet>): Promise<void> {
    const { claim } = this
    if (claim.isJoin !== true)
      throw new InvalidJobError(
        `job '${claim.id}' was enqueued without jobs to wait for, and its task now has \`joins\`: its handler would miss them. Give the new task another name, and keep the old one until its jobs have run.`,
      )
    this.joined = await this.#client!.joined(this, sets)
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
    refuseWait(this, this.claim, job)
    return job as HandleOf<T>
  }

  async enqueueMany(...args: ManyArguments): Promise<never> {
    this.refuseOver('ctx.enqueueMany()')
    const items = itemsOf(args).map(({ task, input, options }) => this.#calls.item(task, input, options))
    // One mark for the whole call: thousands of children cannot be remembered one by one.
    const call = namesAsOne(items)
    const isDone = this.#notes.isDone(this, call)
    const jobs = await this.#client!.enqueueItems(isDone ? items.map((item) => ({ ...item, isDone })) : items)
    this.#notes.done(this, call)
    for (const job of jobs) refuseWait(this, this.claim, job)
    return jobs as never
  }

  /** A child that is rolled back was never enqueued: no call is noted as made. */
  enqueueIn(tx: object, task: DefinedTask, input?: unknown, options?: object): never {
    this.refuseOver('ctx.enqueueIn()')
    return this.#client!.enqueueIn(tx, this.#calls.item(task, input, options)) as never
  }

  async completeIn(tx: object): Promise<void> {
    this.refuseOver('ctx.completeIn()')
    try {
      await this.#client!.completeIn(tx, this.claim)
    } catch (error) {
      throw this.endsInside && hasCode(error, 'lease-lost') ? completedAgain() : error
    }
    this.endsInside = true
  }

  async flow<Returned>(build: (flow: Flow) => Returned, { key }: ChildOptions = {}): Promise<FlowHandles<Returned>> {
    this.refuseOver('ctx.flow()')
    const isDone = (name: string) => this.#notes.isDone(this, name)
    const done = (name: string, jobs: readonly JobHandle[]) => {
      this.#notes.done(this, name)
      for (const job of jobs) refuseWait(this, this.claim, job)
    }
    return this.#client!.flow(build, this.#calls.flow(key, isDone, done))
  }

  get #calls(): ChildCalls {
    this.#children ??= new ChildCalls(this.claim, this.#meta, this.#client!)
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
    return mayBeLeft(this.#notes.checkpoint(this, value))
  }

  step<T>(name: string, run: (call: StepCall) => T | Promise<T>): Promise<T> {
    return this.#stepping('ctx.step()', (steps) => steps.step(name, run))
  }

  sleep(name: string, time: Duration): Promise<void> {
    return this.#stepping('ctx.sleep()', (steps) => steps.sleep(name, time))
  }

  waitFor(signal: AnySignal, options?: { readonly timeout?: Duration | undefined }): Promise<never> {
    return this.#stepping('ctx.waitFor()', (steps) => steps.waitFor(signal, options)) as Promise<never>
  }

  /** Undefined before the first use. */
  get steps(): JobSteps | undefined {
    return this.#steps
  }

  #stepping<T>(call: string, work: (steps: JobSteps) => Promise<T>): Promise<T> {
    return mayBeLeft(this.#stepped(call, work))
  }

  async #stepped<T>(call: string, work: (steps: JobSteps) => Promise<T>): Promise<T> {
    this.refuseOver(call)
    this.#steps ??= new JobSteps(this, this.#notes.steps)
    return work(this.#steps)
  }

  get life(): string | undefined {
    return lifeIn(this.#meta)
  }

  /** Made at its first use: most handlers write none. */
  get fields(): FieldWriter {
    this.#fields ??= {
      set: (fields) => mayBeLeft(this.#notes.setFields(this, fields)),
      get: () => mayBeLeft(this.#notes.readFields(this)),
    }
    return this.#fields
  }

  get lastCheckpoint(): unknown {
    return this.#notes.lastCheckpoint(this.claim)
  }
}

/** A handler that forgets to await a call must not end its process by a rejection that nobody handles. */
function mayBeLeft<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

/**
 * While the handler of this claim runs, it must not wait for the job if that is in its own queue: once every slot waits
 * so, nothing goes on.
 */
export function refuseWait(execution: Execution, { queue }: Claim, job: JobHandle): void {
  if (job.queue !== queue) return
  job.noWait = () =>
    execution.isDecided
      ? undefined
      : new InvalidArgumentError(
          `a handler must not wait for the result of job '${job.id}' of queue '${queue}', which it runs in itself: once every slot waits like this, nothing goes on. End the handler, and let a job of a task with \`joins\` go on: ctx.enqueue(next, input, { after: … }). Or give the task of the job a queue of its own.`,
        )
}

/** The call of its handler, as middleware sees it: task, input and context are of the kind of the execution. */
export function runOf(ctx: Execution): TaskRun {
  const { task, input } = ctx
  return { task, input, ctx } as object as TaskRun
}

/** Whether it runs in a process of its own. */
export function isIsolated(execution: Execution): execution is JobExecution {
  return execution instanceof JobExecution && execution.task.isolation !== undefined
}

function completedAgain(): InvalidArgumentError {
  return new InvalidArgumentError(
    'ctx.completeIn() was called again in this run, and the job is not there: the transaction has ended it already, or the lease is lost. Call it once in a transaction, as its last statement.',
  )
}

/** The view of a job's claim that its handler receives. `stored`: its meta, as it is stored. */
export function runningJob(claim: Claim, task: AnyTask, stored: JobMeta): RunningJob {
  return {
    id: claim.id,
    // With a task that runs any job, the job keeps its own name.
    task: isNameOf(task, claim.task) ? task.name : claim.task,
    queue: claim.queue,
    priority: claim.priority,
    ...(claim.group === undefined ? {} : { group: claim.group }),
    attempt: claim.attempt,
    crashes: claim.crashes,
    fence: claim.fence,
    meta: ownMeta(stored),
    ...originIn(stored, claim),
    createdAt: new Date(claim.createdAt),
    runAt: new Date(claim.runAt),
    ...(claim.waitedUntil === undefined ? {} : { waitedUntil: new Date(claim.waitedUntil) }),
    ...(claim.expiresAt === undefined ? {} : { expiresAt: new Date(claim.expiresAt) }),
    ...(claim.error === undefined ? {} : { lastError: ownError(claim.error) }),
  }
}

/** The meta of a job or payload, which must be an object. Throws `CodecError`. */
export function metaOf(value: unknown): JobMeta {
  if (value === undefined) return {}
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as JobMeta
  throw new CodecError('meta is not an object')
}

/**
 * Makes these methods of a context work detached as well, as in `const { log, progress } = ctx`. Each is bound at its
 * first use, so that a context costs nothing for unused ones. Throws `TypeError` for a name that is not one of the
 * prototype's own methods.
 */
export function bindMethods<T extends object>(prototype: T, names: readonly (keyof T)[]): void {
  for (const name of names) {
    const method: unknown = Object.getOwnPropertyDescriptor(prototype, name)?.value
    if (typeof method !== 'function') throw new TypeError(`'${String(name)}' is no method of its own`)
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: T) {
        return method.bind(this)
      },
    })
  }
}
