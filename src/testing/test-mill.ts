/**
 * A test mill: a mill on a store of its own in memory. Its clock stands still until a test moves it, and its jobs run
 * when a test says so.
 */

import * as v from 'valibot'
import { ConfigError, InvalidArgumentError, StoreUnavailableError } from '../core/errors.js'
import type { JobRecord, PayloadRecord } from '../core/job/job.js'
import { describe } from '../core/messages/describe.js'
import { systemClock } from '../core/platform/clock.js'
import { Registry } from '../core/registry.js'
import type { AnyTask, HandlerOf } from '../core/task/any-task.js'
import type { AnyOrderedTask } from '../core/task/ordered-task.js'
import type { TaskInput, TaskResult } from '../core/task/task-definition.js'
import { callForms, callOptions, refuseMore } from '../core/values/call-check.js'
import { type Duration, durationMs } from '../core/values/duration.js'
import { callable } from '../core/values/option-check.js'
import { pagesOf } from '../core/values/pages.js'
import { Mill } from '../mill/mill.js'
import {
  type CheckedOptions,
  type ContextOption,
  checkOptions,
  type MillOptions,
  type QueueNamesOf,
} from '../mill/options/mill-options.js'
import { plainAccess } from '../mill/store-source.js'
import { ManualClock } from '../store-testing/harness/manual-clock.js'
import type { Records } from '../stores/contract/job-records.js'
import { MemoryData, MemoryStore } from '../stores/memory/memory-store.js'
import { memoryTraits } from '../stores/memory/memory-traits.js'
import { Drainer, type RanJob } from './drainer.js'
import { isStoreVerb, StoreFailures, type StoreVerb, verbs } from './store-failures.js'

/** The options of `millrace()`, without those of the store. */
export interface TestMillOptions<
  Declared extends string = string,
  Tasks extends readonly AnyTask[] = readonly AnyTask[],
  Queues = string,
> extends Omit<MillOptions<Declared, Tasks, Queues>, 'store' | 'namespace' | 'replicas'> {
  /** The time of the clock: a Date, ISO-8601 text or ms since 1970. Default: the real time now. */
  readonly now?: Date | string | number | undefined
  /**
   * Handlers for this mill only, by the names of their tasks: `{ bill: async () => ({ paid: true }) }`. They take the
   * place of the handlers that the tasks have. Default: none.
   */
  readonly handlers?: TestHandlers<Tasks[number]> | undefined
}

/** Handlers by the names of their tasks. Each must accept and return what the handler of its task does. */
type TestHandlers<Task extends AnyTask> = {
  readonly [Name in Task['name']]?: HandlerOf<Extract<Task, { readonly name: Name }>> | undefined
}

export interface WhatToDrain<QueueName extends string = string> {
  /** Only jobs of these queues. Default: all. */
  readonly queues?: readonly QueueName[] | undefined
  /** The most attempts: jobs that are always due are a mistake. Default 10,000. */
  readonly limit?: number | undefined
}

/** A waiting job of the task; its input is present, for an ordered task its payloads. */
export type WaitingJob<T extends AnyTask> = JobRecord<TaskInput<T>, TaskResult<T>> &
  (T extends AnyOrderedTask
    ? { readonly payloads: readonly PayloadRecord<TaskInput<T>>[] }
    : { readonly input: TaskInput<T> })

/** A fixed jitter, half of its maximum: chance would make a test fail now and then. */
const half = () => 0.5
const mostAttempts = 10_000
/** The most jobs in one listing. */
const pageSize = 200
/** Real time: less than a test runner gives a test. */
const warnOfWaitAfterMs = 2_000

const checkDrain = callOptions('drain', { queues: callForms.own, limit: callForms.own })

/**
 * A mill for tests. Takes the options of `millrace()` except the store, and throws the same errors. Jobs live in
 * memory, with a clock that stands still. No worker runs them; `drain()` does, and opens `context` before the first.
 * `handlers` gives tasks other handlers for this mill. Nothing is random: the jitter of a back-off is half of its maximum.
 */
