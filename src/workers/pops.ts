/**
 * The pops of a throttled queue: pops of one tick share a claim and a settle. A denied queue is not asked again before
 * its time.
 */

import { setTimeout as delay, setImmediate as endOfTick } from 'node:timers/promises'
import { hasCode } from '../core/errors.js'
import { messageOf } from '../core/messages/describe.js'
import type { Lack } from '../core/packing/packing.js'
import { outageDelayMs } from '../core/platform/timer.js'
import { leastSpreadOf, startWindowOf, type ThrottleRule } from '../core/queue/throttle.js'
import type { WorkerSurroundings } from '../core/surroundings.js'
import { countBuried, emitFound, refOf } from '../runtime/run/run-events.js'
import { answerInDoubt } from '../runtime/run/settlement.js'
import { unreadable } from '../runtime/run/unreadable-claim.js'
import { processSoloGate, type SoloTurn } from '../runtime/solo-gate.js'
import { endsWithin } from '../runtime/with-timeout.js'
import type { Claim, Claimed, Wait } from '../stores/contract/claim.js'
import type { SettleAnswer, SettleItem } from '../stores/contract/settle.js'
import type { Store } from '../stores/contract/store.js'
import { ClaimCalls } from './claims/claim-calls.js'
import { Lateness, StoreClock } from './claims/punctuality.js'

/** Why there is no item now. */
export type PopWait = Exclude<Wait['reason'], 'suspect'>

/**
 * An item, or the reason why there is none and, if something changes by itself, the ms until it is worth asking again.
 */
export type PoppedJob<Item> =
  | { readonly item: Item; readonly wait?: undefined; readonly forMs?: undefined }
  | { readonly item?: undefined; readonly wait: PopWait; readonly forMs?: number }

type Denied = Extract<PoppedJob<unknown>, { readonly wait: PopWait }>

interface WaitingPop {
  readonly resolve: (popped: PoppedJob<unknown>) => void
  readonly reject: (error: unknown) => void
}

/** An item whose taker dies between claim and settle is back after this long; both are one trip away. */
const leaseMs = 10_000
/** A denial ends early only if the rules change: a pop notices within this time. */
const longestMemoryMs = 1_000
/**
 * If only crashed items are left, a pop waits this long until nothing in this process is claimed, and waits again no
 * sooner.
 */
const patienceMs = 1_000
const impatientMs = 10_000
/** A pop begins when the store grants it. */
const delayMs = 0
/** How long an item of another codec waits for a process that has the codec: as long as jobs do. */
const foreignItemDelayMs = 30_000
/** Of several shards, the one that may give first answers. */
const reasons: readonly PopWait[] = ['throttled', 'full', 'scheduled', 'empty', 'paused']

/** @internal */
export class Pops {
  readonly #surroundings: WorkerSurroundings
  readonly #queue: string
  readonly #connect: () => Promise<Store>
  readonly #limits: (store: Store) => Promise<readonly ThrottleRule[]>
  readonly #asked: WaitingPop[] = []
  #serving: Promise<void> | undefined
  /** The denial: until when it lasts, and until when it is believed, on the monotonic clock. */
  #denial: { readonly wait: PopWait; readonly openAt: number; readonly until: number } | undefined
  /** Crashed items wait; only claims made alone receive them. */
  #hasSuspects = false
  #aloneFrom = Number.NEGATIVE_INFINITY
  readonly #storeClock = new StoreClock()
  readonly #lateness = new Lateness()
  readonly #calls: ClaimCalls
  readonly #mono = () => this.#surroundings.clock.mono()

