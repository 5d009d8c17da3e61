/** The executor: runs one claim through its task's handler and says what is to be settled. It knows no store. */

import type { Random } from '../core/clock.js'
import type { Codec } from '../core/codec.js'
import {
  InvalidJobError,
  JobCancelledError,
  LeaseLostError,
  TimeLimitError,
  WorkerStoppedError,
} from '../core/errors.js'
import type { EventMap, Events, JobRef } from '../core/events.js'
import { type Middleware, throughLayers } from '../core/middleware.js'
import { outcomeOf } from '../core/outcome.js'
import type { Registry } from '../core/registry.js'
import { type Schema, validated } from '../core/schema.js'
import type { AnyTask } from '../core/task.js'
import type { Claim } from '../stores/store.js'
import { Execution, metaOf } from './execution.js'
import { retryDelayMs, type Verdict, verdictOnFailure, verdictOnOutcome } from './verdict.js'

export interface ExecutorParts {
  readonly registry: Registry
  readonly codec: Codec
  readonly middleware: readonly Middleware[]
  readonly events: Events
  readonly random: Random
  readonly worker: string
}

/** A claim this process is about to run, or already has the verdict on. */
export type Prepared = { readonly task: AnyTask; readonly execution: Execution } | { readonly verdict: Verdict }

/** How long a job waits that this worker cannot run but another version of it may: a rolling deploy is over by then, or goes on. */
export const foreignJobDelayMs = 30_000
/** What a handler whose time is over has to end by itself before its job is given up; never longer than its time was. */
const abortGraceMs = 5_000
/** `shouldRun` is not asked about the same job more often. */
const leastPostponementMs = 1_000

export class Executor {
  readonly #parts: ExecutorParts
  readonly #layers: readonly NonNullable<Middleware['run']>[]

  constructor(parts: ExecutorParts) {
    this.#parts = parts
    this.#layers = parts.middleware.flatMap((layer) => layer.run?.bind(layer) ?? [])
  }

  /** Finds the handler and decodes the claim. What cannot be run here is released uncounted; what cannot be decoded is buried. */
  prepare(claim: Claim): Prepared {
    const { registry, codec } = this.#parts
    const task = registry.find(claim.task)
    if (task?.run === undefined)
      return { verdict: { kind: 'release', delayMs: foreignJobDelayMs, reason: 'unknown-task' } }
    if ((claim.codec ?? 'json') !== codec.name)
      return { verdict: { kind: 'release', delayMs: foreignJobDelayMs, reason: 'unknown-codec' } }
    try {
      const meta = metaOf(claim.meta === undefined ? undefined : codec.decode(claim.meta))
      return { task, execution: new Execution(claim, task.name, codec.decode(claim.payload), meta) }
    } catch (error) {
      return { verdict: { kind: 'bury', reason: 'bad-payload', error } }
    }
  }

