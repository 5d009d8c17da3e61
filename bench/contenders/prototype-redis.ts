/**
 * The prototype: the least that a queue on Redis could cost. It has script calls that carry many jobs, leases, two
 * fetches in flight, acknowledgements that travel with the next fetch, and a promise for each enqueue and each job. It
 * has no priorities, no fences, no counters, no delays, no look at ended leases, no memory of calls and no events, and
 * its ids are numbers that another process makes too.
 */

import { Redis } from 'ioredis'
import type { Contender, OpenContender, WorkPlan } from './contender.js'

const mostPerCall = 250
const fetchesUnderWay = 2
const leaseMs = 30_000
/** How long a fetch that found nothing waits before the next. */
const restMs = 5

/** What such a queue does on the server. */
export interface PrototypeForm {
  readonly keys: readonly string[]
  /** ARGV: the number of enqueue calls, then for each job its id and text. */
  readonly add: string
  /**
   * ARGV: how many to take, until when they are leased, the token of the completed jobs, then their ids. Answers with
   * the ids, then the texts, then the token of these jobs.
   */
  readonly fetch: string
  /** The id of the nth job of this process. */
  id(n: number): string
}

const bare: PrototypeForm = {
  keys: ['order', 'text', 'leases'],
  add: `
local ids = {}
for i = 2, #ARGV, 2 do ids[#ids + 1] = ARGV[i] end
redis.call('RPUSH', KEYS[1], unpack(ids))
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
return #ids`,
  fetch: `
if #ARGV > 3 then
  redis.call('HDEL', KEYS[2], unpack(ARGV, 4))
  redis.call('ZREM', KEYS[3], unpack(ARGV, 4))
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
ids[2 * count + 1] = ''
return ids`,
  id: String,
}

export const open = prototypeOf(bare)

export function prototypeOf({ keys, add, fetch, id }: PrototypeForm): OpenContender {
  return async (url): Promise<Contender> => {
    const redis = new Redis(url)
    const [adding, fetching] = (await Promise.all([redis.script('LOAD', add), redis.script('LOAD', fetch)])) as [
      string,
      string,
    ]
    let last = 0
    let isClosed = false
    const sent = (jobs: readonly unknown[], calls: number) => {
      const args: string[] = []
      for (const job of jobs) args.push(id(++last), JSON.stringify(job))
      return redis.evalsha(adding, keys.length, ...keys, calls, ...args)
    }
    let waiting: { readonly input: unknown; resolve(): void }[] = []
    const flush = () => {
      const all = waiting
      waiting = []
      for (let from = 0; from < all.length; from += mostPerCall) {
        const some = all.slice(from, from + mostPerCall)
        const inputs = some.map(({ input }) => input)
        void sent(inputs, some.length).then(() => {
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
          calls.push(sent(inputs.slice(from, from + mostPerCall), 1))
        await Promise.all(calls)
      },
      async work({ started, completed }: WorkPlan) {
        const run = async (text: string) => started(JSON.parse(text))
        const slot = async () => {
          let [token, done]: [string, string[]] = ['', []]
          while (!isClosed) {
            const until = Date.now() + leaseMs
            const reply = (await redis.evalsha(
              fetching,
              keys.length,
              ...keys,
              mostPerCall,
              until,
              token,
              ...done,
            )) as string[]
            for (const _ of done) completed()
            const count = (reply.length - 1) / 2
            token = reply.at(-1) ?? ''
            done = reply.slice(0, Math.max(0, count))
            await Promise.all(reply.slice(count, -1).map(run))
            if (reply.length === 0) await new Promise((resolve) => setTimeout(resolve, restMs))
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
}
