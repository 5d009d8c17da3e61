/**
 * The clock of a store, seen from here: translates the store's instants to the monotonic clock of this process. Each
 * trip bounds the difference from both sides; the quickest trips bound it best.
 */

import type { Span } from '../core/queue/throttle.js'

/** A call to the store, on the monotonic clock, and the instant in its answer, on the store's. */
export interface Trip {
  /** From before it was sent. */
  readonly sentAt: number
  readonly answeredAt: number
  /** Whole ms. */
  readonly now: number
  /** How late the call said that jobs may begin; default 0. */
  readonly lateMs?: number
}

/** How far two clocks may drift apart: more than `ntpd` and `chrony` slew either. */
const driftPerMs = 0.001
/** The quickest of this many trips measures how far away the store is. */
const tripsKept = 8

export class StoreClock {
  /** The difference of the store's clock from ours: between these two, when they were last narrowed. */
  #ahead: Span | undefined
  #narrowedAt = 0
  readonly #trips: number[] = []

  /** The span of our clock in which the store acted. */
  grantedIn({ sentAt, answeredAt, now }: Trip): Span {
    this.#trips.push(answeredAt - sentAt)
    if (this.#trips.length > tripsKept) this.#trips.shift()
    // It acted between the two instants, in the ms that it named.
    const told = { from: now - answeredAt, to: now + 1 - sentAt }
    const known = this.#ahead === undefined ? told : widened(this.#ahead, (answeredAt - this.#narrowedAt) * driftPerMs)
    const both = { from: Math.max(told.from, known.from), to: Math.min(told.to, known.to) }
    // One of the clocks was set.
    this.#ahead = both.from <= both.to ? both : told
    this.#narrowedAt = answeredAt
    return {
      from: Math.max(sentAt, now - this.#ahead.to),
      to: Math.min(answeredAt, now + 1 - this.#ahead.from),
    }
  }

  /** The shortest of the latest trips, in ms; 0 while there were few, as one may be slow by chance. */
  get quickestMs(): number {
    return this.#trips.length < tripsKept ? 0 : Math.min(...this.#trips)
  }
}

function widened({ from, to }: Span, byMs: number): Span {
  return { from: from - byMs, to: to + byMs }
}
