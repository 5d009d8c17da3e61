/** The counts of a queue: their names, none of them, and their sums over shards and over queues. */

import type { QueueDepth } from '../contract/queue-depth.js'

/**
 * The counts of a `QueueDepth`, which says what each of them counts.
 * @internal
 */
export const queueCounters = [
  ...(['ready', 'scheduled', 'waiting', 'running', 'dead', 'fresh', 'retries', 'suspects', 'payloads'] as const),
  ...(['processed', 'failed', 'crashed', 'expired'] as const),
]

/** @internal */
export type QueueCounts = Pick<QueueDepth, (typeof queueCounters)[number] | 'lagMs'>

/**
 * The jobs that have not begun: ready, scheduled, or joins that wait for their members.
 * @internal
 */
export function waitingIn({ ready, scheduled, waiting }: Pick<QueueCounts, 'ready' | 'scheduled' | 'waiting'>): number {
  return ready + scheduled + waiting
}

/**
 * The counts of a queue that has nothing.
 * @internal
 */
export const noCounts: QueueCounts = summed([])

/**
 * The sums of counts; for lags the longest.
 * @internal
 */
export function summed(all: readonly QueueCounts[]): QueueCounts {
  const sums = queueCounters.map((name) => [name, all.reduce((sum, counts) => sum + counts[name], 0)])
  return { ...Object.fromEntries(sums), lagMs: Math.max(0, ...all.map(({ lagMs }) => lagMs)) }
}

/**
 * The depth of a queue, of every store that counts by shard. `leaving`: the shards that a reshard is emptying, which still
 * count. A queue has at least one shard.
 */
export function depthOfShards(
  shards: readonly QueueDepth[],
  leaving: readonly QueueDepth[],
  isOrdered: boolean,
): QueueDepth {
  const sum = { ...shards[0]!, ...summed([...shards, ...leaving]) }
  return isOrdered ? { ...sum, shardLagsMs: shards.map(({ lagMs }) => lagMs) } : sum
}
