/**
 * An execution: one call of a handler in this process, from the decoding of its claims to their verdicts. It is also
 * the context that its handler receives.
 */

import { CodecError, InvalidArgumentError } from '../../core/errors.js'
import type { JobRef } from '../../core/events.js'
import type { Meta, Progress } from '../../core/job.js'
import { systemClock } from '../../core/platform/clock.js'
import type { Span } from '../../core/queue/throttle.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { type HoldOptions, type HoldTime, holdTimeMs } from '../../core/task/outcome.js'
import type { Claim } from '../../stores/contract/claim.js'
import { bindMethods } from './bound-methods.js'

const longestNote = 1_000

/** `aborted`: told to stop and not ended yet; `abandoned`: its job was given up, and its handler goes on. */
export type Phase = 'claimed' | 'running' | 'aborted' | 'abandoned'

/** A claim of an execution, with a lease of its own. */
export interface Leased {
  readonly claim: Claim
  /** Its number in the lease keeper; 0 before the lease is kept. */
  leaseNumber: number
  /** The latest progress that no beat has sent yet. */
  unsentProgress: Progress | undefined
  /** Why it was told to stop; undefined if it was not. */
  readonly abortReason: Error | undefined
  /** The execution that describes its run in the job's record; undefined for an ordered id. */
  readonly ran: Execution | undefined
  /** The job is cancelled, or its lease is lost. */
  abort(reason: Error): void
}

export abstract class Execution {
  abstract readonly task: AnyTask
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

/** The job of a claim, as events name it. */
export function refOf({ queue, id, task }: Claim): JobRef {
  return { queue, id, task }
}

/** The meta of a job or payload, which must be an object. Throws `CodecError`. */
export function metaOf(value: unknown): Meta {
  if (value === undefined) return {}
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta
  throw new CodecError('meta is not an object')
}
