/** The opening of shut jobs in a queue of the memory store: whether something opens by itself, and when. */

import type { MemoryJob } from './memory-job.js'
import type { MemoryLanes } from './memory-lanes.js'
import type { SortedList } from './sorted-list.js'

interface Shuttable {
  readonly ready: SortedList<MemoryJob>
  readonly suspects: SortedList<MemoryJob>
  /** When the whole queue opens. */
  readonly opensAt: number
  readonly hasLanes: boolean
  readonly lanes: MemoryLanes
  lane(group: string): readonly MemoryJob[]
}

/** Whether there are jobs in a lane that opens by itself. */
export function hasShutLane(queue: Shuttable): boolean {
  return shutLanes(queue).length > 0
}

/** When the first shut lane or queue opens; never: Infinity. */
export function nextOpening(queue: Shuttable, now: number): number {
  if (queue.ready.size === 0 && queue.suspects.size === 0) return Number.POSITIVE_INFINITY
  if (queue.opensAt > now) return queue.opensAt
  if (!queue.hasLanes) return Number.POSITIVE_INFINITY
  return Math.min(Number.POSITIVE_INFINITY, ...shutLanes(queue).map(([, until]) => until))
}

function shutLanes(queue: Shuttable): [group: string, until: number][] {
  return [...queue.lanes.shut].filter(([group]) => queue.lane(group).length > 0)
}