  /** `limits`: the stored rules of the throttle. It never rejects. */
  constructor(
    surroundings: WorkerSurroundings,
    queue: string,
    connect: () => Promise<Store>,
    limits: (store: Store) => Promise<readonly ThrottleRule[]>,
  ) {
    this.#surroundings = surroundings
    this.#queue = queue
    this.#connect = connect
    this.#limits = limits
    this.#calls = new ClaimCalls(surroundings, {
      ...{ queues: [queue], connect, held: () => [], fellDue: () => {} },
      ends: { tell: (found) => emitFound(surroundings.events, found) },
      answered: ({ waits }) => {
        this.#hasSuspects = waits.some(({ reason }) => reason === 'suspect')
      },
    })
    // Nobody returns to a target that it leads: the lead lapses and another takes it.
    this.#calls.leads.stop()
  }

  next(): Promise<PoppedJob<unknown>> {
    return new Promise((resolve, reject) => {
      this.#asked.push({ resolve, reject })
      this.#serving ??= this.#serve()
    })
  }

  /** Makes the next pop ask the store. */
  forget(): void {
    this.#denial = undefined
  }

  /** Resolves when no pop is under way. */
  async idle(): Promise<void> {
    await this.#serving
  }

  async #serve(): Promise<void> {
    // Also before an answer from memory: a loop that polls must leave turns to timers and sockets.
    await endOfTick()
    while (this.#asked.length > 0) {
      const denied = this.#remembered()
      if (denied === undefined) await this.#serveSome()
      else for (const { resolve } of this.#asked.splice(0)) resolve(denied)
    }
    this.#serving = undefined
  }

  #remembered(): Denied | undefined {
    const now = this.#mono()
    if (this.#denial === undefined || this.#denial.until <= now) return undefined
    const { wait, openAt } = this.#denial
    return { wait, forMs: Math.ceil(openAt - now) }
  }

  async #serveSome(): Promise<void> {
    const asked: WaitingPop[] = []
    let leave: (() => void) | undefined
    try {
      const store = await this.#connect()
      // Items of a claim whose answer was lost: between two claims nothing else is held here.
      const { unheard } = this.#calls
      if (unheard.dueInMs === 0) await unheard.putBack()
      const soloTurn = await this.#sought()
      // Another claimer of this process seeks to be alone, perhaps for long: a pop does not wait.
      if (soloTurn === undefined && !processSoloGate.isOpen) {
        for (const { resolve } of this.#asked.splice(0)) resolve({ wait: 'full' })
        return
      }
      processSoloGate.take(1)
      leave = () => {
        processSoloGate.give()
        soloTurn?.leave()
      }
      // What one claim takes is settled by one call.
      asked.push(...this.#asked.splice(0, soloTurn === undefined ? store.traits.maxBatch : 1))
      const left = await this.#take(store, asked, soloTurn !== undefined)
      this.#asked.unshift(...left)
    } catch (error) {
      const failed = asked.length > 0 ? asked : this.#asked.splice(0)
      for (const { reject } of failed) reject(error)
    } finally {
      leave?.()
    }
  }

  /**
   * Being alone for one pop, which takes crashed items too: at once if nothing is claimed here; undefined if it is not
   * possible.
   */
  async #sought(): Promise<SoloTurn | undefined> {
    const mono = this.#mono
    if (!processSoloGate.isOpen) return undefined
    const isFree = processSoloGate.held === 0
    if (isFree ? this.#asked.length > 1 && !this.#hasSuspects : !this.#hasSuspects || mono() < this.#aloneFrom)
      return undefined
    const soloTurn = processSoloGate.seek()
    if (!isFree) await endsWithin(patienceMs, soloTurn.admitted)
    if (soloTurn.isAdmitted) return soloTurn
    soloTurn.leave()
    this.#aloneFrom = mono() + impatientMs
    return undefined
  }

  /** Answers as many pops as it can; returns those that must ask again. */
  async #take(store: Store, asked: readonly WaitingPop[], alone: boolean): Promise<readonly WaitingPop[]> {
    const queue = this.#queue
    const mono = this.#mono
    const sentAt = mono()
    const { declaredMs } = this.#lateness
    const from = [{ queue, limit: asked.length, lateMs: declaredMs }]
    const limits = this.#limits(store)
    const claimed = await this.#calls.claim(from, { leaseMs, ...(alone ? { alone } : {}) })
    const granted = this.#storeClock.grantedIn({ sentAt, answeredAt: mono(), now: claimed.now })
    const start = startWindowOf(granted, leastSpreadOf(await limits), delayMs, declaredMs)
    const isFar = sentAt + this.#storeClock.quickestMs > start.to
    const denied = deniedBy(claimed)
    this.#remember(denied)
    if (claimed.claims.length > 0 && mono() > start.to && !isFar) {
      this.#lateness.noted(start.dueBy, mono())
      await this.#putBack(store, claimed.claims, sentAt + leaseMs)
      return asked
    }
    const items = await this.#completed(store, claimed.claims, sentAt + leaseMs)
    if (items.length > 0) this.#lateness.noted(start.dueBy, mono())
    const lateMs = Math.ceil(mono() - start.to)
    if (lateMs > 0)
      for (const claim of claimed.claims) this.#surroundings.events.emit('start.late', { ...refOf(claim), lateMs })
    for (const [i, item] of items.entries()) asked[i]!.resolve({ item })
    const left = asked.slice(items.length)
    // A claim in company receives no suspect.
    const maySeek = mono() >= this.#aloneFrom
    if (denied === undefined && (claimed.claims.length > 0 || (this.#hasSuspects && !alone && maySeek))) return left
    const others = this.#hasSuspects && !alone ? 'full' : 'throttled'
    for (const { resolve } of left) resolve(denied ?? { wait: others })
    return []
  }

  #remember(denied: Denied | undefined): void {
    const now = this.#mono()
    this.#denial =
      denied?.wait === 'throttled' && denied.forMs !== undefined
        ? { wait: denied.wait, openAt: now + denied.forMs, until: now + Math.min(denied.forMs, longestMemoryMs) }
        : undefined
  }

  /** Their answer came so late that they would fall into a window that is given to others. */
  async #putBack(store: Store, claims: readonly Claim[], leaseUntil: number): Promise<void> {
    const { events } = this.#surroundings
    this.forget()
    const items = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'release', delayMs: 0 }) as const)
    for (const claim of claims) events.emit('permit.wasted', { ...refOf(claim), reason: 'late' })
    await this.#settled(store, items, leaseUntil)
  }

  /** The items that are gone from the store, and so belong to this process alone. */
  async #completed(store: Store, claims: readonly Claim[], leaseUntil: number): Promise<unknown[]> {
    if (claims.length === 0) return []
    const ends = claims.map((claim) => ({ claim, ...this.#endOf(claim) }))
    const answers = await this.#settled(
      store,
      ends.map(({ settle }) => settle),
      leaseUntil,
    )
    return ends.flatMap(({ claim, item, settle, lack }, i) => {
      if (answers[i] === 'ok') this.#tell(claim, settle, lack)
      else this.#surroundings.events.emit('settle.refused', { ...refOf(claim), kind: settle.kind, answer: answers[i]! })
      return item !== undefined && answers[i] === 'ok' ? [item.value] : []
    })
  }

  /** The end of the claim, with its item; without one if it cannot be decoded. */
  #endOf(claim: Claim): {
    readonly settle: SettleItem
    /** Why it goes back. */
    readonly lack?: Lack
    readonly item?: { readonly value: unknown }
  } {
    const { packing, clock } = this.#surroundings
    const { queue, id, fence, payload, codec } = claim
    const key = { queue, id, fence }
    const lack = packing.lackFor(payload, codec)
    if (lack !== undefined) {
      const { error, isOver } = unreadable(claim, lack, clock.now())
      if (isOver) return { settle: { ...key, kind: 'bury', reason: 'bad-payload', error } }
      return { settle: { ...key, kind: 'release', delayMs: foreignItemDelayMs, error }, lack }
    }
    try {
      const value = packing.unpack(payload, codec, 'payload', claim)
      return { settle: { ...key, kind: 'complete' }, item: { value } }
    } catch (error) {
      return { settle: { ...key, kind: 'bury', reason: 'bad-payload', error: messageOf(error) } }
    }
  }

  #tell(claim: Claim, settle: SettleItem, lack: Lack | undefined): void {
    const { events } = this.#surroundings
    if (settle.kind === 'complete') {
      events.counter?.started(claim.queue)
      events.counter?.completed(claim.queue, 0)
      events.taskCounter?.completed(claim, 0)
    }
    if (settle.kind === 'release')
      events.emit('job.released', { ...refOf(claim), reason: lack!.reason, delayMs: settle.delayMs })
    if (settle.kind === 'bury') {
      countBuried(events, claim)
      events.emit('job.buried', { ...refOf(claim), reason: settle.reason!, error: settle.error })
    }
  }

  /** Settles; during an outage it tries again while the lease lasts. */
  async #settled(store: Store, items: readonly SettleItem[], leaseUntil: number): Promise<SettleAnswer[]> {
    const mono = this.#mono
    const { random, events } = this.#surroundings
    let isInDoubt = false
    for (let failures = 0; ; failures += 1) {
      try {
        const answers = await store.settle(items)
        return isInDoubt ? answers.map((answer) => answerInDoubt(answer, mono() < leaseUntil)) : answers
      } catch (error) {
        if (!hasCode(error, 'store-unavailable')) throw error
        isInDoubt ||= error.inDoubt
        const retryMs = outageDelayMs(failures, random)
        const isLate = mono() + retryMs >= leaseUntil
        events.emit('store.failed', { call: 'settle', error, retryMs: isLate ? undefined : retryMs })
        if (isLate) throw error
        await delay(retryMs)
      }
    }
  }
}

/** Undefined if nothing was denied, or if its end is unknown. */
function deniedBy({ claims, waits }: Claimed): Denied | undefined {
  const denials = waits.filter(({ reason }) => reason !== 'suspect')
  const wait = reasons.find((one) => denials.some(({ reason }) => reason === one))
  if (wait === undefined) return undefined
  const forMs = Math.min(...denials.map((denial) => denial.forMs ?? Number.POSITIVE_INFINITY))
  // The next change would be the end of our own lease, which is settled before anybody hears of this.
  if (claims.length > 0 && forMs >= leaseMs) return undefined
  return forMs === Number.POSITIVE_INFINITY ? { wait } : { wait, forMs }
}
