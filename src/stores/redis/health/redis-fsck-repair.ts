/** The repair of a Redis store: makes the keys of its queues consistent again as far as no job is lost by it. */

import { UnknownQueueError } from '../../../core/errors.js'
import type { FsckFinding, FsckRepair, Repair } from '../../contract/store-health.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn, textIn, walkOf } from '../client/redis-reply.js'
import { mostCounted } from '../lua/prelude.js'
import { standing } from '../lua/ready-lua.js'
import { guard, runOn, scriptPair } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { queuesKey } from '../redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisShard } from '../redis-layout.js'
import { bringUpToDate } from '../shards/redis-version.js'
import { checkRedis, plainQueues } from './redis-fsck.js'
import { RedisJoinFsck } from './redis-join-fsck.js'

/** The elements of a step. */
const stepCount = 100
/**
 * The length of a new lease. A live worker that runs the job renews it before it ends, and nobody runs the job a second
 * time meanwhile. If the worker is dead, a later claim recovers the job.
 */
const leaseMs = 30_000
const shownIds = 3

/** Throws `UnknownQueueError` for a queue that is not stored, and `StoreVersionError` before it changes anything. */
export async function repairRedis(client: RedisClient, namespace: string, queue?: string): Promise<Repair> {
  await bringUpToDate(client, namespace)
  const rows = rowsIn(await client.command('HGETALL', [queuesKey(namespace)]), 2)
  const stored = new Map(rows.map(([name, shards]) => [textIn(name), textIn(shards)]))
  const names = [...stored.keys()].sort()
  if (queue !== undefined && !stored.has(queue)) throw new UnknownQueueError(queue, names)
  // If a queue's layout is unreadable, a check reports what is wrong, and a person must say what it was.
  const places = (queue === undefined ? names : [queue]).flatMap((name) => placesOf(namespace, name, stored.get(name)!))
  const mended: FsckRepair[] = []
  for (const { what, shard } of places) {
    mended.push(...(await mendLeases(client, shard, what).catch(unlessUnusable)))
    mended.push(...(await countGroups(client, shard, what).catch(unlessUnusable)))
    mended.push(...(await countPayloads(client, shard, what).catch(unlessUnusable)))
    mended.push(...(await mendSteps(client, shard, what).catch(unlessUnusable)))
  }
  const joins = new RedisJoinFsck(client, namespace, plainQueues(namespace, stored), true)
  for (const name of queue === undefined ? names : [queue])
    mended.push(...(await joins.repairs(name).catch(unlessUnusable)))
  const found = await checkRedis(client, namespace, queue)
  const counted: FsckRepair[] = []
  for (const place of places) counted.push(...(await countStale(client, place, found)))
  // Last, because until then claims do not trust the count of stale elements.
  for (const place of places) counted.push(...(await forgetLost(client, place).catch(unlessUnusable)))
  return {
    mended: [...mended, ...counted],
    left: counted.length === 0 ? found : await checkRedis(client, namespace, queue),
  }
}

interface RepairedShard {
  readonly what: string
  readonly shard: RedisShard
}

function placesOf(namespace: string, name: string, stored: string): RepairedShard[] {
  const layout = layoutIn(stored)
  if (layout === undefined) return []
  const shards = liveShards(queueIn(namespace, name, layout))
  return shards.map((shard) => ({
    what: shards.length === 1 ? `queue ${name}` : `queue ${name}, shard ${shard.shard}`,
    shard,
  }))
}

async function mendLeases(client: RedisClient, shard: RedisShard, what: string): Promise<FsckRepair[]> {
  // Leases first: then claims whose lease is removed, because it had no valid claim, are found without one.
  const leases = await walked(client, shard, 'leases')
  const claims = await walked(client, shard, 'claims')
  const seconds = leaseMs / 1_000
  return [
    ...(leases.length === 0
      ? []
      : [
          {
            what,
            text: `removed, or counted anew, ${leases.length} leases that belong to no running job${listed(leases)}`,
          },
        ]),
    ...(claims.length === 0
      ? []
      : [{ what, text: `gave ${claims.length} running jobs that had no lease one of ${seconds} s${listed(claims)}` }]),
  ]
}

