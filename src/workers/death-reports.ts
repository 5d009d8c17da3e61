/**
 * The reports of deaths: a worker looks for deaths of jobs whose tasks have `onDead`, and enqueues a job for each. The
 * store keeps a death until it is reported. The id of that job follows from the death, so several workers may report one
 * death, and a single job comes of it.
 */

import { createHash } from 'node:crypto'
import { attemptOf } from '../client/jobs/job-record.js'
import { CodecError, hasCode } from '../core/errors.js'
import { ownError } from '../core/job/job-failures.js'
import { timerMs } from '../core/platform/timer.js'
import type { Registry } from '../core/registry.js'
import type { Surroundings } from '../core/surroundings.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { Death } from '../core/task/death.js'
import { defined } from '../core/values/defined.js'
import { digestId } from '../core/values/ids.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import { longestUnreadableMs } from '../runtime/run/unreadable-claim.js'
import type { DeathKey, Deaths, UnreportedDeath } from '../stores/contract/job-records.js'
import type { Store } from '../stores/contract/store.js'

/** Between two looks of a worker: a death that nobody has reported yet is reported within twice this time. */
const lookMs = 5_000
/** The most deaths of one step. Each may have the input of its job. */
const mostAtOnce = 20
/** If none of some deaths of a task could be reported, those of that task are left alone for this long. */
const pauseMs = 60_000
/** A death that is refused is passed over for `pauseMs`, then for twice as long each time, at the longest for this. */
const longestPauseMs = 3_600_000
/** The most refused deaths that a worker passes over. */
const mostRefused = 1_000
/**
 * How long the ids of the jobs are remembered after their end. If all workers of a queue die between such a job and the note
 * that the death is reported, the next one reports it again: it knows the job for as long as this.
 */
const memory = '7d'

interface ReportingParts extends Surroundings {
  readonly registry: Registry
  readonly children: Pick<ChildClient, 'enqueueItem'>
}

interface RefusedReport {
  readonly death: UnreportedDeath
  readonly error: unknown
}

type ReportedTask = AnyTask & { readonly onDead: NonNullable<AnyTask['onDead']> }

export class DeathReports {
  readonly #parts: ReportingParts
  readonly #deaths: Deaths
  readonly #queues: readonly string[]
  readonly #tasks: readonly ReportedTask[]
  /** Until when the deaths of a task are left alone, by its name, on the monotonic clock. */
  readonly #pauses = new Map<string, number>()
  readonly #refused = new RefusedDeaths()

  private constructor(
    parts: ReportingParts,
    deaths: Deaths,
    queues: readonly string[],
    tasks: readonly ReportedTask[],
  ) {
    this.#parts = parts
    this.#deaths = deaths
    this.#queues = queues
    this.#tasks = tasks
  }

  /** Of the deaths in these queues. Undefined if no task has `onDead`, or the store keeps no deaths. */
  static of(
    parts: ReportingParts,
    { deaths }: Pick<Store, 'deaths'>,
    queues: readonly string[],
  ): DeathReports | undefined {
    const { registry } = parts
    const tasks = [...registry.tasks.values()].filter((task): task is ReportedTask => task.onDead !== undefined)
    const plain = queues.filter((name) => !registry.queue(name).ordered)
    return deaths && tasks.length > 0 && plain.length > 0 ? new DeathReports(parts, deaths, plain, tasks) : undefined
  }

  /** Whether the deaths of jobs of this task are reported. */
  isReported(task: string): boolean {
    return this.#parts.registry.find(task)?.onDead !== undefined
  }

