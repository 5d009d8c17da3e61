/** The depth of a queue, summed from its shards: the rule of every store that counts by shard. */

import type { QueueDepth } from '../contract/queue-depth.js'

/** `leaving`: the shards that a reshard is emptying, which still count. A queue has at least one shard. */
export function depthOfShards(
  shards: readonly QueueDepth[],
  leaving: readonly QueueDepth[],
  isOrdered: boolean,
): QueueDepth {
  const sum = [...shards, ...leaving].reduce(together)
  return isOrdered ? { ...sum, shardLagsMs: shards.map(({ lagMs }) => lagMs) } : sum
}

function together(one: QueueDepth, other: QueueDepth): QueueDepth {
  return {
    ...one,
    ready: one.ready + other.ready,
    payloads: one.payloads + other.payloads,
    suspects: one.suspects + other.suspects,
    scheduled: one.scheduled + other.scheduled,
    running: one.running + other.running,
    dead: one.dead + other.dead,
    fresh: one.fresh + other.fresh,
    retries: one.retries + other.retries,
    lagMs: Math.max(one.lagMs, other.lagMs),
    processed: one.processed + other.processed,
    failed: one.failed + other.failed,
    crashed: one.crashed + other.crashed,
    expired: one.expired + other.expired,
  }
}
