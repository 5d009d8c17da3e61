/** A listener's claim: the job as its caller holds it, and the methods that report on it until it is settled. */

import { hasCode, InvalidArgumentError, InvalidJobError, JobCancelledError, LeaseLostError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { JobMeta, RunningJob } from '../../core/job/job.js'
import type { FieldWriter } from '../../core/job/job-fields.js'
import { describe } from '../../core/messages/describe.js'
import type { Random } from '../../core/platform/clock.js'
import { type AnyTask, isNameOf, refuseNoTask } from '../../core/task/any-task.js'
import type { SetsOf } from '../../core/task/enqueue-options.js'
import type { Joined, JoinSets, MemberSet } from '../../core/task/join-sets.js'
import type { HoldOptions, HoldTime } from '../../core/task/outcome.js'
import type { DefinedTask } from '../../core/task/task-definition.js'
import { callForms, callOptions, refuseMore } from '../../core/values/call-check.js'
import { type Duration, durationMs } from '../../core/values/duration.js'
import { onceThere } from '../../runtime/outage.js'
import { processIdentity } from '../../runtime/process/process-identity.js'
import type { JobExecution } from '../../runtime/run/execution.js'
import { hookFailed } from '../../runtime/run/run-events.js'
import { cancelledWhileRunning, type Verdict, verdictOnFailure } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Beat } from '../../stores/contract/job-beat.js'
import type { ExtendAnswer, SettleAnswer } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'

/** The place where the job runs. */
interface RunPlace {
  /** Default: this process. */
  readonly pid?: number
  /** Default: this host. */
  readonly host?: string
}

/**
 * A claim from `listener.next()` or `listener.attach()`. Its lease is renewed while the listener lives, also while the
 * store is away: only the store can say that the claim is lost.
 *
 * `complete`, `fail` and `release` settle it, and wait while the store is away. They answer `'ok'`, or that it was too
 * late: `'lost'`, the claim is settled already or its lease has ended and was taken over; `'gone'`, the job no longer
 * exists.
 */
export interface ListenerClaim<Input = unknown> {
  readonly id: string
  /** Any name: the listener does not know the task's definition. */
  readonly task: string
  readonly queue: string
  /** As it was enqueued; no schema has checked it here. */
  readonly input: Input
  readonly meta: JobMeta
  /** The job whose handler enqueued it by `ctx.enqueue()`; undefined if there is none. */
  readonly parent: RunningJob['parent'] | undefined
  /** The span that enqueued it, if a tracer or a request has named one. */
  readonly trace: RunningJob['trace'] | undefined
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /**
   * Grows with every claim of this job. Pass it to the systems that you write to, and let them refuse a smaller one.
   */
  readonly fence: number
  /** The last value stored by `checkpoint`; undefined if there is none. Throws `CodecError` if it cannot be decoded. */
  readonly lastCheckpoint: unknown
  /**
   * What became of the jobs that this one waited for, as the handler of its task finds it in `ctx.joined`. `task`: the
   * definition, which names its sets. Rejects with `InvalidArgumentError` for another task or one without `joins`, with
   * `InvalidJobError` if the job waited for nobody or for other sets, and with `CodecError` for a result that this
   * process cannot read. Nothing is settled then.
   */
  joined<T extends DefinedTask>(task: T): Promise<Joined<SetsOf<T>>>
  /** Text for `listener.attach()` in another process. It is no secret: letters, digits, `-`, `_` and `.`. */
  readonly token: string
  /**
   * Aborted with `JobCancelledError`, `LeaseLostError` or `TimeLimitError`, or with `WorkerStoppedError` if the
   * listener was closed. You must still settle the claim after an abort: for a cancelled job call `fail()` or
   * `release()`. The signal is silent once another process has attached.
   */
  readonly signal: AbortSignal
  /**
   * Records that the job runs from now on, and where. A job that runs in another process is not put back when the
   * listener is closed. Waits while the store is away. Answers like `extend()`.
   */
  started(place?: RunPlace): Promise<ExtendAnswer>
  /**
   * Renews the lease now, in addition to the beats. `'cancel'`: renewed, but the job is to be cancelled. Rejects with
   * `StoreUnavailableError`.
   */
  extend(): Promise<ExtendAnswer>
  /** Like `ctx.progress()`: sent within about a second, the latest wins. Never throws. */
  progress(fraction: number, note?: string): void
  /** Like `ctx.log()`: sent within about a second. Never throws. */
  log(text: string): void
  /** Like `ctx.hold()`: comes with the call that settles the claim. */
  hold(when: HoldTime, options?: HoldOptions): void
  /** Like `ctx.fields`: small named values that the job's record shows. */
  readonly fields: FieldWriter
  /**
   * Like `ctx.checkpoint()`: resolves once the store has it. Waits while the store is away. Rejects with
   * `InvalidArgumentError` if the claim is settled before.
   */
  checkpoint(value: unknown): Promise<void>
  /**
   * Completes the job. The store keeps a result for 7 days, unless the queue says otherwise; null is a result,
   * undefined is none. Rejects with `PayloadTooLargeError` or `CodecError` if the result cannot be kept: nothing is
   * settled then.
   */
  complete(result?: unknown): Promise<SettleAnswer>
  /** Settles the job as a counted failure: into the morgue or, with the `retry` of the listener, tried again. */
  fail(error: unknown): Promise<SettleAnswer>
  /** Puts the job back, uncounted: at once in its old place, or after `delay`. */
  release(options?: { readonly delay?: Duration }): Promise<SettleAnswer>
}

