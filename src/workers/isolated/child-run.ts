/**
 * The run of an isolated job in a process of its own: runs the job, settles it, and ends the process with all its
 * children. Its guard, a thread, keeps the lease meanwhile.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Worker as Thread } from 'node:worker_threads'
import { hasCode, JobCancelledError, WorkerStoppedError } from '../../core/errors.js'
import { messageOf } from '../../core/messages/describe.js'
import { timerMs } from '../../core/platform/timer.js'
import type { Registry } from '../../core/registry.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { Middleware } from '../../core/task/middleware.js'
import { sharedMono } from '../../runtime/leases/lease-messages.js'
import { addedCounts, type CountsByQueue, JobTally } from '../../runtime/meter.js'
import type { ChildClient } from '../../runtime/run/child-calls.js'
import { ClaimDecoder } from '../../runtime/run/claim-decoder.js'
import type { Execution, JobExecution } from '../../runtime/run/execution.js'
import { Executor, type RunReport } from '../../runtime/run/executor.js'
import { JobUpdates, type Noting } from '../../runtime/run/job-updates.js'
import { emitSettled } from '../../runtime/run/run-events.js'
import { type SettlementRules, Settler, settlementOf } from '../../runtime/run/settlement.js'
import { interrupted, type Verdict, withHold } from '../../runtime/run/verdict.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { SettleAnswer } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { EndHooks } from '../end-hooks.js'
import type { Assignment, ChildMessage, ChildVerdict, GuardedMessage, GuardMessage } from './child-messages.js'
import { drainMark } from './child-output.js'
import { endMembers, members } from './job-group.js'

export interface ChildRunParts extends Surroundings {
  readonly assignment: Assignment
  readonly registry: Registry
  readonly store: Store
  readonly middleware: readonly Middleware[]
  /** Enqueues jobs for the handler. */
  readonly children: ChildClient
  readonly rules: SettlementRules
  /** Whether the job's outcome is counted for the history of its queue. */
  readonly history: boolean
  readonly guard: Thread
  /**
   * Shared with the guard: 1 from before the settle of the job is sent. News of the lease after that is out of date.
   */
  readonly settling: Int32Array
  /** Sends to the worker; resolves with whether the worker is still there. */
  readonly tell: (message: ChildMessage) => Promise<boolean>
  /** Called once all is done; ends the process. */
  readonly finished: () => Promise<never>
}

/** How long a handler may go on after the system has told its process to end. */
const terminationMs = 2_500
/** The last output is sent before the job is settled, unless the store takes longer than this. */
const drainMs = 2_500
/** How long the history may take for counts that a gone worker cannot take. */
const historyMs = 1_000
/** How long the hooks of the job's end may take before the process ends. */
const hookMs = 5_000

export class ChildRun implements RunReport {
  readonly #parts: ChildRunParts
  readonly #settler: Settler
  readonly #executor: Executor
  readonly #notes: JobUpdates
  /** Counts the jobs that its handler enqueues, for its verdict. The worker, if it is there, counts the job itself. */
  readonly #tally = new JobTally()
  #execution: JobExecution | undefined
  /** Processes that were started before the handler was called, such as by a hook. They end with this process. */
  #helpers: ReadonlySet<number> = new Set()
  /** The reason not to begin. */
  #givenUp: Error | undefined
  #drained: () => void = () => {}
  readonly #isKept: Promise<void>
  #kept: () => void = () => {}

