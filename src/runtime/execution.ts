/** An execution: one claim in the hands of this process, from its decoding to what is to be settled. It is also the context its handler gets. */

import { CodecError } from '../core/errors.js'
import type { JobRef } from '../core/events.js'
import type { JobContext, Meta, Progress, RunningJob } from '../core/job.js'
import type { AnyTask } from '../core/task.js'
import type { Claim } from '../stores/store.js'

const longestNote = 1_000

/** `aborted`: told to stop and not ended yet; `abandoned`: its job was given up, and its handler goes on. */
export type Phase = 'claimed' | 'running' | 'aborted' | 'abandoned'

export class Execution implements JobContext {
  readonly claim: Claim
  readonly task: AnyTask
  /** As stored, then as the schema hands it on. */
  input: unknown
  /** The latest progress that no beat has carried yet. */
  unsentProgress: Progress | undefined
  lastProgress: Progress | undefined
  /** When its handler was called, on the monotonic clock; undefined while it waits for a slot. */
  begunAt: number | undefined
  /** There is a verdict on it. */
  isDecided = false
  /** The lease keeper's number for it; 0 before it is kept. */
  leaseNumber = 0
  readonly #meta: Meta
  #job: RunningJob | undefined
  #isGivenUp = false
  #abort: AbortController | undefined
  #abortReason: Error | undefined

  constructor(claim: Claim, task: AnyTask, input: unknown, meta: Meta) {
    this.claim = claim
    this.task = task
    this.input = input
    this.#meta = meta
  }

  /** Made when it is first asked for, as the signal is: most handlers look at neither. */
  get job(): RunningJob {
    this.#job ??= runningJob(this.claim, this.task.name, this.#meta)
    return this.#job
  }

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

  progress(fraction: number, note?: string): void {
    const clamped = Number.isFinite(fraction) ? Math.min(Math.max(fraction, 0), 1) : 0
    this.unsentProgress =
      note === undefined
        ? { fraction: clamped }
        : { fraction: clamped, note: String(note).slice(0, longestNote).toWellFormed() }
    this.lastProgress = this.unsentProgress
  }
}

/** The job of a claim as events name it. */
export function refOf({ queue, id, task }: Claim): JobRef {
  return { queue, id, task }
}

function runningJob(claim: Claim, task: string, meta: Meta): RunningJob {
  return {
    id: claim.id,
    task,
    queue: claim.queue,
    priority: claim.priority,
    attempt: claim.attempt,
    crashes: claim.crashes,
    fence: claim.fence,
    meta,
    createdAt: new Date(claim.createdAt),
    runAt: new Date(claim.runAt),
    ...(claim.error === undefined ? {} : { lastError: claim.error }),
  }
}

/** The meta of a claim, which must be an object. Throws `CodecError`. */
export function metaOf(value: unknown): Meta {
  if (value === undefined) return {}
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Meta
  throw new CodecError('meta is not an object')
}
