/**
 * The limits on the claims of a queue of the memory store: its throttle and its `maxRunning`, over all of its shards.
 */

import type { MaxRunning } from '../../../core/queue/queue-limits.js'
import { groupRules } from '../../../core/queue/throttle.js'
import type { QueueBasis } from '../../contract/queue-settings.js'
import { type QueueBounds, runningBounds } from '../../rules/limit-rules.js'
import type { LimitedShard, MemoryThrottle } from './memory-throttle.js'

/** The settings of a shard, with its share of the limits that hold. */
export interface ShardSettings extends QueueBasis, QueueBounds {}

export class MemoryLimits<Shard extends LimitedShard = LimitedShard> {
  maxRunning: MaxRunning | undefined
  throttle: MemoryThrottle | undefined
  readonly pausedGroups = new Set<string>()
  /** The shards of the queue. */
  shards: readonly Shard[] = []

  /** Whether anything is counted by group. */
  get byGroup(): boolean {
    return (
      (this.throttle && groupRules(this.throttle.told)) !== undefined ||
      runningBounds(this.maxRunning).perGroup !== undefined
    )
  }

  /** How many more may run. */
  get room(): number {
    const { total } = runningBounds(this.maxRunning)
    if (total === undefined) return Number.POSITIVE_INFINITY
    return total - this.shards.reduce((sum, { running }) => sum + running.size, 0)
  }

  /** How many more of the group may run: none while it is paused. */
  roomIn(group: string): number {
    if (this.pausedGroups.has(group)) return 0
    const { perGroup } = runningBounds(this.maxRunning)
    if (perGroup === undefined) return Number.POSITIVE_INFINITY
    const running = this.shards.flatMap((shard) => [...shard.running])
    return perGroup - running.filter((job) => groupOf(job) === group).length
  }
}

/** The lane of a job: its group's. */
export function groupOf({ spec }: { readonly spec: { readonly group?: string } }): string {
  return spec.group ?? ''
}
