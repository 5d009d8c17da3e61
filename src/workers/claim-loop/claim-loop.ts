/**
 * The claim loop: claims for a worker while it has room. The selector orders the queues → one claim over them for the
 * free slots and the jobs worth claiming ahead → stay for `iterations` → draw again. If all are empty, the loop rests
 * until one is rung. It also does the work of a lead, and makes room for suspects.
 */

import { setTimeout as delay } from 'node:timers/promises'
import type { Events } from '../../core/events.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue } from '../../core/queue/queue.js'
import type { Registry } from '../../core/registry.js'
import { outageDelayMs } from '../../core/values/outage-delay.js'
import type { IdleWaiter } from '../../runtime/idle-waiter.js'
import { isFatal } from '../../runtime/outage.js'
import type { Prefetch } from '../../runtime/prefetch.js'
import type { Settler } from '../../runtime/run/settler.js'
import type { SoloGate, SoloTurn } from '../../runtime/solo-gate.js'
import { settledOr } from '../../runtime/with-timeout.js'
import type { Claimed, ClaimFrom } from '../../stores/contract/claim.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import { suspectLeadMs } from '../../stores/rules/wake-lead.js'
import { ClaimCalls } from '../claims/claim-calls.js'
import { SoloPatience } from '../claims/solo-patience.js'
import type { ClaimTarget } from '../shards/claim-target.js'
import type { ShardPicker } from '../shards/shard-picker.js'
import type { Slots } from '../slots.js'
import type { InFlight } from './in-flight.js'
import type { LimitedQueues } from './limited-queues.js'
import type { Punctuality } from './punctuality.js'
import type { QueuePicker } from './queue-picker.js'
import { roomFor } from './room.js'
import { SuspectTargets } from './suspect-targets.js'

interface ClaimLoopParts {
  readonly worker: string
  readonly store: Store
  readonly registry: Registry
  readonly queues: readonly Queue[]
  readonly needsHeads: boolean
  readonly picker: QueuePicker
  readonly shards: ShardPicker
  readonly limited: LimitedQueues
  /** Claims that this worker holds or has adopted. */
  readonly held: () => readonly ClaimKey[]
  readonly punctuality: Punctuality
  readonly slots: Slots
  readonly inFlight: InFlight
  readonly settler: Settler
  readonly waiter: IdleWaiter
  readonly soloGate: SoloGate
  readonly prefetch: Prefetch
  readonly events: Events
  readonly mono: () => number
  readonly random: Random
  /** How many more jobs may be claimed before the worker is replaced. */
  readonly mayTake: () => number
  /** Whether this process is sound enough to show which job kills it. */
  readonly mayBeAlone: () => boolean
}

/** Suspects run in a row for this long; then other jobs have their turn for as long as that took. */
const stretchMs = 1_000
/** A store that answers at once must still leave turns to timers and signals. */
const turnsInARow = 100

