/**
 * The limited queues of a worker: those whose ready jobs a limit may deny. The stored limits count, even if this mill
 * declares none.
 */

import { allRules, groupRules, leastSpreadOf, type ThrottleRule } from '../../core/queue/throttle.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'

export class LimitedQueues {
  #stored: ReadonlyMap<string, StoredQueue> = new Map()

  constructor(stored: readonly StoredQueue[]) {
    this.know(stored)
  }

  /** Replaces the known queues. */
  know(stored: readonly StoredQueue[]): void {
    this.#stored = new Map(stored.map((queue) => [queue.name, queue]))
  }

  /** Whether claimed jobs must start at once: they count as started, or as running, from the claim on. */
  isLimited(queue: string): boolean {
    return this.isThrottled(queue) || this.isBounded(queue)
  }

  /** Whether the queue limits how many of its jobs run. */
  isBounded(queue: string): boolean {
    return this.#stored.get(queue)?.maxRunning !== undefined
  }

  isThrottled(queue: string): boolean {
    return this.#stored.get(queue)?.throttle !== undefined
  }

  /** The limit that holds for each group separately; undefined if none does. */
  limitOfGroups(queue: string): 'throttle' | 'maxRunning' | undefined {
    if (this.groupRulesOf(queue) !== undefined) return 'throttle'
    return typeof this.#stored.get(queue)?.maxRunning === 'object' ? 'maxRunning' : undefined
  }

  /** The rules for all of its jobs together. */
  wholeRulesOf(queue: string): readonly ThrottleRule[] | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    return throttle?.by === 'queue' ? throttle.rules : undefined
  }

  /** The rules for the jobs of each group. */
  groupRulesOf(queue: string): readonly ThrottleRule[] | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    return throttle && groupRules(throttle)
  }

  /**
   * By how much the handlers of this queue may begin unevenly, in ms: as the shortest window allows, be it of one group
   * alone. Undefined if the queue has no throttle.
   */
  spreadOf(queue: string): number | undefined {
    const throttle = this.#stored.get(queue)?.throttle
    if (throttle === undefined) return undefined
    return Math.min(leastSpreadOf(allRules(throttle)), throttle.own?.leastSpreadMs ?? Number.POSITIVE_INFINITY)
  }

  /** The queues that share the throttle of this one, including itself. */
  sharing(queue: string): ReadonlySet<string> {
    const scope = this.#stored.get(queue)?.throttle?.scope
    const sharing = [...this.#stored.values()].filter(
      ({ throttle }) => throttle !== undefined && throttle.scope === scope,
    )
    return new Set(sharing.map(({ name }) => name))
  }

  /** Whether a denial for this reason holds for all groups and shards of the queue. */
  isWhole(queue: string, reason: 'throttled' | 'full'): boolean {
    const stored = this.#stored.get(queue)
    if (reason === 'throttled') return stored?.throttle?.by === 'queue' && stored.throttle.eachGroup === undefined
    // An exclusive shard is full because of its own batch.
    return typeof stored?.maxRunning === 'number' && stored.exclusive === 'id'
  }
}
