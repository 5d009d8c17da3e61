/** The depth of queues on a Redis store: the counts of their shards, added up. */

import type { QueueDepth } from '../../contract/queue-depth.js'
import type { RedisReply } from '../client/redis-client.js'
import { listIn, numberIn } from '../client/redis-reply.js'
import { ScriptRefusal } from '../client/redis-script.js'
import { readerPair } from '../lua/script-kinds.js'
import { closedShards, liveShards, type RedisQueue, type RedisShard } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'

export async function depthsOf(
  queues: RedisQueues,
  names: readonly string[],
): Promise<{ readonly now: number; readonly depths: QueueDepth[] }> {
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

function depthIn({ name, layout }: RedisQueue, shards: readonly RedisReply[]): QueueDepth {
  const counts = shards.map((reply) => listIn(reply).map(numberIn))
  const sum = (i: number) => counts.reduce((total, count) => total + count[i]!, 0)
  const most = (i: number) => Math.max(...counts.map((count) => count[i]!))
  const isOrdered = layout.kind === 'ordered'
  return {
    queue: name,
    ready: sum(1),
    payloads: isOrdered ? sum(14) : sum(1) + sum(3) + sum(15),
    suspects: sum(2),
    scheduled: sum(3),
    waiting: isOrdered ? 0 : sum(15),
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

/**
 * KEYS: those of one shard. No ARGV.
 * Returns { now, ready, suspects, scheduled, running, dead, retries, lagMs, processed, failed, crashed, paused,
 * draining, expired }, then for a plain queue `lostAt` or 0 and how many joins wait, for an ordered queue the number of waiting payloads.
 */
const depthLua = `
local meta = call('HMGET', META, 'stale', 'processed', 'failed', 'crashed', 'paused', 'draining', 'expired', 'waited')
local suspects, later, running = call('ZCARD', SUSPECTS), call('ZCARD', SCHEDULED), call('HLEN', CLAIMS)
local failed = call('ZLEXCOUNT', RETRIES, '-', '(\\255\\255\\255')
-- Failed jobs that are running do not count as waiting for a retry.
if failed > 0 and running > 0 then
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    local past = call('HGET', HISTORY, id)
    if past and read_past(past).attempt > 1 then failed = failed - 1 end
  end
end
local oldest = oldest_ready(meta[1], meta[8])
local others = { oldest_in(SUSPECTS, meta[8]) or false, call('ZRANGE', SCHEDULED, 0, 0)[1] or false }
if others[2] then others[2] = unpackn('>I7', others[2]) end
for i = 1, 2 do
  if others[i] and (not oldest or others[i] < oldest) then oldest = others[i] end
end
local counts = {
  now, ready_count(tonumber(meta[1])) + suspects, suspects, later, running, call('ZCARD', DEAD), failed, oldest and age_of(oldest) or 0,
  tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4]), meta[5] == '1' and 1 or 0, meta[6] == '1' and 1 or 0, tonumber(meta[7] or 0) }
`

const depthEnd = `
counts[#counts + 1] = tonumber(call('HGET', META, 'lostAt') or 0)
counts[#counts + 1] = call('ZCARD', JOINING)
return counts
`

const depthOrderedEnd = `
local away = call('HMGET', TRANSIT, 'live', 'dead')
counts[2], counts[6] = counts[2] + tonumber(away[1] or 0), counts[6] + tonumber(away[2] or 0)
counts[#counts + 1] = payload_count(call('HGET', META, 'many'))
return counts
`

/** The depth scripts: the number of jobs of a shard in each state. */
const depthScripts = readerPair('depth', { plain: depthLua + depthEnd, ordered: depthLua + depthOrderedEnd })
