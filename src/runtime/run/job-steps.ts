/**
 * The steps of one run of a job: what `ctx.step()`, `ctx.sleep()` and `ctx.waitFor()` do. What earlier runs have reached
 * is read at the first of them. Nothing is replayed: a step that is stored gives its result, and its function is not
 * called.
 */

import { AsyncLocalStorage } from 'node:async_hooks'
import { createHash } from 'node:crypto'
import {
  CodecError,
  hasCode,
  InvalidArgumentError,
  InvalidJobError,
  JobCancelledError,
  LeaseLostError,
  PayloadTooLargeError,
  StepNameError,
} from '../../core/errors.js'
import { describe } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import { stepOwner } from '../../core/packing/seal.js'
import type { StepCall } from '../../core/task/contexts.js'
import { validated } from '../../core/task/schema.js'
import { type AnySignal, isSignal } from '../../core/task/signal.js'
import { callForms, callOptions } from '../../core/values/call-check.js'
import { payloadBytes } from '../../core/values/codec.js'
import { type Duration, durationMs } from '../../core/values/duration.js'
import { digestId } from '../../core/values/ids.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { NewStep, StepList, StoredStep } from '../../stores/contract/steps.js'
import { isSignalEntry } from '../../stores/contract/steps.js'
import { mostStepBytes, mostSteps } from '../../stores/rules/bounds.js'
import type { Suspension } from './verdict.js'

/** Thrown in a handler that sleeps or waits, to end its run. Handlers let it through: it is no failure. */
export class RunSuspended extends Error {
  override readonly name = 'RunSuspended'

  constructor({ text }: Suspension) {
    super(`the job ${text}: let this error through. It ends the run, and is no failure`)
  }
}

/**
 * What the store does for the steps of a job. Both calls wait while it is away, and resolve to undefined once the run is
 * over; they throw `UnsupportedByStoreError` on a store without steps.
 */
export interface StepsClient {
  readonly packing: Packing
  readonly maxPayloadBytes: number
  /** The monotonic clock. */
  mono(): number
  read(run: SteppingRun): Promise<StepList | undefined>
  keep(run: SteppingRun, step: NewStep): Promise<'ok' | 'lost' | 'cancel' | undefined>
}

/** The run, as far as its steps need it. */
interface SteppingRun {
  readonly claim: Claim
  /** Tells its job from those that it replaced; absent if it takes no other's place. */
  readonly life: string | undefined
  readonly lease: { readonly terms: { readonly leaseMs: number } } | undefined
  readonly signal: AbortSignal
  /** There is a verdict on it. */
  readonly isDecided: boolean
  suspension?: Suspension
  abort(reason: Error): void
}

/**
 * Whether the run still holds its job: what a step returns after the time limit of the run is kept as well, and after its process
 * was told to end, as long as the run is not given up.
 */
export function mayKeep({ signal, isDecided }: Pick<SteppingRun, 'signal' | 'isDecided'>): boolean {
  const { aborted, reason } = signal
  return !isDecided && (!aborted || hasCode(reason, 'time-limit-exceeded') || hasCode(reason, 'worker-stopped'))
}

/** The step whose function runs. What that starts in passing, such as the run of another job, may find it too. */
const scope = new AsyncLocalStorage<{ readonly claim: Claim; readonly step: string }>()

/** The name of the step of this run whose function makes the present call; undefined for a call between steps. */
export function stepInside(claim: Claim): string | undefined {
  const inside = scope.getStore()
  return inside?.claim === claim ? inside.step : undefined
}

/** Stores keep UTF-8: a name with half of a character would not be found again, and its step would run in each run. */
const nameForm = 'text of 1 to 200 characters without lone surrogates'
const checkWait = callOptions('ctx.waitFor', { timeout: callForms.duration })

export class JobSteps {
  readonly #run: SteppingRun
  readonly #client: StepsClient
  /** The names given in this run. */
  readonly #given = new Set<string>()
  /** The steps whose functions may still run. */
  readonly #underWay = new Set<Promise<unknown>>()
  /** The sleeps and waits that may yet end the run. */
  readonly #resting = new Set<Promise<unknown>>()
  #known: Promise<KnownSteps> | undefined

  constructor(run: SteppingRun, client: StepsClient) {
    this.#run = run
    this.#client = client
  }

