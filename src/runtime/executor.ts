/** The executor: runs one claim through its task's handler and says what is to be settled. It knows no store. */

import type { Random } from '../core/clock.js'
import type { Codec } from '../core/codec.js'
import { InvalidJobError, JobCancelledError, LeaseLostError, WorkerStoppedError } from '../core/errors.js'
import type { EventMap, Events } from '../core/events.js'
import { type Middleware, throughLayers } from '../core/middleware.js'
import type { Registry } from '../core/registry.js'
import { type Schema, validated } from '../core/schema.js'
import type { Claim } from '../stores/store.js'
import { Execution, metaOf, refOf } from './execution.js'
import { TimeLimits } from './time-limits.js'
import { retryDelayMs, type Verdict, verdictOnFailure, verdictOnReturn } from './verdict.js'

export interface ExecutorParts {
  readonly registry: Registry
  readonly codec: Codec
  readonly middleware: readonly Middleware[]
  readonly events: Events
  readonly random: Random
  readonly worker: string
  readonly bench: Bench
}

/** Where executions come from, and what hears how they end. */
export interface Bench {
  /** There is a verdict on it. Called once, before `released`. */
  decided(execution: Execution, verdict: Verdict): void
  /** Its handler has ended, which is later than the verdict where it ran over its time or ignored its signal. */
  released(execution: Execution): void
}

/** How long a job waits that this worker cannot run but another version of it may: a rolling deploy is over by then, or goes on. */
export const foreignJobDelayMs = 30_000
/** `shouldRun` is not asked about the same job more often. */
const leastPostponementMs = 1_000

export class Executor {
  readonly #parts: ExecutorParts
  readonly #layers: readonly NonNullable<Middleware['run']>[]
  readonly #limits: TimeLimits

  constructor(parts: ExecutorParts) {
    this.#parts = parts
    this.#limits = new TimeLimits(parts.events, (execution, reason) => this.giveUp(execution, reason))
    this.#layers = parts.middleware.flatMap((layer) => layer.run?.bind(layer) ?? [])
  }

  /** Finds the handler and decodes the claim. What cannot be run here is released uncounted; what cannot be decoded is buried. */
  prepare(claim: Claim): Execution | { readonly verdict: Verdict } {
    const { registry, codec } = this.#parts
    const task = registry.find(claim.task)
    if (task?.run === undefined)
      return { verdict: { kind: 'release', delayMs: foreignJobDelayMs, reason: 'unknown-task' } }
    if ((claim.codec ?? 'json') !== codec.name)
      return { verdict: { kind: 'release', delayMs: foreignJobDelayMs, reason: 'unknown-codec' } }
    try {
      const meta = metaOf(claim.meta === undefined ? undefined : codec.decode(claim.meta))
      return new Execution(claim, task, codec.decode(claim.payload), meta)
    } catch (error) {
      return { verdict: { kind: 'bury', reason: 'bad-payload', error } }
    }
  }

  /** Calls its handler. The bench hears of the verdict and then, perhaps later, of the handler's end; what is returned resolves after that. Never rejects. */
  async run(execution: Execution): Promise<void> {
    const { task, claim } = execution
    const { events, worker, bench } = this.#parts
    if (events.has('job.started')) events.emit('job.started', { ...refOf(claim), attempt: claim.attempt, worker })
    this.#limits.start(execution)
    let verdict: Verdict
    try {
      const isChecked = task.input !== undefined || task.shouldRun !== undefined
      const refusal = isChecked ? await this.#refusal(execution) : undefined
      verdict = refusal ?? verdictOnReturn(await this.#call(execution))
    } catch (error) {
      verdict = this.#verdictOnAbort(execution, execution.abortReason ?? error, error)
    }
    this.#decide(execution, verdict)
    bench.released(execution)
  }

  /** Aborts it, and does not wait for its handler: the verdict falls now, whatever it does later. */
  giveUp(execution: Execution, reason: Error): void {
    execution.giveUp(reason)
    this.#decide(execution, this.#verdictOnAbort(execution, reason))
  }

  /** The first verdict counts. */
  #decide(execution: Execution, verdict: Verdict): void {
    if (execution.isDecided) return
    execution.isDecided = true
    this.#limits.stop(execution)
    this.#parts.bench.decided(execution, verdict)
  }

  /** The verdict on an execution whose handler is not to be called. */
  async #refusal(execution: Execution): Promise<Verdict | undefined> {
    const { task } = execution
    const misfit = task.input === undefined ? undefined : await this.#check(task.input, execution)
    if (misfit !== undefined || task.shouldRun === undefined) return misfit
    return (await task.shouldRun(execution.input, execution.job)) ? undefined : this.#postponed(execution)
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

  #call(ctx: Execution): unknown {
    const { task, input } = ctx
    if (this.#layers.length === 0) return task.run!(input, ctx)
    return throughLayers<unknown>(
      this.#layers.map((layer) => (next) => layer({ task, input, ctx }, next)),
      async () => task.run!(input, ctx),
    )
  }

  #postponed({ task, claim }: Execution): Verdict {
    const delayMs = Math.max(
      leastPostponementMs,
      retryDelayMs(task.retry.backoff, claim.attempt, this.#parts.random, this.#hookFailed),
    )
    return { kind: 'release', delayMs, reason: 'should-run' }
  }

  /** On an attempt that threw or was given up, for a `reason` of its own or of ours. Whatever was thrown: it may be a proxy that throws when looked at. */
  #verdictOnAbort(execution: Execution, reason: unknown, error: unknown = reason): Verdict {
    try {
      return this.#judged(execution, reason, error)
    } catch {
      return this.#failed(execution, new Error('the handler threw a value that cannot be looked at'))
    }
  }

  #judged(execution: Execution, reason: unknown, error: unknown): Verdict {
    if (execution.abortReason instanceof JobCancelledError) return { kind: 'cancel', reason: 'cancelled while running' }
    // Not the job's doing: it goes back as it was, unless the store has given it away already and refuses.
    if (reason instanceof WorkerStoppedError) return { kind: 'release', delayMs: 0, reason: 'interrupted' }
    if (reason instanceof LeaseLostError) return { kind: 'release', delayMs: 0, reason: 'lease-lost' }
    return this.#failed(execution, error)
  }

  #failed({ task, claim }: Execution, error: unknown): Verdict {
    return verdictOnFailure(task, error, claim.attempt, this.#parts.random, this.#hookFailed)
  }

  readonly #hookFailed = (hook: string, error: unknown): void => {
    this.#parts.events.emit('hook.failed', { hook, error } satisfies EventMap['hook.failed'])
  }
}
