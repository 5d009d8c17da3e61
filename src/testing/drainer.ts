/**
 * A drainer: runs due jobs, one attempt after the other, until none is due, and the due ticks of schedules with them.
 * It claims, runs and settles with the same parts as a worker, but starts nothing by itself and waits for no time to
 * pass.
 */

import { ConfigError, InvalidArgumentError } from '../core/errors.js'
import type { JobState } from '../core/job/job.js'
import { messageOf } from '../core/messages/describe.js'
import { type AnyTask, isBatchTask } from '../core/task/any-task.js'
import type { TaskResult } from '../core/task/task-definition.js'
import { defined } from '../core/values/defined.js'
import { slicesOf } from '../core/values/pages.js'
import { settingsOfAll } from '../mill/store-connection.js'
import { ClaimDecoder } from '../runtime/run/claim-decoder.js'
import { type Execution, JobExecution } from '../runtime/run/execution.js'
import { Executor, type RunReport } from '../runtime/run/executor.js'
import { JobUpdates } from '../runtime/run/job-updates.js'
import { emitSettled } from '../runtime/run/run-events.js'
import { endedRunOf, type SettlementRules, settlementOf, settlementRules } from '../runtime/run/settlement.js'
import type { Verdict } from '../runtime/run/verdict.js'
import type { Claim, Claimed, ClaimFrom } from '../stores/contract/claim.js'
import type { DueSchedules, Schedules, StoredSchedule } from '../stores/contract/schedules.js'
import type { SettleAnswer } from '../stores/contract/settle.js'
import type { Store } from '../stores/contract/store.js'
import { mostPerTrip } from '../stores/rules/bounds.js'
import type { RunParts } from '../workers/assemble-worker.js'
import { DeathReports } from '../workers/death-reports.js'
import { EndHooks } from '../workers/end-hooks.js'
import { FoundEnds } from '../workers/found-ends.js'
import { sweepOnce } from '../workers/join-sweeps.js'
import { ScheduleLead } from '../workers/schedule-loop.js'

/** One attempt at a job of one of these tasks; `task` says which, and so the type of `result`. */
export type RanJob<T extends AnyTask = AnyTask> = T extends AnyTask
  ? {
      readonly task: T['name']
      readonly id: string
      readonly queue: string
      /** Failures before this attempt + 1. */
      readonly attempt: number
      /**
       * The state after the attempt: `'scheduled'` or `'ready'` if the job runs again, `'running'` if its end was
       * refused because the job was taken over or deleted meanwhile. For an ordered id whose last retry has failed it
       * is `'dead'`, as its oldest payload is.
       */
      readonly state: JobState
      /** The return value of the handler; absent if the job has not completed. */
      readonly result?: TaskResult<T>
      /** The error that the handler threw, or why it was not called. */
      readonly error?: unknown
      /** Why the job was buried, cancelled or put back: `'max-retries'`, `'snoozed'`, … or the handler's own reason. */
      readonly reason?: string
      /** When the job is due again. */
      readonly runAt?: Date
    }
  : never

/** The name of the worker, which no other worker has. */
const worker = 'drain'
const shownAtLimit = 3

/** @internal */
export class Drainer implements RunReport {
  readonly #parts: RunParts
  readonly #store: Store
  readonly #updates: JobUpdates
  readonly #executor: Executor
  readonly #decoder: ClaimDecoder
  readonly #ticks: TimelyTicks
  readonly #hooks: EndHooks
  readonly #ends: FoundEnds
  readonly #rules: SettlementRules
  readonly #verdicts = new Map<Execution, readonly Verdict[]>()