  step<T>(name: string, work: (call: StepCall) => T | Promise<T>): Promise<T> {
    return within(this.#underWay, this.#step(name, work))
  }

  sleep(name: string, time: Duration): Promise<void> {
    return within(this.#resting, this.#sleep(name, time))
  }

  waitFor(signal: AnySignal, options?: { readonly timeout?: Duration | undefined }): Promise<unknown> {
    return within(this.#resting, this.#waitFor(signal, options))
  }

  /** Resolves once each sleep and wait that was called, awaited or not, is over or has become the end of the run. */
  async rested(): Promise<void> {
    while (this.#resting.size > 0) await Promise.allSettled(this.#resting)
  }

  /** Resolves once no step is under way. A run that is given up does not wait for this. */
  async ended(): Promise<void> {
    while (this.#underWay.size > 0) await Promise.allSettled(this.#underWay)
  }

  async #step<T>(name: string, work: (call: StepCall) => T | Promise<T>): Promise<T> {
    this.#take(name, 'ctx.step')
    if (typeof work !== 'function')
      throw new InvalidArgumentError(`ctx.step('${name}', run) must get a function; got ${describe(work)}.`)
    const known = await this.#load()
    const before = known.step(name)
    if (before !== undefined) return this.#resultOf(before, 'step') as T
    known.refuseMore(name)
    const { claim, signal } = this.#run
    const call = { key: stepKey(claim, this.#run.life, name), signal }
    const value = await scope.run({ claim, step: name }, () => work(call))
    const content = this.#packed(name, value, known)
    await this.#keep({ name, kind: 'step', ...content })
    // As a later run gets it: a value that changes on its way through the codec must not do so after a crash only.
    return content.payload === undefined ? (undefined as T) : (this.#unpacked(name, content, 'step') as T)
  }

  async #sleep(name: string, time: Duration): Promise<void> {
    this.#take(name, 'ctx.sleep')
    const forMs = durationMs(time, `ctx.sleep('${name}', time)`)
    const known = await this.#load()
    const before = known.step(name)
    if (before !== undefined && before.kind !== 'sleep') throw otherKind(name, before)
    if (before !== undefined) {
      const delayMs = before.until! - known.now
      if (delayMs <= this.#client.mono() - known.readAt) return
      this.#suspend({ kind: 'sleep', text: sleeps(name), since: known.readAt, delayMs })
    }
    known.refuseMore(name)
    this.#refuseTwo(sleeps(name))
    await this.#keep({ name, kind: 'sleep', forMs })
    this.#suspend({ kind: 'sleep', text: sleeps(name), since: this.#client.mono(), delayMs: forMs })
  }

  async #waitFor(signal: AnySignal, options: { readonly timeout?: Duration | undefined } = {}): Promise<unknown> {
    if (!isSignal(signal))
      throw new InvalidArgumentError(
        `ctx.waitFor(signal) must get a signal of defineSignal(); got ${describe(signal)}.`,
      )
    checkWait(options)
    this.#take(signal.name, 'ctx.waitFor')
    const entry = (await this.#load()).signal(signal.name)
    if (entry === undefined) {
      const { timeout } = options
      const withinMs = timeout === undefined ? undefined : durationMs(timeout, 'ctx.waitFor({ timeout })')
      const awaits = { signal: signal.name, ...(withinMs === undefined ? {} : { withinMs }) }
      this.#suspend({ kind: 'wait', text: `waits for signal '${signal.name}'`, since: this.#client.mono(), awaits })
    }
    if (entry.kind === 'timeout') return undefined
    try {
      const data = this.#resultOf(entry, 'signal')
      const what = `the data of signal '${signal.name}'`
      return signal.data === undefined ? data : await validated(signal.data, data, what)
    } catch (error) {
      throw unfit(error, this.#run.claim, signal.name)
    }
  }

  /** A signal and a step may share a name, as the store keeps them apart. */
  #take(name: unknown, call: 'ctx.step' | 'ctx.sleep' | 'ctx.waitFor'): void {
    if (typeof name !== 'string' || name.length === 0 || name.length > 200 || !name.isWellFormed())
      throw new InvalidArgumentError(`${call}(name) must get a name, ${nameForm}; got ${describe(name)}.`)
    const key = `${call === 'ctx.waitFor' ? 'signal' : 'step'} ${name}`
    if (this.#given.has(key)) throw new StepNameError(name, call)
    this.#given.add(key)
  }

  #load(): Promise<KnownSteps> {
    this.#known ??= this.#client.read(this.#run).then((list) => {
      if (list !== undefined) return new KnownSteps(list, this.#client.mono())
      const { claim, signal } = this.#run
      this.#run.abort(new LeaseLostError(claim.queue, claim.id))
      throw signal.reason
    })
    return this.#known
  }

  #refuseTwo(text: string): void {
    const { suspension } = this.#run
    if (suspension === undefined) return
    throw new InvalidArgumentError(
      `a job cannot do two of these at once: it ${suspension.text}, and ${text}. Await one after the other.`,
    )
  }

  #suspend(suspension: Suspension): never {
    this.#refuseTwo(suspension.text)
    this.#run.suspension = suspension
    throw new RunSuspended(suspension)
  }

  async #keep(step: NewStep): Promise<void> {
    const { claim, signal } = this.#run
    if (!mayKeep(this.#run)) signal.throwIfAborted()
    const answer = await this.#client.keep(this.#run, step)
    if (answer === 'cancel') this.#run.abort(new JobCancelledError(claim.queue, claim.id))
    if (answer === 'lost' || answer === undefined) {
      this.#run.abort(new LeaseLostError(claim.queue, claim.id))
      throw signal.reason
    }
  }

  #packed(name: string, value: unknown, known: KnownSteps): Pick<StoredStep, 'payload' | 'codec'> {
    if (value === undefined) return {}
    const { packing, maxPayloadBytes } = this.#client
    const content = ofPart('step', name, () => packing.pack(value, 'step', stepOwner(this.#run.claim, name)))
    const bytes = payloadBytes(content.payload)
    if (bytes > maxPayloadBytes) throw new PayloadTooLargeError(`the result of step '${name}'`, bytes, maxPayloadBytes)
    known.add(name, bytes)
    return content
  }

  #resultOf(step: StoredStep, part: 'step' | 'signal'): unknown {
    if (part === 'step' && step.kind !== 'step') throw otherKind(step.name, step)
    return step.payload === undefined ? undefined : this.#unpacked(step.name, step, part)
  }

  #unpacked(name: string, { payload, codec }: Pick<StoredStep, 'payload' | 'codec'>, part: 'step' | 'signal'): unknown {
    const owner = stepOwner(this.#run.claim, name)
    return ofPart(part, name, () => this.#client.packing.unpack(payload!, codec, part, owner))
  }
}

/** The promise, which is in the set until it settles. */
function within<T>(set: Set<Promise<unknown>>, promise: Promise<T>): Promise<T> {
  set.add(promise)
  const settled = () => set.delete(promise)
  promise.then(settled, settled)
  return promise
}

/** Calls the function and returns its value. If that throws an error of the codec, the error names the step or signal. */
function ofPart<T>(part: 'step' | 'signal', name: string, convert: () => T): T {
  try {
    return convert()
  } catch (error) {
    if (hasCode(error, 'codec-failed')) throw new CodecError(`${part} '${name}': ${error.message}`, { cause: error })
    throw error
  }
}

/** The entries that the job had when this run began, and the bytes that this run has added. */
class KnownSteps {
  /** The time of the store when they were read. */
  readonly now: number
  /** A moment later, on the monotonic clock: what is over by this clock is over in the store. */
  readonly readAt: number
  readonly #steps = new Map<string, StoredStep>()
  readonly #signals = new Map<string, StoredStep>()
  #count: number
  #bytes = 0

  constructor({ now, steps }: StepList, readAt: number) {
    this.now = now
    this.readAt = readAt
    for (const step of steps) (isSignalEntry(step) ? this.#signals : this.#steps).set(step.name, step)
    this.#count = this.#steps.size
    for (const { payload } of this.#steps.values()) if (payload !== undefined) this.#bytes += payloadBytes(payload)
  }

  step(name: string): StoredStep | undefined {
    return this.#steps.get(name)
  }

  signal(name: string): StoredStep | undefined {
    return this.#signals.get(name)
  }

  /** Before the function of a new step is called. */
  refuseMore(name: string): void {
    if (this.#count >= mostSteps)
      throw new InvalidJobError(
        `step '${name}' would be one more than the ${mostSteps} steps that a job may have. Make several jobs of it, with a join if something waits for all.`,
      )
    this.#count += 1
  }

  add(name: string, bytes: number): void {
    if (this.#bytes + bytes > mostStepBytes)
      throw new InvalidJobError(
        `the result of step '${name}' (${bytes} bytes) would bring those of the job to more than ${mostStepBytes / 1_048_576} MiB. Keep large results elsewhere, and return their address.`,
      )
    this.#bytes += bytes
  }
}

/** The same in every run of this life of the job. A job that replaced another was created at the same time. */
function stepKey({ queue, id, createdAt }: Claim, life: string | undefined, name: string): string {
  const parts = [queue, id, createdAt, ...(life === undefined ? [] : [life]), 'step', name]
  return digestId(createHash('sha256').update(JSON.stringify(parts)).digest())
}

function otherKind(name: string, { kind }: StoredStep): InvalidJobError {
  return new InvalidJobError(
    `'${name}' was a ${kind} in an earlier run of this job, and is none now. Give what has changed another name, or let the step run again: millrace jobs forget-step.`,
  )
}

/** A signal that was sent under another schema, codec or key fails each run: the error says what an operator can do. */
function unfit(error: unknown, { queue, id }: Claim, signal: string): unknown {
  const wayOut = `\nIf the job cannot use it, forget it, and the next run waits for it anew: millrace jobs forget-step ${queue} ${id} '${signal}' --signal`
  if (hasCode(error, 'job-invalid')) return new InvalidJobError(`${error.message}${wayOut}`)
  if (hasCode(error, 'codec-failed')) return new CodecError(`${error.message}${wayOut}`, { cause: error.cause })
  return error
}

function sleeps(name: string): string {
  return `sleeps ('${name}')`
}
