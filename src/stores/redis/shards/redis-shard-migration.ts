/**
 * The migration of jobs between shards of ordered queues of a Redis store. Jobs leave their shard, which keeps them in
 * transit; they are put into the other shards; then they are removed from transit. Each batch has a number, and a shard
 * knows the last one that it got from another: a repeat puts nothing, even if the jobs have run and ended since. So
 * a process that finds a batch in transit brings it on to its target, and no batch returns.
 */

import { shardOf } from '../../rules/payloads.js'
import { reshardUnderWay } from '../../rules/queue-form.js'
import type { RedisArgument, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, textIn } from '../client/redis-reply.js'
import { refuse } from '../client/redis-script.js'
import { withOrderedJobs } from '../lua/ordered-lua.js'
import { shardScript } from '../lua/prelude.js'
import { guard } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { arrivals, stranding } from '../lua/transit-lua.js'
import type { RedisShard } from '../redis-layout.js'
import { type RedisQueues, ShardMoved } from './redis-queues.js'

/** The limits of a batch, small enough that other calls notice nothing. */
const mostJobs = 100
const mostPayloads = 1_000
const mostBytes = 1_048_576

interface MovedBatch {
  /** Jobs that this call has removed completely from their shard. */
  readonly changed: number
  readonly payloads: number
  /** No job was found that could be moved. */
  readonly isDone: boolean
  /** The shard was given up and is empty. It refuses everything from now on. */
  readonly isClosed: boolean
}

export interface ShardState {
  readonly runs: boolean
  readonly meta: ReadonlyMap<string, string>
  /** Groups that are held back, and until when, in turn. */
  readonly holds: readonly string[]
}

/** A job in transit. */
interface Moving {
  readonly kind: string
  readonly id: string
  /** Its parts other than payloads. */
  readonly head: readonly RedisReply[]
  readonly members: readonly Buffer[]
  readonly values: readonly Buffer[]
}

const digestLength = 22

export class RedisShardMigration {
  readonly #queues: RedisQueues

  constructor(queues: RedisQueues) {
    this.#queues = queues
  }

  /**
   * Moves some jobs of a shard to the queue `to`; if that is its own, to the shards that it is resharded to. Nobody can
   * claim or change jobs in transit. If the work is interrupted, they stay in transit until the next batch brings them
   * on, or a claim or a sweep finds that nobody has for 30 s. What is found in transit goes to the queue that it left for.
   * `givesUp`: the shard closes once it is empty. Throws `ConfigConflictError` if the other queue is being resharded and
   * the shard for a job is closed.
   */
  async batch(from: RedisShard, to: string, givesUp: boolean): Promise<MovedBatch> {
    const { length } = await this.#targets(from, to)
    const limits = [String(mostJobs), String(mostPayloads), String(mostBytes)]
    return this.#bring(from, [to, String(length), givesUp ? '1' : '0', ...limits])
  }

  /** Brings on what is in transit from a shard. Never rejects: what cannot be brought on is left to the next call. */
  async bringOn(from: RedisShard): Promise<void> {
    await this.#bring(from, []).catch(() => {})
  }