  constructor(parts: ChildRunParts) {
    const { store, events, clock, assignment, rules, history, guard } = parts
    this.#parts = parts
    if (history) events.counter = this.#tally
    this.#settler = new Settler(parts, store)
    const surroundings = { ...parts, clock: { now: () => clock.now(), mono: sharedMono }, worker: assignment.worker }
    this.#executor = new Executor(surroundings, parts.middleware, this)
    const tell = (progress: ProgressMessage) => guard.postMessage(progress)
    this.#notes = new PrintedNotes(tell, surroundings, store, rules.maxResultBytes)
    this.#isKept = new Promise((resolve) => {
      this.#kept = resolve
    })
  }

  /** Runs the job. Never rejects, and never resolves: the process ends. */
  async run(): Promise<void> {
    const { assignment, registry, rules, guard, tell, clock, children } = this.#parts
    const { claim } = assignment
    const decoder = new ClaimDecoder(registry, rules.packing, this.#notes, () => clock.now(), children)
    const [execution] = decoder.of([claim], (_, verdict) => void this.#refuse(claim, verdict)) as JobExecution[]
    if (execution === undefined) return
    this.#execution = execution
    execution.slot = assignment.slot
    // A job that has lost its claim must not begin.
    await this.#isKept
    if (this.#givenUp !== undefined) this.#executor.giveUp(execution, this.#givenUp)
    if (execution.isDecided) return
    await this.#isTime(execution)
    // It was given up meanwhile.
    if (this.#givenUp !== undefined && !execution.isDecided) this.#executor.giveUp(execution, this.#givenUp)
    if (execution.isDecided) return
    execution.begunAt = clock.mono()
    this.#helpers = new Set(members())
    guard.postMessage({ kind: 'begun' } satisfies GuardedMessage)
    // Heard before the handler can end the process: a process that dies before that has not failed its job.
    await tell({ kind: 'started' })
    await this.#executor.run(execution)
  }

  /** Waits for the instant that the limit of a throttled queue counted. */
  async #isTime(execution: JobExecution): Promise<void> {
    const { start } = this.#parts.assignment
    if (start === undefined) return
    execution.start = start
    const earlyMs = start.from - sharedMono()
    if (earlyMs > 0) await delay(timerMs(Math.ceil(earlyMs)))
  }

  /** Puts the job back as it was, at once: its worker stops, or is gone. */
  stop(message: string): void {
    this.#giveUp(new WorkerStoppedError(message))
  }

  /**
   * Puts the job back as it was, once its handler has ended, or after 2.5 s: the system wants the process to end. At once if the
   * handler has been told to stop before.
   */
  terminate(message: string): void {
    const execution = this.#execution
    const mayGoOn = execution?.begunAt !== undefined && execution.abortReason === undefined
    if (!mayGoOn) this.stop(message)
    else {
      setTimeout(() => this.stop(message), timerMs(terminationMs))
      execution.abort(new WorkerStoppedError(message))
    }
  }

  /** An uncaught error is the job's own, unless its process was told to end, and perhaps all its programs with it. */
  fail(error: unknown): void {
    const told = this.#execution?.abortReason
    if (hasCode(told, 'worker-stopped')) this.#giveUp(told)
    else this.#giveUp(error instanceof Error ? error : new Error(messageOf(error)))
  }

  /** A handler that returns because it was told to stop has not completed its job. */
  decided(execution: Execution, [verdict]: readonly Verdict[]): void {
    const isCutShort = verdict!.kind === 'complete' && hasCode(execution.abortReason, 'worker-stopped')
    void this.#settle(execution as JobExecution, isCutShort ? withHold(interrupted, verdict!.holdMs) : verdict!)
  }

  /** A decided job is settled whatever the handler does. */
  released(): void {}

  #giveUp(reason: Error): void {
    if (this.#execution?.begunAt === undefined) this.#givenUp ??= reason
    else if (!this.#execution.isDecided) this.#executor.giveUp(this.#execution, reason)
  }

  /** Follows a message of the guard. */
  onMessage(message: GuardMessage): void {
    const { assignment, tell, events } = this.#parts
    const { queue, id } = assignment.claim
    switch (message.kind) {
      case 'keeping':
        this.#kept()
        void tell({ kind: 'keeping' })
        return
      case 'cancelled':
        this.#abort(new JobCancelledError(queue, id))
        return
      case 'orphaned':
        this.stop('its worker is gone; the job is released.')
        return
      case 'failed':
        events.emit('store.failed', { call: 'extend', error: new Error(message.message), retryMs: undefined })
        return
      case 'drained':
        this.#drained()
    }
  }

  /** A run that has not begun ends at once. */
  #abort(reason: Error): void {
    const execution = this.#execution
    if (execution?.begunAt !== undefined) execution.abort(reason)
    else if (execution === undefined) this.#givenUp ??= reason
    else if (!execution.isDecided) this.#executor.giveUp(execution, reason)
    // Its lease is no longer renewed, and need not be.
    this.#kept()
  }

  async #refuse(claim: Claim, verdict: Verdict): Promise<void> {
    const { tell } = this.#parts
    // Another version of the program may know the task: the worker puts the job back.
    if (verdict.kind === 'release')
      await tell({ kind: 'unable', error: `${verdict.reason}: ${messageOf(verdict.error)}` })
    else await this.#settled(claim, verdict, 0)
    await this.#parts.finished()
  }

  async #settle(execution: JobExecution, verdict: Verdict): Promise<void> {
    // What is put back can be put back by the worker as well.
    if (verdict.kind !== 'release') void this.#parts.tell({ kind: 'decided' })
    // Another run may begin once the job is settled.
    endMembers(this.#helpers)
    await this.#drain()
    const { events, clock, middleware } = this.#parts
    const now = clock.mono()
    const runMs = now - (execution.begunAt ?? now)
    const hook = new EndHooks(middleware, events).of(execution, [verdict], runMs)
    const answer = await this.#settled(execution.claim, verdict, runMs, execution)
    await endsWithin(hookMs, Promise.resolve(hook?.answered(execution.claim.id, answer)))
    await this.#parts.finished()
  }

  /**
   * Settles, however long the store takes, and reports to the worker, or if that is gone to the watchers of the queue.
   */
  async #settled(claim: Claim, verdict: Verdict, runMs: number, execution?: JobExecution): Promise<SettleAnswer> {
    const { assignment, rules, events, guard, settling, tell } = this.#parts
    const item = settlementOf(claim, verdict, assignment.results, rules, execution, runMs)
    const update = execution === undefined ? undefined : this.#notes.lastUpdate(execution, verdict)
    Atomics.store(settling, 0, 1)
    const answer = await new Promise<SettleAnswer>((resolve) =>
      this.#settler.settle(item, (answered) => resolve(answered ?? 'lost'), update),
    )
    guard.postMessage({ kind: 'settled' } satisfies GuardedMessage)
    const counts = this.#tally.take()
    const isHeard = await tell({ kind: 'settled', verdict: childVerdictOf(verdict, answer, runMs, counts) })
    // A worker that hears the report emits and counts it as its own.
    if (!isHeard) {
      emitSettled(events, claim, verdict, answer, runMs)
      await this.#keepCounts(addedCounts(counts, this.#tally.take()))
    }
    return answer
  }

  async #keepCounts(counts: CountsByQueue): Promise<void> {
    const { history } = this.#parts.store
    if (history === undefined || counts.size === 0) return
    // Its worker was there when it started, and has counted the start.
    const entries = [...counts].map(([queue, counted]) => ({ queue, agoMs: 0, counts: { ...counted, started: 0 } }))
    await endsWithin(
      historyMs,
      history.add(entries).catch(() => {}),
    )
  }

  /** Makes the guard send the last output before the job is settled. */
  async #drain(): Promise<void> {
    const drained = new Promise<void>((resolve) => {
      this.#drained = resolve
    })
    process.stdout.write(drainMark)
    this.#parts.guard.postMessage({ kind: 'drain' } satisfies GuardedMessage)
    await endsWithin(drainMs, drained)
  }
}

