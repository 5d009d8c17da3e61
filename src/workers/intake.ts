/**
 * The intake: claims for a worker while there is room for more. The selector orders the queues → one claim over them for
 * the free slots and what is worth claiming ahead → stay for `iterations` → draw again; where all were empty, rest until
 * one is rung. What the store asks of a lead, and of one who must make room for a suspect, is done here too.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../core/clock.js'
import type { Events } from '../core/events.js'
import { suspectLeadMs } from '../core/lead.js'
import { outageDelayMs } from '../core/outage-delay.js'
import type { Queue } from '../core/queue.js'
import type { Registry } from '../core/registry.js'
import { isFatal } from '../runtime/outage.js'
import type { Pace } from '../runtime/pace.js'
import type { Settler } from '../runtime/settler.js'
import type { Hermit, Solitude } from '../runtime/solitude.js'
import type { Waiter } from '../runtime/waiter.js'
import type { Claimed, ClaimFrom, Store, Wait } from '../stores/store.js'
import { type Draw, mostPerTrip } from './draw.js'
import { reportCrashes } from './report.js'
import type { Slots } from './slots.js'
import type { Workbench } from './workbench.js'

export interface IntakeParts {
  readonly worker: string
  readonly store: Store
  readonly registry: Registry
  readonly queues: readonly Queue[]
  readonly needsHeads: boolean
  readonly draw: Draw
  readonly slots: Slots
  readonly workbench: Workbench
  readonly settler: Settler
  readonly waiter: Waiter
  readonly solitude: Solitude
  readonly pace: Pace
  readonly events: Events
  readonly mono: () => number
  readonly random: Random
  /** How many more jobs may be claimed before the worker is replaced. */
  readonly mayTake: () => number
  /** Whether this process is sound enough to tell which job kills it. */
  readonly mayBeAlone: () => boolean
}

/**
 * So long it is tried to be alone for a suspect; then another process may try, where jobs end sooner, and this one not
 * before the same time has passed. Each failure doubles it: in the end it is as long as the longest job.
 */
const firstPatienceMs = 30_000
/** Suspects are run one after the other for so long; then company has its turn, for as long as that took. */
const stretchMs = 1_000
/** A store that answers without waiting for anything must still let timers and signals have their turn. */
const turnsInARow = 100

export class Intake {
  readonly #parts: IntakeParts
  readonly #stopping = new AbortController()
  /** Queues whose lead this worker is, each with the timer of what is due. */
  readonly #leads = new Map<string, NodeJS.Timeout>()
  /** Queues with suspects that this worker is to run. */
  readonly #suspects = new Set<string>()
  /** Not before this is it tried to be alone again while others are in hand. */
  #drainsFrom = 0
  #patienceMs = firstPatienceMs
  /** Queues in which the last claim left suspects behind. */
  #told: readonly string[] = []
  /** While it rests: what wakes it. */
  #rest: AbortController | undefined
  #calling: 'claim' | 'wait' = 'claim'
  #answeredAt: number
  #isUnanswered = false

  constructor(parts: IntakeParts) {
    this.#parts = parts
    this.#answeredAt = parts.mono()
  }

  /** When the store last answered, on the monotonic clock. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /** Since when, on the monotonic clock, it has been trying to claim in vain; undefined while it is answered, rests or has no room. */
  get unansweredSince(): number | undefined {
    return this.#isUnanswered ? this.#answeredAt : undefined
  }