export function testMill<
  const Declared extends string = never,
  const Tasks extends readonly AnyTask[] = readonly [],
  Queues = unknown,
>(
  options: TestMillOptions<Declared, Tasks, Queues> & ContextOption<Tasks>,
): TestMill<QueueNamesOf<Declared, Tasks, Queues>, Tasks[number]> {
  const { now, handlers = {}, ...given }: TestMillOptions<Declared, Tasks, Queues> = options
  const checked = checkOptions({ ...given, store: 'memory:' }, memoryTraits)
  return new TestMill(checked, new ManualClock(instantOf(now)), handlers)
}

/** A mill for tests, made by `testMill()`. */
export class TestMill<QueueName extends string = string, Task extends AnyTask = AnyTask> extends Mill<QueueName> {
  readonly #clock: ManualClock
  readonly #failures: StoreFailures
  readonly #drainer: Drainer
  readonly #waits: UndrainedWaits
  /** Its schedules tick from this time on. */
  readonly #madeAt: number
  #hasSchedules = false

  /** @internal */
  constructor(options: CheckedOptions, clock: ManualClock, handlers: object) {
    const failures = new StoreFailures()
    const stored = new MemoryData()
    const waits = new UndrainedWaits()
    // A handle whose opening fails is closed, and another is made.
    const handle = () => failures.of(waits.seenOf(new MemoryStore(clock, stored)))
    const source = { text: 'memory:', access: plainAccess, traits: memoryTraits, create: async () => handle() }
    super(options, source, clock, half)
    this.#clock = clock
    this.#madeAt = clock.now()
    this.#failures = failures
    this.#waits = waits
    const registry = withHandlers(options.registry, handlers)
    this.#drainer = new Drainer({ ...this.runParts, registry }, handle())
  }

