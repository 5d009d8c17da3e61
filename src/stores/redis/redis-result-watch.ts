/**
 * The result watch of a Redis store: a caller that waits for a job's end listens to its shard's channel, then looks.
 */

import { setMaxListeners } from 'node:events'
import { slicesOf } from '../../core/values/pages.js'
import type { JobKey } from '../contract/job-records.js'
import { longestExpectMs } from '../rules/bounds.js'
import type { RedisClient } from './client/redis-client.js'
import { listIn, textIn } from './client/redis-reply.js'
import { guard, readerPair, scriptPair } from './lua/script-kinds.js'
import { keyIn } from './redis-keys.js'
import { type RedisShard, shardsHolding } from './redis-layout.js'
import type { RedisQueues } from './shards/redis-queues.js'

/** For each shard, the jobs that it may have something of. */
type Places = ReadonlyMap<RedisShard, readonly JobKey[]>

/** The most jobs of one call: it stops the server for less than a few ms. */
const mostAtOnce = 1_000

/** The shortest time between two looks, however many jobs end. */
const pauseMs = 20

export class RedisResultWatch {
  readonly #client: RedisClient
  readonly #queues: RedisQueues
  readonly #closing = new AbortController()

  constructor(client: RedisClient, queues: RedisQueues) {
    this.#client = client
    this.#queues = queues
    // Each running watch adds a listener, and their number is unlimited.
    setMaxListeners(0, this.#closing.signal)
  }

  async watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    return this.#queues.following(() => this.#watch(jobs, forMs, signal))
  }

