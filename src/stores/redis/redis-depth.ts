/** The depth of queues on a Redis store: the counts of their shards, put together. */

import type { Depth } from '../store.js'
import type { RedisPort, RedisReply } from './redis-port.js'
import type { RedisQueues } from './redis-queues.js'
import { listIn, numberIn } from './redis-reply.js'
import type { RedisScripts } from './redis-scripts.js'

export async function depthsOf(
  port: RedisPort,
  queues: RedisQueues,
  scripts: RedisScripts,
  names: readonly string[],
): Promise<{ readonly now: number; readonly depths: Depth[] }> {
  const found = await queues.find(names)
  if (found.length === 0) return { now: await clockOf(port), depths: [] }
  const replies = await Promise.all(
    found.map((shards) => Promise.all(shards.map((shard) => queues.run(shard, scripts.depth, [])))),
  )
  return {
    now: Math.max(...replies.flat().map((reply) => numberIn(listIn(reply)[0]))),
    depths: names.map((name, i) => depthIn(name, replies[i]!)),
  }
}

async function clockOf(port: RedisPort): Promise<number> {
  const [seconds, microseconds] = listIn(await port.command('TIME', []))
  return numberIn(seconds) * 1_000 + Math.floor(numberIn(microseconds) / 1_000)
}

function depthIn(queue: string, shards: readonly RedisReply[]): Depth {
  const counts = shards.map((reply) => listIn(reply).map(numberIn))
  const sum = (i: number) => counts.reduce((total, count) => total + count[i]!, 0)
  const most = (i: number) => Math.max(...counts.map((count) => count[i]!))
  return {
    queue,
    ready: sum(1),
    suspects: sum(2),
    scheduled: sum(3),
    running: sum(4),
    dead: sum(5),
    fresh: sum(1) + sum(3) - sum(6),
    retries: sum(6),
    lagMs: most(7),
    processed: sum(8),
    failed: sum(9),
    crashed: sum(10),
    paused: most(11) === 1,
    draining: most(12) === 1,
  }
}
