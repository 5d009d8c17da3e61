/**
 * The limited queues of a worker: those of which claims may be denied jobs that are ready. By what is stored, which also
 * holds where this mill declares nothing of it.
 */

import type { ThrottleRule } from '../../core/queue/throttle.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'

export class LimitedQueues {
  #stored: ReadonlyMap<string, StoredQueue> = new Map()

  constructor(stored: readonly StoredQueue[]) {
    this.know(stored)
  }

  /** From now on these hold. */
  know(stored: readonly StoredQueue[]): void {
    this.#stored = new Map(stored.map((queue) => [queue.name, queue]))
  }

  /** Whether what is claimed is to start at once: it counts as started, or as running, from then on. */
  isLimited(queue: string): boolean {
    const stored = this.#stored.get(queue)
    return stored?.throttle !== undefined || stored?.maxRunning !== undefined
  }

  isThrottled(queue: string): boolean {
    return this.#stored.get(queue)?.throttle !== undefined
  }

  rulesOf(queue: string): readonly ThrottleRule[] | undefined {
    return this.#stored.get(queue)?.throttle?.rules
  }

  /** The queues that share the throttle of this one, itself included. */
  sharing(queue: string): ReadonlySet<string> {
    const scope = this.#stored.get(queue)?.throttle?.scope
    const sharing = [...this.#stored.values()].filter(
      ({ throttle }) => throttle !== undefined && throttle.scope === scope,
    )
    return new Set(sharing.map(({ name }) => name))
  }

  /** Whether a denial for this reason is one for all groups and shards of the queue. */
  isWhole(queue: string, reason: 'throttled' | 'full'): boolean {
    const stored = this.#stored.get(queue)
    if (reason === 'throttled') return stored?.throttle?.by === 'queue'
    // A shard that is exclusive is full of its own batch.
    return typeof stored?.maxRunning === 'number' && stored.exclusive === 'id'
  }
}