  /** Claims until it is stopped. Rejects with an error of the store that no waiting mends. */
  async run(): Promise<void> {
    const { events, random } = this.#parts
    let failures = 0
    for (let turns = 1; !this.#isStopping; turns += 1) {
      if (turns % turnsInARow === 0) await new Promise((resolve) => setImmediate(resolve))
      try {
        await this.#turn()
        failures = 0
      } catch (error) {
        if (isFatal(error)) throw error
        // A call that was under way when it was stopped: nobody waits for it any more.
        if (this.#isStopping) return
        this.#isUnanswered = true
        const retryMs = outageDelayMs(failures++, random)
        events.emit('store.failed', { call: this.#calling, error, retryMs })
        await settledOr(this.#stopping.signal, delay(retryMs, undefined, { signal: this.#stopping.signal }))
      }
    }
  }

  /** Claims nothing from now on. What a call under way still brings is put back by the workbench, if that is closed. */
  stop(): void {
    this.#stopping.abort()
    this.#rest?.abort()
    for (const timer of this.#leads.values()) clearTimeout(timer)
    this.#leads.clear()
    this.#parts.slots.wake()
  }

  /** Something was found in these queues by other ways than a claim: they are asked next. */
  look(queues: readonly string[]): void {
    const { draw, queues: served } = this.#parts
    const ours = queues.filter((name) => served.some((queue) => queue.name === name))
    if (ours.length === 0) return
    draw.heard(ours)
    this.#rest?.abort()
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async #turn(): Promise<void> {
    const { solitude, slots, draw, registry, workbench } = this.#parts
    if (this.#suspects.size > 0) return this.#claimSuspects()
    if (!solitude.isOpen) return settledOr(this.#stopping.signal, solitude.opened())
    const [first, ...others] = draw.next().map((name) => this.#from(name, this.#room(registry.queue(name))))
    // Who rests may be rung, and must then have room. What was drawn first is not passed over for having none: else queues
    // that are claimed ahead would take every slot from those that are not.
    if (first === undefined ? workbench.free <= 0 : first.limit <= 0) return slots.freed()
    return first === undefined
      ? this.#restOn(draw.tried)
      : this.#claim([first, ...others.filter(({ limit }) => limit > 0)])
  }

  /** How many jobs of this queue may be claimed now. */
  #room({ name, claimSize, renewLease, throttled, maxRunning }: Queue): number {
    const { workbench, pace, store, mayTake } = this.#parts
    const { free, backlog } = workbench
    const most = Math.min(claimSize, store.traits.maxBatch, mayTake())
    // One claim for one slot, which runs all of it.
    if (!renewLease) return free > 0 ? most : 0
    const isLimited = throttled || maxRunning !== undefined
    const ahead = isLimited ? 0 : pace.ahead(name)
    // Not for every job that begins: a claim has to be worth its trip.
    if (free <= 0 && backlog > ahead / 2) return 0
    return Math.min(most, free + ahead)
  }

  #from(queue: string, limit: number): ClaimFrom {
    return { queue, limit, leaseMs: this.#parts.registry.queue(queue).leaseMs }
  }

  async #claim(from: readonly ClaimFrom[]): Promise<void> {
    const { draw, workbench, settler, pace, mono, solitude } = this.#parts
    this.#calling = 'claim'
    settler.flush()
    const sentAt = mono()
    solitude.take(1)
    try {
      const answer = await this.#send(from, {})
      pace.claimed(mono() - sentAt)
      draw.answered(
        from.map(({ queue }) => queue),
        answer,
      )
      solitude.take(answer.claims.length)
      this.#claimed(answer)
      workbench.accept(answer.claims, sentAt)
    } finally {
      solitude.give(1)
    }
    // Nobody here holds anything: a suspect can be taken at once, whoever leads.
    if (this.#parts.solitude.held === 0) for (const queue of this.#told) this.#suspects.add(queue)
  }

  async #send(from: readonly ClaimFrom[], how: { readonly alone?: true }): Promise<Claimed> {
    const { store, worker, needsHeads, events, mono } = this.#parts
    const { leaseMs } = this.#parts.registry.queue(from[0]!.queue)
    this.#isUnanswered = true
    const answer = await store.claim(from, { worker, leaseMs, ...how, ...(needsHeads ? { heads: true } : {}) })
    this.#isUnanswered = false
    this.#answeredAt = mono()
    reportCrashes(events, answer)
    this.#heed(from, answer)
    return answer
  }

  #claimed({ queue, claims }: Claimed): void {
    const { events, worker } = this.#parts
    if (queue !== undefined && events.has('queue.claimed'))
      events.emit('queue.claimed', { queue, jobs: claims.length, worker })
  }

  /** Takes note of what the store asks of its leads. */
  #heed(asked: readonly ClaimFrom[], { waits }: Claimed): void {
    if (this.#isStopping) return
    for (const { queue } of asked) {
      const wait = waits.find((one) => one.queue === queue && one.reason !== 'suspect')
      if (wait !== undefined) this.#lead(queue, wait)
    }
    const suspects = this.#parts.mayBeAlone() ? waits.filter(({ reason }) => reason === 'suspect') : []
    this.#told = suspects.map(({ queue }) => queue)
    if (this.#parts.mono() < this.#drainsFrom) return
    for (const { queue, lead } of suspects) if (lead) this.#suspects.add(queue)
  }

  #lead(queue: string, { lead, forMs }: Wait): void {
    clearTimeout(this.#leads.get(queue))
    this.#leads.delete(queue)
    if (!lead || forMs === undefined) return
    const due = () => {
      this.#leads.delete(queue)
      this.#parts.draw.heard([queue])
      if (this.#rest !== undefined) this.#rest.abort()
      // No room to claim: whoever has is rung.
      else void this.#ask([queue])
    }
    this.#leads.set(queue, setTimeout(due, Math.min(Math.max(1, Math.ceil(forMs)), 0x7fffffff)))
  }

  /** Has the store recover, promote and ring on, and takes nothing. */
  async #ask(queues: readonly string[]): Promise<void> {
    try {
      await this.#send(
        queues.map((queue) => this.#from(queue, 0)),
        {},
      )
    } catch (error) {
      this.#parts.events.emit('store.failed', { call: 'claim', error, retryMs: undefined })
    }
  }

  async #restOn(queues: readonly string[]): Promise<void> {
    const { waiter, draw, mono } = this.#parts
    this.#calling = 'wait'
    const longPollMs = Math.min(...this.#parts.queues.map((queue) => queue.longPollMs))
    // Suspects that were put off ring nobody when their time has come.
    const putOffMs = this.#told.length > 0 ? this.#drainsFrom - mono() : 0
    this.#rest = new AbortController()
    const { signal } = this.#rest
    try {
      const rung = await waiter.rest(queues, putOffMs > 0 ? Math.min(putOffMs, longPollMs) : longPollMs, signal)
      this.#isUnanswered = false
      this.#answeredAt = mono()
      if (rung.length > 0) draw.heard(rung)
      else if (!signal.aborted) draw.sweep()
      // Somebody else must hear of it then.
      if (this.#isStopping && rung.length > 0) await this.#ask(rung)
    } finally {
      this.#rest = undefined
    }
  }

  /** Makes room, if need be, and runs suspects alone for a stretch. Company then has its turn: a queue of suspects must not keep all others waiting. */
  async #claimSuspects(): Promise<void> {
    const { solitude, workbench, mono } = this.#parts
    this.#calling = 'claim'
    const soughtAt = mono()
    const hermit = solitude.seek()
    try {
      if (!(await this.#isAdmitted(hermit))) return
      this.#patienceMs = firstPatienceMs
      const admittedAt = mono()
      while (this.#suspects.size > 0 && !this.#isStopping && mono() - admittedAt < stretchMs) {
        const queues = [...this.#suspects].slice(0, mostPerTrip)
        for (const queue of queues) this.#suspects.delete(queue)
        const sentAt = mono()
        const answer = await this.#send(
          queues.map((queue) => this.#from(queue, 1)),
          { alone: true },
        )
        for (const queue of this.#told) this.#suspects.add(queue)
        this.#claimed(answer)
        const [claim] = answer.claims
        if (claim === undefined) continue
        solitude.take(1)
        await workbench.runAlone(claim, sentAt)
      }
      this.#drainsFrom = mono() + (mono() - soughtAt)
    } finally {
      hermit.leave()
      this.#suspects.clear()
    }
  }

  /** Waits until nobody here holds anything, and goes on leading meanwhile. False where it is no longer worth it. */
  async #isAdmitted(hermit: Hermit): Promise<boolean> {
    const until = this.#parts.mono() + this.#patienceMs
    const queues = [...this.#suspects].slice(0, mostPerTrip)
    for (;;) {
      let isAdmitted = false
      const admitted = hermit.admitted.then(() => {
        isAdmitted = true
      })
      await settledOr(AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(suspectLeadMs)]), admitted)
      if (isAdmitted || this.#isStopping) return isAdmitted && !this.#isStopping
      this.#suspects.clear()
      await this.#ask(queues)
      if (this.#suspects.size === 0) return false
      if (this.#parts.mono() <= until) continue
      this.#drainsFrom = this.#parts.mono() + this.#patienceMs
      this.#patienceMs *= 2
      return false
    }
  }
}

/** Waits until `work` has ended, however, or `signal` aborts. A race would stay with a signal that never aborts for good. */
async function settledOr(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    const done = () => {
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
    work.then(done, done)
  })
}
