/**
 * The joins in the fsck of a Redis store: whether what joins know of their members fits what is kept beside these, and what
 * can be mended so that no join waits for ever.
 */

import { slicesOf } from '../../../core/values/pages.js'
import type { FsckFinding, FsckRepair } from '../../contract/store-health.js'
import { error, listed } from '../../rules/findings.js'
import { memberId } from '../../rules/join-rules.js'
import type { RedisClient } from '../client/redis-client.js'
import { bytesIn, listIn, rowsIn, textIn, walkOf } from '../client/redis-reply.js'
import { dueScript, fragmentScript, readJoinScript } from '../joins/join-scripts.js'
import { runOn } from '../lua/script-kinds.js'
import { joinIndexKeys, keyIn } from '../redis-keys.js'
import { type RedisQueue, type RedisShard, shardHolding } from '../redis-layout.js'
import { dropScript, joinScript } from '../shards/join-report-scripts.js'
import { fragmentKey, type RedisJoin, type RedisSet } from '../shards/redis-join-reports.js'
import { registeredSwept } from '../shards/redis-queues.js'

/** The elements of a step. */
const stepCount = '50'
/** The most members that one step asks about. */
const mostAsked = 500
/** A recount of a fragment with more members would take too long. */
const mostRecounted = 100_000

type JoinFault = 'miscounted' | 'untold' | 'unnoticed' | 'untimed' | 'lost' | 'orphan'

/** Of each fault how grave it is, its text in a finding, and in a repair. */
const faults: Readonly<Record<JoinFault, readonly [level: 'error' | 'warning', wrong: string, mended: string]>> = {
  miscounted: [
    'error',
    'the ends of members of these joins are counted wrongly',
    'counted the ends of members of these joins again',
  ],
  untold: [
    'error',
    'these joins were not told that members have ended, and nobody is about to tell them',
    'told these joins of members that have ended',
  ],
  unnoticed: ['error', 'wait, and all of their members have ended', 'made joins ready that waited for nobody'],
  untimed: [
    'error',
    'wait, and nobody will notice when their time is over',
    'noted when the time of these joins is over',
  ],
  lost: [
    'error',
    'wait for members that are not there, or have ended',
    'reported the ends of members that are not there, or have ended, to these joins',
  ],
  orphan: [
    'warning',
    'ends of members are kept for these joins, which are gone',
    'removed the ends of members of these joins, which are gone',
  ],
}
const harms: Readonly<Record<'error' | 'warning', string>> = {
  error: 'They run too early, or wait for ever, or until their time is over. Run fsck --repair.',
  warning: 'Nothing but memory is lost.',
}

/** A queue that has joins, members or waits, and is not registered: what is wrong, and what was done. */
const unswept = [
  'it has joins, members of joins or waits for signals, and no worker looks whether their time is over',
  'noted that workers are to look whether the time of its joins and waits for signals is over',
] as const

/** The faults of one queue: for each, the ids of its joins. */
type FoundFaults = Map<JoinFault, Set<string>>

export class RedisJoinFsck {
  readonly #client: RedisClient
  readonly #namespace: string
  readonly #queues: ReadonlyMap<string, RedisQueue>
  readonly #mends: boolean

  /** `queues`: all plain ones, by name. `mends`: whether what is found is mended. */
  constructor(client: RedisClient, namespace: string, queues: ReadonlyMap<string, RedisQueue>, mends: boolean) {
    this.#client = client
    this.#namespace = namespace
    this.#queues = queues
    this.#mends = mends
  }

