/** The registry of workers of a Redis store, with the claims they hold. */

import { hasCode } from '../../../core/errors.js'
import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { Buried, Crash } from '../../contract/claim.js'
import { type HeldClaim, storedWorker, type WorkerRegistry } from '../../contract/worker-registry.js'
import { compareBytes } from '../../rules/byte-order.js'
import { buriedIn, crashIn } from '../claim/redis-claim-call.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { redisScript, refuse } from '../client/redis-script.js'
import { readBeat, readClaim, refuseLongWorker } from '../format/redis-job.js'
import { crashes } from '../lua/leads-lua.js'
import { shardScript } from '../lua/prelude.js'
import { guard, readerPair, scriptPair } from '../lua/script-kinds.js'
import { workersKey } from '../redis-keys.js'
import { liveShards, type RedisShard } from '../redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import { sendByShard } from '../shards/redis-shard-router.js'

/** The bytes before a record: when the worker was seen, when it expires, and the letter of its signal. */
const headBytes = 13
const signalLetters = { stop: 's', recycle: 'r' } as const

export function redisRegistry(client: RedisClient, queues: RedisQueues, namespace: string): WorkerRegistry {
  const key = workersKey(namespace)

  /** The shards of all queues, or of the named ones. */
  async function allShards(named?: readonly string[]): Promise<RedisShard[]> {
    const names = await queues.names()
    const wanted = named === undefined ? names : names.filter((name) => named.includes(name))
    return (await queues.findNow(wanted)).flatMap(liveShards)
  }

  async function held(worker: string): Promise<HeldClaim[]> {
    const found = await Promise.all((await allShards()).map((shard) => unlessUnusable(heldIn(shard, worker))))
    return found.flatMap((of) => of ?? [])
  }

  async function heldIn(shard: RedisShard, worker: string): Promise<HeldClaim[]> {
    const rows = rowsIn(await queues.run(shard, heldScripts, [worker]), 4)
    return rows
      .map(([id, claim, beat, task]) => ({
        id: textIn(id),
        task: textIn(task),
        ...readClaim(bytesIn(claim)),
        beat: bytesIn(beat),
      }))
      .sort((a, b) => a.fence - b.fence || a.seq - b.seq || compareBytes(a.id, b.id))
      .map(({ id, task, fence, alone, beat }) => {
        const { updatedAt: _, ...said } = beat.length === 0 ? {} : readBeat(beat)
        return { queue: shard.queue, id, fence, task, alone, ...said }
      })
  }

  async function remove(id: string): Promise<void> {
    const record = await client.command('HGET', [key, id])
    await client.command('HDEL', [key, id])
    // It leads only queues that it serves. If its record is gone, these are unknown, so all are asked.
    const shards = await allShards(
      record === null ? undefined : storedWorker(textIn(bytesIn(record).subarray(headBytes)))?.queues,
    )
    await Promise.all(shards.map((shard) => unlessUnusable(queues.run(shard, queueStateScripts, ['unlead', id]))))
  }

  return {
    async beat(worker, ttlMs) {
      const { id, ...record } = worker
      const args = ['beat', id, String(Math.ceil(ttlMs)), JSON.stringify(record)]
      const letter = textIn(await client.run(registryScript, [key], args))
      return letter === 's' ? 'stop' : letter === 'r' ? 'recycle' : undefined
    },

    async signal(id, signal) {
      return (await client.run(registryScript, [key], ['signal', id, signalLetters[signal]])) === 1
    },

    remove,

    async list() {
      const rows = rowsIn(await client.run(registryScript, [key], ['list']), 4)
      return rows
        .flatMap(([id, seenAt, silentMs, text]) => {
          const record = storedWorker(textIn(text))
          if (record === undefined) return []
          return [{ id: textIn(id), ...record, seenAt: numberIn(seenAt), silentMs: numberIn(silentMs) }]
        })
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    },

    held,

    async gone(claims, worker, error = '') {
      const crashed: (readonly [number, Crash])[] = []
      const buried: (readonly [number, Buried])[] = []
      await sendByShard(queues, claims, async (shard, numbers) => {
        const args = numbers.flatMap((i) => [claims[i]!.id, String(claims[i]!.fence)])
        const [ended, dead, tells] = listIn(await queues.run(shard, goneScripts, [worker, error, ...args]))
        if (tells !== undefined) await queues.reports.deliver(shard)
        const numberOf = (row: readonly RedisReply[]) => numbers[numberIn(row[0])]!
        crashed.push(...rowsIn(ended, 6).map((row) => [numberOf(row), crashIn(shard.queue, row)] as const))
        buried.push(...rowsIn(dead, 6).map((row) => [numberOf(row), buriedIn(shard.queue, row)] as const))
      })
      if ((await held(worker)).length === 0) await remove(worker)
      return { crashed: inOrder(crashed), buried: inOrder(buried) }
    },

    async adopt(claim, from, to) {
      refuseLongWorker(to)
      let isAdopted = false
      await sendByShard(queues, [claim], async (shard) => {
        const args = [claim.id, String(claim.fence), from, to]
        isAdopted = (await queues.run(shard, adoptScript, args)) === 1
      })
      return isAdopted
    },
  }
}

/** In the order in which the claims were given. */
function inOrder<T>(numbered: readonly (readonly [number, T])[]): T[] {
  return numbered.toSorted(([a], [b]) => a - b).map(([, one]) => one)
}

