/** The opening of what is shut in a queue of the memory store: whether something opens by itself, and when. */

import type { MemoryQueue } from './memory-queue.js'

/** Whether there are jobs in a lane that opens by itself. */
export function hasShutLane(queue: MemoryQueue): boolean {
  return shutLanes(queue).length > 0
}

/** When the first of what is shut opens; never: Infinity. */
export function nextOpening(queue: MemoryQueue, now: number): number {
  if (queue.ready.size === 0 && queue.suspects.size === 0) return Number.POSITIVE_INFINITY
  if (queue.opensAt > now) return queue.opensAt
  if (!queue.hasLanes) return Number.POSITIVE_INFINITY
  return Math.min(Number.POSITIVE_INFINITY, ...shutLanes(queue).map(([, until]) => until))
}

function shutLanes(queue: MemoryQueue): [group: string, until: number][] {
  return [...queue.lanes.shut].filter(([group]) => queue.lane(group).length > 0)
}