  constructor(parts: RunParts, store: Store) {
    this.#parts = parts
    this.#store = store
    this.#updates = new JobUpdates(parts, store, parts.maxPayloadBytes)
    this.#executor = new Executor({ ...parts, worker }, parts.middleware, this)
    this.#decoder = new ClaimDecoder(
      parts.registry,
      parts.packing,
      this.#updates,
      () => parts.clock.now(),
      parts.children,
    )
    this.#hooks = new EndHooks(parts.middleware, parts.events)
    this.#ends = new FoundEnds(parts, parts.registry, async () => store.records)
    this.#rules = settlementRules(parts, parts, store.traits, {
      endedRun: ({ begunAt }) => endedRunOf(begunAt, parts.clock.mono()),
    })
    this.#ticks = new TimelyTicks(parts, store.schedules!, worker)
  }

  /** Rejects with the errors of the store. Claims that were not settled by then stay until their leases are over. */
  async drain(queues: readonly string[], limit: number): Promise<RanJob[]> {
    await this.#store.open(settingsOfAll(this.#parts.registry))
    const ran: RanJob[] = []
    const deaths = DeathReports.of(this.#parts, this.#store, queues)
    await this.#sweep(deaths)
    for (;;) {
      const claims = await this.#claim(queues)
      if (claims.length === 0) {
        if (await this.#sweep(deaths)) continue
        if (await this.#ticks.next(queues)) continue
        return ran
      }
      if (ran.length >= limit) throw stillDue(ran, limit)
      ran.push(...(await this.#run(claims)))
    }
  }

  decided(execution: Execution, verdicts: readonly Verdict[]): void {
    this.#verdicts.set(execution, verdicts)
  }

  released(): void {}

  /** Ends joins that wait for too long, and what they leave, and reports deaths. False if there were none. */
  async #sweep(deaths: DeathReports | undefined): Promise<boolean> {
    let found = 0
    for (let more = true; more; ) {
      const swept = await sweepOnce(this.#store, worker, this.#parts.events)
      const { reported = 0, more: isMore = false } = (await deaths?.step()) ?? {}
      found += swept.found + reported
      more = swept.more || isMore
    }
    return found > 0
  }

  /** The next jobs of the first queue that has any. */
  async #claim(queues: readonly string[]): Promise<Claim[]> {
    for (const some of slicesOf(queues, mostPerTrip)) {
      const from = some.map((queue) => this.#from(queue))
      const { claims, waits } = await this.#ask(from, false)
      if (claims.length > 0) return claims
      if (!waits.some(({ reason }) => reason === 'suspect')) continue
      // Jobs left by a failed settle are granted only to a worker that holds nothing else.
      const alone = await this.#ask(from, true)
      if (alone.claims.length > 0) return alone.claims
    }
    return []
  }

  async #ask(from: readonly ClaimFrom[], alone: boolean): Promise<Claimed> {
    const leaseMs = Math.max(...from.map((one) => one.leaseMs!))
    for (;;) {
      const answer = await this.#store.claim(from, { worker, leaseMs, alone })
      this.#ends.tell(answer)
      // A claim ends a limited number of expired jobs, and grants none before all have ended.
      if (answer.claims.length > 0 || (answer.expired ?? []).length === 0) return answer
    }
  }

  #from(queue: string): ClaimFrom {
    const { registry } = this.#parts
    const { leaseMs, groupWeights: weights } = registry.queue(queue)
    const task = registry.orderedTask(queue)
    return {
      queue,
      limit: task?.batchSize ?? this.#mostAtOnce(queue),
      leaseMs,
      ...defined({ maxPayloads: task?.maxPayloads, weights }),
    }
  }

  /** The size of the batches of its batch tasks. */
  #mostAtOnce(queue: string): number {
    const sizes = [...this.#parts.registry.tasks.values()].map((task) =>
      isBatchTask(task) && task.queue === queue ? task.batch.size : 1,
    )
    return Math.max(1, ...sizes)
  }

  async #run(claims: readonly Claim[]): Promise<RanJob[]> {
    const refused: [Claim, Verdict][] = []
    const executions = this.#decoder.of(claims, (claim, verdict) => refused.push([claim, verdict]))
    const ran: RanJob[] = []
    for (const [claim, verdict] of refused) ran.push(...(await this.#settle([claim], [verdict])))
    for (const execution of executions) ran.push(...(await this.#execute(execution)))
    return ran
  }

  async #execute(execution: Execution): Promise<RanJob[]> {
    const { task } = execution
    if (task.run === undefined)
      throw new ConfigError('drain()', [
        {
          path: `tasks.${task.name}`,
          message: 'must have its handler here: isolated tasks run in this process in tests',
        },
      ])
    execution.begunAt = this.#parts.clock.mono()
    await this.#executor.run(execution)
    const verdicts = this.#verdicts.get(execution)!
    this.#verdicts.delete(execution)
    const claims = execution.leased.map(({ claim }) => claim)
    return this.#settle(claims, verdicts, execution)
  }

  async #settle(claims: readonly Claim[], verdicts: readonly Verdict[], ran?: Execution): Promise<RanJob[]> {
    const { registry, events, clock } = this.#parts
    const update = ran instanceof JobExecution ? this.#updates.lastUpdate(ran, verdicts[0]) : undefined
    const begun = ran?.task.kind === 'ordered' ? undefined : ran
    if (update !== undefined) await this.#store.extend([update])
    const runMs = ran === undefined ? 0 : clock.mono() - ran.begunAt!
    const items = claims.map((claim, i) =>
      settlementOf(claim, verdicts[i]!, registry.queue(claim.queue).results, this.#rules, begun, runMs),
    )
    const hook = ran && this.#hooks.of(ran, verdicts, runMs)
    const answers = await this.#store.settle(items)
    return claims.map((claim, i) => {
      const [verdict, answer] = [verdicts[i] as Verdict, answers[i] as SettleAnswer]
      emitSettled(events, claim, verdict, answer, runMs)
      void hook?.answered(claim.id, answer)
      return ranJob(claim, verdict, answer, clock.now())
    })
  }
}

/** `now`: the store's time when the job was settled. */
function ranJob({ task, id, queue, attempt }: Claim, verdict: Verdict, answer: SettleAnswer, now: number): RanJob {
  const ran = { task, id, queue, attempt }
  if (answer !== 'ok') return { ...ran, state: 'running', reason: `its settle was refused: ${answer}` }
  switch (verdict.kind) {
    case 'complete':
      return { ...ran, state: 'completed', result: verdict.result }
    case 'retry':
      return verdict.last
        ? { ...ran, state: 'dead', error: verdict.error, reason: verdict.reason }
        : { ...ran, ...again(verdict.delayMs, now), error: verdict.error }
    case 'release': {
      if (verdict.awaits !== undefined) return { ...ran, state: 'waiting', reason: verdict.awaits.signal }
      const error = verdict.error === undefined ? {} : { error: new Error(verdict.error) }
      return { ...ran, ...again(verdict.delayMs, now), ...error, reason: verdict.reason }
    }
    case 'bury':
      return { ...ran, state: 'dead', error: verdict.error, reason: verdict.reason }
    case 'cancel':
      return { ...ran, state: 'cancelled', ...defined({ reason: verdict.reason }) }
  }
}

function again(delayMs: number, now: number): { readonly state: 'ready' | 'scheduled'; readonly runAt: Date } {
  return { state: delayMs > 0 ? 'scheduled' : 'ready', runAt: new Date(now + delayMs) }
}

function stillDue(ran: readonly RanJob[], limit: number): InvalidArgumentError {
  const last = ran.slice(-shownAtLimit).map((job) => `  ${lineOf(job)}`)
  return new InvalidArgumentError(
    `drain() has made ${ran.length} attempts and jobs are still due (limit: ${limit}). A job that comes back at once, or enqueues itself, never ends; the last attempts:\n${last.join('\n')}`,
  )
}

/** The job in one line, for a message. */
function lineOf({ task, id, state, error, reason }: RanJob): string {
  const why = error === undefined ? reason : messageOf(error)
  return `${task} ${id}: ${state}${why === undefined ? '' : ` (${why})`}`
}

/** The most due schedules of one look. */
const mostDue = 1_000

/**
 * Timely ticks: the ticks of schedules, enqueued as by a worker that was there at each instant, however far a test has
 * moved its clock. So no tick is missed, and each is made by the same code as in a worker.
 */
class TimelyTicks {
  readonly #schedules: Schedules
  readonly #worker: string
  readonly #lead: ScheduleLead
  /** The due schedules that the lead is given. */
  #due: Pick<DueSchedules, 'due' | 'now'> | undefined

  constructor(parts: RunParts, schedules: Schedules, worker: string) {
    this.#schedules = schedules
    this.#worker = worker
    this.#lead = new ScheduleLead(
      { ...parts, worker },
      {
        due: async (...asked) => ({ ...(await schedules.due(...asked)), ...this.#due }),
        tick: (tick) => schedules.tick(tick),
        list: (after, limit) => schedules.list(after, limit),
        resign: (asked) => schedules.resign(asked),
      },
      // A tick is enqueued as of its own instant, which is before others that have been.
      false,
    )
  }

  /** Enqueues the earliest due tick into these queues. False if none is due, or its queue refuses it. */
  async next(queues: readonly string[]): Promise<boolean> {
    const first = await this.#first(queues)
    if (first === undefined) return false
    this.#due = { due: [first], now: first.nextAt! }
    try {
      await this.#lead.look()
    } finally {
      this.#due = undefined
    }
    const after = await this.#schedules.get(first.definition.name)
    return after?.nextAt !== first.nextAt
  }

  async #first(queues: readonly string[]): Promise<StoredSchedule | undefined> {
    const { due } = await this.#schedules.due(this.#worker, 1, mostDue)
    return due.find(({ definition }) => queues.includes(definition.queue))
  }
}
