/** A stored job handle: a reference to one job of a store, from any process; and the results of many handles. */

import {
  InvalidArgumentError,
  JobCancelledError,
  JobDeadError,
  ResultNotKeptError,
  ResultTimeoutError,
} from '../../core/errors.js'
import type { FollowOptions, JobEvent, JobHandle, JobRecord, JobState } from '../../core/job/job.js'
import { ownError } from '../../core/job/job-failures.js'
import { areSet, checkFields, type FieldChanges, type FieldWriter } from '../../core/job/job-fields.js'
import type { WaitReason } from '../../core/job/wait-reason.js'
import { describe } from '../../core/messages/describe.js'
import type { Packing } from '../../core/packing/packing.js'
import { keepsEnds } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import type { Surroundings } from '../../core/surroundings.js'
import type { AnySignal } from '../../core/task/signal.js'
import { callForms, callOptions, checkedReason, refuseMore } from '../../core/values/call-check.js'
import { type Duration, durationMs, exactDuration } from '../../core/values/duration.js'
import { resultDropped, type StoredJob } from '../../stores/contract/job-records.js'
import type { SignalAnswer } from '../../stores/contract/steps.js'
import type { Store } from '../../stores/contract/store.js'
import { recordsOf } from '../store-facets.js'
import { JobFeed, type OutageEars } from './job-feed.js'
import { resultIn, wholeRecord } from './job-record.js'
import { withCause } from './join-cause.js'
import { type Mark, ResultWatcher, type SentWaits } from './result-watcher.js'
import { sentSignal } from './sent-signal.js'
import { servedQueues, UnservedQueues } from './unserved-queues.js'
import { explainedJob } from './wait-facts.js'

/** @internal */
export interface HandleParts {
  readonly connect: () => Promise<Store>
  readonly packing: Packing
  readonly maxPayloadBytes: number
  readonly watcher: ResultWatcher
  /** Whether jobs of this queue have ids that come again, and no results. */
  readonly isOrdered: (queue: string) => boolean
  /** Whether the end of every completed job of this queue is kept. */
  readonly keepsEnds: (queue: string) => boolean
  /** Milliseconds that only grow. */
  readonly mono: () => number
  /** The wall clock. */
  readonly now: () => number
  /** Aborts when the mill is closed. */
  readonly closing: AbortSignal
}

/** What handles take from their mill. */
interface HandleGround extends Pick<Surroundings, 'clock' | 'events' | 'packing'> {
  readonly registry: Registry
  readonly maxPayloadBytes: number
}

/**
 * The handle parts for the queues of a mill.
 * @internal
 */
export function handlePartsOf(
  connect: () => Promise<Store>,
  { clock, events, packing, registry, maxPayloadBytes }: HandleGround,
  closing: AbortSignal,
): HandleParts {
  const mono = () => clock.mono()
  return {
    ...{ connect, packing, maxPayloadBytes, closing, mono },
    watcher: new ResultWatcher(connect, new UnservedQueues(events, mono)),
    isOrdered: (queue) => registry.queues.get(queue)?.ordered === true,
    keepsEnds: (queue) => keepsEnds(registry.queues.get(queue)),
    now: () => clock.now(),
  }
}

const checkResult = callOptions('result', { timeout: callForms.own })
const checkEvents = callOptions('events', { signal: callForms.signal })

/**
 * `Result` is what its handler returns, `Input` what it was enqueued with.
 * @internal
 */
export class StoredJobHandle<Result = unknown, Input = unknown> implements JobHandle<Result, Input> {
  readonly id: string
  readonly outcome: JobHandle['outcome']
  /** Declared only: most handles have none. */
  declare noWait?: () => Error | undefined
  readonly #parts: HandleParts
  /** Its queue, or the queues it may be in until it is found. */
  #places: string | readonly string[]

  constructor(parts: HandleParts, places: string | readonly string[], id: string, outcome?: JobHandle['outcome']) {
    this.#parts = parts
    this.#places = places
    this.id = id
    this.outcome = outcome
  }