  async findings(name: string): Promise<FsckFinding[]> {
    const what = `queue ${name}`
    const found: FsckFinding[] = [...(await this.#faultsOf(name))].map(([fault, ids]) => {
      const [level, wrong] = faults[fault]
      return { level, what, text: `${wrong}${listed([...ids])}. ${harms[level]}` }
    })
    if (await this.#isUnswept(name)) found.push(error(what, `${unswept[0]}. ${harms.error}`))
    return found
  }

  async repairs(name: string): Promise<FsckRepair[]> {
    const what = `queue ${name}`
    const isUnswept = await this.#isUnswept(name)
    if (isUnswept) await this.#client.command('HSET', [joinIndexKeys(this.#namespace)[0], name, registeredSwept])
    const mended = [...(await this.#faultsOf(name))].map(([fault, ids]) => `${faults[fault][2]}${listed([...ids])}`)
    return [...(isUnswept ? [unswept[1]] : []), ...mended].map((text) => ({ what, text }))
  }

  /** Whether it needs sweeps and is not registered for them. Whoever needs one registers first, so this looks there last. */
  async #isUnswept(name: string): Promise<boolean> {
    for (const shard of await this.#stored(name)) {
      const [isUsed] = listIn(await runOn(this.#client, shard, dueScript, ['0']))
      if (isUsed === 1) return (await this.#client.command('HEXISTS', [joinIndexKeys(this.#namespace)[0], name])) === 0
    }
    return false
  }

  async #faultsOf(name: string): Promise<FoundFaults> {
    const found: FoundFaults = new Map()
    for (const shard of await this.#stored(name)) await this.#shard(shard, found)
    return found
  }

  /** The shards of a queue that have settings. */
  async #stored(name: string): Promise<RedisShard[]> {
    const stored: RedisShard[] = []
    for (const shard of this.#queues.get(name)?.shards ?? [])
      if ((await this.#client.command('EXISTS', [keyIn(shard.keys, 'meta')])) === 1) stored.push(shard)
    return stored
  }

  async #shard(shard: RedisShard, found: FoundFaults): Promise<void> {
    const step = (cursor: string) =>
      runOn(this.#client, shard, stepScript, [cursor, stepCount, this.#mends ? '1' : '0'])
    for await (const [faulty, fragments, joins] of walkOf(step)) {
      for (const row of rowsIn(faulty!, 2)) {
        const [fault, id] = row.map(textIn)
        add(found, fault as JoinFault, id!)
      }
      for (const key of listIn(fragments).map(textIn)) await this.#orphan(shard, key, found)
      for (const row of rowsIn(joins!, 2)) {
        const [id, text] = row.map(textIn)
        await this.#lostOf(shard, id!, JSON.parse(text!) as RedisJoin, found)
      }
    }
  }

  /** A fragment that has nobody to wait for, and perhaps no join. */
  async #orphan(shard: RedisShard, key: string, found: FoundFaults): Promise<void> {
    const [queue, id] = key.split('\0') as [string, string]
    const home = this.#queues.get(queue)
    if (home !== undefined) {
      const at = shardHolding(home, id)
      // A join that has ended leaves a note until its fragments are dropped.
      const fields = [`j${id}`, `x${id}`]
      const [join, ended] = listIn(await this.#client.command('HMGET', [keyIn(at.keys, 'joins'), ...fields]))
      if (join !== null || ended !== null) return
    }
    if ((await runOn(this.#client, shard, fragmentScript, [key])) === null) return
    add(found, 'orphan', id)
    while (this.#mends && (await runOn(this.#client, shard, dropScript, [key])) === 1);
  }

  /** Asks where they should be for the members that have not ended. */
  async #lostOf(home: RedisShard, id: string, { sets, open }: RedisJoin, found: FoundFaults): Promise<void> {
    // Its members are being stored after it. If its producer dies, it is dead as never sealed.
    if (open === 1) return
    for (const set of sets) {
      if (set.size < 0) continue
      const queue = this.#queues.get(set.queue)
      for (const shard of queue?.shards ?? []) {
        const members = await this.#missingIn(
          queue!,
          shard,
          fragmentKey({ queue: home.queue, id }, set.name, set.base),
          set,
        )
        for (const some of slicesOf(members, mostAsked))
          if (await this.#areLost(home, id, shard, set, some)) add(found, 'lost', id)
      }
    }
  }

  /** The members of a set in this shard that have no bit. */
  async #missingIn(queue: RedisQueue, shard: RedisShard, key: string, set: RedisSet): Promise<[number, string][]> {
    const reply = await runOn(this.#client, shard, fragmentScript, [key])
    const bits = reply === null ? [] : listIn(reply).slice(1).map(bytesIn)
    const members: [number, string][] = []
    for (let number = 0; number < set.size; number += 1) {
      const byte = bits[Math.floor(number / 4_096)]?.[Math.floor((number % 4_096) / 8)] ?? 0
      if ((byte & (1 << (number % 8))) !== 0) continue
      const id = memberId({ ids: set.ids, isMany: set.many === 1 }, number)
      if (shardHolding(queue, id).tag === shard.tag) members.push([number, id])
    }
    return members
  }

  async #areLost(
    home: RedisShard,
    id: string,
    shard: RedisShard,
    set: RedisSet,
    members: readonly (readonly [number, string])[],
  ): Promise<boolean> {
    const key = fragmentKey({ queue: home.queue, id }, set.name, set.base)
    const args = [key, String(set.on_dead), String(set.keeps)]
    const asked = members.flatMap(([number, member]) => [String(number), member])
    if ((await runOn(this.#client, shard, lostScript, [...args, '0', ...asked])) === 0) return false
    // It may have ended meanwhile.
    const reply = await runOn(this.#client, home, readJoinScript, [id])
    if (reply === null || textIn(listIn(reply)[0]) !== 'w') return false
    if (this.#mends) await runOn(this.#client, shard, lostScript, [...args, '1', ...asked])
    return true
  }
}

function add(found: FoundFaults, fault: JoinFault, id: string): void {
  found.set(fault, (found.get(fault) ?? new Set()).add(id))
}

/**
 * ARGV: cursor ('0' at first), about how many elements of `joins`, whether to mend (1 or 0).
 * Returns { next cursor or '0', faults (each its name, id of the join), the keys of fragments whose members have all ended,
 * waiting joins (each its id, the join as JSON) }.
 */
const stepScript = joinScript(
  'check-joins',
  `
local page, mends = call('HSCAN', JOINS, ARGV[1], 'COUNT', ARGV[2]), ARGV[3] == '1'
local found, fragments, waiting = {}, {}, {}
local function say(fault, id) found[#found + 1], found[#found + 2] = fault, id end
local ones = {}
for b = 0, 255 do ones[b] = b % 2 + (ones[math.floor(b / 2)] or 0) end
local function bits_of(f)
  local sum = 0
  for c = 0, math.floor(math.max(0, f.high - 1) / 4096) do
    local bits = call('HGET', JOINS, 'b' .. f.serial .. '.' .. c)
    if bits == '' then sum = sum + 4096 end
    for at = 1, #(bits or '') do sum = sum + ones[byte(bits, at)] end
  end
  return sum
end
-- The ends by letter, as they are kept; those that left nothing have completed.
local function recount(f, sum)
  local kept = { c = 0, d = 0, x = 0, e = 0 }
  for first = 0, f.high - 1, 500 do
    local fields = {}
    for number = first, math.min(first + 500, f.high) - 1 do fields[#fields + 1] = f.serial .. '.' .. string.format('%d', number) end
    for _, one in ipairs(call('HMGET', JOINED, unpack(fields))) do
      local letter = one and sub(one, 1, 1)
      if kept[letter] then kept[letter] = kept[letter] + 1 end
    end
  end
  local completed = sum - kept.x - kept.e - (f.on_dead == joins().HOLD and 0 or kept.d)
  if completed < kept.c then return end
  f.c, f.d, f.x, f.e, f.version = completed, kept.d, kept.x, kept.e, f.version + 1
end
for i = 1, #page[2], 2 do
  local kind, name = sub(page[2][i], 1, 1), sub(page[2][i], 2)
  local f = kind == 'h' and #page[2][i + 1] >= 72 and joins().fragment(name)
  local join, j
  if kind == 'j' and pcall(cjson.decode, page[2][i + 1]) then join, j = joins().join(name) end
  if f then
    local sum, id = bits_of(f), string.match(f.key, '^%Z+%z(%Z+)') or ''
    if f.frozen == 0 and sum ~= f.c + f.x + f.e + (f.on_dead == joins().HOLD and 0 or f.d) then
      say('miscounted', id)
      if mends and f.high <= ${mostRecounted} then recount(f, sum) end
    elseif f.version > f.told_version and joins().has_to_tell(f) and not call('ZSCORE', JOIN_TASKS, 'f' .. name) then
      say('untold', id)
      if mends then call('ZADD', JOIN_TASKS, -now, 'f' .. name) end
    end
    if sum >= f.count then fragments[#fragments + 1] = f.key end
  elseif j and not j.claim and j.state == 'w' then
    local noted = call('ZSCORE', JOIN_TASKS, 'w' .. name)
    if joins().is_complete(join) then
      say('unnoticed', name)
      if mends then joins().check(j, join) end
    else
      waiting[#waiting + 1], waiting[#waiting + 2] = name, page[2][i + 1]
      if join.until_at >= 0 and tonumber(noted or -1) ~= join.until_at then
        say('untimed', name)
        if mends then call('ZADD', JOIN_TASKS, join.until_at, 'w' .. name) end
      end
    end
  end
end
if mends and REPORTS then joins().flush() end
return { page[1], found, fragments, waiting }
`,
)

/**
 * ARGV: key of a fragment, the letter of \`onDead\` as a byte, keeps results (1 or 0), whether to mend (1 or 0), then for each
 * member of a sealed set that should be in this shard its number and id.
 * A member is lost if it has not ended for its join, and cannot do so any more. Mended, it has: as its job has, or as if it
 * was deleted. Returns the number of lost ones.
 */
const lostScript = joinScript(
  'check-members',
  `
local f, mends, lost = joins().fragment_of(ARGV[1]), ARGV[4] == '1', 0
if f and f.frozen == 1 then return 0 end
for i = 5, #ARGV, 2 do
  local number, own, j = tonumber(ARGV[i]), ARGV[i], job(ARGV[i + 1])
  local place = f and f.serial .. '.' .. own
  if not place or not j or not find(' ' .. (j.places or '') .. ' ', ' ' .. place .. ' ', 1, true) then j = nil end
  local is_held = j and j.state == 'd' and sub(call('HGET', JOINED, place) or '', 1, 1) == 'd'
  if not (f and joins().has_bit(f, number)) and not is_held and not (j and (j.claim or is_waiting(j))) then
    lost = lost + 1
    if mends then
      if not f then
        f = joins().new_fragment(ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]))
        -- Later than all that the join has heard of the one that is gone.
        f.version = now
      end
      if number >= f.high then f.count, f.high = f.count + 1, number + 1 end
      joins().report({ places = f.serial .. '.' .. own }, j and j.state or 'x', j and j.state == 'd' and call('HGET', NOTES, 'e' .. j.id) or nil)
    end
  end
end
if mends and REPORTS then joins().flush() end
return lost
`,
)
