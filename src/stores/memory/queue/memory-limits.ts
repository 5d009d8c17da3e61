/**
 * The limits on the claims of a queue of the memory store: its throttle and its `maxRunning`, over all of its shards.
 */

import type { QueueSettings } from '../../contract/queue-settings.js'
import type { LimitedShard, MemoryThrottle } from './memory-throttle.js'

export class MemoryLimits<Shard extends LimitedShard = LimitedShard> {
  maxRunning: QueueSettings['maxRunning']
  throttle: MemoryThrottle | undefined
  readonly pausedGroups = new Set<string>()
  /** The shards of the queue. */
  shards: readonly Shard[] = []

  /** Whether anything is counted by group. */
  get byGroup(): boolean {
    return this.throttle?.by === 'group' || typeof this.maxRunning === 'object'
  }

  /** How many more may run. */
  get room(): number {
    if (typeof this.maxRunning !== 'number') return Number.POSITIVE_INFINITY
    return this.maxRunning - this.shards.reduce((sum, { running }) => sum + running.size, 0)
  }

  /** How many more of the group may run: none while it is paused. */
  roomIn(group: string): number {
    if (this.pausedGroups.has(group)) return 0
    if (typeof this.maxRunning !== 'object') return Number.POSITIVE_INFINITY
    const running = this.shards.flatMap((shard) => [...shard.running])
    return this.maxRunning.perGroup - running.filter((job) => groupOf(job) === group).length
  }
}

/** The lane of a job: its group's. */
export function groupOf({ spec }: { readonly spec: { readonly group?: string } }): string {
  return spec.group ?? ''
}
