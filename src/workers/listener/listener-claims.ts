/**
 * The claims of a listener: it claims one job for each call that waits, and rests on the store between; what it leads it asks for
 * at its time, whether anybody waits or not.
 */

import { setTimeout as delay, setImmediate as endOfTick } from 'node:timers/promises'
import { ClosedError, hasCode } from '../../core/errors.js'
import type { Events } from '../../core/events.js'
import type { Random } from '../../core/platform/clock.js'
import type { Queue } from '../../core/queue/queue.js'
import { outageDelayMs } from '../../core/values/outage-delay.js'
import type { IdleWaiter } from '../../runtime/idle-waiter.js'
import { isFatal } from '../../runtime/outage.js'
import type { SoloGate, SoloTurn } from '../../runtime/solo-gate.js'
import type { Trip } from '../../runtime/store-clock.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim, Claimed, Wait } from '../../stores/contract/claim.js'
import type { Store } from '../../stores/contract/store.js'
import type { UnheardClaims } from '../claim-loop/unheard-claims.js'
import type { DamagedQueues } from '../damaged-queues.js'
import { emitCrashes } from '../settle-events.js'

interface ListenerClaimsParts {
  readonly worker: string
  readonly queue: Queue
  /** Opens the store, once. */
  readonly connect: () => Promise<{ readonly store: Store; readonly waiter: IdleWaiter }>
  readonly solitude: SoloGate
  readonly events: Events
  readonly mono: () => number
  readonly random: Random
  /** Whether there is room for another claim; `look()` tells that there is again. */
  readonly hasRoom: () => boolean
  readonly damaged: DamagedQueues
  readonly unheard: UnheardClaims
  /** Hears of a claim that nobody waits for any more. */
  readonly unwanted: (granted: ListenerGrant) => void
}

/** A claim, and the call that made it. */
export interface ListenerGrant {
  readonly claim: Claim
  readonly trip: Trip
  /** Lets others of this process claim as if this one were not held; calling it again does nothing. */
  readonly letGo: () => void
}

interface Caller {
  readonly resolve: (granted: ListenerGrant) => void
  readonly reject: (error: unknown) => void
}

/** So long it is tried to be alone for a suspect; each failure doubles it, and for as long it is not tried again. */
const firstPatienceMs = 30_000
const longestTimerMs = 2 ** 31 - 1

export class ListenerClaims {
  readonly #parts: ListenerClaimsParts
  readonly #callers: Caller[] = []
  /** What it leads, by shard, each with the timer of what is due. */
  readonly #leads = new Map<number | undefined, NodeJS.Timeout>()
  #serving: Promise<void> | undefined
  #isOpen = false
  #isStopped = false
  /** While it waits for anything: what ends that. */
  #rest: AbortController | undefined
  /** Something may have changed since the last claim was sent. */
  #isDue = false
  #hasSuspects = false
  #leadsSuspects = false
  #aloneFrom = 0
  #patienceMs = firstPatienceMs

  constructor(parts: ListenerClaimsParts) {
    this.#parts = parts
  }

