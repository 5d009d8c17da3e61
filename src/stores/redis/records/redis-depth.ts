/** The depth of queues on a Redis store: the counts of their shards, added up. */

import type { Depth } from '../../contract/queue-depth.js'
import type { RedisReply } from '../client/redis-client.js'
import { listIn, numberIn } from '../client/redis-reply.js'
import { ScriptRefusal } from '../client/redis-script.js'
import { closedShards, liveShards, type RedisQueue, type RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { depthScripts } from './depth-scripts.js'

export async function depthsOf(
  queues: RedisQueues,
  names: readonly string[],
): Promise<{ readonly now: number; readonly depths: Depth[] }> {
  const found = await queues.findNow(names)
  if (found.length === 0) return { now: await queues.now(), depths: [] }
  const replies = await Promise.all(
    found.map(async (queue) => {
      // Awaited together: a rejection that nobody hears yet ends the process.
      const [live, left] = await Promise.all([
        Promise.all(liveShards(queue).map((shard) => queues.run(shard, depthScripts, []))),
        Promise.all(closedShards(queue).map((shard) => depthIfThere(queues, shard))),
      ])
      return [...left.filter((reply) => reply !== undefined), ...live]
    }),
  )
  return {
    now: Math.max(...replies.flat().map((reply) => numberIn(listIn(reply)[0]))),
    depths: found.map((queue, i) => depthIn(queue, replies[i]!)),
  }
}

/** Jobs may be in transit from a closed shard, which stays until all its jobs have arrived elsewhere. */
async function depthIfThere(queues: RedisQueues, shard: RedisShard): Promise<RedisReply | undefined> {
  try {
    return await queues.ask(shard, depthScripts, [])
  } catch (error) {
    if (error instanceof ScriptRefusal) return undefined
    throw error
  }
}

function depthIn({ name, layout }: RedisQueue, shards: readonly RedisReply[]): Depth {
  const counts = shards.map((reply) => listIn(reply).map(numberIn))
  const sum = (i: number) => counts.reduce((total, count) => total + count[i]!, 0)
  const most = (i: number) => Math.max(...counts.map((count) => count[i]!))
  const isOrdered = layout.kind === 'ordered'
  return {
    queue: name,
    ready: sum(1),
    payloads: isOrdered ? sum(14) : sum(1) + sum(3),
    suspects: sum(2),
    scheduled: sum(3),
    running: sum(4),
    dead: sum(5),
    fresh: sum(1) + sum(3) - sum(6),
    retries: sum(6),
    lagMs: most(7),
    ...(isOrdered ? { shardLagsMs: counts.slice(0, layout.shards).map((count) => count[7]!) } : {}),
    processed: sum(8),
    failed: sum(9),
    crashed: sum(10),
    expired: sum(13),
    ...(!isOrdered && most(14) > 0 ? { lostAt: most(14) } : {}),
    paused: most(11) === 1,
    draining: most(12) === 1,
  }
}