async function countGroups(client: RedisClient, shard: RedisShard, what: string): Promise<FsckRepair[]> {
  const groups = numberIn(await runOn(client, shard, repairScripts.groups))
  if (groups === 0) return []
  return [{ what, text: `counted anew how many jobs run of ${groups === 1 ? '1 group' : `${groups} groups`}` }]
}

async function countPayloads(client: RedisClient, shard: RedisShard, what: string): Promise<FsckRepair[]> {
  if (shard.kind === 'plain' || numberIn(await runOn(client, shard, repairScripts.many)) === 0) return []
  return [{ what, text: 'counted anew how many payloads wait' }]
}

/** The faults of steps and of waits for signals, and what mends them. */
const stepFaults: Readonly<Record<string, string>> = {
  orphan: 'removed steps and signals of jobs that are gone',
  unmarked: 'marked jobs that have steps or signals',
  stray: 'removed waits for signals of jobs that do not wait',
  untimed: 'noted when the waits of jobs for signals are over',
  signalless: 'made jobs ready that waited for signals, without the store saying for which',
}

async function mendSteps(client: RedisClient, shard: RedisShard, what: string): Promise<FsckRepair[]> {
  if (shard.kind !== 'plain') return []
  const found = new Map<string, string[]>()
  for (const key of ['steps', 'signal-waits', 'joining']) {
    const step = (cursor: string) => runOn(client, shard, repairScripts.steps, [key, cursor, String(stepCount)])
    for await (const [faulty] of walkOf(step))
      for (const row of rowsIn(faulty!, 2)) {
        const [fault, id] = row.map(textIn)
        found.set(fault!, [...(found.get(fault!) ?? []), id!])
      }
  }
  return [...found].map(([fault, ids]) => ({ what, text: `${stepFaults[fault]}${listed(ids)}` }))
}

async function walked(client: RedisClient, shard: RedisShard, name: string): Promise<string[]> {
  const ids: string[] = []
  const step = (cursor: string) =>
    runOn(client, shard, repairScripts.walk, [name, cursor, String(stepCount), String(leaseMs)])
  for await (const [some] of walkOf(step)) ids.push(...listIn(some).map(textIn))
  return ids
}

/** Counts stale elements again only if nothing else is wrong: other errors would be counted as stale elements. */
async function countStale(
  client: RedisClient,
  { what, shard }: RepairedShard,
  found: readonly FsckFinding[],
): Promise<FsckRepair[]> {
  const faults = found.filter((one) => one.what === what && one.level !== 'ok' && !isOfLost(one))
  if (shard.kind !== 'plain' || faults.length !== 1 || !isOfStale(faults[0]!)) return []
  const by = numberIn(await runOn(client, shard, repairScripts.stale))
  if (by === 0) return []
  const text = `counted the stale elements of 'ready-list' anew, which were ${Math.abs(by)} too ${by < 0 ? 'many' : 'few'}`
  return [{ what, text }]
}

function isOfStale({ text }: FsckFinding): boolean {
  return text.startsWith('the number of stale elements')
}

function isOfLost({ text }: FsckFinding): boolean {
  return text.startsWith('claims have passed over')
}

async function forgetLost(client: RedisClient, { what, shard }: RepairedShard): Promise<FsckRepair[]> {
  const lost = numberIn(await runOn(client, shard, repairScripts.lost))
  if (lost === 0) return []
  const jobs = lost === 1 ? '1 job' : `${lost} jobs`
  return [{ what, text: `reported ${jobs} without a record that claims had skipped; the count begins anew` }]
}

/** The check reports why. */
function unlessUnusable(): FsckRepair[] {
  return []
}

function listed(ids: readonly string[]): string {
  const named = [...new Set(ids)].filter((id) => id !== '')
  return named.length === 0 ? '' : `: ${named.slice(0, shownIds).join(', ')}${named.length > shownIds ? ', …' : ''}`
}

/**
 * KEYS: those of one shard.
 * ARGV: key to walk ('claims' or 'leases'), cursor ('0' at first), about how many elements, ms of a new lease.
 * Returns { next cursor or '0', ids }. claims: claims that had no lease and now have their own. leases: leases that
 * were removed or counted again; each shared one as ''. Refuses `unknown`.
 *
 * Unreadable elements are left alone, because their meaning is unknown.
 */