  /**
   * Reports some deaths. Rejects if the store fails. What is refused for another reason is an event, one for each task, and
   * is tried again later; other deaths of the task are reported meanwhile, unless their queue takes none.
   */
  async step(): Promise<{ readonly reported: number; readonly more: boolean }> {
    const mono = this.#parts.clock.mono()
    const asked = this.#tasks.filter(({ name }) => (this.#pauses.get(name) ?? mono) <= mono)
    if (asked.length === 0) return { reported: 0, more: false }
    const names = asked.flatMap(({ name, aliases }) => [name, ...aliases])
    const deaths = await this.#deaths.unreported(this.#queues, names, mostAtOnce, this.#refused.at(mono))
    const ends = await Promise.allSettled(deaths.map((death) => this.#report(death)))
    const reported = deaths.filter((_, i) => ends[i]!.status === 'fulfilled')
    for (const queue of new Set(reported.map((death) => death.queue)))
      await this.#deaths.reported(
        queue,
        reported.filter((death) => death.queue === queue),
      )
    for (const death of reported) this.#refused.forget(death)
    const refused = deaths.flatMap((death, i): RefusedReport[] => {
      const end = ends[i]!
      return end.status === 'rejected' ? [{ death, error: end.reason }] : []
    })
    this.#leaveAlone(refused, reported, mono)
    const away = refused.find(({ error }) => isAway(error))
    if (away !== undefined) throw away.error
    return { reported: reported.length, more: deaths.length === mostAtOnce }
  }

  /** Decides how long refused deaths are left alone, and tells listeners of them. */
  #leaveAlone(refused: readonly RefusedReport[], reported: readonly UnreportedDeath[], mono: number): void {
    for (const task of new Set(refused.map(({ death }) => this.#taskOf(death)))) {
      const ofTask = refused.filter(({ death }) => this.#taskOf(death) === task)
      const isStuck =
        ofTask.some(({ error }) => isOfQueue(error)) || !reported.some((one) => this.#taskOf(one) === task)
      // Where only the queue of this task is away, those of other tasks come first in the next look.
      if (ofTask.some(({ error }) => isAway(error))) this.#pauses.set(task.name, mono + lookMs)
      else if (isStuck) this.#pauses.set(task.name, mono + pauseMs)
      const blamed = ofTask.filter(({ error }) => !isAway(error))
      for (const { death, error } of blamed) if (!isOfQueue(error)) this.#refused.add(death, mono)
      if (blamed[0] !== undefined)
        this.#parts.events.emit('hook.failed', { hook: `onDead of task '${task.name}'`, error: blamed[0].error })
    }
  }

  #taskOf({ task }: UnreportedDeath): ReportedTask {
    return this.#parts.registry.find(task) as ReportedTask
  }

  /** As much of it as fits into a job. Throws what refuses that. */
  async #report(unreported: UnreportedDeath): Promise<void> {
    this.#refuseUnreadable(unreported)
    const task = this.#taskOf(unreported)
    const death = this.#deathIn(unreported)
    const { input: _, ...withoutInput } = death
    const { error: __, ...least } = withoutInput
    for (const form of [death, withoutInput]) {
      try {
        return await this.#enqueue(task, unreported, form)
      } catch (error) {
        if (!hasCode(error, 'payload-too-large')) throw error
      }
    }
    return this.#enqueue(task, unreported, least)
  }

  /** Throws `CodecError` if another worker may read the input that this one cannot. */
  #refuseUnreadable({ id, queue, payload, codec, diedAt }: UnreportedDeath): void {
    const { packing, clock } = this.#parts
    const lack = packing.lackFor(payload, codec)
    if (lack === undefined || clock.now() - diedAt >= longestUnreadableMs) return
    throw new CodecError(
      `the input of dead job '${id}' in queue '${queue}' is ${lack.stored}, and this worker has ${lack.has}. Its death is left to a worker that can read it. A day after the death any worker reports it, without the input if need be: add what is missing.`,
    )
  }

  async #enqueue(
    { onDead }: ReportedTask,
    { queue, id, task, number, diedAt }: UnreportedDeath,
    death: Death,
  ): Promise<void> {
    await this.#parts.children.enqueueItem({
      task: onDead as unknown as AnyTask,
      input: death,
      options: { id: idOfDeath(queue, id, number, diedAt), idempotency: memory },
      origin: { parent: { queue, id, task } },
    })
  }

  #deathIn(unreported: UnreportedDeath): Death {
    const { id: job, queue, task, payload, codec, reason, crashes, diedAt } = unreported
    const error = unreported.error && ownError(unreported.error)
    const attempt = attemptOf({ ...unreported, state: 'dead' })
    const rest = { attempt, crashes, diedAt, ...defined({ reason, error }) }
    try {
      return { job, queue, task, input: this.#parts.packing.unpack(payload, codec, 'payload', unreported), ...rest }
    } catch {
      return { job, queue, task, ...rest }
    }
  }
}

