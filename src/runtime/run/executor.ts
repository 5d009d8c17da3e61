/**
 * The executor: runs an execution through its task's handler and gives the verdicts on its claims. It knows no store.
 */

import { hasCode, InvalidArgumentError } from '../../core/errors.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { MemberSet } from '../../core/task/join-sets.js'
import { type Middleware, type TaskRun, throughLayers } from '../../core/task/middleware.js'
import { type Schema, validated } from '../../core/task/schema.js'
import type { AnyPlainTask } from '../../core/task/task.js'
import type { Claim } from '../../stores/contract/claim.js'
import { BatchExecution, BatchedJob, ManyExecution } from './batch-execution.js'
import { badPayload, checkedInputs } from './claim-decoder.js'
import { type Execution, type JobExecution, type Leased, runOf } from './execution.js'
import { RunSuspended } from './job-steps.js'
import { emitStarted, hookFailed, refOf } from './run-events.js'
import { TimeLimits } from './time-limits.js'
import {
  cancelledWhileRunning,
  interrupted,
  leaseLost,
  mayComeAgain,
  retryDelayMs,
  type Suspension,
  type Verdict,
  verdictInBatch,
  verdictOnFailure,
  verdictOnReturn,
  verdictOnSuspension,
  withHold,
} from './verdict.js'

/** Receives what becomes of executions. */
export interface RunReport {
  /** Each of its claims has a verdict, in their order. Called once, before `released`. */
  decided(execution: Execution, verdicts: readonly Verdict[]): void
  /** Its handler has ended. That is later than the verdict if it ran over its time or ignored its signal. */
  released(execution: Execution): void
}

const tooLate: Verdict = { kind: 'release', delayMs: 0, reason: 'late' }
/** `shouldRun` is not asked more often about the same job. */
const leastPostponementMs = 1_000

/**
 * For each execution it
 *
 * 1. emits that its jobs have started, and starts the time limit;
 * 2. checks the inputs against the schema, and asks `shouldRun`;
 * 3. calls the handler through the middleware, unless a throttled job is too late by then;
 * 4. gives a verdict on each job, by what was returned or thrown;
 * 5. stops the time limit, and reports the verdicts, once;
 * 6. reports that the handler has ended.
 *
 * An execution that is given up, at its time limit or because the worker stops, has its verdicts at once, whatever the
 * handler does later.
 */
export class Executor {
  readonly #surroundings: WorkerSurroundings
  readonly #report: RunReport
  readonly #layers: readonly NonNullable<Middleware['run']>[]
  readonly #limits: TimeLimits
  readonly #hookFailed: (hook: string, error: unknown) => void

