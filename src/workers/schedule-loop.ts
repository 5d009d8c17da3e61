/**
 * The schedule loop of a worker: looks when a tick is due, when a schedule was written, or when the lead may have
 * lapsed. It also hears that the store has lost its schedules.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { enqueueDue } from '../client/schedules/due-enqueue.js'
import { nextTick, setBackMs } from '../client/schedules/schedule-definition.js'
import { allSchedules } from '../client/store-facets.js'
import { hasCode } from '../core/errors.js'
import { outageDelayMs, timerMs } from '../core/platform/timer.js'
import type { WorkerSurroundings } from '../core/surroundings.js'
import type { Schedules, StoredSchedule } from '../stores/contract/schedules.js'

/** The longest pause after a failed look. */
const mostPauseMs = 5_000

export class ScheduleLoop {
  readonly #surroundings: WorkerSurroundings
  readonly #schedules: Schedules
  readonly #restore: () => Promise<void>
  readonly #lead: ScheduleLead
  readonly #stopping = new AbortController()
  #running: Promise<void> | undefined

  /** `restore`: called when the store has lost what it held. It may be called again after it has rejected. */
  constructor(surroundings: WorkerSurroundings, schedules: Schedules, restore: () => Promise<void>) {
    this.#surroundings = surroundings
    this.#schedules = schedules
    this.#restore = restore
    this.#lead = new ScheduleLead(surroundings, schedules)
  }

  /** Starting twice is harmless. */
  start(): void {
    this.#running ??= this.#run()
  }

  /** Resolves when the present look has ended; then another worker may lead. */
  async stop(): Promise<void> {
    this.#stopping.abort()
    await this.#running
  }

  /** Never rejects. */
  async #run(): Promise<void> {
    const { signal } = this.#stopping
    const schedules = this.#schedules
    const { worker, events, random } = this.#surroundings
    let leads = false
    let known: string | undefined
    for (let failures = 0; !signal.aborted; ) {
      try {
        const { isLead, forMs, origin } = await this.#lead.look()
        leads = isLead
        if (known !== undefined && known !== origin) await this.#restore()
        known = origin
        failures = 0
        if (isLead) await schedules.changed(forMs, signal)
        else await pause(forMs, signal)
      } catch (error) {
        if (signal.aborted) break
        failures += 1
        const retryMs = Math.min(mostPauseMs, 1_000 + outageDelayMs(failures, random))
        events.emit('store.failed', { call: 'schedules.due', error, retryMs })
        await pause(retryMs, signal)
      }
    }
    if (leads) await schedules.resign(worker).catch(() => {})
  }
}

/** Keeps no process alive. */
async function pause(forMs: number, signal: AbortSignal): Promise<void> {
  await delay(timerMs(forMs), undefined, { signal, ref: false }).catch(() => {})
}

type LedSchedules = Pick<Schedules, 'due' | 'tick' | 'list' | 'resign'>

interface ScheduleLook {
  readonly isLead: boolean
  /** Ms until the next look. */
  readonly forMs: number
  /** Names what the store holds; another one says that it has lost what it held. */
  readonly origin: string
}

/** A silent lead is replaced after this long. */
const leadMs = 15_000
/** How often it renews its lead if nothing is due. */
const renewMs = 5_000
/**
 * A lead that lacks the key of a due tick gives the lead up after each look, for as long as the others take to ask once.
 * This is how often it begins to: meanwhile all workers without the key may look for each tick.
 */
const yieldEveryMs = 2 * leadMs
/** The most schedules ticked between two looks. */
const mostDue = 100
/** A refused tick is tried again after this long, doubled each time. */
const firstRetryMs = 1_000
const mostRetryMs = 60_000

interface ScheduleRefusal {
  readonly dueAt: number
  readonly retryMs: number
  /** On the monotonic clock. */
  readonly until: number
  /** This process lacks a key or codec. Another may have it. */
  readonly isUnreadable: boolean
}

/**
 * The lead of the schedules: the one worker that looks for due ticks and enqueues them. The store appoints the lead and
 * makes sure that no tick is enqueued twice: a slow lead that has not heard of its successor harms nobody.
 */
export class ScheduleLead {
  readonly #surroundings: WorkerSurroundings
  readonly #schedules: LedSchedules
  /** Whether the clock of the store may be set back between two looks. */
  readonly #maySetBack: boolean
  /** By schedule name: ticks that are left alone for a while. */
  #refusals = new Map<string, ScheduleRefusal>()
  /** By schedule name: the most jobs of a step, if the queue had no room for a larger one. */
  readonly #rooms = new Map<string, number>()
  /** The store's clock at the last look, while this worker leads. */
  #lookedAt: number | undefined
  /** When it last began to let others lead, on the monotonic clock. */
  #yieldedAt: number | undefined

  constructor(surroundings: WorkerSurroundings, schedules: LedSchedules, maySetBack = true) {
    this.#surroundings = surroundings
    this.#schedules = schedules
    this.#maySetBack = maySetBack
  }