const walkLua = String.raw`
local seen = call('HGET', META, 'seenAt')
if ${isSetBack('seen')} then turn_back(seen) end
local name, cursor, count, lease_ms = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local mended = {}
local function is_claim(claim) return claim and #claim >= 15 and #claim >= 28 + byte(claim, 15) end
local function is_own(claim) return has(byte(claim, 14) - 64, OWNLEASE) end
local function listed(fence_bytes) return call('HGET', BATCHES, 'i' .. fence_bytes) or '' end
-- Whether the claim is one of those that share this lease.
local function shares(fence_bytes, id)
  local claim = call('HGET', CLAIMS, id)
  return is_claim(claim) and sub(claim, 1, 7) == fence_bytes and not is_own(claim) and call('HEXISTS', JOBS, id) == 1
end
local function mend_claim(id, claim)
  if not is_claim(claim) or call('HEXISTS', JOBS, id) == 0 then return end
  local fence_bytes = sub(claim, 1, 7)
  if is_own(claim) then
    if call('ZSCORE', LEASES, id) then return end
  else
    local is_listed = find('\0' .. listed(fence_bytes) .. '\0', '\0' .. id .. '\0', 1, true)
    if is_listed and call('ZSCORE', LEASES, '\0' .. fence_bytes) then return end
    call('HSET', CLAIMS, id, with_flags(claim, byte(claim, 14) - 64 + OWNLEASE))
    if not call('ZSCORE', LEASES, '\0' .. fence_bytes) then call('HDEL', BATCHES, 'n' .. fence_bytes, 'i' .. fence_bytes) end
  end
  call('ZADD', LEASES, now + lease_ms, id)
  call('HSET', META, 'seenAt', now)
  mended[#mended + 1] = id
end
local function mend_shared(member)
  local fence_bytes, sharing = sub(member, 2), 0
  for id in string.gmatch(listed(fence_bytes), '%Z+') do
    if shares(fence_bytes, id) then sharing = sharing + 1 end
  end
  if sharing == tonumber(call('HGET', BATCHES, 'n' .. fence_bytes)) and sharing > 0 then return end
  if sharing > 0 then call('HSET', BATCHES, 'n' .. fence_bytes, sharing)
  else
    call('ZREM', LEASES, member)
    call('HDEL', BATCHES, 'n' .. fence_bytes, 'i' .. fence_bytes)
  end
  mended[#mended + 1] = ''
end
local function mend_lease(member)
  if byte(member) == 0 then
    if #member == 8 then mend_shared(member) end
    return
  end
  local claim = call('HGET', CLAIMS, member)
  if is_claim(claim) and is_own(claim) and call('HEXISTS', JOBS, member) == 1 then return end
  call('ZREM', LEASES, member)
  mended[#mended + 1] = member
end
local page = call(name == 'claims' and 'HSCAN' or 'ZSCAN', name == 'claims' and CLAIMS or LEASES, cursor, 'COUNT', count)
for i = 1, #page[2], 2 do
  if name == 'claims' then mend_claim(page[2][i], page[2][i + 1]) else mend_lease(page[2][i]) end
end
return { page[1], mended }
`

/**
 * KEYS: those of one shard of a plain queue, all of whose jobs are where they belong. No ARGV.
 * Computes the number of stale elements of the ready list from all other counts. Returns by how much it changed.
 * Refuses `unknown`.
 */
const staleLua = `
local stale, length = tonumber(call('HGET', META, 'stale')) or 0, call('LLEN', READY_LIST)
local right = standing_count() - call('HLEN', JOBS)
if right < 0 or right > length or right == stale then return 0 end
call('HSET', META, 'stale', right)
return right - stale
`

/**
 * KEYS: those of one shard. No ARGV.
 * Counts the running jobs of each group again, if at most 10,000 jobs run. Returns the number of groups whose count was
 * wrong. Refuses `unknown`.
 */
