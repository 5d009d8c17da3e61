/** A clock that was set back: what a queue of the memory store keeps until an instant is kept no longer than it was to be. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { Lead } from '../../rules/wake-lead.js'
import type { CallMemory } from './call-memory.js'
import type { MemoryJob } from './memory-job.js'
import type { MemoryLanes } from './memory-lanes.js'
import type { SortedList } from './sorted-list.js'

/** What of a queue lasts until an instant. */
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
  /** When an instant until which something lasts was last written down, or may have been. */
  #seenAt = Number.NEGATIVE_INFINITY

  constructor(queue: Lasting) {
    this.#queue = queue
  }

  isSo(now: number): boolean {
    return now < this.#seenAt - toleratedStepMs
  }

  /** Follows a clock that was set back; whether it was. Called before any such instant is written down. */
  follow(now: number): boolean {
    const isSo = this.isSo(now)
    if (isSo) turnBack(this.#queue, this.#seenAt - now)
    this.#seenAt = now
    return isSo
  }
}

/**
 * Nobody knows how long ago the latest instant was written down: everything lasts from now on as long as it was to last from
 * then on. `byMs`: how far the clock is behind that instant. Due times stay: those that a user gave are on the wall clock.
 */
function turnBack(queue: Lasting, byMs: number): void {
  queue.heldUntil -= byMs
  queue.shutUntil -= byMs
  queue.sparesUntil -= byMs
  queue.lead = earlier(queue.lead, byMs)
  queue.suspectLead = earlier(queue.suspectLead, byMs)
  queue.lanes.turnBack(byMs)
  queue.calls.turnBack(byMs)
  // All by the same: their order stays.
  for (const job of queue.running) job.leaseUntil -= byMs
}

function earlier(lead: Lead | undefined, byMs: number): Lead | undefined {
  return lead === undefined ? undefined : { ...lead, wakeAt: lead.wakeAt - byMs }
}
