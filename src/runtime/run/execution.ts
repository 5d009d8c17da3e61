/** An execution: one call of a handler in the hands of this process, from its decoding to what is to be settled. It is also the context its handler gets. */

import { CodecError, InvalidArgumentError } from '../../core/errors.js'
import type { JobRef } from '../../core/events.js'
import type { Meta, Progress } from '../../core/job.js'
import type { Span } from '../../core/queue/start-window.js'
import type { AnyTask } from '../../core/task/any-task.js'
import type { Claim } from '../../stores/contract/claim.js'
import { bindMethods } from './bound-methods.js'

const longestNote = 1_000

/** `aborted`: told to stop and not ended yet; `abandoned`: its job was given up, and its handler goes on. */
export type Phase = 'claimed' | 'running' | 'aborted' | 'abandoned'

/** A claim of an execution, with a lease of its own. */
export interface Leased {
  readonly claim: Claim
  /** The lease keeper's number for it; 0 before it is kept. */
  leaseNumber: number
  /** The latest progress that no beat has carried yet. */
  unsentProgress: Progress | undefined
  /** Why it was told to stop, if it was. */
  readonly abortReason: Error | undefined
  /** What tells of its run where its record is kept; undefined of an ordered id. */
  readonly ran: Execution | undefined
  /** It is cancelled, or its lease is lost. */
  abort(reason: Error): void
}

export abstract class Execution {
  abstract readonly task: AnyTask
  /** The claims that it runs: one, or those of a batch. Before it begins, some may be taken out. */
  abstract leased: readonly Leased[]
  lastProgress: Progress | undefined
  /** When its handler was called, on the monotonic clock; undefined while it waits for a slot. */
  begunAt: number | undefined
  /** Of a throttled queue: between which instants, on the monotonic clock, its handler must begin. */
  start: Span | undefined
  /**
   * When the first line of its handler was about to run, on the monotonic clock: of a job of a throttled queue, or one that
   * runs in a process of its own.
   */
  handlerAt: number | undefined
  /** It was too late for its handler to begin, which was not called. */
  isLate = false
  /** There is a verdict on it. */
  isDecided = false
  #isGivenUp = false
  #abort: AbortController | undefined
  #abortReason: Error | undefined

  static {
    bindMethods(Execution.prototype, ['progress'])
  }

  /** Made when it is first asked for: most handlers do not look at it. */
  get signal(): AbortSignal {
    if (this.#abort === undefined) {
      this.#abort = new AbortController()
      if (this.#abortReason !== undefined) this.#abort.abort(this.#abortReason)
    }
    return this.#abort.signal
  }

  /** Why this execution was told to stop, if it was. */
  get abortReason(): Error | undefined {
    return this.#abortReason
  }

  get phase(): Phase {
    if (this.#isGivenUp) return 'abandoned'
    if (this.begunAt === undefined) return 'claimed'
    return this.#abortReason === undefined ? 'running' : 'aborted'
  }

  /** Tells the handler to stop; what it then returns or throws still counts. The first reason stays. */
  abort(reason: Error): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#abort?.abort(reason)
  }

  /** Aborts, and does not wait for the handler any more. */
  giveUp(reason: Error): void {
    this.abort(reason)
    this.#isGivenUp = true
  }

  /** Throws the reason of its abort, and `InvalidArgumentError` where its run has ended otherwise. `call`: what it is asked for. */
  refuseOver(call: string): void {
    if (this.#abortReason !== undefined) throw this.#abortReason
    if (!this.isDecided) return
    throw new InvalidArgumentError(
      `${call} was called when the run had ended, and does nothing: its handler had returned. Await everything that may call it before the handler returns.`,
    )
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

/** The job of a claim as events name it. */
export function refOf({ queue, id, task }: Claim): JobRef {
  return { queue, id, task }
}

/** The meta of a job or payload, which must be an object. Throws `CodecError`. */
export function metaOf(value: unknown): Meta {
  if (value === undefined) return {}
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta
  throw new CodecError('meta is not an object')
}