/** Whether the store, or the part of it with the queue of the task, cannot be reached. */
function isAway(error: unknown): boolean {
  return hasCode(error, 'store-unavailable') || hasCode(error, 'closed')
}

/** Whether any job would be refused so, and not this one alone. */
function isOfQueue(error: unknown): boolean {
  return hasCode(error, 'queue-full') || hasCode(error, 'queue-draining') || hasCode(error, 'store-full')
}

/** The deaths whose jobs were refused, by their own fault as far as one can tell. */
class RefusedDeaths {
  readonly #deaths = new Map<string, { readonly death: DeathKey; readonly waitMs: number; readonly until: number }>()

  /** Those that are to be passed over now. */
  at(mono: number): DeathKey[] {
    // Long over: another worker has reported it.
    for (const [key, { until }] of this.#deaths) if (until + longestPauseMs < mono) this.#deaths.delete(key)
    return [...this.#deaths.values()].flatMap(({ death, until }) => (until > mono ? [death] : []))
  }

  add({ queue, id, task, number }: DeathKey, mono: number): void {
    const key = JSON.stringify([queue, id, number])
    const before = this.#deaths.get(key)
    if (before === undefined && this.#deaths.size >= mostRefused) return
    const waitMs = before === undefined ? pauseMs : Math.min(before.waitMs * 2, longestPauseMs)
    this.#deaths.set(key, { death: { queue, id, task, number }, waitMs, until: mono + waitMs })
  }

  forget({ queue, id, number }: DeathKey): void {
    this.#deaths.delete(JSON.stringify([queue, id, number]))
  }
}

/** Two deaths of one job have different numbers; those of two stores, or of one that lost its data, different times. */
function idOfDeath(queue: string, id: string, number: number, diedAt: number): string {
  return digestId(
    createHash('sha256')
      .update(JSON.stringify(['death', queue, id, number, diedAt]))
      .digest(),
  )
}

/** The looks of one worker: from time to time, and whenever it hears that a job of such a task was buried. */
export class DeathLooks {
  readonly #parts: ReportingParts
  readonly #reports: DeathReports
  readonly #isAsleep: () => boolean
  readonly #unheard: () => void
  #timer: NodeJS.Timeout | undefined
  #underWay: Promise<void> | undefined
  #isAsked = false
  #isStopped = false

  constructor(parts: ReportingParts, reports: DeathReports, { idle }: Pick<Store, 'idle'>) {
    this.#parts = parts
    this.#reports = reports
    this.#isAsleep = () => idle?.isAsleep() === true
    this.#unheard = parts.events.on('job.buried', ({ task }) => {
      if (reports.isReported(task)) this.#look()
    })
  }

  /** Spread out, so that workers do not all look at once. */
  start(): void {
    this.#plan(lookMs * this.#parts.random())
  }

  /** Resolves when what it has heard of is reported, or when the store fails. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#unheard()
    clearTimeout(this.#timer)
    await this.#underWay
  }

  /** An idle process may end meanwhile. */
  #plan(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#look(), timerMs(Math.ceil(ms))).unref()
  }

  /** One look at a time: who asks during one has another after it. */
  #look(): void {
    if (this.#isStopped) return
    this.#isAsked = true
    this.#underWay ??= this.#lookAll().finally(() => {
      this.#underWay = undefined
      if (!this.#isStopped) this.#plan(lookMs * (0.75 + this.#parts.random() / 2))
    })
  }

  /** Never rejects. */
  async #lookAll(): Promise<void> {
    try {
      while (this.#isAsked && !this.#isAsleep()) {
        this.#isAsked = false
        const { more } = await this.#reports.step()
        this.#isAsked ||= more && !this.#isStopped
      }
    } catch (error) {
      this.#parts.events.emit('store.failed', { call: 'deaths', error, retryMs: lookMs })
    }
  }
}
