/**
 * The claims of a listener: it claims one job for each waiting call, and rests on the store in between. It asks the
 * queues that it leads at their time, even if no call waits.
 */

import { setTimeout as delay, setImmediate as endOfTick } from 'node:timers/promises'
import { ClosedError, hasCode } from '../../core/errors.js'
import { outageDelayMs } from '../../core/platform/timer.js'
import type { Queue } from '../../core/queue/queue.js'
import type { WorkerSurroundings } from '../../core/surroundings.js'
import type { IdleWaiter } from '../../runtime/idle-waiter.js'
import { isFatal } from '../../runtime/outage.js'
import type { SoloGate, SoloTurn } from '../../runtime/solo-gate.js'
import { endsWithin } from '../../runtime/with-timeout.js'
import type { Claim, Claimed } from '../../stores/contract/claim.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { ClaimCalls } from '../claims/claim-calls.js'
import { type Trip, tripOf } from '../claims/punctuality.js'
import { SoloPatience } from '../claims/suspect-targets.js'
import type { FoundEnds } from '../found-ends.js'

interface ListenerClaimsParts extends WorkerSurroundings {
  readonly queue: Queue
  /** Opens the store, once. */
  readonly connect: () => Promise<{ readonly store: Store; readonly waiter: IdleWaiter }>
  readonly soloGate: SoloGate
  readonly ends: Pick<FoundEnds, 'tell'>
  /** Whether there is room for another claim; call `look()` once there is again. */
  readonly hasRoom: () => boolean
  /** How late the job of the next claim may begin, in ms. */
  readonly lateMs: () => number
  /** The claims held here. */
  readonly held: () => readonly ClaimKey[]
  /** Called with a claim that nobody waits for any more. */
  readonly unwanted: (granted: ListenerGrant) => void
}

/** A claim, with the call that made it. */
export interface ListenerGrant {
  readonly claim: Claim
  readonly trip: Trip
  /** Lets others of this process claim as if this claim were not held; a second call does nothing. */
  readonly letGo: () => void
}

interface Caller {
  readonly resolve: (granted: ListenerGrant) => void
  readonly reject: (error: unknown) => void
}

export class ListenerClaims {
  readonly calls: ClaimCalls
  readonly #parts: ListenerClaimsParts
  readonly #mono: () => number
  readonly #callers: Caller[] = []
  #serving: Promise<void> | undefined
  #isOpen = false
  #isStopped = false
  /** While it waits for anything: aborts the wait. */
  #rest: AbortController | undefined
  /** Something may have changed since the last claim was sent. */
  #isDue = false
  #hasSuspects = false
  #leadsSuspects = false
  readonly #patience: SoloPatience

  constructor(parts: ListenerClaimsParts) {
    const { queue, connect, clock } = parts
    this.#parts = parts
    this.#mono = () => clock.mono()
    this.#patience = new SoloPatience(this.#mono)
    this.calls = new ClaimCalls(parts, {
      ...{ ...parts, queues: [queue.name], connect: async () => (await connect()).store },
      fellDue: () => this.#fellDue(),
      answered: (answer) => this.#onAnswer(answer),
    })
  }

  /**
   * Claims the next job. Rejects with the reason of `signal`, with `ClosedError` once it is stopped, and with permanent
   * store errors.
   */
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

  /** Claims nothing from now on; waiting calls reject. */
  stop(): void {
    this.#isStopped = true
    for (const { reject } of this.#callers.splice(0)) reject(this.#closed())
    this.calls.leads.stop()
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
      // A store that answers at once must still leave turns to timers and signals.
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
    const { connect, hasRoom } = this.#parts
    const { waiter } = await connect()
    this.#isOpen = true
    await this.calls.unheard.putBack()
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

  /** Takes a suspect at once if nothing is held here; if this listener leads, it makes room for one. */
  #mayGoAlone(): boolean {
    if (!this.#hasSuspects || this.#patience.dueInMs > 0) return false
    return this.#parts.soloGate.held === 0 || this.#leadsSuspects
  }

  async #claimInCompany(): Promise<ListenerGrant | undefined> {
    const { soloGate } = this.#parts
    // Another claimer may have begun to seek to be alone since the gate opened: check in the tick of the claim.
    while (!soloGate.isOpen) await soloGate.opened()
    if (this.#callers.length === 0) return undefined
    soloGate.take(1)
    const letGo = once(() => soloGate.give(1))
    return this.#claim({}, letGo)
  }

  async #claimAlone(): Promise<ListenerGrant | undefined> {
    const { soloGate } = this.#parts
    const soloTurn = soloGate.seek()
    const leave = once(() => soloTurn.leave())
    if (!(await this.#isAdmitted(soloTurn))) {
      leave()
      this.#patience.gaveUp()
      return undefined
    }
    this.#patience.admitted()
    soloGate.take(1)
    const letGo = once(() => {
      soloGate.give(1)
      leave()
    })
    const granted = await this.#claim({ alone: true }, letGo)
    // A limit of its group may deny a suspect for long: the queue goes on without it.
    if (granted === undefined) this.#patience.ended(this.#hasSuspects, 0)
    return granted
  }

  /** Waits until nothing is held here; false if that takes too long, or no call waits any more. */
  async #isAdmitted({ admitted }: SoloTurn): Promise<boolean> {
    const mono = this.#mono
    const { until } = this.#patience
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
    const mono = this.#mono
    const { queue, lateMs } = this.#parts
    const weights = queue.groupWeights === undefined ? {} : { weights: queue.groupWeights }
    const from = [{ queue: queue.name, limit: 1, lateMs: lateMs(), ...weights }]
    const sentAt = mono()
    try {
      const answer = await this.calls.claim(from, { leaseMs: queue.leaseMs, ...how })
      const [claim] = answer.claims
      if (claim !== undefined) return { claim, trip: tripOf(from, answer, sentAt, mono()), letGo }
    } catch (error) {
      letGo()
      throw error
    }
    letGo()
    return undefined
  }

  #onAnswer({ waits }: Claimed): void {
    if (this.#isStopped) return
    const suspects = waits.filter(({ reason }) => reason === 'suspect')
    this.#hasSuspects = suspects.length > 0
    this.#leadsSuspects = suspects.some(({ lead }) => lead)
  }

  #fellDue(): void {
    if (this.calls.leads.takeDue().length === 0) return
    if (this.#callers.length > 0 && this.#parts.hasRoom()) this.look()
    else void this.#ask()
  }

  /** Lets the store recover, promote and ring on, and takes nothing. */
  #ask(): Promise<void> {
    const { name, leaseMs } = this.#parts.queue
    return this.calls.ask([{ queue: name, leaseMs }])
  }

  async #restOn(waiter: IdleWaiter, signal: AbortSignal): Promise<void> {
    const { name, longPollMs } = this.#parts.queue
    const rung = await waiter.rest(
      [name],
      Math.min(waiter.longestMs(longPollMs), Math.max(1, this.calls.dueInMs)),
      signal,
    )
    // Another process must hear of the ring.
    if (rung.length > 0 && this.#callers.length === 0) await this.#ask()
  }

  /** Waits until `rest` has ended. `look()` aborts its signal. */
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

/** A function that works at its first call only. */
export function once(work: () => void): () => void {
  let isDone = false
  return () => {
    if (isDone) return
    isDone = true
    work()
  }
}