const groupsLua = `
if call('HLEN', CLAIMS) > ${mostCounted} then return 0 end
local right, claims, counted = {}, call('HGETALL', CLAIMS), call('HGETALL', RUNNING_BY_GROUP)
for i = 2, #claims, 2 do
  local has_group = #claims[i] > 14 and has(byte(claims[i], 14) - 64, HASGROUP)
  local rec = has_group and call('HGET', JOBS, claims[i - 1])
  local group = rec and select(4, written(rec)) or ''
  if group ~= '' then right[group] = (right[group] or 0) + 1 end
end
local wrong, known = {}, {}
for i = 1, #counted, 2 do
  known[counted[i]] = true
  if tonumber(counted[i + 1]) ~= right[counted[i]] then wrong[#wrong + 1] = counted[i] end
end
for group in pairs(right) do
  if not known[group] then wrong[#wrong + 1] = group end
end
for _, group in ipairs(wrong) do
  if right[group] then call('HSET', RUNNING_BY_GROUP, group, right[group]) else call('HDEL', RUNNING_BY_GROUP, group) end
  lanes.refresh(group)
end
-- A group that was counted as full may have room.
if #wrong > 0 then ring_unpaused() end
return #wrong
`

/**
 * KEYS: those of one shard of an ordered queue. No ARGV.
 * Counts again the waiting jobs whose payloads are in sets, if the shard has at most 10,000 jobs. Returns by how much
 * the number changed. Refuses `unknown`.
 */
const manyLua = `
local right, counted = count_many(), tonumber(call('HGET', META, 'many') or 0)
if not right or right == counted then return 0 end
call('HSET', META, 'many', right)
return right - counted
`

/**
 * KEYS: those of one shard. No ARGV.
 * Removes and returns the count of jobs without a record that claims have passed over. Refuses `unknown`.
 */
const lostLua = `
local count = tonumber(call('HGET', META, 'lost')) or 0
call('HDEL', META, 'lost')
return count
`

/**
 * KEYS: those of one shard of a plain queue.
 * ARGV: key to walk ('steps', 'signal-waits' or 'joining'), cursor ('0' at first), about how many elements.
 * Returns { next cursor or '0', faults that it has mended (each its name, id of the job) }. Refuses `unknown`.
 */
const stepsLua = String.raw`
local name, mended = ARGV[1], {}
local function say(fault, id) mended[#mended + 1], mended[#mended + 2] = fault, id end
local function awaits(j) return j and not j.claim and j.state == 'a' end
local function wait_until(id)
  local wait = call('HGET', STEPS, id .. '\0w')
  return wait and (unpackn('>I6', wait)) or nil
end
local function mend_entry(field)
  local id = string.match(field, '^%Z+') or ''
  local j, is_wait = job(id), sub(field, #id + 1) == '\0w'
  if not j or (is_wait and not awaits(j)) then
    call('HDEL', STEPS, field)
    say(j and 'stray' or 'orphan', id)
  elseif not is_wait and not j.steps then
    entries().mark(j, true)
    say('unmarked', id)
  end
end
local function mend_wait(member, score)
  local id = sub(member, 7)
  local j = job(id)
  if awaits(j) and member == j.seq .. id and tonumber(score) == wait_until(id) then return end
  call('ZREM', SIGNAL_WAITS, member)
  if not awaits(j) then say('stray', id) end
end
local function mend_waiting(member)
  local id = sub(member, 14)
  local j = job(id)
  if not awaits(j) then return end
  local until_at = wait_until(id)
  if not until_at then
    entries().wake(j)
    say('signalless', id)
  elseif until_at > 0 and not call('ZSCORE', SIGNAL_WAITS, j.seq .. id) then
    call('ZADD', SIGNAL_WAITS, string.format('%.0f', until_at), j.seq .. id)
    say('untimed', id)
  end
end
local walks = { steps = { 'HSCAN', STEPS, mend_entry }, ['signal-waits'] = { 'ZSCAN', SIGNAL_WAITS, mend_wait }, joining = { 'ZSCAN', JOINING, mend_waiting } }
local scan, key, mend = unpack(walks[name])
local page = call(scan, key, ARGV[2], 'COUNT', ARGV[3])
for i = 1, #page[2], 2 do mend(page[2][i], page[2][i + 1]) end
return { page[1], mended }
`

const repairScript = (name: string, text: string) =>
  scriptPair(`repair-${name}`, guard + text, { rare: setBack + standing, whenFull: true })

/**
 * The repair scripts: they mend leases and counters of a shard, a few elements at a time. Each step checks and writes
 * atomically.
 */
const repairScripts = {
  walk: repairScript('walk', walkLua),
  groups: repairScript('groups', groupsLua),
  many: repairScript('many', manyLua).ordered,
  stale: repairScript('stale', staleLua),
  lost: repairScript('lost', lostLua),
  steps: repairScript('steps', stepsLua).plain,
}
