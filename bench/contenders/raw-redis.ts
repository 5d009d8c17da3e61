/**
 * The raw limit: what Redis does if one script call carries many jobs and does only the least a queue must. It has a
 * sorted set for the order and a hash for the text. It has no priorities, no fences, no leases that end and no
 * counters.
 */

import { Redis } from 'ioredis'
import type { Contender, OpenContender } from './contender.js'

const keys = ['order', 'text'] as const

/** The score of a waiting job is its number. The score of a claimed job is above all numbers. */
const waitingUpTo = 1e12
const claimedAt = 2e12

/** ARGV: score, id, …, then id, text, …, for the same number of jobs. */
const addScript = `
local half = #ARGV / 2
redis.call('ZADD', KEYS[1], unpack(ARGV, 1, half))
redis.call('HSET', KEYS[2], unpack(ARGV, half + 1))
return half / 2`

/** ARGV: how many to take, then the ids of completed jobs. Answers with the ids, then the texts. */
const turnScript = `
if #ARGV > 1 then
  redis.call('ZREM', KEYS[1], unpack(ARGV, 2))
  redis.call('HDEL', KEYS[2], unpack(ARGV, 2))
end
local ids = redis.call('ZRANGEBYSCORE', KEYS[1], 0, ${waitingUpTo}, 'LIMIT', 0, ARGV[1])
local count = #ids
if count == 0 then return ids end
local texts = redis.call('HMGET', KEYS[2], unpack(ids))
local leases = {}
for i = 1, count do
  leases[2 * i - 1] = ${claimedAt}
  leases[2 * i] = ids[i]
end
redis.call('ZADD', KEYS[1], unpack(leases))
for i = 1, count do ids[count + i] = texts[i] end
return ids`

export const open: OpenContender = async (url): Promise<Contender> => {
  const redis = new Redis(url)
  const [add, turn] = (await Promise.all([redis.script('LOAD', addScript), redis.script('LOAD', turnScript)])) as [
    string,
    string,
  ]
  let last = 0
  const enqueueMany = (inputs: readonly unknown[]) => {
    const scores: (string | number)[] = []
    const texts: string[] = []
    for (const input of inputs) {
      last += 1
      const id = String(last)
      scores.push(id, id)
      texts.push(id, JSON.stringify(input))
    }
    return redis.evalsha(add, keys.length, ...keys, ...scores, ...texts)
  }
  return {
    enqueue: (input) => enqueueMany([input]),
    enqueueMany,
    async work({ concurrency, started, completed }) {
      const turns = async () => {
        let done: string[] = []
        do {
          const reply = (await redis.evalsha(turn, keys.length, ...keys, concurrency, ...done)) as string[]
          for (let i = 0; i < done.length; i += 1) completed()
          done = reply.slice(0, reply.length / 2)
          for (let i = done.length; i < reply.length; i += 1) started(reply[i])
        } while (done.length > 0)
      }
      void turns()
    },
    async close() {
      await redis.quit()
    },
  }
}