export class ClaimLoop {
  readonly calls: ClaimCalls
  readonly #parts: ClaimLoopParts
  readonly #stopping = new AbortController()
  #isClaiming = false
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
    const { store, queues, mono } = parts
    this.#parts = parts
    this.#answeredAt = mono()
    this.#patience = new SoloPatience(mono)
    this.calls = new ClaimCalls({
      ...{ ...parts, queues: queues.map(({ name }) => name), connect: async () => store },
      fellDue: () => this.#fellDue(),
      answered: (answer) => this.#heed(answer),
    })
  }

  /** When the store last answered, on the monotonic clock. */
  get answeredAt(): number {
    return this.#answeredAt
  }

  /**
   * Since when, on the monotonic clock, its claims have had no answer; undefined while the store answers, or while it
   * rests or has no room.
   */
  get unansweredSince(): number | undefined {
    return this.#isUnanswered ? this.#answeredAt : undefined
  }

  /** Claims until it is stopped. Rejects with a store error that no waiting mends. */
  async run(): Promise<void> {
    const { events, random, queues, shards, picker } = this.#parts
    let failures = 0
    let isBlind = this.#parts.needsHeads
    for (let turns = 1; !this.#isStopping; turns += 1) {
      if (turns % turnsInARow === 0) await new Promise((resolve) => setImmediate(resolve))
      try {
        // Otherwise the first claim would know no heads.
        if (isBlind) picker.told(await this.#look(queues.flatMap(({ name }) => shards.every(name))))
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
    if (unheard.dueInMs === 0) await unheard.putBack()
    if (this.#mustBeAlone) return this.#claimSuspects()
    if (!soloGate.isOpen) {
      // Batches that wait for more jobs would block the whole process: nothing is claimed meanwhile.
      inFlight.gathering.beginAll()
      return settledOr(this.#stopping.signal, soloGate.opened())
    }
    const drawn = picker.next()
    if (drawn.length === 0) return this.#idle()
    const from = this.#fromAll(drawn)
    return from.length === 0 ? slots.freed() : this.#claim(from)
  }

  /** There is nothing to do in company. */
  async #idle(): Promise<void> {
    const { soloGate, picker, inFlight, mayBeAlone } = this.#parts
    // A resting worker may be rung, and must then have room.
    if (inFlight.free <= 0) return this.#gather()
    // Nothing is held here: a suspect can be taken at once, whoever leads.
    const goesAlone = this.#suspects.size > 0 && soloGate.held === 0 && mayBeAlone()
    return goesAlone ? this.#claimSuspects() : this.#restOn(picker.tried)
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

  /** The entries of a claim on these queues; none if there is no room for the first. */
  #fromAll(drawn: readonly string[]): ClaimFrom[] {
    const from: ClaimFrom[] = []
    for (const [i, queue] of drawn.entries()) {
      const limit = this.#room(queue)
      // Do not skip the queue drawn first if it has no room: prefetching queues would take every slot from the others.
      if (limit <= 0 && i === 0) return []
      if (limit > 0) for (const place of this.#parts.shards.next(queue)) from.push(this.#from(place, limit))
    }
    return from.slice(0, mostPerTrip)
  }

  /** How many jobs of this queue may be claimed now. */
  #room(name: string): number {
    const { registry, limited, punctuality, inFlight, prefetch, store, mayTake, needsHeads } = this.#parts
    const queue = registry.queue(name)
    const most = Math.min(queue.claimSize, store.traits.maxClaim, mayTake(), punctuality.mostOf(name))
    const { free, backlog, gathering } = inFlight
    const batchSize = registry.batchSize(name)
    const ahead = needsHeads ? 0 : prefetch.ahead(name)
    const worth = { ahead, worthwhile: prefetch.worthwhile(name), inARow: prefetch.inARow(name) }
    const inHand = { free, backlog, lacking: batchSize > 1 ? gathering.lacking(name) : 0, ...worth }
    return roomFor(queue, limited.isLimited(name), inHand, batchSize, most)
  }

  #from({ queue, ...shard }: ClaimTarget, limit: number): ClaimFrom {
    const { registry } = this.#parts
    const { leaseMs } = registry.queue(queue)
    const maxPayloads = registry.orderedTask(queue)?.maxPayloads
    return { queue, ...shard, limit, leaseMs, ...(maxPayloads === undefined ? {} : { maxPayloads }) }
  }

  async #claim(from: readonly ClaimFrom[]): Promise<void> {
    const { picker, shards, inFlight, settler, prefetch, mono, soloGate } = this.#parts
    this.#calling = 'claim'
    settler.flush()
    const sentAt = mono()
    soloGate.take(1)
    this.#isClaiming = true
    try {
      const answer = await this.#send(from, {})
      const answeredAt = mono()
      prefetch.claimed(answeredAt - sentAt)
      picker.answered(shards.answered(from, answer), answer)
      soloGate.take(answer.claims.length)
      this.#claimed(answer)
      inFlight.accept(answer.claims, { sentAt, answeredAt, now: answer.now })
    } finally {
      soloGate.give(1)
      this.#isClaiming = false
      this.#fellDue()
    }
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
  #heed(answer: Claimed): void {
    const { mayBeAlone, mono } = this.#parts
    this.#isUnanswered = false
    this.#answeredAt = mono()
    if (this.#isStopping) return
    if (!mayBeAlone()) {
      this.#suspects.clear()
      return
    }
    this.#suspects.told(answer)
    const leads = answer.waits.some(({ reason, lead }) => reason === 'suspect' && lead)
    if (leads && this.#patience.dueInMs === 0) this.#mustBeAlone = true
  }

  #fellDue(): void {
    // The answer to the claim under way may say what became of it.
    if (this.#isClaiming || this.#isStopping) return
    const places = this.calls.leads.takeDue()
    if (places.length === 0) return
    this.#heard(places)
    if (this.#rest !== undefined) this.#rest.abort()
    // No room to claim: ring a worker that has room.
    else void this.#ask(places)
  }

  /** Asks these targets again: there may be work. */
  #heard(places: readonly ClaimTarget[]): void {
    this.#parts.picker.heard(places.map(({ queue }) => queue))
    for (const place of places) this.#parts.shards.heard(place)
  }

  /** Lets the store recover, promote and ring on, and takes nothing. */
  #ask(places: readonly ClaimTarget[]): Promise<void> {
    const { registry } = this.#parts
    return this.calls.ask(places.map((place) => ({ ...place, leaseMs: registry.queue(place.queue).leaseMs })))
  }

  async #look(places: readonly ClaimTarget[]): Promise<NonNullable<Claimed['heads']>> {
    const heads: NonNullable<Claimed['heads']> = []
    for (let i = 0; i < places.length; i += mostPerTrip) {
      const from = places.slice(i, i + mostPerTrip).map((place) => this.#from(place, 0))
      heads.push(...((await this.#send(from, {})).heads ?? []))
    }
    return heads
  }

  async #restOn(queues: readonly string[]): Promise<void> {
    const { waiter, picker, shards, mono, queues: served } = this.#parts
    this.#calling = 'wait'
    const longPollMs = Math.min(...served.map((queue) => queue.longPollMs), Math.max(1, this.calls.dueInMs))
    // Postponed suspects ring nobody when their time comes.
    const putOffMs = this.#suspects.size > 0 ? this.#patience.dueInMs : 0
    this.#rest = new AbortController()
    const { signal } = this.#rest
    try {
      const rung = await waiter.rest(queues, putOffMs > 0 ? Math.min(putOffMs, longPollMs) : longPollMs, signal)
      this.#isUnanswered = false
      this.#answeredAt = mono()
      // A rest that was cut short may have missed a ring.
      if (!signal.aborted) picker.rested()
      if (rung.length > 0) this.#heard(rung.map((queue) => ({ queue })))
      else if (!signal.aborted) {
        picker.sweep()
        if (putOffMs > 0) this.#heard(this.#suspects.next())
      }
      // Another worker must hear of the ring.
      if (this.#isStopping && rung.length > 0) await this.#ask(rung.flatMap((queue) => shards.every(queue)))
    } finally {
      this.#rest = undefined
    }
  }

  /**
   * Makes room and runs suspects alone for a stretch. Then company has its turn: suspects must not keep all other jobs
   * waiting.
   */
  async #claimSuspects(): Promise<void> {
    const { soloGate, inFlight, picker, mono } = this.#parts
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
        const places = this.#suspects.next()
        const sentAt = mono()
        const answer = await this.#send(
          places.map((place) => this.#from(place, 1)),
          { alone: true },
        )
        const answeredAt = mono()
        this.#suspects.answeredAlone(places, answer)
        this.#claimed(answer)
        const [claim] = answer.claims
        if (claim === undefined) isDenied = answer.waits.some(({ reason }) => reason === 'suspect')
        else {
          soloGate.take(1)
          await inFlight.runAlone(claim, { sentAt, answeredAt, now: answer.now })
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
    const places = this.#suspects.next()
    for (;;) {
      let isAdmitted = false
      const admitted = soloTurn.admitted.then(() => {
        isAdmitted = true
      })
      await settledOr(AbortSignal.any([this.#stopping.signal, AbortSignal.timeout(suspectLeadMs)]), admitted)
      if (isAdmitted || this.#isStopping) return isAdmitted && !this.#isStopping
      this.#mustBeAlone = false
      await this.#ask(places)
      if (!this.#mustBeAlone) return false
      if (this.#parts.mono() <= until) continue
      this.#patience.gaveUp()
      return false
    }
  }
}
