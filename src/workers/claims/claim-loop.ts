/**
 * The claim loop: claims for a worker while it has room. The selector orders the queues → one claim over them for the
 * free slots and the jobs worth claiming ahead → stay for `iterations` → draw again.
 */

import { setTimeout as delay } from 'node:timers/promises'
import { outageDelayMs, timerMs } from '../../core/platform/timer.js'
import type { Queue } from '../../core/queue/queue.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { IdleWaiter } from '../../runtime/idle-waiter.js'
import { isFatal } from '../../runtime/outage.js'
import type { Settler } from '../../runtime/run/settlement.js'
import type { SoloGate, SoloTurn } from '../../runtime/solo-gate.js'
import { settledOr } from '../../runtime/with-timeout.js'
import type { Claimed, ClaimFrom, Rung } from '../../stores/contract/claim.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { suspectLeadMs } from '../../stores/rules/wake-lead.js'
import type { FoundEnds } from '../found-ends.js'
import type { Slots } from '../slots.js'
import { ClaimCalls, ClaimsUnderWay, type ClaimTarget } from './claim-calls.js'
import { ClaimPlan, type ClaimPlanParts } from './claim-plan.js'
import type { InFlight } from './in-flight.js'
import { tripOf } from './punctuality.js'
import type { QueuePicker } from './queue-picker.js'
import { SoloPatience, SuspectTargets } from './suspect-targets.js'

interface ClaimLoopParts extends ClaimPlanParts, WorkerSurroundings {
  readonly store: Store
  readonly queues: readonly Queue[]
  readonly picker: QueuePicker
  readonly inFlight: InFlight
  /** Claims that this worker holds or has adopted. */
  readonly held: () => readonly ClaimKey[]
  readonly ends: Pick<FoundEnds, 'tell'>
  readonly slots: Slots
  readonly settler: Settler
  readonly waiter: IdleWaiter
  readonly soloGate: SoloGate
  /** Whether this process is sound enough to show which job kills it. */
  readonly mayBeAlone: () => boolean
}

/** Suspects run in a row for this long; then other jobs have their turn for as long as that took. */
const stretchMs = 1_000
/** A store that answers at once must still leave turns to timers and signals. */
const turnsInARow = 100

/**
 * In each turn it
 *
 * 1. puts back unheard claims, if it is time;
 * 2. makes room and runs suspects alone, if it leads them; while another claimer of the process is alone, it waits;
 * 3. asks the picker for the next queues, and claims from them as much as the plan has room for;
 * 4. waits for a slot if there is no room;
 * 5. rests on the quiet queues until one is rung, if the picker has none. While rings follow each other, a claim goes along
 *    with the rest.
 *
 * Each answer tells picker and shards what was found, and its jobs go to `InFlight`. Targets that it leads are asked again
 * when something falls due, even if there is no room. While the store is away it tries again, later each time.
 *
 * When it stops, it ends its wait or rest and its leads, and waits for claims under way. Jobs that these bring are put back
 * by `InFlight`, and a ring is passed on to another worker.
 */
export class ClaimLoop {
  readonly calls: ClaimCalls
  readonly #parts: ClaimLoopParts
  readonly #mono: () => number
  readonly #stopping = new AbortController()
  readonly #plan: ClaimPlan
  readonly #underWay = new ClaimsUnderWay(() => this.#fellDue())
  /** Whether a second claim may be under way at all. */
  readonly #mayOverlap: boolean
  /** The last rest was ended by a ring: then a claim goes along with the next one. */
  #wasRung = false
  /** The last claim brought as many jobs as one can. */
  #isPlentiful = false
  readonly #suspects = new SuspectTargets()
  /** Whether this worker must make room for a suspect. */
  #mustBeAlone = false
  readonly #patience: SoloPatience
  /** While it rests: aborts the rest. */
  #rest: AbortController | undefined
  #calling: 'claim' | 'wait' = 'claim'
  #answeredAt: number
  #isUnanswered = false

  constructor(parts: ClaimLoopParts) {
    const { store, queues, clock, needsHeads } = parts
    this.#parts = parts
    this.#mono = () => clock.mono()
    this.#plan = new ClaimPlan(parts)
    this.#mayOverlap = !needsHeads && !store.traits.remote && queues.every(({ iterations }) => iterations === 1)
    this.#answeredAt = this.#mono()
    this.#patience = new SoloPatience(this.#mono)
    this.calls = new ClaimCalls(parts, {
      ...{ ...parts, queues: queues.map(({ name }) => name), connect: async () => store },
      fellDue: () => this.#fellDue(),
      answered: (answer) => this.#onAnswer(answer),
    })
  }