function childVerdictOf(verdict: Verdict, answer: SettleAnswer, runMs: number, counts: CountsByQueue): ChildVerdict {
  const enqueued = [...counts].flatMap(([queue, counts]) => (counts.enqueued > 0 ? [[queue, counts.enqueued]] : []))
  return {
    ...{ kind: verdict.kind, answer, runMs },
    ...('delayMs' in verdict ? { delayMs: verdict.delayMs } : {}),
    ...(verdict.holdMs === undefined ? {} : { holdMs: verdict.holdMs }),
    ...('last' in verdict ? { last: verdict.last } : {}),
    ...('reason' in verdict && verdict.reason !== undefined ? { reason: verdict.reason } : {}),
    ...('error' in verdict && verdict.error !== undefined ? { error: messageOf(verdict.error) } : {}),
    ...(enqueued.length > 0 ? { enqueued: Object.fromEntries(enqueued) } : {}),
  }
}

type ProgressMessage = GuardedMessage & { readonly kind: 'progress' }

const progressGapMs = 100

/** The updates of the job: its log is printed, and its progress goes to the guard. */
class PrintedNotes extends JobUpdates {
  readonly #tell: (progress: ProgressMessage) => void
  #sentAt = Number.NEGATIVE_INFINITY
  #timer: NodeJS.Timeout | undefined

  constructor(tell: (progress: ProgressMessage) => void, ...updates: ConstructorParameters<typeof JobUpdates>) {
    super(...updates)
    this.#tell = tell
  }

  /** The handler's log lines come between its other output. */
  override log(_: unknown, text: string): void {
    process.stdout.write(`${String(text).toWellFormed()}\n`)
  }

  /** Straight to the guard: a handler that blocks this loop would otherwise report nothing. */
  override progressed(job: Noting): void {
    super.progressed(job)
    clearTimeout(this.#timer)
    const earlyMs = this.#sentAt + progressGapMs - performance.now()
    if (earlyMs <= 0) this.#send(job)
    else this.#timer = setTimeout(() => this.#send(job), timerMs(earlyMs))
  }

  #send(job: Noting): void {
    const { unsentProgress: progress } = job
    // It has been sent with the job's last beat.
    if (progress === undefined) return
    this.#sentAt = performance.now()
    job.unsentProgress = undefined
    this.#tell({ kind: 'progress', ...progress })
  }
}
