/** The depth of a queue of the memory store: the sum of its shards, of which most queues have one. */

import type { Depth } from '../../contract/queue-depth.js'
import { dueAt } from '../../rules/sequence.js'
import { depthOfShards } from '../../rules/shard-depths.js'
import type { MemoryJob } from '../queue/memory-job.js'
import { MemoryOrderedQueue } from '../queue/memory-ordered-queue.js'
import type { MemoryQueue } from '../queue/memory-queue.js'

export function depth(shards: readonly MemoryQueue[], now: number): Depth {
  const depths = shards.map((shard) => shardDepth(shard, now))
  return depthOfShards(depths, [], shards[0] instanceof MemoryOrderedQueue)
}

function shardDepth(queue: MemoryQueue, now: number): Depth {
  const { ready, suspects, scheduled } = queue
  const retries = [...ready, ...suspects, ...scheduled].filter((job) => job.attempt > 1).length
  const due = scheduled.first === undefined ? [] : [scheduled.first]
  return {
    queue: queue.settings.name,
    ready: ready.size + suspects.size,
    payloads: queue.pending,
    suspects: suspects.size,
    scheduled: scheduled.size,
    running: queue.running.size,
    dead: queue.dead.size,
    fresh: queue.waiting - retries,
    retries,
    lagMs: oldestAgeMs([...ready, ...suspects, ...due], now) ?? 0,
    processed: queue.processed,
    failed: queue.failed,
    crashed: queue.crashed,
    expired: queue.expired,
    ...(queue.settings.kind === 'plain' && queue.lostAt > 0 ? { lostAt: queue.lostAt } : {}),
    paused: queue.paused,
    draining: queue.draining,
  }
}

/** Ms since the first of these jobs was due, 0 if none is yet; undefined if there are no jobs. */
export function oldestAgeMs(jobs: Iterable<MemoryJob>, now: number): number | undefined {
  let oldest: number | undefined
  for (const job of jobs) oldest = Math.min(oldest ?? job.stamp, job.stamp)
  return oldest === undefined ? undefined : Math.max(0, now - dueAt(oldest))
}
