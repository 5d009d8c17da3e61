/**
 * The claim calls of a worker, a listener or a throttled queue: they send claims and react to each answer (crashes,
 * damaged queues, unheard claims, leads).
 */

import type { Events } from '../../core/events.js'
import type { Claimed, Claimer, ClaimFrom, Rung } from '../../stores/contract/claim.js'
import type { ClaimKey } from '../../stores/contract/settle.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import type { FoundEnds } from '../found-ends.js'
import type { ClaimTarget } from '../shards/claim-target.js'
import { DamagedQueues } from './damaged-queues.js'
import { Leads } from './leads.js'
import { UnheardClaims } from './unheard-claims.js'

/** The longest wait with which a claim goes along, also as a part of its lease. */
const longestMs = 1_000
const leaseShare = 0.1

export interface ClaimCallsParts {
  readonly worker: string
  readonly queues: readonly string[]
  /** Opens the store, once. */
  readonly connect: () => Promise<Store>
  /** The known claims whose end the store has not yet taken. */
  readonly held: () => readonly ClaimKey[]
  /** Called when a target that it leads has fallen due (`leads.takeDue()`). */
  readonly fellDue: () => void
  /** Called first with every answer. */
  readonly answered: (answer: Claimed) => void
  readonly ends: Pick<FoundEnds, 'tell'>
  readonly events: Events
  readonly mono: () => number
}

export class ClaimCalls {
  readonly leads: Leads
  readonly damaged: DamagedQueues
  readonly unheard: UnheardClaims
  readonly #parts: ClaimCallsParts

  constructor(parts: ClaimCallsParts) {
    this.#parts = parts
    this.leads = new Leads(parts.fellDue)
    this.damaged = new DamagedQueues(parts.queues, parts.events, parts.mono)
    this.unheard = new UnheardClaims(parts)
  }

  /** Ms for which the claimer may rest; Infinity if no queue is damaged and no claim unheard. */
  get dueInMs(): number {
    return Math.min(this.unheard.dueInMs, this.damaged.dueInMs)
  }

  /** Rejects as the store does, and with the error of a damaged queue if no queue it serves can be used. */
  async claim(from: readonly ClaimFrom[], how: Omit<Claimer, 'worker'>): Promise<Claimed> {
    const { worker, connect } = this.#parts
    const store = await connect()
    const asked = store.claim(from, { worker, ...how })
    asked.catch((error: unknown) => this.unheard.failed(error))
    const answer = await asked
    this.#heed(from, answer)
    return answer
  }

  /**
   * `Store.claimWhenRung`, which the store must have, on entries that name their leases. Waits for a second, or a tenth
   * of the shortest lease, at most: leases are reckoned from the moment in which the claim is sent. Rejects like
   * `claim`.
   */
  async claimWhenRung(from: readonly ClaimFrom[], forMs: number, signal: AbortSignal): Promise<Rung> {
    const { worker, connect } = this.#parts
    const store = await connect()
    const shortest = Math.min(...from.map((one) => one.leaseMs!))
    const mostMs = Math.min(forMs, longestMs, shortest * leaseShare)
    const asked = store.claimWhenRung!(from, { worker, leaseMs: shortest }, mostMs, signal)
    asked.catch((error: unknown) => this.unheard.failed(error))
    const rung = await asked
    if (rung.claimed !== undefined) this.#heed(from, rung.claimed)
    return rung
  }

  #heed(from: readonly ClaimFrom[], answer: Claimed): void {
    const { ends, answered } = this.#parts
    answered(answer)
    if (answer.isInDoubt) this.unheard.suspected()
    this.damaged.told(from, answer.damaged)
    ends.tell(answer)
    this.leads.told(answer.waits)
  }

  /**
   * Lets the store recover, promote and ring on, and takes nothing. Never rejects: a failure is emitted as
   * `store.failed`.
   */
  async ask(targets: readonly (ClaimTarget & { readonly leaseMs: number })[]): Promise<void> {
    const from = targets.map((target) => ({ ...target, limit: 0 }))
    try {
      for (let i = 0; i < from.length; i += mostPerTrip)
        await this.claim(from.slice(i, i + mostPerTrip), { leaseMs: from[i]!.leaseMs })
    } catch (error) {
      this.#parts.events.emit('store.failed', { call: 'claim', error, retryMs: undefined })
    }
  }
}
