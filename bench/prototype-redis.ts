/**
 * The prototype: the least that a queue on Redis could cost. It has script calls that carry many jobs, leases, two
 * fetches in flight, acknowledgements that travel with the next fetch, and a promise for each enqueue and each job. It
 * has no priorities, no fences, no counters, no delays, no look at ended leases, no memory of calls and no events.
 */

import { Redis } from 'ioredis'
import type { Contender, OpenContender, WorkPlan } from './contender.js'

const keys = ['order', 'text', 'leases'] as const
const mostPerCall = 250
const fetchesUnderWay = 2
const leaseMs = 30_000
/** How long a fetch that found nothing waits before the next. */
const restMs = 5

/** ARGV: id, text, … */
const addScript = `
local ids = {}
for i = 1, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
redis.call('RPUSH', KEYS[1], unpack(ids))
redis.call('HSET', KEYS[2], unpack(ARGV))
return #ids`

/**
 * ARGV: how many to take, until when they are leased, then the ids of completed jobs. Answers with the ids, then the
 * texts.
 */
const fetchScript = `
if #ARGV > 2 then
  redis.call('HDEL', KEYS[2], unpack(ARGV, 3))
  redis.call('ZREM', KEYS[3], unpack(ARGV, 3))
end
local ids = redis.call('LPOP', KEYS[1], ARGV[1])
if not ids then return {} end
local count, leases = #ids, {}
local texts = redis.call('HMGET', KEYS[2], unpack(ids))
for i = 1, count do
  leases[2 * i - 1], leases[2 * i] = ARGV[2], ids[i]
  ids[count + i] = texts[i]
end
redis.call('ZADD', KEYS[3], unpack(leases))
return ids`

export const open: OpenContender = async (url): Promise<Contender> => {
  const redis = new Redis(url)
  const [add, fetch] = (await Promise.all([redis.script('LOAD', addScript), redis.script('LOAD', fetchScript)])) as [
    string,
    string,
  ]
  let last = 0
  let isClosed = false
  const sent = (jobs: readonly unknown[]) => {
    const args: string[] = []
    for (const job of jobs) args.push(String(++last), JSON.stringify(job))
    return redis.evalsha(add, keys.length, ...keys, ...args)
  }
  let waiting: { readonly input: unknown; resolve(): void }[] = []
  const flush = () => {
    const all = waiting
    waiting = []
    for (let from = 0; from < all.length; from += mostPerCall) {
      const some = all.slice(from, from + mostPerCall)
      void sent(some.map(({ input }) => input)).then(() => {
        for (const { resolve } of some) resolve()
      })
    }
  }
  return {
    enqueue: (input) =>
      new Promise<void>((resolve) => {
        if (waiting.length === 0) setImmediate(flush)
        waiting.push({ input, resolve })
      }),
    async enqueueMany(inputs) {
      const calls: Promise<unknown>[] = []
      for (let from = 0; from < inputs.length; from += mostPerCall)
        calls.push(sent(inputs.slice(from, from + mostPerCall)))
      await Promise.all(calls)
    },
    async work({ started, completed }: WorkPlan) {
      const run = async (text: string) => started(JSON.parse(text))
      const slot = async () => {
        let done: string[] = []
        while (!isClosed) {
          const reply = (await redis.evalsha(
            fetch,
            keys.length,
            ...keys,
            mostPerCall,
            Date.now() + leaseMs,
            ...done,
          )) as string[]
          for (const _ of done) completed()
          const count = reply.length / 2
          done = reply.slice(0, count)
          await Promise.all(reply.slice(count).map(run))
          if (count === 0) await new Promise((resolve) => setTimeout(resolve, restMs))
        }
      }
      for (let i = 0; i < fetchesUnderWay; i += 1) void slot()
    },
    async close() {
      isClosed = true
      await redis.quit()
    },
  }
}