  /** Brings on what has been in transit from a shard for 30 s. Returns whether anything was in transit. */
  async bringOnStranded(from: RedisShard): Promise<boolean> {
    const found = numberIn(await this.#queues.ask(from, strandedScript, []))
    if (found === 2) await this.bringOn(from)
    return found > 0
  }

  /** `args`: those of the leave script. */
  async #bring(from: RedisShard, args: readonly string[]): Promise<MovedBatch> {
    const left = listIn(await this.#queues.run(from, leaveScript, args))
    const [number, gone, jobs, isClosed, score, to, shards] = left
    const found = listIn(jobs).map(movingIn)
    if (found.length > 0) {
      const batch = { number: String(numberIn(number)), score: textIn(score), shards: Number(textIn(shards)) }
      await this.#put(from, await this.#targets(from, textIn(to)), batch, found)
      await this.turn(from, 'arrive', batch.number)
    }
    const payloads = found.reduce((sum, { members }) => sum + members.length, 0)
    return { changed: numberIn(gone), payloads, isDone: found.length === 0, isClosed: isClosed === 1 }
  }

  /**
   * Puts jobs into the shards of their ids. They are apart by the shard in which they would have been when they left: if
   * the other queue has been resharded since, its shards know what that shard had got.
   */
  async #put(
    from: RedisShard,
    targets: readonly RedisShard[],
    { number, score, shards }: { readonly number: string; readonly score: string; readonly shards: number },
    found: readonly Moving[],
  ): Promise<void> {
    const parts = new Map<string, { readonly was: number; readonly target: RedisShard; readonly jobs: Moving[] }>()
    for (const job of found) {
      if (job.kind === 'h') continue
      const [was, target] = [shardOf(job.id, shards), targets[shardOf(job.id, targets.length)]!]
      const part = parts.get(`${was} ${target.tag}`) ?? { was, target, jobs: [] }
      part.jobs.push(job)
      parts.set(`${was} ${target.tag}`, part)
    }
    await Promise.all(
      [...parts.values()].map(({ was, target, jobs }) =>
        this.#queues.run(target, putScript, [score, gotField(was, from), number, ...putArgs(jobs)]),
      ),
    )
  }

  /** The shards to which jobs of a shard go if they move to this queue. */
  async #targets(from: RedisShard, to: string): Promise<readonly RedisShard[]> {
    const [queue] = await this.#queues.findNow([to])
    const { layout, shards, next, closed } = queue!
    if (to === from.queue) {
      if (next.length === 0) throw new ShardMoved('the queue has been resharded')
      return next
    }
    // What a closed shard had got is not yet known in the next ones.
    if (closed.size > 0) throw reshardUnderWay(to, layout.towards!, layout.shards)
    return shards
  }

  /**
   * The state of the shard, and whether jobs run in it. Undefined if it is gone. `'hold'`: the shard grants nothing
   * from now on.
   */
  async state(shard: RedisShard, verb: 'look' | 'hold'): Promise<ShardState | undefined> {
    const reply = await this.#queues.ask(shard, turnScript, [verb])
    if (reply === null) return undefined
    const [runs, meta, holds] = listIn(reply)
    const flat = listIn(meta).map(textIn)
    return {
      runs: runs === 1,
      holds: listIn(holds).map(textIn),
      meta: new Map(flat.flatMap((field, i) => (i % 2 === 0 ? [[field, flat[i + 1]!]] : []))),
    }
  }

  async turn(
    shard: RedisShard,
    verb: 'arrive' | 'inherit' | 'absorb' | 'release' | 'remove',
    ...args: string[]
  ): Promise<void> {
    await this.#queues.ask(shard, turnScript, [verb, ...args])
  }
}

/**
 * The field of a shard's META with the number of the last batch that it, or one that it replaces, has got from a shard
 * (the last two parts) for the shard `was` of its queue.
 */
function gotField(was: number, from: RedisShard): string {
  return `got ${was} ${from.queue} ${from.tag}`
}

/** The fields and values of META that tell what shards of this queue have got from those of other queues. */
export function gotFromOthers(queue: string, metas: readonly ReadonlyMap<string, string>[]): string[] {
  const all = metas.flatMap((meta) => [...meta])
  return all.filter(([field]) => field.startsWith('got ') && field.split(' ')[2] !== queue).flat()
}

function movingIn(reply: RedisReply): Moving {
  const [kind, id, ...parts] = listIn(reply)
  const payloads = listIn(parts.at(-1)).map(bytesIn)
  return {
    kind: textIn(kind),
    id: textIn(id),
    head: parts.slice(0, -1),
    members: payloads.filter((_, i) => i % 2 === 0),
    values: payloads.filter((_, i) => i % 2 === 1),
  }
}