  async #watch(jobs: readonly JobKey[], forMs: number, signal: AbortSignal): Promise<JobKey[]> {
    const places = await this.#placesOf(jobs)
    const deadline = performance.now() + forMs
    const first = await this.#ended(places)
    if (first.length > 0 || forMs <= 0 || signal.aborted || places.size === 0) return first
    return this.#heard(places, deadline, signal)
  }

  /** As `expect` of the contract. */
  async expect(jobs: readonly JobKey[], by: string, forMs: number): Promise<void> {
    const ms = String(Math.ceil(Math.min(forMs, longestExpectMs)))
    await this.#queues.following(async () => {
      const calls: Promise<unknown>[] = []
      for (const [shard, some] of await this.#placesOf(jobs)) {
        if (shard.kind === 'ordered') continue
        for (const part of slicesOf(some, mostAtOnce))
          calls.push(this.#queues.run(shard, expectScripts, [by, ms, ...part.map(({ id }) => id)]))
      }
      await Promise.all(calls)
    })
  }

  async #placesOf(jobs: readonly JobKey[]): Promise<Places> {
    const queues = await this.#queues.findNow(jobs.map(({ queue }) => queue))
    const places = new Map<RedisShard, JobKey[]>()
    for (const [i, job] of jobs.entries())
      for (const shard of shardsHolding(queues[i]!, job.id)) {
        const some = places.get(shard)
        if (some === undefined) places.set(shard, [job])
        else some.push(job)
      }
    return places
  }

  close(): void {
    this.#closing.abort()
  }

  async #heard(places: Places, deadline: number, signal: AbortSignal): Promise<JobKey[]> {
    let news = false
    let wake = () => {}
    const tell = () => {
      news = true
      wake()
    }
    const over = AbortSignal.any([signal, this.#closing.signal])
    over.addEventListener('abort', tell)
    const timer = setTimeout(tell, Math.min(Math.max(0, deadline - performance.now()), 0x7fffffff))
    const listening = [...places.keys()].map(({ keys }) => this.#client.listen(keyIn(keys, 'ends'), tell))
    try {
      await Promise.all(listening)
      for (;;) {
        // Looks before the first sleep too: a job may have ended before anybody listened.
        const ended = await this.#ended(places)
        if (ended.length > 0) return ended
        if (over.aborted || performance.now() >= deadline) return []
        if (!news) await new Promise<void>((resolve) => (wake = resolve))
        news = false
        if (!over.aborted) await new Promise((resolve) => setTimeout(resolve, pauseMs))
      }
    } finally {
      clearTimeout(timer)
      over.removeEventListener('abort', tell)
      // If listening to one shard failed, still stop listening to the others.
      for (const one of listening) one.then((stop) => stop()).catch(() => {})
    }
  }

  /** The jobs that are in none of their places any more. */
  async #ended(places: Places): Promise<JobKey[]> {
    const there = new Set<JobKey>()
    await Promise.all(
      [...places].map(async ([shard, jobs]) => {
        const ended = new Set<string>()
        // One slice after the other, so that calls of others come between.
        for (const some of slicesOf([...new Set(jobs.map(({ id }) => id))], mostAtOnce))
          for (const id of listIn(await this.#queues.run(shard, endedScripts, some))) ended.add(textIn(id))
        for (const job of jobs) if (!ended.has(job.id)) there.add(job)
      }),
    )
    const all = new Set([...places.values()].flat())
    return [...all].filter((job) => !there.has(job))
  }
}

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns the ids whose jobs have ended or do not exist.
 */
const endedLua = `
local gone = {}
for _, id in ipairs(ARGV) do
  local is_there = call('HEXISTS', JOBS, id) == 1
  local past = is_there and call('HEXISTS', CLAIMS, id) == 0 and call('HGET', HISTORY, id)
  local state = past and string.lower(sub(past, 1, 1))
  if not is_there or state == 'c' or state == 'd' then gone[#gone + 1] = id end
end
return gone
`

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns the ids without a job. Returns none while jobs are in transit, because they may have any id.
 */
const endedOrderedLua = `
local gone = {}
if call('EXISTS', TRANSIT) == 1 then return gone end
for _, id in ipairs(ARGV) do
  if call('HEXISTS', JOBS, id) == 0 then gone[#gone + 1] = id end
end
return gone
`

/** The ended scripts: which of some jobs have ended. */
const endedScripts = readerPair('ended', { plain: endedLua, ordered: endedOrderedLua })

/** The number of entries of others that each call looks at, to remove those whose time is over. */
const swept = 8

/**
 * KEYS: those of one shard. ARGV: who waits (8 characters), for how many ms (0: no longer), ids.
 * Returns nothing. Refuses `unknown`.
 */
const expectLua = `
local by, for_ms = ARGV[1], tonumber(ARGV[2])
local until_at = now + for_ms
-- The entries of those who still wait, without mine.
local function others(entries)
  local kept = ''
  for at = 1, #entries, 14 do
    local left = unpackn('>I6', entries, at + 8) - now
    -- Longer than anybody may wait: the clock was set back.
    local waits = left > 0 and left <= ${longestExpectMs}
    if waits and sub(entries, at, at + 7) ~= by then kept = kept .. sub(entries, at, at + 13) end
  end
  return kept
end
local function write(id, entries)
  if entries == '' then call('HDEL', ENDS, id) else call('HSET', ENDS, id, entries) end
end
local known = call('EXISTS', ENDS) == 1
for i = 3, #ARGV do
  local id = ARGV[i]
  local entries = known and others(call('HGET', ENDS, id) or '') or ''
  if for_ms > 0 then
    local is_there = call('HEXISTS', JOBS, id) == 1
    local past = is_there and call('HGET', HISTORY, id)
    -- Most jobs have not ended, and need not be read.
    local j = past and sub(past, 1, 1) == 'c' and job(id)
    if is_there and not (j and is_hidden(j)) then
      entries = entries .. by .. pack('>I6', until_at)
      local expires = j and not j.claim and call('ZSCORE', EXPIRY, j.seq .. id)
      if expires and tonumber(expires) < until_at then call('ZADD', EXPIRY, until_at, j.seq .. id) end
    end
  end
  if known or entries ~= '' then write(id, entries) end
end
if for_ms > 0 then call('PEXPIRE', ENDS, math.max(for_ms, call('PTTL', ENDS))) end
-- Who died left entries behind. A few of them go with each call, all of them when nobody calls any more.
local some = known and call('HRANDFIELD', ENDS, ${swept}, 'WITHVALUES') or {}
by = ''
for i = 1, #some, 2 do
  local entries = others(some[i + 1])
  if #entries < #some[i + 1] then write(some[i], entries) end
end
return ''
`

/** The expect script: keeps the results of jobs for somebody who waits for them. */
const expectScripts = scriptPair('expect', { plain: guard + expectLua, ordered: "return ''" })