  /** Enqueues due ticks, if this worker leads. Rejects as the store does. */
  async look(): Promise<ScheduleLook> {
    const { worker, clock } = this.#surroundings
    const limit = mostDue + this.#refusals.size
    const { now, origin, isLead, leadMs: leftMs, due, nextAt } = await this.#schedules.due(worker, leadMs, limit)
    if (!isLead) {
      this.#lookedAt = undefined
      this.#refusals.clear()
      this.#rooms.clear()
      return { isLead, forMs: Math.max(leftMs, 1), origin }
    }
    // A new lead does not know whether the clock was ahead before.
    const mayBeAhead = this.#maySetBack && (this.#lookedAt === undefined || now < this.#lookedAt - setBackMs)
    this.#lookedAt = mayBeAhead && !(await this.#setBack()) ? undefined : now
    this.#refusals = new Map(
      [...this.#refusals].filter(([name]) => due.some(({ definition }) => definition.name === name)),
    )
    for (const name of this.#rooms.keys())
      if (!due.some(({ definition }) => definition.name === name)) this.#rooms.delete(name)
    // All at once: a store that shares commits makes one for all of them.
    const ticked = await Promise.allSettled(due.map((schedule) => this.#tick(schedule, now)))
    const failed = ticked.find((one) => one.status === 'rejected')
    if (failed?.status === 'rejected') throw failed.reason
    const next = [nextAt, ...ticked.map((one) => (one.status === 'fulfilled' ? one.value : undefined))]
    const mono = clock.mono()
    const forMs = Math.min(
      renewMs,
      ...next.flatMap((at) => (at === undefined ? [] : at - now)),
      ...[...this.#refusals.values()].map(({ until }) => until - mono),
    )
    if (this.#yields(mono)) await this.#schedules.resign(worker)
    return { isLead, forMs: Math.max(1, forMs), origin }
  }

  /** Whether to let others lead until the next look. That delays no tick: it looks again as if it led. */
  #yields(mono: number): boolean {
    if (![...this.#refusals.values()].some(({ isUnreadable }) => isUnreadable)) return false
    if (this.#yieldedAt === undefined || mono - this.#yieldedAt >= yieldEveryMs) this.#yieldedAt = mono
    return mono - this.#yieldedAt < leadMs
  }

  /** When to look at it next; undefined if it has ended or was refused. */
  async #tick(schedule: StoredSchedule, now: number): Promise<number | undefined> {
    const { definition, nextAt } = schedule
    const { name } = definition
    const refusal = this.#refusals.get(name)
    if (nextAt === undefined || (refusal?.dueAt === nextAt && this.#surroundings.clock.mono() < refusal.until))
      return undefined
    try {
      const ticked = await enqueueDue(
        this.#surroundings,
        this.#schedules,
        { ...schedule, nextAt },
        now,
        this.#rooms.get(name),
      )
      if (ticked.outcome === 'too many') this.#rooms.set(name, ticked.room)
      if (ticked.outcome === 'lost' || ticked.outcome === 'too many') return now
      if (ticked.outcome === 'done' || ticked.hasStepped) this.#refusals.delete(name)
      if (ticked.outcome !== 'done') {
        this.#refuse(schedule, ticked.outcome)
        return undefined
      }
      this.#rooms.delete(name)
      return ticked.nextAt
    } catch (error) {
      // Trouble of the whole store waits for the next look; trouble of one schedule must not stop the others.
      if (hasCode(error, 'store-unavailable') || hasCode(error, 'closed')) throw error
      this.#refuse(schedule, 'failed', error)
      return undefined
    }
  }

  #refuse({ definition, nextAt }: StoredSchedule, reason: 'full' | 'draining' | 'failed', error?: unknown): void {
    const { name, queue } = definition
    const before = this.#refusals.get(name)
    const retryMs = before === undefined ? firstRetryMs : Math.min(2 * before.retryMs, mostRetryMs)
    const { clock, events } = this.#surroundings
    const isUnreadable = hasCode(error, 'codec-failed')
    this.#refusals.set(name, { dueAt: nextAt!, retryMs, until: clock.mono() + retryMs, isUnreadable })
    events.emit('schedule.refused', {
      ...{ schedule: name, queue, tickAt: nextAt!, reason, error, retryMs },
    })
  }

  /**
   * Schedules that ticked, or were written, while the clock was ahead have only later instants: they begin again from
   * now. False if not all could be read, for instance because one of several servers is away.
   */
  async #setBack(): Promise<boolean> {
    const schedules = this.#schedules
    const { worker, newId } = this.#surroundings
    const all = await allSchedules(schedules).catch(unlessAway)
    if (all === undefined) return false
    // Read the clock after the schedules: one that stepped on while this process stood still must not look as if it
    // were ahead.
    const { now, isLead } = await schedules.due(worker, leadMs, 0)
    if (!isLead) return false
    for (const { definition, revision, paused, lastAt, nextAt, updatedAt } of all) {
      const { name, queue } = definition
      if (paused || nextAt === undefined || Math.max(lastAt ?? 0, updatedAt) <= now + setBackMs) continue
      const next = nextTick(definition, lastAt === undefined ? undefined : { lastAt }, now)
      if (next === undefined || nextAt <= next) continue
      await schedules.tick({
        ...{ name, queue, revision, dueAt: nextAt, nextAt: next, callId: newId() },
        ...{ jobs: [], skips: 0, misses: 0 },
      })
    }
    return true
  }
}

function unlessAway(error: unknown): undefined {
  if (!hasCode(error, 'store-unavailable')) throw error
}