  get queue(): string | undefined {
    return this.#queues.length === 1 ? this.#queues[0] : undefined
  }

  /** Made when it is asked for: an enqueue of many makes thousands of handles, and most write no fields. */
  get fields(): FieldWriter {
    return { set: (fields) => this.#setFields(fields), get: async () => (await this.#find())?.fields ?? {} }
  }

  get #queues(): readonly string[] {
    return typeof this.#places === 'string' ? [this.#places] : this.#places
  }

  async record(): Promise<JobRecord<Input, Result> | undefined> {
    const job = await this.#find()
    if (job === undefined) return undefined
    const { connect, packing, now } = this.#parts
    return (await wholeRecord(await connect(), job, packing, now())) as JobRecord<Input, Result>
  }

  async status(): Promise<JobState | undefined> {
    return (await this.#find())?.state
  }

  async explain(): Promise<WaitReason[]> {
    const job = await this.record()
    const { connect, now } = this.#parts
    return job === undefined ? [] : explainedJob(await connect(), job, now())
  }

  async result(options: { readonly timeout?: Duration } = {}): Promise<Result> {
    checkResult(options)
    const refusal = this.noWait?.()
    if (refusal !== undefined) throw refusal
    const timeoutMs =
      options.timeout === undefined ? Number.POSITIVE_INFINITY : durationMs(options.timeout, 'result({ timeout })')
    const since = this.#parts.mono()
    let expected: string | undefined
    try {
      return await this.#resultWithin(timeoutMs, since, (queue) => {
        if (expected !== undefined || this.#parts.isOrdered(queue)) return
        expected = queue
        return this.#parts.watcher.expect(queue, this.id)
      })
    } finally {
      if (expected !== undefined) this.#parts.watcher.leave(expected, this.id)
    }
  }

