/** The entries of a claim: the queues and shards that it asks, with the most jobs that each may grant. */

import type { Registry } from '../../core/registry.js'
import type { Prefetch } from '../../runtime/prefetch.js'
import type { ClaimFrom } from '../../stores/contract/claim.js'
import type { Store } from '../../stores/contract/store.js'
import { mostPerTrip } from '../../stores/rules/bounds.js'
import type { DepartureSizes } from '../departures/departure-sizes.js'
import type { LimitedQueues } from '../departures/limited-queues.js'
import type { Punctuality } from '../departures/punctuality.js'
import type { ClaimTarget } from '../shards/claim-target.js'
import type { ShardPicker } from '../shards/shard-picker.js'
import type { InFlight } from './in-flight.js'
import { roomFor } from './room.js'

export interface ClaimEntriesParts {
  readonly store: Pick<Store, 'traits' | 'claimWhenRung'>
  readonly registry: Registry
  readonly needsHeads: boolean
  readonly shards: ShardPicker
  readonly limited: LimitedQueues
  readonly punctuality: Punctuality
  readonly sizes: DepartureSizes
  readonly inFlight: InFlight
  readonly prefetch: Prefetch
  /** How many more jobs may be claimed before the worker is replaced. */
  readonly mayTake: () => number
}

/**
 * The most jobs of a rung claim, which goes along with a rest: a process that stands still when it is made keeps them
 * from all others. A claim that asks for more than the last job is told that it was the last.
 */
const mostWhenRung = 2

export class ClaimEntries {
  readonly #parts: ClaimEntriesParts

  constructor(parts: ClaimEntriesParts) {
    this.#parts = parts
  }

  /**
   * The entries for these queues, in this order; none if there is no room for the first. `asked`: jobs that claims
   * under way may bring.
   */
  of(drawn: readonly string[], asked: number): ClaimFrom[] {
    const from: ClaimFrom[] = []
    for (const [i, queue] of drawn.entries()) {
      const limit = this.#room(queue, asked)
      // Do not skip the queue drawn first if it has no room: prefetching queues would take every slot from the others.
      if (limit <= 0 && i === 0) return []
      if (limit > 0) for (const place of this.#parts.shards.next(queue)) from.push(this.one(place, limit))
    }
    return from.slice(0, mostPerTrip)
  }

  /**
   * The entries of a rung claim, which goes along with a rest on these queues; none if that cannot be. Room for a batch changes
   * during a rest.
   */
  whenRung(queues: readonly string[]): ClaimFrom[] {
    const { store, registry, needsHeads } = this.#parts
    if (store.claimWhenRung === undefined || needsHeads) return []
    if (!queues.every((queue) => this.isFree(queue) && registry.batchSize(queue) === 1)) return []
    const from = this.of(queues, 0)
    return from.length === queues.length
      ? from.map((one) => ({ ...one, limit: Math.min(one.limit, mostWhenRung) }))
      : []
  }

  /** Whether a claim on the queue needs no answer to the one before, nor an exact moment: limits and shards do. */
  isFree(queue: string): boolean {
    const { registry, limited } = this.#parts
    return !registry.queue(queue).ordered && !limited.isLimited(queue)
  }

  one({ queue, ...shard }: ClaimTarget, limit: number): ClaimFrom {
    const { registry, punctuality } = this.#parts
    const { leaseMs } = registry.queue(queue)
    const maxPayloads = registry.orderedTask(queue)?.maxPayloads
    const lateMs = punctuality.lateMsOf(queue)
    return {
      ...{ queue, ...shard, limit, leaseMs },
      ...(maxPayloads === undefined ? {} : { maxPayloads }),
      ...(lateMs === 0 ? {} : { lateMs }),
    }
  }

  /** How many jobs of this queue may be claimed now. */
  #room(name: string, asked: number): number {
    const { registry, limited, punctuality, sizes, inFlight, prefetch, store, mayTake, needsHeads } = this.#parts
    const queue = registry.queue(name)
    const most = Math.min(queue.claimSize, store.traits.maxClaim, mayTake() - asked, punctuality.mostOf(name))
    const { free, backlog, gathering } = inFlight
    const batchSize = registry.batchSize(name)
    const ahead = needsHeads ? 0 : prefetch.ahead(name)
    const worth = { ahead, worthwhile: prefetch.worthwhile(name), inARow: prefetch.inARow(name) }
    const lacking = batchSize > 1 ? gathering.lacking(name) : 0
    const startable = needsHeads ? free - asked : sizes.roomOf(name, free - asked, inFlight.departing(name))
    const inHand = { free: startable, backlog: backlog + asked, lacking, ...worth }
    return roomFor(queue, limited.isLimited(name), inHand, batchSize, most)
  }
}