  /**
   * Runs a prepared claim. Resolves with the verdict as soon as there is one; `released` resolves when the handler itself
   * has ended, which is later where it ran over its time or ignored its signal. Never rejects.
   */
  run({ task, execution }: Exclude<Prepared, { verdict: Verdict }>): {
    verdict: Promise<Verdict>
    released: Promise<void>
  } {
    const { events, worker } = this.#parts
    if (events.has('job.started'))
      events.emit('job.started', { ...refOf(execution.claim), attempt: execution.job.attempt, worker })
    const attempt = this.#attempt(task, execution)
    const verdict = new Promise<Verdict>((resolve) => {
      const stopTimers = this.#limit(task, execution)
      const decide = (decided: Verdict) => {
        stopTimers()
        resolve(decided)
      }
      execution.whenGivenUp((reason) => decide(this.#verdictOnAbort(task, reason, execution)))
      void attempt.then(decide)
    })
    return { verdict, released: attempt.then(() => undefined) }
  }

  /** Says when it is slow, aborts it when its time is over, and gives it up when it does not end then. Returns what stops all that. */
  #limit({ name, timeLimitMs, slowAfterMs }: AnyTask, execution: Execution): () => void {
    const { claim } = execution
    const { events } = this.#parts
    const slow =
      slowAfterMs === undefined
        ? undefined
        : setTimeout(() => {
            events.emit('job.slow', { ...refOf(claim), attempt: claim.attempt, runMs: slowAfterMs })
          }, slowAfterMs)
    let timer = setTimeout(() => {
      const over = new TimeLimitError(name, timeLimitMs)
      // Before its listeners are called: what they throw must not leave it without an end.
      timer = setTimeout(() => execution.giveUp(over), Math.min(abortGraceMs, timeLimitMs))
      execution.abort(over)
    }, timeLimitMs)
    return () => {
      clearTimeout(slow)
      clearTimeout(timer)
    }
  }

  async #attempt(task: AnyTask, execution: Execution): Promise<Verdict> {
    try {
      const misfit = task.input === undefined ? undefined : await this.#check(task.input, execution)
      if (misfit !== undefined) return misfit
      if (task.shouldRun !== undefined && !(await task.shouldRun(execution.input, execution.job)))
        return this.#postponed(task, execution)
      const returned = await this.#call(task, execution)
      const outcome = outcomeOf(returned)
      return outcome === undefined ? { kind: 'complete', result: returned } : verdictOnOutcome(outcome)
    } catch (error) {
      return this.#verdictOnAbort(task, execution.abortReason ?? error, execution, error)
    }
  }

  /** Puts the schema's output in the input's place. An input that does not fit will never fit; a schema that breaks down may work next time. */
  async #check(schema: Schema, execution: Execution): Promise<Verdict | undefined> {
    try {
      execution.input = await validated(schema, execution.input, 'the stored input')
      return undefined
    } catch (error) {
      if (error instanceof InvalidJobError) return { kind: 'bury', reason: 'bad-payload', error }
      throw error
    }
  }

  #call(task: AnyTask, ctx: Execution): unknown {
    const { input } = ctx
    if (this.#layers.length === 0) return task.run!(input, ctx)
    return throughLayers<unknown>(
      this.#layers.map((layer) => (next) => layer({ task, input, ctx }, next)),
      async () => task.run!(input, ctx),
    )
  }

  #postponed(task: AnyTask, { job }: Execution): Verdict {
    const delayMs = Math.max(
      leastPostponementMs,
      retryDelayMs(task.retry.backoff, job.attempt, this.#parts.random, this.#hookFailed),
    )
    return { kind: 'release', delayMs, reason: 'should-run' }
  }

  /** On an attempt that threw or was given up, for a `reason` of its own or of ours. Whatever was thrown: it may be a proxy that throws when looked at. */
  #verdictOnAbort(task: AnyTask, reason: unknown, execution: Execution, error: unknown = reason): Verdict {
    try {
      return this.#judged(task, reason, execution, error)
    } catch {
      const hostile = new Error('the handler threw a value that cannot be looked at')
      return verdictOnFailure(task, hostile, execution.job.attempt, this.#parts.random, this.#hookFailed)
    }
  }

  #judged(task: AnyTask, reason: unknown, { abortReason, job }: Execution, error: unknown): Verdict {
    if (abortReason instanceof JobCancelledError) return { kind: 'cancel', reason: 'cancelled while running' }
    // Not the job's doing: it goes back as it was, unless the store has given it away already and refuses.
    if (reason instanceof WorkerStoppedError) return { kind: 'release', delayMs: 0, reason: 'interrupted' }
    if (reason instanceof LeaseLostError) return { kind: 'release', delayMs: 0, reason: 'lease-lost' }
    return verdictOnFailure(task, error, job.attempt, this.#parts.random, this.#hookFailed)
  }

  readonly #hookFailed = (hook: string, error: unknown): void => {
    this.#parts.events.emit('hook.failed', { hook, error } satisfies EventMap['hook.failed'])
  }
}

export function refOf(claim: Claim): JobRef {
  return { queue: claim.queue, id: claim.id, task: claim.task }
}
