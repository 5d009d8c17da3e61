/** A test mill: a mill on a store of its own in memory, whose clock stands until a test moves it and whose jobs run when a test says so. */

import { InvalidArgumentError, StoreUnavailableError } from '../core/errors.js'
import type { JobRecord, PayloadRecord } from '../core/job.js'
import { systemClock } from '../core/platform/clock.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { AnyOrderedTask } from '../core/task/ordered-task.js'
import type { TaskInput, TaskResult } from '../core/task/task-definition.js'
import { describe } from '../core/values/describe.js'
import { type Duration, durationMs } from '../core/values/duration.js'
import { Mill } from '../mill/mill.js'
import { type CheckedOptions, checkOptions, type MillOptions, type QueueNamesOf } from '../mill/options/mill-options.js'
import { plainAccess } from '../mill/store-source.js'
import { ManualClock } from '../store-testing/harness/manual-clock.js'
import { MemoryData, MemoryStore } from '../stores/memory/memory-store.js'
import { memoryTraits } from '../stores/memory/memory-traits.js'
import { Drainer } from './drainer.js'
import type { RanJob } from './ran-job.js'
import { StoreFailures, type StoreVerb } from './store-failures.js'

/** As for `millrace()`, without what says where jobs live. */
export interface TestMillOptions<
  Declared extends string = string,
  Tasks extends readonly AnyTask[] = readonly AnyTask[],
  Queues = string,
> extends Omit<MillOptions<Declared, Tasks, Queues>, 'store' | 'namespace' | 'replicas'> {
  /** Where the clock stands: a Date, ISO-8601 text or ms since 1970. Default: the time now. */
  readonly now?: Date | string | number
}

export interface WhatToDrain<QueueName extends string = string> {
  /** Only jobs of these queues. Default: all. */
  readonly queues?: readonly QueueName[]
  /** Most attempts: jobs that are due for ever are a mistake. Default 10,000. */
  readonly limit?: number
}

/** A job of the task that waits; its input is there, of an ordered task its payloads. */
export type WaitingJob<T extends AnyTask> = JobRecord<TaskInput<T>, TaskResult<T>> &
  (T extends AnyOrderedTask
    ? { readonly payloads: readonly PayloadRecord<TaskInput<T>>[] }
    : { readonly input: TaskInput<T> })

/** Chance would make a test fail now and then: jitter is always half of what it may be. */
const half = () => 0.5
const mostAttempts = 10_000
/** Most that a listing gives at once. */
const pageSize = 200

/** Made by `testMill()`. */
export class TestMill<QueueName extends string = string, Task extends AnyTask = AnyTask> extends Mill<QueueName> {
  readonly #clock: ManualClock
  readonly #failures: StoreFailures
  readonly #drainer: Drainer
  /** From when on its schedules tick. */
  readonly #madeAt: number
  #hasSchedules = false

  /** @internal */
  constructor(options: CheckedOptions, clock: ManualClock) {
    const failures = new StoreFailures()
    const stored = new MemoryData()
    // A handle whose opening fails is closed, and another is made.
    const handle = () => failures.of(new MemoryStore(clock, stored))
    const source = { text: 'memory:', access: plainAccess, traits: memoryTraits, create: async () => handle() }
    super(options, source, clock, half)
    this.#clock = clock
    this.#madeAt = clock.now()
    this.#failures = failures
    this.#drainer = new Drainer(this.runParts, handle())
  }

  /** Where the clock stands. */
  get now(): Date {
    return new Date(this.#clock.now())
  }

  /**
   * Moves the clock on; nothing is run by it. What has fallen due then is run by the next `drain()`. Throws
   * `InvalidArgumentError` for what is no duration.
   */
  advance(duration: Duration): void {
    this.#clock.advance(durationMs(duration, 'advance(duration)'))
  }

  /**
   * Runs all jobs that are due, what those enqueue for now too, one attempt after the other: the queues in the order in which
   * they are declared, the jobs of each as a worker is given them; then the next tick of a schedule, and what that enqueues, as
   * long as one is due, as if a worker had been there at each. Resolves with what became of each attempt, in that order. What
   * a throttle denies, or comes later, waits for the clock. A handler's error is an outcome; rejects with what the store throws,
   * and with `InvalidArgumentError` once `limit` attempts were made and jobs are still due.
   */
  async drain({ queues, limit = mostAttempts }: WhatToDrain<QueueName> = {}): Promise<RanJob<Task>[]> {
    for (const name of queues ?? []) this.queue(name)
    if (!this.#hasSchedules) await this.schedules.reconcile(this.#madeAt)
    this.#hasSchedules = true
    return (await this.#drainer.drain(queues ?? [...this.queues.keys()], limit)) as RanJob<Task>[]
  }

  /**
   * The jobs of this task that wait, in whatever queue: those that are ready in the order in which they will run, then those
   * for later, the soonest first.
   */
  async enqueued<T extends AnyTask>(task: T): Promise<WaitingJob<T>[]> {
    const found: WaitingJob<T>[] = []
    for (const state of ['ready', 'scheduled'] as const)
      for (const name of this.queues.keys()) {
        const { jobs } = this.queue(name as QueueName)
        let cursor: string | undefined
        do {
          const page = await jobs.list({ task, state, limit: pageSize, ...(cursor && { cursor }) })
          found.push(...(page.jobs as typeof found))
          cursor = page.cursor
        } while (cursor !== undefined)
      }
    return found
  }

  /**
   * The next call of this kind that is made to the store fails, and does nothing: with this error, or, as when the store is
   * away, with `StoreUnavailableError`. Called again, the one after it fails too.
   */
  failNext(
    verb: StoreVerb,
    error: Error = new StoreUnavailableError(`the store is away for '${verb}', as the test has it.`, {
      inDoubt: false,
    }),
  ): void {
    this.#failures.failNext(verb, error)
  }

  /** The store is away: every call fails with `StoreUnavailableError` until what this returns is called. */
  outage(): () => void {
    return this.#failures.outage()
  }
}

/**
 * A mill for tests. Takes what `millrace()` takes but for the store, and throws what that throws. Jobs live in memory, by a clock
 * that stands; no worker runs, `drain()` does. Nothing is random: the jitter of a back-off is half of its maximum.
 */
export function testMill<
  const Declared extends string = never,
  const Tasks extends readonly AnyTask[] = readonly [],
  Queues = unknown,
>(options: TestMillOptions<Declared, Tasks, Queues>): TestMill<QueueNamesOf<Declared, Tasks, Queues>, Tasks[number]> {
  const { now, ...given } = options
  return new TestMill(checkOptions({ ...given, store: 'memory:' }, memoryTraits), new ManualClock(instantOf(now)))
}

function instantOf(now: Date | string | number | undefined): number {
  if (now === undefined) return systemClock.now()
  const at = new Date(now).getTime()
  if (Number.isFinite(at)) return at
  throw new InvalidArgumentError(
    `testMill({ now }) must be a Date, ISO-8601 text such as '2026-12-24T18:00:00Z' or ms since 1970; got ${describe(now)}.`,
  )
}