/** The parts of the listener that a claim uses. */
interface HandParts {
  readonly store: Pick<Store, 'extend'>
  readonly leaseMs: number
  readonly events: Events
  readonly random: Random
  /** Settles, however long the store takes. Throws for a result that cannot be kept. */
  readonly settle: (hand: ListenerHand, verdict: Verdict) => Promise<SettleAnswer>
  /** What became of the members of its sets. */
  readonly joined: (sets: ReadonlyMap<string, MemberSet>) => Promise<Joined<JoinSets>>
  /** It runs in another process: the death of this one is not its doing. */
  readonly movedOut: (hand: ListenerHand) => void
}

const checkRelease = callOptions('claim.release', { delay: callForms.own })
const checkStarted = callOptions('claim.started', { pid: callForms.own, host: callForms.own })

/**
 * The claim as the listener holds it, with the reports of its caller.
 * @internal
 */
export class ListenerHand implements ListenerClaim {
  readonly execution: JobExecution
  readonly token: string
  readonly #parts: HandParts
  #elsewhere: number | undefined

  constructor(execution: JobExecution, token: string, parts: HandParts) {
    this.execution = execution
    this.token = token
    this.#parts = parts
  }

  get claim(): Claim {
    return this.execution.claim
  }

  /** The pid of the other process in which it was reported to run. */
  get elsewhere(): number | undefined {
    return this.#elsewhere
  }

  get id(): string {
    return this.claim.id
  }

  get task(): string {
    return this.claim.task
  }

  get queue(): string {
    return this.claim.queue
  }

  get input(): unknown {
    return this.execution.input
  }

  get meta(): JobMeta {
    return this.execution.job.meta
  }

  get parent(): ListenerClaim['parent'] {
    return this.execution.job.parent
  }

  get trace(): ListenerClaim['trace'] {
    return this.execution.job.trace
  }

  get attempt(): number {
    return this.claim.attempt
  }

  get crashes(): number {
    return this.claim.crashes
  }

  get fence(): number {
    return this.claim.fence
  }

  get lastCheckpoint(): unknown {
    return this.execution.lastCheckpoint
  }

  get fields(): ListenerClaim['fields'] {
    return this.execution.fields
  }

  get signal(): AbortSignal {
    return this.execution.signal
  }