function putArgs(jobs: readonly Moving[]): RedisArgument[] {
  return jobs.flatMap(({ kind, id, head, members, values }) => [
    kind,
    id,
    ...head.map((part) => (typeof part === 'number' ? String(part) : bytesIn(part))),
    String(members.length),
    ...members.flatMap((member, i) => [member.subarray(-digestLength), values[i]!]),
  ])
}

/**
 * KEYS: those of the shard that jobs leave.
 * ARGV: the queue to which they go, its number of shards, whether the shard is given up (1 or 0), most jobs, most
 * payloads, most bytes. Nothing: only what is in transit is returned.
 * Removes some jobs from all keys of the shard and puts them in transit. A job with many payloads leaves in several
 * parts. Running jobs stay. Jobs that are in transit already are returned again, with 0 gone.
 * Returns { number, jobs that are gone, jobs, whether the shard is closed (1 or 0), the last default score of the shard,
 * the queue to which they go, its number of shards when they left }. Each job is { 'l', id, state, task, stamp,
 * createdAt, updatedAt, attempt, crashes, error or '', fields or '', payloads } or { 'd', id, header, payloads };
 * payloads are members and values in turn. Numbers grow, and are at least the instant in ms: so they also do if the
 * server has lost the last one.
 * A shard that is given up also loses entries of the morgue that are too old, as { 'h', id, '', payloads }. When
 * nothing else is left in it, it closes in this step, and afterwards refuses calls with `moved`.
 */
const leaveLua = `
local score = call('HGET', META, 'score') or '0'
local before = call('HMGET', TRANSIT, 'number', 'batch', 'to', 'shards')
if before[1] then return { tonumber(before[1]), 0, cmsgpack.unpack(before[2]), call('HEXISTS', META, 'closed'), score, before[3], before[4] } end
local to, shards, gives_up, most, most_payloads, most_bytes = ARGV[1], ARGV[2], ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
if not to then return { 0, 0, {}, 0, score } end
local found, payloads, bytes = {}, 0, 0
local function is_enough() return #found >= most or payloads >= most_payloads or bytes >= most_bytes end
local function payloads_in(set, bodies, id)
  local members, from, own = members_in(set, id, most_payloads - payloads), #id + 16, 0
  for i = 1, #members do
    if i > 1 and bytes >= most_bytes then break end
    bytes, own = bytes + unpackn('>I4', members[i], from), i
  end
  payloads = payloads + own
  for i = #members, own + 1, -1 do members[i] = nil end
  local values, list = values_of(bodies, fields_of(id, members)), {}
  for i = 1, #members do list[i * 2 - 1], list[i * 2] = members[i], values[i] end
  return list
end
-- The payloads of a live job.
local function waiting_payloads(id)
  local own = own_list(id)
  if not own then return payloads_in(PAYLOADS, BODIES, id) end
  payloads, bytes = payloads + 1, bytes + weight_from(own[2], 1)
  return { member_of(id, own[1], own[2]), own[2] }
end
local function find_jobs()
  for _, one in ipairs({ { READY, 16 }, { GROUPED, 16 }, { SUSPECTS, 16 }, { SCHEDULED, 14 } }) do
    for _, place in ipairs(call('ZRANGE', one[1], 0, most - 1)) do
      if is_enough() then return end
      local j = job(sub(place, one[2]))
      found[#found + 1] = { 'l', j.id, j.state, name_of(j), j.stamp, j.created, j.updated, j.attempt, j.crashes, last_error(j) and '=' .. last_error(j) or '', call('HGET', NOTES, 'f' .. j.id) or '', waiting_payloads(j.id) }
    end
  end
  for _, place in ipairs(call('ZRANGE', DEAD, 0, most - 1, 'REV')) do
    if is_enough() then return end
    local d = dead_job(sub(place, 13))
    if not is_hidden(d) then found[#found + 1] = { 'd', d.id, write_header(d), payloads_in(DEAD_PAYLOADS, DEAD_BODIES, d.id) }
    elseif gives_up then found[#found + 1] = { 'h', d.id, '', payloads_in(DEAD_PAYLOADS, DEAD_BODIES, d.id) } end
  end
end
find_jobs()
local gone, live, dead = 0, 0, 0
local function members_of(list)
  local members = {}
  for i = 1, #list, 2 do members[#members + 1] = list[i] end
  return members
end
for _, one in ipairs(found) do
  local kind, id, members = one[1], one[2], members_of(one[#one])
  if kind == 'l' then
    remove_members(PAYLOADS, BODIES, id, members)
    live = live + 1
    if count_in(PAYLOADS, id) == 0 then
      finish(job(id))
      gone = gone + 1
    end
  else
    remove_members(DEAD_PAYLOADS, DEAD_BODIES, id, members)
    if kind == 'd' then dead = dead + 1 end
    if count_in(DEAD_PAYLOADS, id) == 0 then
      drop_header(dead_job(id))
      if kind == 'd' then gone = gone + 1 end
    end
  end
end
local closes = gives_up and call('EXISTS', JOBS, MORGUE) == 0 and call('HGET', META, 'resharding') == '1'
if closes then call('HSET', META, 'closed', 1) end
local number = 0
if #found > 0 then
  number = math.max(now, tonumber(call('HGET', META, 'transfers') or 0) + 1)
  call('HSET', META, 'transfers', number)
  call('HSET', TRANSIT, 'number', number, 'at', now, 'to', to, 'shards', shards, 'batch', cmsgpack.pack(found), 'live', live, 'dead', dead)
end
return { number, gone, found, closes and 1 or 0, score, to, shards }
`

