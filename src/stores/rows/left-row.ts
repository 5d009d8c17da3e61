/** A queue of a SQL store as a claim has left it, for the waits in its answer. The leads are written into its row. Pure. */

import type { LeftQueue } from '../rules/claim-waits.js'
import type { Lead } from '../rules/wake-lead.js'
import {
  type CountedQueue,
  isBusy,
  isStopped,
  leadOf,
  opensAt,
  ordinary,
  placeIn,
  setLead,
  setSuspectLead,
  suspectLeadOf,
} from './queue-row.js'
import type { ShardLimits } from './shard-limits.js'

export class LeftRow implements LeftQueue {
  readonly of: LeftQueue['of']
  readonly isStopped: boolean
  readonly isFull: boolean
  readonly isBusy: boolean
  readonly opensAt: number
  readonly ordinary: number
  readonly suspects: number
  readonly scheduled: number
  readonly isClaimable: boolean
  readonly nextChangeMs: () => number | undefined
  readonly suspectInMs: () => number
  readonly #limits: ShardLimits
  readonly #queue: CountedQueue

  constructor(
    limits: ShardLimits,
    queue: CountedQueue,
    mono: number,
    { nextChangeMs, suspectInMs }: Pick<LeftQueue, 'nextChangeMs' | 'suspectInMs'>,
  ) {
    this.of = placeIn(queue)
    this.isStopped = isStopped(queue)
    this.isFull = limits.isFull(queue)
    this.isBusy = isBusy(queue)
    this.opensAt = opensAt(queue)
    this.ordinary = ordinary(queue)
    this.suspects = queue.suspects
    this.scheduled = queue.scheduled
    this.isClaimable = limits.isClaimable(queue, mono)
    this.nextChangeMs = nextChangeMs
    this.suspectInMs = suspectInMs
    this.#limits = limits
    this.#queue = queue
  }

  hasShutLane(): boolean {
    return this.#limits.hasShutLane(this.#queue)
  }

  get lead(): Lead | undefined {
    return leadOf(this.#queue)
  }

  set lead(lead: Lead | undefined) {
    setLead(this.#queue, lead)
  }

  get suspectLead(): Lead | undefined {
    return suspectLeadOf(this.#queue)
  }

  set suspectLead(lead: Lead | undefined) {
    setSuspectLead(this.#queue, lead)
  }
}