  async started(given: RunPlace = {}): Promise<ExtendAnswer> {
    checkStarted(given)
    const { pid = process.pid, host } = given
    if (!Number.isSafeInteger(pid) || pid < 1)
      throw new InvalidArgumentError(`\`pid\` must be the number of a process; got ${describe(pid)}.`)
    const here = processIdentity(pid)
    const isHere = host === undefined || host === here.host
    if (!isHere || pid !== process.pid) {
      this.#elsewhere = pid
      this.#parts.movedOut(this)
    }
    // Others can see whether a process lives only on this machine.
    const place = isHere && here.ticks > 0 ? here : { host: host ?? here.host, pid }
    return this.#say({ startedMs: 0, ...place })
  }

  async extend(): Promise<ExtendAnswer> {
    return this.#sayOnce({})
  }

  async joined<T extends DefinedTask>(given: T): Promise<Joined<SetsOf<T>>> {
    refuseNoTask(given, 'claim.joined()')
    const task: AnyTask = given
    const { id, queue } = this.claim
    if (!isNameOf(task, this.task))
      throw new InvalidArgumentError(
        `claim.joined() was given task '${task.name}', and job '${id}' in queue '${queue}' is of task '${this.task}'.`,
      )
    if (task.joins === undefined)
      throw new InvalidArgumentError(`claim.joined() was given task '${task.name}', which has no \`joins\`.`)
    if (this.claim.isJoin !== true)
      throw new InvalidJobError(`job '${id}' in queue '${queue}' was enqueued without jobs to wait for.`)
    return (await this.#parts.joined(task.joins)) as Joined<SetsOf<T>>
  }

  progress(fraction: number, note?: string): void {
    this.execution.progress(fraction, note)
  }

  hold(when: HoldTime, options?: HoldOptions): void {
    this.execution.hold(when, options)
  }

  log(text: string): void {
    this.execution.log(text)
  }

  checkpoint(value: unknown): Promise<void> {
    return this.execution.checkpoint(value)
  }

  async complete(result?: unknown): Promise<SettleAnswer> {
    return this.#parts.settle(this, { kind: 'complete', result })
  }

  async fail(error: unknown): Promise<SettleAnswer> {
    const { events, random, settle } = this.#parts
    return settle(
      this,
      this.#unlessCancelled(verdictOnFailure(this.execution.task, error, this.attempt, random, hookFailed(events))),
    )
  }

  async release(options: { readonly delay?: Duration } = {}): Promise<SettleAnswer> {
    checkRelease(options)
    const delayMs = options.delay === undefined ? 0 : durationMs(options.delay, 'release({ delay })')
    return this.#parts.settle(this, this.#unlessCancelled({ kind: 'release', delayMs, reason: 'released' }))
  }

  /** A cancelled job does not come back. */
  #unlessCancelled(verdict: Verdict): Verdict {
    if (!hasCode(this.execution.abortReason, 'job-cancelled')) return verdict
    return cancelledWhileRunning
  }

  /** Tries until the store has it. */
  async #say(beat: Beat): Promise<ExtendAnswer> {
    const { events, random } = this.#parts
    const failed = (error: unknown, retryMs: number) => events.emit('store.failed', { call: 'extend', error, retryMs })
    return (await onceThere(() => this.#sayOnce(beat), { isOver: () => false, random, failed }))!
  }

  async #sayOnce(beat: Beat): Promise<ExtendAnswer> {
    const { store, leaseMs } = this.#parts
    const { queue, id, fence } = this.claim
    const [answer] = await store.extend([{ queue, id, fence, leaseMs, beat }])
    this.onExtended(answer!)
    return answer!
  }

  /** Follows the store's answer about the claim. */
  onExtended(answer: ExtendAnswer): void {
    const { queue, id } = this.claim
    if (this.execution.isDecided || answer === 'ok') return
    this.execution.abort(answer === 'lost' ? new LeaseLostError(queue, id) : new JobCancelledError(queue, id))
  }
}

refuseMore('claim.', ListenerHand.prototype, {
  promised: { joined: 1, started: 1, extend: 0, checkpoint: 1, complete: 1, fail: 1, release: 1 },
  direct: { progress: 2, log: 1, hold: 2 },
})