/**
 * KEYS: those of the shard that gets the jobs.
 * ARGV: the last default score of the shard that they left, the next one here is larger; the field of META for what has
 * come from there, and the number of the batch; for each job l, its id, state, task, stamp, createdAt, updatedAt,
 * attempt, crashes, error or '', fields or ''; or d, its id and header; then the number of its payloads, and for each
 * its digest and value.
 * Returns 1. Jobs that are already here stay, and the payloads are merged into them. A batch that has been here changes
 * nothing. Refuses `unknown`, and `moved` if the shard is closed.
 */
const putLua = `
local got = call('HMGET', META, 'closed', ARGV[2])
if got[1] then ${refuse('moved')} end
if tonumber(got[2] or 0) >= tonumber(ARGV[3]) then return 1 end
local n, seq = 4, tonumber(call('HGET', META, 'seq'))
local function payloads_from(first)
  local list, count = {}, tonumber(ARGV[first])
  for i = 1, count do
    local value = ARGV[first + i * 2]
    seq = seq + 1
    list[i * 2 - 1] = ARGV[first + i * 2 - 1]
    list[i * 2] = sub(value, 1, 8) .. pack('>I6', seq) .. sub(value, 15)
  end
  n = first + 1 + count * 2
  return list
end
while n <= #ARGV do
  local id = ARGV[n + 1]
  if ARGV[n] == 'l' then
    local numbers = {}
    for i = 1, 5 do numbers[i] = tonumber(ARGV[n + 3 + i]) end
    local state, task, error = ARGV[n + 2], ARGV[n + 3], ARGV[n + 9] ~= '' and sub(ARGV[n + 9], 2) or nil
    join_live(id, state, task, numbers[1], numbers[2], numbers[3], numbers[4], numbers[5], error, ARGV[n + 10] ~= '' and ARGV[n + 10] or nil, payloads_from(n + 11))
  else
    local header = ARGV[n + 2]
    join_dead(id, header, payloads_from(n + 3))
  end
end
call('HSET', META, 'seq', seq, ARGV[2], ARGV[3])
if tonumber(ARGV[1]) > tonumber(call('HGET', META, 'score') or 0) then call('HSET', META, 'score', ARGV[1]) end
ring_unpaused()
return 1
`

