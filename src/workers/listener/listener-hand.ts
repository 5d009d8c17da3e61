/** A listener's hand: one claim, with the reports of its caller. */

import { hasCode } from '../../core/error-codes.js'
import { InvalidArgumentError, JobCancelledError, LeaseLostError } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { Meta } from '../../core/job.js'
import type { Random } from '../../core/platform/clock.js'
import type { HoldOptions, HoldTime } from '../../core/task/outcome.js'
import { callForms, callOptions, refuseMore } from '../../core/values/call-check.js'
import { describe } from '../../core/values/describe.js'
import { type Duration, durationMs } from '../../core/values/duration.js'
import { onceThere } from '../../runtime/outage.js'
import { processIdentity } from '../../runtime/process/process-identity.js'
import type { JobExecution } from '../../runtime/run/execution.js'
import { cancelledWhileRunning, type Verdict, verdictOnFailure } from '../../runtime/run/verdict.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { Beat } from '../../stores/contract/job-beat.js'
import type { ExtendAnswer, SettleAnswer } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import type { ListenerClaim, RunPlace } from './listener-claim.js'

/** The listener, as its hand sees it. */
interface HandParts {
  readonly store: Pick<Store, 'extend'>
  readonly leaseMs: number
  readonly events: Events
  readonly random: Random
  /** Settles, however long the store takes. Throws for a result that cannot be kept. */
  readonly settle: (hand: ListenerHand, verdict: Verdict) => Promise<SettleAnswer>
  /** It runs in another process: the death of this one is not its doing. */
  readonly movedOut: (hand: ListenerHand) => void
}

const checkRelease = callOptions('claim.release', { delay: callForms.own })
const checkStarted = callOptions('claim.started', { pid: callForms.own, host: callForms.own })

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

  get meta(): Meta {
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
    const hookFailed = (hook: string, thrown: unknown) => events.emit('hook.failed', { hook, error: thrown })
    return settle(
      this,
      this.#unlessCancelled(verdictOnFailure(this.execution.task, error, this.attempt, random, hookFailed)),
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
    this.hear(answer!)
    return answer!
  }

  /** Follows the store's answer about the claim. */
  hear(answer: ExtendAnswer): void {
    const { queue, id } = this.claim
    if (this.execution.isDecided || answer === 'ok') return
    this.execution.abort(answer === 'lost' ? new LeaseLostError(queue, id) : new JobCancelledError(queue, id))
  }
}

refuseMore('claim.', ListenerHand.prototype, {
  promised: { started: 1, extend: 0, checkpoint: 1, complete: 1, fail: 1, release: 1 },
  direct: { progress: 2, log: 1, hold: 2 },
})
