/** The shard router: sends items to the shards of their ids, and again if these have moved meanwhile. */

import type { JobKey } from '../../contract/job-records.js'
import { type RedisQueue, type RedisShard, shardHolding } from '../redis-layout.js'
import { type RedisQueues, ShardMoved } from './redis-queues.js'

/**
 * Calls `send` with the numbers of the items of each shard. If a shard has moved, calls it again for the shards that
 * replace it. When all calls have ended, rejects with the first failure: the caller can then send the items again,
 * because nothing is still running.
 */
export async function sendByShard(
  queues: RedisQueues,
  items: readonly JobKey[],
  send: (shard: RedisShard, numbers: readonly number[], queue: RedisQueue) => Promise<unknown>,
): Promise<void> {
  if (items.length === 0) return
  let left: number[] = [...items.keys()]
  await queues.following(async () => {
    const names = [...new Set(left.map((i) => items[i]!.queue))]
    const found = await queues.find(names)
    const trips = tripsTo(found, names, items, left)
    const ended = await Promise.allSettled(trips.map(([shard, { numbers, queue }]) => send(shard, numbers, queue)))
    const failed = ended.flatMap((one) => (one.status === 'rejected' ? [one.reason as unknown] : []))
    const worst = failed.find((error) => !(error instanceof ShardMoved))
    if (worst !== undefined) throw worst
    if (failed.length === 0) return
    left = trips.flatMap(([, { numbers }], i) => (ended[i]!.status === 'rejected' ? numbers : [])).sort((a, b) => a - b)
    throw failed[0]
  })
}

interface ShardTrip {
  readonly numbers: number[]
  readonly queue: RedisQueue
}

/** `queues`: the queues with these names. `left`: the numbers of the items to send. */
function tripsTo(
  queues: readonly RedisQueue[],
  names: readonly string[],
  items: readonly JobKey[],
  left: number[],
): [RedisShard, ShardTrip][] {
  const [only] = queues
  // The usual case: one queue in one shard.
  if (only !== undefined && queues.length === 1 && only.shards.length === 1 && only.next.length === 0)
    return [[only.shards[0]!, { numbers: left, queue: only }]]
  const byName = new Map(names.map((name, i) => [name, queues[i]!]))
  const byShard = new Map<RedisShard, ShardTrip>()
  for (const i of left) {
    const { queue: name, id } = items[i]!
    const queue = byName.get(name)!
    const shard = shardHolding(queue, id)
    const others = byShard.get(shard)
    if (others === undefined) byShard.set(shard, { numbers: [i], queue })
    else others.numbers.push(i)
  }
  return [...byShard]
}