  constructor(surroundings: WorkerSurroundings, middleware: readonly Middleware[], report: RunReport) {
    const { events, clock } = surroundings
    this.#surroundings = surroundings
    this.#report = report
    this.#hookFailed = hookFailed(events)
    this.#limits = new TimeLimits(
      events,
      (execution, reason) => this.giveUp(execution, reason),
      () => clock.mono(),
    )
    this.#layers = middleware.flatMap((layer) => layer.run?.bind(layer) ?? [])
  }

  /**
   * Calls its handler. Reports the verdicts and then, perhaps later, the handler's end; the promise resolves after
   * that. Never rejects.
   */
  run(execution: Execution): Promise<void> {
    const { events, worker } = this.#surroundings
    for (const { claim } of execution.leased) emitStarted(events, claim, worker)
    this.#limits.start(execution)
    return execution instanceof ManyExecution ? this.#runMany(execution) : this.#runJob(execution as JobExecution)
  }

  async #runJob(execution: JobExecution): Promise<void> {
    const { task } = execution
    let verdict: Verdict | undefined
    let thrown: unknown
    try {
      const isChecked = task.input !== undefined || task.shouldRun !== undefined || task.joins !== undefined
      const refusal = isChecked ? await this.#refusal(execution) : undefined
      verdict = refusal ?? verdictOnReturn(await this.#call(execution))
      if (execution.endsInside && refusal === undefined) verdict = this.#failed(execution, execution, notCommitted())
    } catch (error) {
      thrown = error
    }
    if (execution.steps !== undefined) {
      await execution.steps.rested()
      // Their results are kept as long as the run lasts, and the next run must not call them again.
      const isLast = verdict !== undefined && execution.suspension === undefined && !mayComeAgain(verdict)
      if (!isLast) await execution.steps.ended()
    }
    verdict ??= this.#verdictOnAbort(execution, execution, execution.abortReason, thrown)
    if (execution.endsInside) verdict = { ...verdict, endsInside: true }
    // Whatever a middleware returned or threw.
    if (execution.isLate) verdict = tooLate
    else if (execution.suspension !== undefined) verdict = this.#suspended(execution, execution.suspension, thrown)
    this.#decide(execution, [verdict])
    this.#report.released(execution)
  }

  /** Its handler sleeps or waits, whatever it returned or threw after that. It may have been told to stop meanwhile. */
  #suspended(execution: JobExecution, suspension: Suspension, thrown: unknown): Verdict {
    const { abortReason, claim } = execution
    if (abortReason !== undefined) return this.#verdictOnAbort(execution, execution, abortReason, abortReason)
    // It may be the cause of another error, or be lost in a result.
    if (!(thrown instanceof RunSuspended))
      this.#surroundings.events.emit('suspension.swallowed', { ...refOf(claim), text: suspension.text })
    return verdictOnSuspension(suspension, this.#surroundings.clock.mono())
  }

  async #runMany(execution: ManyExecution): Promise<void> {
    const { task } = execution
    let verdicts: readonly Verdict[]
    try {
      if (task.input !== undefined) await checkInputs(task.input, execution)
      if (execution instanceof BatchExecution) await this.#postponeSome(execution)
      const returned = execution.given.length === 0 ? undefined : await this.#call(execution)
      verdicts = this.#verdictsOn(execution, this.#onReturn(execution, returned))
    } catch (error) {
      verdicts = this.#verdictsOnAbort(execution, execution.abortReason, error)
    }
    if (execution.isLate) verdicts = execution.leased.map(() => tooLate)
    this.#decide(execution, verdicts)
    this.#report.released(execution)
  }

  /** Aborts it without waiting for its handler: the verdicts are given now, whatever the handler does later. */
  giveUp(execution: Execution, reason: Error): void {
    execution.giveUp(reason)
    this.#decide(execution, this.#verdictsOnAbort(execution, reason, reason))
  }

  /** The first verdicts count. */
  #decide(execution: Execution, verdicts: readonly Verdict[]): void {
    if (execution.isDecided) return
    execution.isDecided = true
    this.#limits.stop(execution)
    const { heldMs } = execution
    this.#report.decided(
      execution,
      heldMs === undefined ? verdicts : verdicts.map((verdict) => withHold(verdict, heldMs)),
    )
  }

  /** The verdict on an execution whose handler must not be called. */
  async #refusal(execution: JobExecution): Promise<Verdict | undefined> {
    const { task } = execution
    const misfit = task.input === undefined ? undefined : await checkInput(task.input, execution)
    if (misfit !== undefined) return misfit
    if (task.shouldRun !== undefined && !(await task.shouldRun(execution.input, execution.job)))
      return this.#postponed(task, execution.claim)
    return task.joins === undefined ? undefined : this.#load(execution, task.joins)
  }

  /** Reads what became of the members of a join. While the store is away the job goes back, uncounted. */
  async #load(execution: JobExecution, sets: ReadonlyMap<string, MemberSet>): Promise<Verdict | undefined> {
    const { claim } = execution
    const { events } = this.#surroundings
    if (claim.attempt === 1 && events.has('join.ready')) events.emit('join.ready', refOf(claim))
    try {
      await execution.loadJoined(sets)
      return undefined
    } catch (error) {
      if (!hasCode(error, 'store-unavailable')) throw error
      return { kind: 'release', delayMs: leastPostponementMs, reason: 'store-unavailable', error: error.message }
    }
  }

  #call(ctx: Execution): unknown {
    // Input and context are of the kind that the handler takes.
    const { task, input } = ctx as { readonly task: { run?(input: unknown, ctx: unknown): unknown }; input: unknown }
    if (this.#layers.length === 0) return this.#begins(ctx) ? task.run!(input, ctx) : undefined
    return this.#through(runOf(ctx), async () => (this.#begins(ctx) ? task.run!(input, ctx) : refuseLate()))
  }

  /** Takes out of a batch the jobs that must not run now. */
  async #postponeSome(execution: BatchExecution): Promise<void> {
    const { task, leased } = execution
    if (task.shouldRun === undefined) return
    for (const job of leased) {
      if (job.refusal !== undefined || job.failure !== undefined) continue
      try {
        if (!(await task.shouldRun(job.input, job.job))) job.refusal = this.#postponed(task, job.claim)
      } catch (error) {
        job.failure = { error }
      }
    }
  }

  /** The verdict on each job of a batch, from the handler's return value. */
  #onReturn(execution: ManyExecution, returned: unknown): (job: BatchedJob) => Verdict {
    const parts = execution.partsOf(returned)
    if (parts !== undefined) return (job) => this.#guarded(execution, job, () => verdictOnReturn(parts.get(job)))
    const verdict = verdictOnReturn(returned)
    if (verdict.kind !== 'complete') return () => verdict
    execution.refuseResult(verdict.result)
    return () => ({ kind: 'complete', result: undefined })
  }

  /**
   * Whether the handler may begin: a throttle counts the handler's first line, whatever came before. Throws the reason if the
   * execution was aborted meanwhile: its job may run elsewhere by now.
   */
  #begins(execution: Execution): boolean {
    if (execution.abortReason !== undefined) throw execution.abortReason
    // Most queues have no throttle; and a middleware may call the handler again.
    if (execution.start === undefined || execution.handlerAt !== undefined) return true
    const now = this.#surroundings.clock.mono()
    execution.isLate = now > execution.start.to
    if (!execution.isLate) execution.handlerAt = now
    return !execution.isLate
  }

  #through(run: TaskRun, handler: () => Promise<unknown>): Promise<unknown> {
    return throughLayers(
      this.#layers.map((layer) => (next) => layer(run, next)),
      handler,
    )
  }

  #postponed(task: AnyPlainTask, claim: Claim): Verdict {
    const delayMs = Math.max(
      leastPostponementMs,
      retryDelayMs(task.retry.backoff, claim.attempt, this.#surroundings.random, this.#hookFailed),
    )
    return { kind: 'release', delayMs, reason: 'should-run' }
  }

  #verdictsOnAbort(execution: Execution, reason: Error | undefined, error: unknown): Verdict[] {
    const onAbort = (job: Leased) => this.#verdictOnAbort(execution, job, reason, error)
    if (execution instanceof ManyExecution) return this.#verdictsOn(execution, onAbort)
    return execution.leased.map(onAbort)
  }

  /** The verdicts on the jobs of a batch; `ofOthers` gives those of jobs without one. */
  #verdictsOn(execution: ManyExecution, ofOthers: (job: BatchedJob) => Verdict): Verdict[] {
    return execution.leased.map((job) => {
      const { refusal, failure } = job
      if (refusal !== undefined) return refusal
      const verdict =
        failure === undefined
          ? ofOthers(job)
          : this.#guarded(execution, job, () => this.#failed(execution, job, failure.error))
      return verdictInBatch(withDone(verdict, job), hasCode(job.abortReason, 'job-cancelled'))
    })
  }

  /** The verdict on a job whose attempt threw or was given up. `reason`: why we aborted it; undefined if we did not. */
  #verdictOnAbort(execution: Execution, job: Leased, reason: Error | undefined, error: unknown): Verdict {
    return this.#guarded(execution, job, () => this.#judged(execution, job, reason, error))
  }

  /** Guards against any thrown value: it may be a proxy that throws when looked at. */
  #guarded(execution: Execution, job: Leased, judge: () => Verdict): Verdict {
    try {
      return judge()
    } catch {
      return this.#failed(execution, job, new Error('the handler threw a value that cannot be looked at'))
    }
  }

  #judged(execution: Execution, job: Leased, reason: Error | undefined, error: unknown): Verdict {
    // By our reason alone: a handler may throw an error of the same code whenever it runs, and would run again for ever.
    if (hasCode(execution.abortReason, 'job-cancelled')) return cancelledWhileRunning
    if (hasCode(reason, 'worker-stopped')) return interrupted
    if (hasCode(reason, 'lease-lost')) return leaseLost
    // Handlers pass the signal on, and the calls they await end with an AbortError, which does not say why.
    return this.#failed(execution, job, isAbort(error) && reason !== undefined ? reason : error)
  }

  #failed({ task }: Execution, job: Leased, error: unknown): Verdict {
    // Payloads behind those that are done have failed for the first time.
    const attempt = job instanceof BatchedJob && job.done > 0 ? 1 : job.claim.attempt
    return verdictOnFailure(task, error, attempt, this.#surroundings.random, this.#hookFailed)
  }
}