  /** When the store last answered, on the monotonic clock. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /**
   * When the store last answered, on the monotonic clock, if the last claim has had no answer; undefined otherwise, as
   * while the loop rests or has no room.
   */
  get unansweredSince(): number | undefined {
    return this.#isUnanswered ? this.#answeredAt : undefined
  }

  /** Claims until it is stopped and no claim is under way. Rejects with a permanent store error. */
  async run(): Promise<void> {
    try {
      await this.#claimOn()
    } finally {
      await this.#underWay.ended()
    }
  }

  async #claimOn(): Promise<void> {
    const { events, random, queues, shards, picker } = this.#parts
    let failures = 0
    let isBlind = this.#parts.needsHeads
    for (let turns = 1; !this.#isStopping; turns += 1) {
      if (turns % turnsInARow === 0) await new Promise((resolve) => setImmediate(resolve))
      try {
        // Otherwise the first claim would know no heads.
        if (isBlind) picker.onHeads(await this.#look(queues.flatMap(({ name }) => shards.every(name))))
        isBlind = false
        await this.#turn()
        failures = 0
      } catch (error) {
        if (isFatal(error)) throw error
        // The call was under way when the loop was stopped: nobody waits for its answer.
        if (this.#isStopping) return
        this.#isUnanswered = true
        const retryMs = outageDelayMs(failures++, random)
        events.emit('store.failed', { call: this.#calling, error, retryMs })
        await settledOr(this.#stopping.signal, delay(retryMs, undefined, { signal: this.#stopping.signal }))
      }
    }
  }

  /** Claims nothing from now on. Jobs that a call under way still brings are put back at once. */
  stop(): void {
    this.#stopping.abort()
    this.#rest?.abort()
    this.calls.leads.stop()
    this.#parts.slots.wake()
  }

  /** Asks these queues next: something was found in them by other means than a claim. */
  look(queues: readonly string[]): void {
    const { queues: served } = this.#parts
    const ours = queues.filter((name) => served.some((queue) => queue.name === name))
    if (ours.length === 0) return
    this.#heard(ours.map((queue) => ({ queue })))
    this.#rest?.abort()
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted
  }

  async #turn(): Promise<void> {
    const { soloGate, slots, picker, inFlight } = this.#parts
    const { unheard } = this.calls
    if (unheard.dueInMs === 0) {
      await this.#underWay.ended()
      await unheard.putBack()
    }
    if (this.#mustBeAlone) return this.#claimSuspects()
    if (!soloGate.isOpen) {
      // Batches that wait for more jobs would block the whole process: nothing is claimed meanwhile.
      inFlight.gathering.beginAll()
      return settledOr(this.#stopping.signal, soloGate.opened())
    }
    picker.return()
    const drawn = picker.next()
    if (drawn.length === 0) return this.#underWay.count > 0 ? this.#underWay.next() : this.#idle()
    const from = this.#plan.of(drawn, this.#underWay.jobs)
    if (from.length > 0) return this.#claim(from)
    return this.#underWay.count > 0 ? Promise.race([slots.freed(), this.#underWay.next()]) : slots.freed()
  }

  /** There is nothing to do in company. */
  async #idle(): Promise<void> {
    const { soloGate, picker, inFlight, mayBeAlone } = this.#parts
    // A resting worker may be rung, and must then have room.
    if (inFlight.free <= 0) return this.#gather()
    // This worker's process holds no job, so it can take a suspect now, even if another worker leads.
    if (this.#suspects.size > 0 && soloGate.held === 0 && mayBeAlone()) return this.#claimSuspects()
    if (picker.tried.length === 0) return settledOr(this.#stopping.signal, delay(timerMs(picker.backInMs)))
    return this.#restOn(picker.tried)
  }

  /** The only room is for jobs that would join a batch: rests on their queues until a slot is free. */
  async #gather(): Promise<void> {
    const { slots, picker, inFlight, registry } = this.#parts
    const { tried } = picker
    const isLacking = (queue: string) => tried.includes(queue) && registry.batchSize(queue) > 1
    const lacking = inFlight.gathering.queues.filter(isLacking)
    const freed = slots.freed()
    if (lacking.length === 0) return freed
    void freed.then(() => this.#rest?.abort())
    await this.#restOn(lacking)
  }

  /**
   * Makes a claim and waits for its answer. While answers are as large as they can be, it waits for the one before
   * instead, so that two claims are under way.
   */
  async #claim(from: readonly ClaimFrom[]): Promise<void> {
    this.#calling = 'claim'
    this.#parts.settler.flush()
    this.#underWay.add(Math.max(...from.map(({ limit }) => limit)), this.#carry(from))
    if (!this.#isPlentiful || this.#underWay.count > 1) return this.#underWay.next()
    this.#parts.picker.asked()
  }

  async #carry(from: readonly ClaimFrom[]): Promise<void> {
    const mono = this.#mono
    const { store, prefetch, soloGate } = this.#parts
    const sentAt = mono()
    soloGate.take(1)
    try {
      const answer = await this.#send(from, {})
      prefetch.claimed(mono() - sentAt)
      const isFull = answer.claims.length >= store.traits.maxClaim
      this.#isPlentiful = this.#mayOverlap && isFull && this.#plan.isFree(answer.queue!)
      this.#take(from, answer, sentAt)
    } finally {
      soloGate.give(1)
    }
  }

  #take(from: readonly ClaimFrom[], answer: Claimed, sentAt: number): void {
    const mono = this.#mono
    const { picker, shards, inFlight, soloGate } = this.#parts
    picker.answered(shards.answered(from, answer), answer)
    soloGate.take(answer.claims.length)
    this.#claimed(answer)
    inFlight.accept(answer.claims, tripOf(from, answer, sentAt, mono()))
  }

  async #send(from: readonly ClaimFrom[], how: { readonly alone?: true }): Promise<Claimed> {
    const { needsHeads, shards, registry } = this.#parts
    const { leaseMs } = registry.queue(from[0]!.queue)
    const heads = needsHeads || shards.wantHeads(from)
    this.#isUnanswered = true
    return this.calls.claim(from, { leaseMs, ...how, ...(heads ? { heads } : {}) })
  }

  #claimed({ queue, claims }: Claimed): void {
    const { events, worker } = this.#parts
    if (queue !== undefined && events.has('queue.claimed'))
      events.emit('queue.claimed', { queue, jobs: claims.length, worker })
  }

  /** Notes the suspects that an answer reports. */
  #onAnswer(answer: Claimed): void {
    const mono = this.#mono
    const { mayBeAlone } = this.#parts
    this.#isUnanswered = false
    this.#answeredAt = mono()
    if (this.#isStopping) return
    if (!mayBeAlone()) {
      this.#suspects.clear()
      return
    }
    this.#suspects.onAnswer(answer)
    const leads = answer.waits.some(({ reason, lead }) => reason === 'suspect' && lead)
    if (leads && this.#patience.dueInMs === 0) this.#mustBeAlone = true
  }

  #fellDue(): void {
    // The answer to the claim under way may say what became of it.
    if (this.#underWay.count > 0 || this.#isStopping) return
    const targets = this.calls.leads.takeDue()
    if (targets.length === 0) return
    const { soloGate, mayBeAlone } = this.#parts
    this.#heard(targets)
    // While there is a backlog, claims in company would take all that the throttle ever permits.
    if (this.#suspects.opened(targets) && soloGate.held === 0 && mayBeAlone()) this.#mustBeAlone = true
    if (this.#rest !== undefined) this.#rest.abort()
    // No room to claim: ring a worker that has room.
    else void this.#ask(targets)
  }

  /** Asks these targets again: there may be work. */
  #heard(targets: readonly ClaimTarget[]): void {
    this.#parts.picker.heard(targets.map(({ queue }) => queue))
    for (const target of targets) this.#parts.shards.heard(target)
  }

  /** Lets the store recover, promote and ring on, and takes nothing. */
  #ask(targets: readonly ClaimTarget[]): Promise<void> {
    const { registry } = this.#parts
    return this.calls.ask(targets.map((target) => ({ ...target, leaseMs: registry.queue(target.queue).leaseMs })))
  }

  async #look(targets: readonly ClaimTarget[]): Promise<NonNullable<Claimed['heads']>> {
    const heads: NonNullable<Claimed['heads']> = []
    for (let i = 0; i < targets.length; i += mostPerTrip) {
      const from = targets.slice(i, i + mostPerTrip).map((target) => this.#plan.one(target, 0))
      heads.push(...((await this.#send(from, {})).heads ?? []))
    }
    return heads
  }

  async #restOn(queues: readonly string[]): Promise<void> {
    const mono = this.#mono
    const { waiter, picker, shards, soloGate, queues: served } = this.#parts
    this.#calling = 'wait'
    const longPollMs = Math.min(
      waiter.longestMs(Math.min(...served.map((queue) => queue.longPollMs))),
      Math.max(1, this.calls.dueInMs),
      picker.backInMs,
    )
    // Postponed suspects ring nobody when their time comes.
    const putOffMs = this.#suspects.size > 0 ? this.#patience.dueInMs : 0
    const rest = new AbortController()
    const { signal } = rest
    this.#rest = rest
    const from = this.#wasRung && this.#suspects.size === 0 ? this.#plan.whenRung(queues) : []
    const leave = from.length > 0 ? soloGate.takeUntilSought(() => rest.abort()) : () => {}
    const sentAt = mono()
    try {
      const restMs = putOffMs > 0 ? Math.min(putOffMs, longPollMs) : longPollMs
      const { rung, claimed }: Rung =
        from.length > 0
          ? await this.calls.claimWhenRung(from, restMs, signal)
          : { rung: await waiter.rest(queues, restMs, signal) }
      this.#isUnanswered = false
      this.#answeredAt = mono()
      this.#wasRung = rung.length > 0
      // A rest that was cut short may have missed a ring.
      if (!signal.aborted) picker.rested()
      if (claimed !== undefined) return this.#take(from, claimed, sentAt)
      if (rung.length > 0) this.#heard(rung.map((queue) => ({ queue })))
      else if (!signal.aborted) {
        picker.sweep()
        if (putOffMs > 0) this.#heard(this.#suspects.next())
      }
      // Another worker must hear of the ring.
      if (this.#isStopping && rung.length > 0) await this.#ask(rung.flatMap((queue) => shards.every(queue)))
    } finally {
      leave()
      this.#rest = undefined
    }
  }

  /**
   * Makes room and runs suspects alone for a stretch. Then company has its turn: suspects must not keep all other jobs
   * waiting.
   */
  async #claimSuspects(): Promise<void> {
    const mono = this.#mono
    const { soloGate, inFlight, picker } = this.#parts
    this.#calling = 'claim'
    const soughtAt = mono()
    const soloTurn = soloGate.seek()
    inFlight.gathering.beginAll()
    try {
      if (!(await this.#isAdmitted(soloTurn))) return
      this.#patience.admitted()
      const admittedAt = mono()
      let isDenied = false
      while (this.#suspects.size > 0 && !this.#isStopping && mono() - admittedAt < stretchMs) {
        const targets = this.#suspects.next()
        const sentAt = mono()
        const from = targets.map((target) => this.#plan.one(target, 1))
        const answer = await this.#send(from, { alone: true })
        const answeredAt = mono()
        this.#suspects.answeredAlone(targets, answer)
        this.#claimed(answer)
        const [claim] = answer.claims
        if (claim === undefined) isDenied = answer.waits.some(({ reason }) => reason === 'suspect')
        else {
          soloGate.take(1)
          await inFlight.runAlone(claim, tripOf(from, answer, sentAt, answeredAt))
        }
      }
      // A limit of its group may deny the suspect for long: do not stop all other jobs for it again so soon.
      this.#patience.ended(isDenied, mono() - soughtAt)
      // Nobody has listened for a while: ask all other queues before more suspects run.
      if (this.#suspects.size > 0) picker.again()
    } finally {
      soloTurn.leave()
      this.#mustBeAlone = false
    }
  }

  /** Waits until nothing is held here, and goes on leading meanwhile. False if it is no longer worth it. */
  async #isAdmitted(soloTurn: SoloTurn): Promise<boolean> {
    const { until } = this.#patience
    const targets = this.#suspects.next()
    for (;;) {
      let isAdmitted = false
      const admitted = soloTurn.admitted.then(() => {
        isAdmitted = true
      })
      await settledOr(AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(suspectLeadMs)]), admitted)
      if (isAdmitted || this.#isStopping) return isAdmitted && !this.#isStopping
      this.#mustBeAlone = false
      await this.#ask(targets)
      if (!this.#mustBeAlone) return false
      if (this.#mono() <= until) continue
      this.#patience.gaveUp()
      return false
    }
  }
}