  /** The time of the clock. */
  get now(): Date {
    return new Date(this.#clock.now())
  }

  /**
   * Moves the clock forward, and runs nothing. The next `drain()` runs the jobs that have become due. `Date.now()` does
   * not follow: a handler that compares ages needs the fake time of the test runner beside it, such as Vitest's
   * `vi.setSystemTime(mill.now)`. Throws `InvalidArgumentError` for an invalid duration.
   */
  advance(duration: Duration): void {
    this.#clock.advance(durationMs(duration, 'advance(duration)'))
  }

  /**
   * Runs all due jobs, also those that they enqueue for now, one attempt after the other: queues in the order of
   * declaration, the jobs of each in the order of a worker's claims. Then it enqueues the next due tick of a schedule
   * as if a worker had been there on time, and runs its jobs, until no tick is due. Resolves with the outcome of each
   * attempt, in that order. Jobs that a throttle denies, or that are due later, wait for the clock. A handler's error
   * is an outcome. Rejects with the errors of the store and of `context`, and with `InvalidArgumentError` if jobs are still due after
   * `limit` attempts.
   */
  async drain(options: WhatToDrain<QueueName> = {}): Promise<RanJob<Task>[]> {
    checkDrain(options)
    const { queues, limit = mostAttempts } = options
    for (const name of queues ?? []) this.queue(name)
    if (!this.#hasSchedules) await this.schedules.reconcile(this.#madeAt)
    this.#hasSchedules = true
    await this.openContext()
    const drained = this.#drainer.drain(queues ?? [...this.queues.keys()], limit)
    return this.#waits.during(drained as Promise<RanJob<Task>[]>)
  }

  /**
   * The waiting jobs of this task, in all queues: first the ready ones in the order in which they will run, then later
   * ones, the soonest first, and last those that wait for other jobs or a signal.
   */
  async enqueued<T extends AnyTask>(task: T): Promise<WaitingJob<T>[]> {
    const found: WaitingJob<T>[] = []
    for (const state of ['ready', 'scheduled', 'waiting'] as const)
      for (const name of this.queues.keys()) {
        const { jobs } = this.queue(name as QueueName)
        for await (const page of pagesOf((from) => jobs.list({ task, state, limit: pageSize, ...from })))
          found.push(...(page.jobs as typeof found))
      }
    return found
  }

  /**
   * Makes the next call of this kind to the store fail, and do nothing. It fails with this error; by default with
   * `StoreUnavailableError`, as if the store were unavailable. A second call makes the one after it fail too. Throws
   * `InvalidArgumentError` for a kind that there is not.
   */
  failNext(
    verb: StoreVerb,
    error: Error = new StoreUnavailableError(`the store is unavailable for '${verb}', as the test requested.`, {
      inDoubt: false,
    }),
  ): void {
    if (!isStoreVerb(verb))
      throw new InvalidArgumentError(
        `failNext() takes the kind of call that fails, which is one of ${verbs.map((one) => `'${one}'`).join(', ')}; got ${describe(verb)}.`,
      )
    this.#failures.failNext(verb, error)
  }

  /**
   * Makes the store unavailable: every call fails with `StoreUnavailableError` until the returned function is called.
   */
  outage(): () => void {
    return this.#failures.outage()
  }
}

refuseMore('', TestMill.prototype, {
  promised: { drain: 1, enqueued: 1 },
  direct: { advance: 1, failNext: 2, outage: 0 },
})

/**
 * Waits for results while nothing runs jobs, the commonest mistake with a test mill: such a test hangs, and its runner says
 * only that it took too long. Node warns of it, once for a mill.
 */
class UndrainedWaits {
  #drains = 0
  #hasTold = false

  /** The store, whose watches for the ends of jobs are seen here. */
  seenOf(store: MemoryStore): MemoryStore {
    const { records } = store
    const watch: Records['watch'] = async (jobs, forMs, signal) => {
      const timer = setInterval(() => this.#tell(jobs[0]?.id), warnOfWaitAfterMs).unref()
      try {
        return await records.watch(jobs, forMs, signal)
      } finally {
        clearInterval(timer)
      }
    }
    return Object.assign(store, { records: { ...records, watch } })
  }

  /** Nothing is said while jobs are drained. */
  async during<T>(drained: Promise<T>): Promise<T> {
    this.#drains += 1
    try {
      return await drained
    } finally {
      this.#drains -= 1
    }
  }

  #tell(id: string | undefined): void {
    if (this.#hasTold || this.#drains > 0) return
    this.#hasTold = true
    process.emitWarning(
      `a test waits for the result of job '${id}', and nothing runs it: a test mill runs jobs in drain() alone. \`await mill.drain()\` before \`await job.result()\`; for a retry or a delay \`mill.advance()\` before that.`,
      { type: 'MillraceWarning', code: 'MILLRACE_UNDRAINED' },
    )
  }
}

/** The registry with these handlers, for those who run jobs. Throws `ConfigError` for a task that there is not. */
function withHandlers(registry: Registry, handlers: object): Registry {
  const given = new Map(Object.entries(handlers).filter(([, run]) => run !== undefined))
  const known = [...registry.tasks.keys()]
  const issues = [...given].flatMap(([name, run]) => {
    const path = `handlers.${name}`
    if (!registry.tasks.has(name))
      return [{ path, message: `is no task of this mill; its tasks are ${known.join(', ')}` }]
    return v.is(callable(), run) ? [] : [{ path, message: 'must be a function' }]
  })
  if (issues.length > 0) throw new ConfigError('the test mill', issues)
  const tasks = [...registry.tasks.values()].map((task) =>
    // The task itself stays as it is: it may be shared with other tests.
    given.has(task.name) ? Object.create(task, { run: { value: given.get(task.name), enumerable: true } }) : task,
  )
  return new Registry(tasks as AnyTask[], [...registry.queues.values()])
}

function instantOf(now: Date | string | number | undefined): number {
  if (now === undefined) return systemClock.now()
  const at = new Date(now).getTime()
  if (Number.isFinite(at)) return at
  throw new InvalidArgumentError(
    `testMill({ now }) must be a Date, ISO-8601 text such as '2026-12-24T18:00:00Z' or ms since 1970; got ${describe(now)}.`,
  )
}