/** A damaged shard must not hide the claims in other shards. */
function unlessUnusable<T>(asked: Promise<T>): Promise<T | undefined> {
  return unlessUnknown(asked).catch((error: unknown) => {
    if (hasCode(error, 'store-corrupt')) return undefined
    throw error
  })
}

/**
 * KEYS: those of one shard, plain or ordered: it uses only keys that both have.
 * ARGV: id, fence, worker that holds the claim, worker that gets it.
 * Returns 1, or 0 if the claim is not the current one, or not that worker's. Refuses `unknown`.
 */
const adoptLua = `
if call('EXISTS', META) == 0 then ${refuse('unknown')} end
local id, from, to = ARGV[1], ARGV[3], ARGV[4]
local claim = call('HGET', CLAIMS, id)
if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[2])) then return 0 end
local stop = 15 + byte(claim, 15)
if sub(claim, 16, stop) ~= from then return 0 end
call('HSET', CLAIMS, id, sub(claim, 1, 14) .. char(#to) .. to .. sub(claim, stop + 1))
return 1
`

/** The adopt script: passes a running claim from one worker to another. */
const adoptScript = shardScript('adopt', 'plain', () => adoptLua, { whenFull: true })

/**
 * KEYS: those of one shard.
 * ARGV: worker; how it died, or ''; then for each claim its id and fence.
 * Returns { crashed, buried }, see `crash`; the index is the number of the claim, from 0; then 1 if joins in other shards
 * are to be told. Refuses `unknown`.
 */
const goneLua = `
local max_crashes = tonumber(call('HGET', META, 'maxCrashes'))
local crashed, buried = {}, {}
for n = 3, #ARGV, 2 do
  local j = job(ARGV[n])
  if j and j.claim and j.claim.fence == tonumber(ARGV[n + 1]) and j.claim.worker == ARGV[1] then
    crash(j, max_crashes, (n - 3) / 2, crashed, buried, ARGV[2] ~= '' and ARGV[2] or nil)
  end
end
-- A worker must claim to learn that there are suspects.
if #crashed > 0 then
  ring_unpaused()
  tell_ends()
end
if REPORTS and joins().flush() then return { crashed, buried, 1 } end
return { crashed, buried }
`

/** The gone script: ends claims of a worker that is known to be dead as crashes. */
const goneScripts = scriptPair('gone', crashes + guard + goneLua, { whenFull: true })

/**
 * KEYS: those of one shard. ARGV: worker.
 * Returns for each of its claims id, claim, the note of its beats or '', and task.
 */
const heldLua = `
local claims, found = call('HGETALL', CLAIMS), {}
for i = 1, #claims, 2 do
  if read_claim(claims[i + 1]).worker == ARGV[1] then
    for _, part in ipairs({ claims[i], claims[i + 1], call('HGET', NOTES, 'b' .. claims[i]) or '', (written(call('HGET', JOBS, claims[i]))) }) do
      found[#found + 1] = part
    end
  end
end
return found
`

/** The held script: the claims of a worker in a shard. */
const heldScripts = readerPair('held', heldLua)

/**
 * KEYS: the workers of the namespace.
 * ARGV: verb, and its arguments: beat: id, ms until it expires, record · signal: id, letter · list.
 * beat returns the letter of the worker's signal, or '-'. signal returns 1, or 0 if no such worker is alive. list returns
 * { id, seen at, ms since then, record, … } of the workers that have not expired. A field is when the worker was seen, when it
 * expires, the letter of its signal, and its record. A field without these would never expire, and is removed: a live
 * worker reports again.
 */
const registryLua = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The signal to a worker that is alive; otherwise nil.
local function signal_of(known)
  if not known or #known < 13 then return nil end
  local _, until_at = struct.unpack('>I6I6', known)
  return until_at > now and string.sub(known, 13, 13) or nil
end
if ARGV[1] == 'beat' then
  local signal = signal_of(redis.call('HGET', KEYS[1], ARGV[2]))
  redis.call('HSET', KEYS[1], ARGV[2], struct.pack('>I6I6', now, now + tonumber(ARGV[3])) .. (signal or '-') .. ARGV[4])
  return signal or '-'
end
if ARGV[1] == 'signal' then
  local known = redis.call('HGET', KEYS[1], ARGV[2])
  if not signal_of(known) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[2], string.sub(known, 1, 12) .. ARGV[3] .. string.sub(known, 14))
  return 1
end
local all, living = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local seen, until_at = 0, 0
  if #all[i + 1] >= 13 then seen, until_at = struct.unpack('>I6I6', all[i + 1]) end
  -- The clock was set back: the worker keeps the time that it had left when it was last seen.
  if seen > now + ${toleratedStepMs} then
    until_at, seen = until_at - seen + now, now
    redis.call('HSET', KEYS[1], all[i], struct.pack('>I6I6', seen, until_at) .. string.sub(all[i + 1], 13))
  end
  if until_at <= now then redis.call('HDEL', KEYS[1], all[i])
  else for _, part in ipairs({ all[i], seen, math.max(0, now - seen), string.sub(all[i + 1], 14) }) do living[#living + 1] = part end end
end
return living
`

/** The registry script: workers report that they are alive, and get the signals of operators. */
const registryScript = redisScript('registry', registryLua, { whenFull: true })
