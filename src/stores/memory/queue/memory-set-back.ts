/**
 * A clock that was set back: states of a memory store's queue that last until an instant then last no longer than
 * intended.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { Lead } from '../../rules/wake-lead.js'
import type { CallMemory } from './call-memory.js'
import type { MemoryJob } from './memory-job.js'
import type { MemoryLanes } from './memory-lanes.js'
import type { SortedList } from './sorted-list.js'

/** The parts of a queue that last until an instant. */
interface Lasting {
  heldUntil: number
  shutUntil: number
  sparesUntil: number
  lead: Lead | undefined
  suspectLead: Lead | undefined
  readonly lanes: MemoryLanes
  readonly calls: CallMemory
  readonly running: SortedList<MemoryJob>
}

export class MemorySetBack {
  readonly #queue: Lasting
  /** When an instant until which something lasts was last written, or may have been. */
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(queue: Lasting) {
    this.#queue = queue
  }

  isSo(now: number): boolean {
    return now < this.#seenAt - toleratedStepMs
  }

  /** The instant from which to tell how long something lasts, for calls that change nothing. */
  asSeen(now: number): number {
    return this.isSo(now) ? this.#seenAt : now
  }

  /** Follows a clock that was set back; returns whether it was. Called before any such instant is written. */
  follow(now: number): boolean {
    const isSo = this.isSo(now)
    if (isSo) turnBack(this.#queue, this.#seenAt - now)
    this.#seenAt = now
    return isSo
  }
}

/**
 * Nobody knows how long ago the latest instant was written: everything lasts from now on as long as it was to last from
 * then on. `byMs`: how far the clock is behind that instant. Due times stay: users give them on the wall clock.
 */
function turnBack(queue: Lasting, byMs: number): void {
  queue.heldUntil -= byMs
  queue.shutUntil -= byMs
  queue.sparesUntil -= byMs
  queue.lead = earlier(queue.lead, byMs)
  queue.suspectLead = earlier(queue.suspectLead, byMs)
  queue.lanes.turnBack(byMs)
  queue.calls.turnBack(byMs)
  // All by the same amount: their order stays.
  for (const job of queue.running) job.leaseUntil -= byMs
}

function earlier(lead: Lead | undefined, byMs: number): Lead | undefined {
  return lead === undefined ? undefined : { ...lead, wakeAt: lead.wakeAt - byMs }
}
