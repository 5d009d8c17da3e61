/**
 * The lateness of a claimer of a throttled queue: how late its latest departures would have been without it, and so how
 * late its next claim tells the store that jobs may begin. A process whose loop is blocked, whose tasks have slow
 * schemas, or whose store is far away, then starts fewer jobs in a window, instead of putting all of them back.
 */

import type { Trip } from '../../runtime/store-clock.js'
import type { Claimed, ClaimFrom } from '../../stores/contract/claim.js'

/** So many departures are remembered. */
const kept = 16
/** A start that was late may be later next time. */
const margin = 1.5
/** A process that stood still for longer than this may do so once; a permit that counts for that long is lost. */
const mostMs = 10_000

interface Delay {
  readonly dueBy: number
  ms: number
}

export class Lateness {
  readonly #delays: Delay[] = []

  /** A job whose start was due by this instant, without any lateness, began at `at`, or would have. */
  noted(dueBy: number, at: number): void {
    const ms = Math.max(0, at - dueBy)
    // Jobs granted together are one departure.
    const same = this.#delays.findLast((delay) => delay.dueBy === dueBy)
    if (same !== undefined) same.ms = Math.max(same.ms, ms)
    else this.#delays.push({ dueBy, ms })
    if (this.#delays.length > kept) this.#delays.shift()
  }

  /** How late the jobs of the next claim may begin, in whole ms. One departure that was late by chance does not count. */
  get declaredMs(): number {
    let [first, second] = [0, 0]
    for (const { ms } of this.#delays) {
      if (ms > first) [first, second] = [ms, first]
      else if (ms > second) second = ms
    }
    return Math.min(mostMs, Math.ceil(second * margin))
  }
}

/** The trip of a claim, with the lateness that it declared for the queue that granted. */
export function tripOf(from: readonly ClaimFrom[], answer: Claimed, sentAt: number, answeredAt: number): Trip {
  const lateMs = from.find(({ queue }) => queue === answer.queue)?.lateMs ?? 0
  return { sentAt, answeredAt, now: answer.now, lateMs }
}