/** It is stored only if the job is still there when its run has ended. */
function notCommitted(): InvalidArgumentError {
  return new InvalidArgumentError(
    'ctx.completeIn(): the handler returned, and the transaction was not committed, so the job has not ended. Commit before the handler returns, and let it throw after a rollback.',
  )
}

/** An id whose payloads are all done is completed, however the run ends. */
function withDone(verdict: Verdict, { done, inputs }: BatchedJob): Verdict {
  if (done === 0 || verdict.kind === 'complete') return verdict
  return done === inputs.length
    ? withHold({ kind: 'complete', result: undefined }, verdict.holdMs)
    : { ...verdict, done }
}

function isAbort(error: unknown): boolean {
  return error instanceof Error && error.name === 'AbortError'
}

/** For the middleware around a handler that is not called. */
function refuseLate(): never {
  throw new Error('it is too late for the job to begin within the limit of its queue; it is put back.')
}

/**
 * Replaces the input by the schema's output. An input that does not fit will never fit; a schema that itself fails may
 * work next time.
 */
async function checkInput(schema: Schema, execution: JobExecution): Promise<Verdict | undefined> {
  try {
    execution.input = await validated(schema, execution.input, 'the stored input')
    return undefined
  } catch (error) {
    if (hasCode(error, 'job-invalid')) return badPayload(error)
    throw error
  }
}

/** The same for each job of a batch: one that does not fit does not disturb the others. */
async function checkInputs(schema: Schema, { leased }: ManyExecution): Promise<void> {
  for (const job of leased) {
    try {
      job.inputs = await checkedInputs(schema, job)
    } catch (error) {
      if (hasCode(error, 'job-invalid')) job.refusal = badPayload(error)
      else job.failure = { error }
    }
  }
}