/**
 * KEYS: those of one shard. ARGV: verb, and its arguments.
 * look, or hold, which also makes the shard grant nothing from now on. Returns { whether jobs run (1 or 0), fields and
 * values of META, groups that are held back and until when in turn }, or nil if the shard does not exist.
 * arrive: number. The batch in transit with this number is now elsewhere. Returns 1.
 * inherit: whether the replaced shards are paused and draining (1 or 0), unless this one has been resumed; until when they are held
 * back, and each group with its time. Returns 1; a repeat changes nothing.
 * absorb: tag, processed, failed, crashed of a shard that this one replaces. Returns 1; a repeat changes nothing.
 * release: fields of META, and their least values. A new shard grants from now on. Returns 1.
 * remove: removes the settings and counters, and so the shard. Returns 1.
 */
const turnLua = `
local verb = ARGV[1]
if verb == 'remove' then
  call('DEL', META, WAKE, CALLS, CALL_ORDER, TURNS, SHUT, HOLDS, RUNNING_BY_GROUP)
  return 1
end
if call('EXISTS', META) == 0 then return false end
local seen = call('HGET', META, 'seenAt')
if ${isSetBack('seen')} then turn_back(seen) end
if verb == 'look' or verb == 'hold' then
  if verb == 'hold' then
    call('HSET', META, 'resharding', 1)
    call('DEL', WAKE)
  end
  return { call('EXISTS', CLAIMS), call('HGETALL', META), call('ZRANGE', HOLDS, 0, -1, 'WITHSCORES') }
elseif verb == 'arrive' then
  if call('HGET', TRANSIT, 'number') == ARGV[2] then
    call('DEL', TRANSIT)
    tell_ends()
  end
elseif verb == 'inherit' then
  if call('HSETNX', META, 'inherited', 1) == 1 then
    local is_resumed = call('HDEL', META, 'resumed') == 1
    for i, field in ipairs({ 'paused', 'draining' }) do
      if ARGV[i + 1] == '1' and not is_resumed then call('HSET', META, field, 1) end
    end
    for n = 4, #ARGV, 2 do
      local group, until_at = n > 4 and ARGV[n - 1] or nil, tonumber(ARGV[n])
      if until_at > now then lanes.hold_back(group, until_at) end
      if group and byte(group) == 0 then call('HSET', META, 'pausedGroups', 1) end
    end
  end
elseif verb == 'absorb' then
  if call('HSETNX', META, 'from ' .. ARGV[2], 1) == 1 then
    for i, counter in ipairs({ 'processed', 'failed', 'crashed' }) do call('HINCRBY', META, counter, ARGV[i + 2]) end
  end
elseif call('HGET', META, 'resharding') == 'new' then
  for i = 2, #ARGV, 2 do
    if tonumber(ARGV[i + 1]) > tonumber(call('HGET', META, ARGV[i]) or 0) then call('HSET', META, ARGV[i], ARGV[i + 1]) end
  end
  call('HDEL', META, 'resharding')
  know_form()
  ring_unpaused()
end
return 1
`

/** KEYS: those of a shard. No ARGV. Returns 0 if nothing is in transit from it, 2 if that is to be brought on, otherwise 1. */
const strandedScript = shardScript(
  'transfer-stranded',
  'ordered',
  () => `${stranding}
if call('EXISTS', TRANSIT) == 0 then return 0 end
return is_stranded() and 2 or 1
`,
  { whenFull: true },
)

const migrationScript = (name: string, parts: readonly string[], flags = {}) =>
  shardScript(name, 'ordered', () => withOrderedJobs(parts.join(''), setBack + arrivals), flags)

/** The migration scripts: they take jobs of ordered queues from one shard into transit, and put them into another. */
const leaveScript = migrationScript('transfer-leave', [guard, leaveLua], { whenFull: true })
const putScript = migrationScript('transfer-put', [guard, putLua])
const turnScript = migrationScript('transfer-turn', [turnLua], { whenFull: true })