  /** The next job. Rejects with the reason of `signal`, with `ClosedError` once it is stopped, and as the store does where no waiting mends that. */
  next(signal: AbortSignal | undefined): Promise<ListenerGrant> {
    return new Promise((resolve, reject) => {
      if (this.#isStopped) return reject(this.#closed())
      if (signal?.aborted) return reject(signal.reason)
      const leave = () => {
        this.#callers.splice(this.#callers.indexOf(caller), 1)
        reject(signal?.reason)
        if (this.#callers.length === 0) this.#rest?.abort()
      }
      const gone = () => signal?.removeEventListener('abort', leave)
      const caller: Caller = {
        resolve: (granted) => {
          gone()
          resolve(granted)
        },
        reject: (error) => {
          gone()
          reject(error)
        },
      }
      signal?.addEventListener('abort', leave)
      this.#callers.push(caller)
      this.#serving ??= this.#serve()
    })
  }

  /** There may be work, or room for it. */
  look(): void {
    this.#isDue = true
    this.#rest?.abort()
  }

  /** Claims nothing from now on; who waits is told so. */
  stop(): void {
    this.#isStopped = true
    for (const { reject } of this.#callers.splice(0)) reject(this.#closed())
    for (const timer of this.#leads.values()) clearTimeout(timer)
    this.#leads.clear()
    this.#rest?.abort()
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    await this.#serving
  }

  #closed(): ClosedError {
    return new ClosedError(`the listener of queue '${this.#parts.queue.name}'`)
  }

  async #serve(): Promise<void> {
    const { events, random } = this.#parts
    for (let failures = 0; this.#callers.length > 0; ) {
      // A store that answers without waiting for anything must still let timers and signals have their turn.
      await endOfTick()
      try {
        await this.#turn()
        failures = 0
      } catch (error) {
        if (isFatal(error) || (!this.#isOpen && !hasCode(error, 'store-unavailable'))) {
          for (const { reject } of this.#callers.splice(0)) reject(error)
          continue
        }
        const retryMs = outageDelayMs(failures++, random)
        events.emit('store.failed', { call: this.#isOpen ? 'claim' : 'open', error, retryMs })
        await this.#resting((signal) => delay(retryMs, undefined, { signal }).catch(() => {}))
      }
    }
    this.#serving = undefined
  }

  async #turn(): Promise<void> {
    const { connect, hasRoom, unheard } = this.#parts
    const { waiter } = await connect()
    this.#isOpen = true
    await unheard.putBack()
    if (!hasRoom()) return this.#resting(aborted)
    this.#isDue = false
    const granted = this.#mayGoAlone() ? await this.#claimAlone() : await this.#claimInCompany()
    if (granted !== undefined) return this.#deliver(granted)
    if (this.#isDue || this.#isStopped || this.#mayGoAlone()) return
    await this.#resting((signal) => this.#restOn(waiter, signal))
  }

  #deliver(granted: ListenerGrant): void {
    const caller = this.#callers.shift()
    if (caller === undefined) this.#parts.unwanted(granted)
    else caller.resolve(granted)
  }

  /** A suspect is taken at once where nobody here holds anything; where this listener leads, room is made for it. */
  #mayGoAlone(): boolean {
    const { solitude, mono } = this.#parts
    if (!this.#hasSuspects) return false
    return mono() >= this.#aloneFrom && (solitude.held === 0 || this.#leadsSuspects)
  }

  async #claimInCompany(): Promise<ListenerGrant | undefined> {
    const { solitude } = this.#parts
    // Between its opening and this line somebody may have begun to seek solitude: it is looked at in the tick of the claim.
    while (!solitude.isOpen) await solitude.opened()
    if (this.#callers.length === 0) return undefined
    solitude.take(1)
    const letGo = once(() => solitude.give(1))
    return this.#claim({}, letGo)
  }

  async #claimAlone(): Promise<ListenerGrant | undefined> {
    const { solitude, mono } = this.#parts
    const hermit = solitude.seek()
    const leave = once(() => hermit.leave())
    if (!(await this.#isAdmitted(hermit))) {
      leave()
      this.#aloneFrom = mono() + this.#patienceMs
      this.#patienceMs *= 2
      return undefined
    }
    this.#patienceMs = firstPatienceMs
    solitude.take(1)
    const letGo = once(() => {
      solitude.give(1)
      leave()
    })
    const granted = await this.#claim({ alone: true }, letGo)
    // A limit of its group may deny a suspect for long: the queue goes on without it.
    if (granted === undefined) this.#aloneFrom = mono() + (this.#hasSuspects ? firstPatienceMs : 0)
    return granted
  }

  /** Waits until nobody here holds anything; false where that takes too long, or nobody asks any more. */
  async #isAdmitted({ admitted }: SoloTurn): Promise<boolean> {
    const { mono } = this.#parts
    const until = mono() + this.#patienceMs
    let isAdmitted = false
    const done = admitted.then(() => {
      isAdmitted = true
    })
    await endOfTick()
    while (!isAdmitted && this.#callers.length > 0 && mono() < until)
      await this.#resting((signal) => endsWithin(until - mono(), Promise.race([done, aborted(signal)])))
    return isAdmitted && this.#callers.length > 0
  }

  async #claim(how: { readonly alone?: true }, letGo: () => void): Promise<ListenerGrant | undefined> {
    const sentAt = this.#parts.mono()
    try {
      const { claims, now } = await this.#send(1, how)
      const answeredAt = this.#parts.mono()
      if (claims[0] !== undefined) return { claim: claims[0], trip: { sentAt, answeredAt, now }, letGo }
    } catch (error) {
      letGo()
      throw error
    }
    letGo()
    return undefined
  }

  async #send(limit: 0 | 1, how: { readonly alone?: true } = {}): Promise<Claimed> {
    const { connect, queue, worker, events, unheard, damaged } = this.#parts
    const { store } = await connect()
    const from = [{ queue: queue.name, limit }]
    const asked = store.claim(from, { worker, leaseMs: queue.leaseMs, ...how })
    asked.catch((error: unknown) => unheard.failed(error))
    const answer = await asked
    if (answer.isInDoubt) unheard.suspected()
    damaged.told(from, answer.damaged)
    emitCrashes(events, answer)
    this.#heed(answer)
    return answer
  }

  #heed({ waits }: Claimed): void {
    if (this.#isStopped) return
    const suspects = waits.filter(({ reason }) => reason === 'suspect')
    this.#hasSuspects = suspects.length > 0
    this.#leadsSuspects = suspects.some(({ lead }) => lead)
    for (const wait of waits) if (wait.reason !== 'suspect') this.#lead(wait)
  }

  #lead({ shard, lead, forMs }: Wait): void {
    clearTimeout(this.#leads.get(shard))
    this.#leads.delete(shard)
    if (!lead || forMs === undefined) return
    const due = () => {
      this.#leads.delete(shard)
      if (this.#callers.length > 0 && this.#parts.hasRoom()) this.look()
      else void this.#ask()
    }
    this.#leads.set(shard, setTimeout(due, Math.min(Math.max(1, Math.ceil(forMs)), longestTimerMs)).unref())
  }

  /** Has the store recover, promote and ring on, and takes nothing. */
  async #ask(): Promise<void> {
    try {
      await this.#send(0)
    } catch (error) {
      this.#parts.events.emit('store.failed', { call: 'claim', error, retryMs: undefined })
    }
  }

  async #restOn(waiter: IdleWaiter, signal: AbortSignal): Promise<void> {
    const { queue, unheard, damaged } = this.#parts
    const { name, longPollMs } = queue
    const soonestMs = Math.max(1, Math.min(unheard.dueInMs, damaged.dueInMs))
    const rung = await waiter.rest([name], Math.min(longPollMs, soonestMs), signal)
    // Somebody else must hear of it then.
    if (rung.length > 0 && this.#callers.length === 0) await this.#ask()
  }

  /** Until `rest` has ended, which is to be soon once it is told that there may be work. */
  async #resting(rest: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    this.#rest = new AbortController()
    try {
      await rest(this.#rest.signal)
    } finally {
      this.#rest = undefined
    }
  }
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve()))
}

/** What is done at the first call only. */
export function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