  /** `expect` says to the store that a result of the job is to stay until it has been read. */
  async #resultWithin(
    timeoutMs: number,
    since: number,
    expect: (queue: string) => Promise<SentWaits> | undefined,
  ): Promise<Result> {
    let seen: Mark | undefined
    for (;;) {
      const sent = this.queue === undefined ? undefined : await expect(this.queue)
      // Requested before the job, so that a found job was there after the mark.
      const marking = seen === undefined ? this.#mark() : undefined
      const [job, mark] = await Promise.all([this.#find(), marking, sent?.told])
      const queue = this.queue ?? this.#queues.join(' | ')
      if (job === undefined || job.state === 'completed') {
        if (job?.result !== undefined) return resultIn(job, this.#parts.packing) as Result
        const isKnown = job === undefined ? await this.#hasCompleted(seen) : job.reason !== resultDropped
        if (isKnown || this.#queues.every(this.#parts.isOrdered)) return undefined as Result
        throw new ResultNotKeptError(queue, this.id)
      }
      if (job.state === 'dead') {
        const { reason, error } = await withCause(await this.#parts.connect(), job)
        throw new JobDeadError(queue, this.id, reason, error && ownError(error))
      }
      if (job.state === 'cancelled') throw new JobCancelledError(queue, this.id, job.reason)
      seen ??= mark
      // Its queue was not known yet.
      if (seen === undefined && !this.#parts.isOrdered(job.queue)) continue
      const leftMs = since + timeoutMs - this.#parts.mono()
      if (leftMs <= 0) {
        const served = await servedQueues(await this.#parts.connect())
        const last = job.error && ownError(job.error)
        throw new ResultTimeoutError(queue, this.id, exactDuration(timeoutMs), served?.has(job.queue), last)
      }
      seen = await this.#parts.watcher.ended(job.queue, this.id, leftMs, { mark: seen, since })
    }
  }

  events(options: FollowOptions = {}): AsyncGenerator<JobEvent<Result, Input>, undefined> {
    checkEvents(options)
    const refusal = this.noWait?.()
    if (refusal !== undefined) throw refusal
    return this.follow(options.signal).events() as AsyncGenerator<JobEvent<Result, Input>, undefined>
  }

  /** The feed of `events`. `outage`: hears of failures after which it goes on. */
  follow(signal?: AbortSignal, outage?: OutageEars): JobFeed {
    const { watcher, isOrdered, closing } = this.#parts
    const signals = [signal, closing].filter((one) => one !== undefined)
    return new JobFeed(
      {
        ...{ handle: this, watcher, isOrdered },
        mark: () => this.#mark(),
        hasCompleted: (seen) => this.#hasCompleted(seen),
      },
      signals,
      outage,
    )
  }

  async cancel(reason?: string): Promise<boolean> {
    const why = checkedReason('cancel', reason)
    const job = await this.#find()
    if (job === undefined) return false
    const { changed } = await recordsOf(await this.#parts.connect()).cancel(job.queue, { ids: [this.id] }, why)
    return changed > 0
  }

  /** Sends a signal to the job, as `sentSignal` says. */
  send(signal: AnySignal, data: unknown): Promise<SignalAnswer> {
    return sentSignal(this.#parts, signal, data, () => this.#find())
  }

  async #setFields(fields: FieldChanges): Promise<boolean> {
    checkFields(fields)
    const queue = this.queue ?? (await this.#find())?.queue
    if (queue === undefined) return false
    const records = recordsOf(await this.#parts.connect())
    return areSet(this.id, await records.setFields(queue, this.id, fields))
  }

  #mark(): Promise<Mark | undefined> | undefined {
    const { queue } = this
    return queue === undefined || this.#parts.isOrdered(queue) ? undefined : this.#parts.watcher.mark(queue)
  }

  /**
   * Whether a job that was `seen`, and of which nothing is found, has completed: true if nothing else can have happened
   * to it.
   */
  async #hasCompleted(seen: Mark | undefined): Promise<boolean> {
    const { queue } = this
    if (queue === undefined || seen === undefined || this.#parts.keepsEnds(queue)) return false
    return this.#parts.watcher.hasLostNothing(queue, seen)
  }

  async #find(): Promise<StoredJob | undefined> {
    const records = recordsOf(await this.#parts.connect())
    const found = await Promise.all(this.#queues.map((queue) => records.get(queue, this.id)))
    const job = found.find((candidate) => candidate !== undefined)
    if (job !== undefined) this.#places = job.queue
    return job
  }
}

refuseMore('', StoredJobHandle.prototype, {
  promised: { record: 0, status: 0, explain: 0, result: 1, cancel: 1 },
  direct: { events: 1 },
})

/** For each handle how its `result()` settles, in their order. */
export type SettledResults<Handles extends readonly JobHandle[]> = {
  -readonly [I in keyof Handles]: PromiseSettledResult<Awaited<ReturnType<Handles[I]['result']>>>
}

const checkResults = callOptions('results', { timeout: callForms.own })

/**
 * Throws `InvalidArgumentError` for a value that is not a list of handles, or an invalid timeout.
 * @internal
 */
export async function settledResults<Handles extends readonly JobHandle[]>(
  handles: Handles,
  options: { readonly timeout?: Duration },
): Promise<SettledResults<Handles>> {
  if (!Array.isArray(handles))
    throw new InvalidArgumentError(`results() expects a list of handles, as enqueue() gives; got ${describe(handles)}.`)
  const strange = handles.findIndex((handle) => typeof handle?.result !== 'function')
  if (strange !== -1)
    throw new InvalidArgumentError(
      `results()[${strange}] must be a handle, as enqueue() gives; got ${describe(handles[strange])}.`,
    )
  checkResults(options)
  if (options.timeout !== undefined) durationMs(options.timeout, 'results({ timeout })')
  // One watch on the store serves all of them, and look-ups in one tick are shared.
  return (await Promise.allSettled(handles.map((handle) => handle.result(options)))) as SettledResults<Handles>
}
