/** The prelude of every script: the keys of a shard, the server's clock, and the form of numbers, jobs and claims. */

import type { QueueKind } from '../../contract/queue-settings.js'
import { rememberedForMs } from '../../rules/bounds.js'
import { toleratedStepUs } from '../../rules/sequence.js'
import { leadLapseMs } from '../../rules/wake-lead.js'
import { clusterScript, type ScriptFlags, type ShardScript } from '../client/redis-script.js'
import { keyNames, luaName } from '../redis-keys.js'
import { joinFunctions } from './joins-lua.js'
import { lanes } from './lanes-lua.js'
import { withLazy } from './lazy-functions-lua.js'
import { flagsAt } from './record-lua.js'
import { stepFunctions } from './steps-lua.js'

/** The most jobs or claims that one script counts one by one. More would keep other calls waiting. */
export const mostCounted = 10_000

/**
 * KEYS are those of `keyNames`, in that order. A script over several shards, all of one kind, gets the keys of each,
 * one shard after the other, and calls `at(n)` to turn to the nth, counted from 0. Scripts read and check before they
 * write; nothing can fail after the first write. Never compare texts of bytes with `<`, which in Lua follows the
 * server's locale.
 */
const prelude = (isCluster: boolean, kind: QueueKind): string => {
  const names = keyNames(kind).map(luaName).join(', ')
  return `
local call, pack, unpackn, sub, byte, char, find = redis.call, struct.pack, struct.unpack, string.sub, string.byte, string.char, string.find
local ${names}
local SIZE, BASE = ${keyNames(kind).length}, 0
local function at(n)
  BASE = n * SIZE
  ${names} = unpack(KEYS, n * SIZE + 1, n * SIZE + SIZE)
end
at(0)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local PUBLISH = '${isCluster ? 'SPUBLISH' : 'PUBLISH'}'
-- Wakes one waiter. A marker that is already there has not been heard yet.
local function ring()
  call('ZADD', WAKE, 0, '0')
  ${isCluster ? `call('SPUBLISH', WAKE, call('PUBSUB', 'SHARDNUMSUB', WAKE)[2])` : ''}
end
local function tell_ends() call(PUBLISH, ENDS, '') end
-- Calls a command with many arguments, in pieces that fit on Lua's stack.
local function many(command, key, args)
  for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end
`
}

/**
 * The script of that name for shards of one kind: the prelude, then `lua`, which is put together when the script is first
 * asked for: most processes use a few of them.
 */
export function shardScript(name: string, kind: QueueKind, lua: () => string, flags?: ScriptFlags): ShardScript {
  return clusterScript(name, (isCluster) => prelude(isCluster, kind) + lua(), flags)
}

/** Functions that nearly every call needs. */
const basics = String.raw`
local LIFO = false
-- What this script has to tell joins, once it has something.
local REPORTS = false
local ALONE, CANCEL, HASHISTORY, REMEMBERED, BEATEN, OWNLEASE, HASGROUP = 1, 2, 4, 8, 16, 32, 64
local function has(flags, bit) return flags % (bit * 2) >= bit end
-- A claim is its head (fence 7, instant 6, flags 1, length of the worker 1, worker), its element as in the ready list, and the
-- place of a member that has only one and whose id is not remembered. The head is the same for most jobs of a call. A value of this length also makes Redis keep the hash as a table,
-- which is fast to search.
local function claim_head(fence, claimed, flags, worker)
  return pack('>I7I6', fence, claimed) .. char(64 + flags, #worker) .. worker
end
local function with_flags(claim, flags) return sub(claim, 1, 13) .. char(64 + flags) .. sub(claim, 15) end
-- Records that count claims no longer have the lease that they shared.
local function leave_lease(fence_bytes, count)
  if call('HINCRBY', BATCHES, 'n' .. fence_bytes, -count) > 0 then return end
  call('HDEL', BATCHES, 'n' .. fence_bytes, 'i' .. fence_bytes)
  call('ZREM', LEASES, '\0' .. fence_bytes)
end
-- Not lazy, because nearly every script calls it.
local function ring_unpaused() if not STOPPED then ring() end end
-- Whether a lead is expected to ask at the time that it named.
local function is_led(lead_at) return lead_at and now <= lead_at + ${leadLapseMs} end
local function next_stamp(last)
  local now_us = now * 1000
  if now_us > last then return now_us end
  if last - now_us <= ${toleratedStepUs} then return last + 1 end
  return now_us
end
`

const states = String.raw`
local function inverted(bytes)
  local b = { byte(bytes, 1, 7) }
  for i = 1, 7 do b[i] = 255 - b[i] end
  return char(unpack(b))
end
-- The 7 bytes of a stamp in a place. If last in is first out, they are inverted, so that the last comes first.
local function stamp_bytes(stamp)
  local bytes = pack('>I7', stamp)
  return LIFO and inverted(bytes) or bytes
end
-- The parts that the client wrote: task, rememberMs, priority, group ('' if there is none), the places of a join or
-- member, and whether its deaths are to be reported.
-- from: where they begin, for a body that is no record yet.
local function written(rec, from)
  from = from or (${flagsAt('rec')})
  local flags = byte(rec, from)
  local function field()
    local stop = find(rec, '\0', from + 1, true)
    local text = sub(rec, from + 1, stop - 1)
    from = stop
    return text
  end
  local task = field()
  local remember, priority, group, places, reports = 0, 0, '', nil, false
  if flags % 2 == 1 then
    local text = field()
    remember = tonumber(text)
    if not remember then
      local mark
      remember, mark, places = string.match(text, '^(%d+)(!?) ?(.*)$')
      remember, reports = tonumber(remember), mark == '!'
      if places == '' then places = nil end
    end
  end
  if flags % 4 >= 2 then priority = tonumber(field()) end
  if flags % 8 >= 4 then field() end
  if flags % 16 >= 8 then group = field() end
  return task, remember, priority, group, places, reports
end
-- When the last wait of a job was over, in ms; nil: it never waited for others, or for a signal.
local function waited_in(past) return byte(past, 20) == 43 and unpackn('>I6', past, 21) or nil end
local function read_past(past)
  local updated, stamp, attempt, crashes = unpackn('>I6I7I3I2', past, 2)
  local waited = waited_in(past)
  local from = waited and 27 or 20
  local reason = #past >= from and sub(past, from + 1) or nil
  local state = string.lower(sub(past, 1, 1))
  return { state = state, steps = state ~= sub(past, 1, 1), updated = updated, stamp = stamp, attempt = attempt, crashes = crashes, waited = waited, reason = reason }
end
-- A capital letter says that the job has steps or signals.
local function write_past(j)
  return (j.steps and string.upper(j.state) or j.state) .. pack('>I6I7I3I2', j.updated, j.stamp, j.attempt, j.crashes)
    .. (j.waited and '+' .. pack('>I6', j.waited) or '') .. (j.reason and '=' .. j.reason or '')
end
local function read_claim(claim)
  local fence, claimed = unpackn('>I7I6', claim)
  local stop = 15 + byte(claim, 15)
  return { fence = fence, claimed = claimed, flags = byte(claim, 14) - 64, worker = sub(claim, 16, stop), seq = sub(claim, stop + 8, stop + 13) }
end
-- States: l in the ready list, r ready, x ready and suspect, s scheduled, w waiting for members, a waiting for a signal,
-- c completed, d dead. A job with a claim runs, whatever its state was before.
local function job_of(id, rec, past, claim)
  local task, remember, priority, group, places, reports = written(rec)
  local stamp = unpackn('>I7', rec, 2)
  local place = string.lower(sub(rec, 1, 1))
  local created = sub(rec, 1, 1) ~= place and unpackn('>I6', rec, 15) or math.floor(stamp / 1000)
  local j = past and read_past(past) or { state = place, steps = false, updated = created, stamp = stamp, attempt = 1, crashes = 0 }
  j.id, j.seq, j.task, j.remember, j.priority, j.group, j.places, j.created = id, sub(rec, 9, 14), task, remember, priority, group, places, created
  j.reports = reports
  j.suspect = j.state == 'x'
  j.fresh = not past
  if claim then
    j.claim = read_claim(claim)
    j.claim.text = claim
  end
  return j
end
local function job(id)
  local rec = call('HGET', JOBS, id)
  if not rec then return nil end
  return job_of(id, rec, call('HGET', HISTORY, id), call('HGET', CLAIMS, id))
end
local function due_at(j) return math.floor(j.stamp / 1000) end
local function is_waiting(j) return not j.claim and j.state ~= 'c' and j.state ~= 'd' end
local function place(j)
  return pack('>I2', 32767 - j.priority) .. stamp_bytes(j.stamp) .. j.seq .. j.id
end
local function end_place(j) return pack('>I6', j.updated) .. j.seq .. j.id end
-- Failed jobs that wait for a signal are behind all others, because they count as no retries.
local function retry_place(j)
  return pack('>I3', (j.state == 'a' and not j.claim) and 2 ^ 24 - 1 or j.attempt) .. j.seq .. j.id
end
`

const moves = `
-- Removes the job from the set of its state. The caller, which puts the job elsewhere, must refresh its lane.
local function leave(j)
  if j.claim then
    if has(j.claim.flags, OWNLEASE) then call('ZREM', LEASES, j.id) else leave_lease(sub(j.claim.text, 1, 7), 1) end
    call('HDEL', CLAIMS, j.id)
    if j.group ~= '' and call('HINCRBY', RUNNING_BY_GROUP, j.group, -1) <= 0 then call('HDEL', RUNNING_BY_GROUP, j.group) end
  elseif j.state == 'l' then
    local element = pack('>I7', j.stamp) .. j.seq .. j.id
    -- Nothing is removed from the middle of a list: the element stays there as stale, and is passed over.
    if call('LINDEX', READY_LIST, 0) == element then call('LPOP', READY_LIST) else call('HINCRBY', META, 'stale', 1) end
  elseif j.state == 'r' then
    if j.group == '' then call('ZREM', READY, place(j)) else lanes.leave(j.group, { place(j) }) end
  elseif j.state == 'x' then call('ZREM', SUSPECTS, place(j))
  elseif j.state == 's' then call('ZREM', SCHEDULED, pack('>I7', j.stamp) .. j.seq .. j.id)
  elseif j.state == 'd' then call('ZREM', DEAD, end_place(j))
  elseif j.state == 'w' then call('ZREM', JOINING, pack('>I7', j.stamp) .. j.seq .. j.id)
  elseif j.state == 'a' then
    call('ZREM', JOINING, pack('>I7', j.stamp) .. j.seq .. j.id)
    call('HDEL', STEPS, j.id .. '\\0w')
    call('ZREM', SIGNAL_WAITS, j.seq .. j.id)
  else
    call('ZREM', COMPLETED, end_place(j))
    call('ZREM', EXPIRY, j.seq .. j.id)
  end
end
-- Writes the new state of the job and adds it to the set of that state.
local function enter(j, state)
  local kept = state == 'c' or state == 'd'
  if kept then
    if j.claim then call('HSET', NOTES, 'w' .. j.id, j.claim.worker) end
    if j.attempt > 1 then call('ZREM', RETRIES, retry_place(j)) end
  else
    call('HDEL', NOTES, 'b' .. j.id, 'w' .. j.id)
  end
  j.claim, j.state, j.updated, j.suspect = nil, state, now, state == 'x'
  call('HSET', HISTORY, j.id, write_past(j))
  if state == 'r' then
    if j.group == '' then call('ZADD', READY, 0, place(j)) else lanes.enter(j.group, place(j)) end
  elseif state == 'x' then call('ZADD', SUSPECTS, 0, place(j))
  elseif state == 's' then call('ZADD', SCHEDULED, 0, pack('>I7', j.stamp) .. j.seq .. j.id)
  elseif state == 'w' or state == 'a' then call('ZADD', JOINING, 0, pack('>I7', j.stamp) .. j.seq .. j.id)
  else call('ZADD', state == 'd' and DEAD or COMPLETED, 0, end_place(j)) end
  if j.group ~= '' then lanes.refresh(j.group) end
end
local function stamped()
  local stamp = next_stamp(tonumber(call('HGET', META, 'stamp')))
  call('HSET', META, 'stamp', stamp)
  return stamp
end
-- Whether the present state of this id is a reason to ring.
local function is_calling_id(id)
  local j = job(id)
  return j and is_calling(j)
end
`

/** The beginning of every script that reads or changes jobs. */
export const beginning = lanes + basics

/** Jobs and claims as scripts hold them, and the sets of their states. */
export const jobStates = states + moves

/** `inHand`: Lua for the payloads that its claim took. `waiting`: for the waiting ones. `past`: for what its past names. */
export const passOver = (
  inHand = '',
  waiting = '',
  past = '',
) => `-- Removes all that a half-executed script left of a job without a record, so that no claim fails on it. Counts it.
-- claim: the claim of a running job.
local function pass_over(id, seq, claim)
  if claim then
${inHand}    if has(byte(claim, 14) - 64, OWNLEASE) then call('ZREM', LEASES, id) else leave_lease(sub(claim, 1, 7), 1) end
    call('HDEL', CLAIMS, id)
${waiting}  end
  local past = call('HGET', HISTORY, id)
  if past and #past >= 19 then
    local was = read_past(past)
    was.seq, was.id, was.claim = seq, id, claim
    call('ZREM', RETRIES, retry_place(was))
  end
${past}  call('HDEL', HISTORY, id)
  call('HDEL', NOTES, 'e' .. id, 'b' .. id, 'r' .. id, 'w' .. id, 'k' .. id, 'l' .. id, 'f' .. id, 'p' .. id, 'x' .. id, 'd' .. id)
  call('HINCRBY', META, 'lost', 1)
end
`

/** How a job goes back into its queue. `handBack`: Lua for what its claim took. */
export const goingBack = (handBack = '') => `local function put_back(j, suspect)
${handBack}  leave(j)
  enter(j, suspect and 'x' or 'r')
end
-- Makes the job due in delay_ms and no longer suspect. Without a delay it is ready, behind the jobs that already are.
local function schedule(j, delay_ms)
${handBack}  leave(j)
  if delay_ms == 0 then
    j.stamp = stamped()
    enter(j, 'r')
  else
    j.stamp = (now + delay_ms) * 1000
    enter(j, 's')
  end
end
`

/** The changes of a plain job. */
const plainJobs = String.raw`
-- The wait of a job is over: its lag counts from now, whatever its place. The caller puts it there.
local function end_wait(j)
  j.waited = now
  call('HSET', META, 'waited', 1)
end
-- A job that no longer waits, and does not run, does not expire.
local function stay(j)
  if is_waiting(j) then call('ZREM', EXPIRING, j.seq .. j.id)
  elseif j.claim and has(j.claim.flags, BEATEN) then call('HDEL', NOTES, 'x' .. j.id) end
end
-- A running job that is about to wait again may expire.
local function expire_again(j)
  local expires_at = j.claim and has(j.claim.flags, BEATEN) and call('HGET', NOTES, 'x' .. j.id)
  if not expires_at then return end
  call('ZADD', EXPIRING, expires_at, j.seq .. j.id)
  call('HDEL', NOTES, 'x' .. j.id)
  local first_at = tonumber(call('HGET', META, 'expiringAt'))
  if not first_at or tonumber(expires_at) < first_at then call('HSET', META, 'expiringAt', expires_at) end
end
local function drop_notes(id)
  call('HDEL', NOTES, 'e' .. id, 'b' .. id, 'r' .. id, 'w' .. id, 'k' .. id, 'l' .. id, 'f' .. id, 'p' .. id)
end
-- Called before a job changes or goes: if it is dead, its death gets its record. Until then there is only the one: a server
-- that is full would have no room for another.
local function complete_death(j)
  local n = j.reports and j.state == 'd' and call('HGET', NOTES, 'd' .. j.id)
  if not n then return end
  local head = j.task .. '\0' .. n
  local death = call('ZRANGE', DEATHS, '[' .. head, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  if death and sub(death, 1, #head) == head then
    call('ZREM', DEATHS, death)
    call('ZADD', DEATHS, 0, death .. call('HGET', JOBS, j.id))
  end
  call('HDEL', NOTES, 'd' .. j.id)
end
-- remains: the record of a job whose notes stay.
local function drop(j, remains)
  complete_death(j)
  if j.places then late.joins().gone(j) end
  if j.steps then late.entries().drop(j) end
  stay(j)
  leave(j)
  call('HDEL', JOBS, j.id)
  if j.group ~= '' then lanes.refresh(j.group) end
  if remains then
    call('HSET', NOTES, 'p' .. j.id, remains)
    if j.claim then call('HSET', NOTES, 'w' .. j.id, j.claim.worker) end
  end
  if j.fresh and not (j.claim and has(j.claim.flags, BEATEN)) then return end
  call('HDEL', HISTORY, j.id)
  if not remains then drop_notes(j.id) end
  if j.attempt > 1 then call('ZREM', RETRIES, retry_place(j)) end
end
-- The first bit of the sequence number, here and in ENDED_UNTIL, says that notes remain.
local function remember(j, state, finished, for_ms, remains)
  local until_at, seq = finished + for_ms, j.seq
  if remains then seq = char(byte(seq) + 128) .. sub(seq, 2) end
  call('HSET', ENDED, j.id, seq .. state .. pack('>I2I3I2I6I6I6I6', 32767 - j.priority, j.attempt, j.crashes, j.created, due_at(j), finished, until_at)
    .. j.task .. '\0' .. (j.reason and '=' .. j.reason or ''))
  call('ZADD', ENDED_UNTIL, until_at, seq .. j.id)
end
${passOver('', '', '  if past and #past >= 19 and read_past(past).steps then late.entries().drop({ id = id }) end\n')}local function forget(id, memory)
  call('HDEL', ENDED, id)
  call('ZREM', ENDED_UNTIL, sub(memory, 1, 6) .. id)
  if byte(memory) > 127 then drop_notes(id) end
end
-- Whether attempts have left an error, a checkpoint or a log. A fresh job that waits has none.
local function has_notes(j)
  return not j.fresh and call('HEXISTS', NOTES, 'e' .. j.id) + call('HEXISTS', NOTES, 'k' .. j.id) + call('HEXISTS', NOTES, 'l' .. j.id) > 0
end
-- Removes the job. Its id is remembered if the user gave it or the job was cancelled; with what remains of the job if it
-- was cancelled after it had begun. The translation of leavesRemains. result: what it leaves to its joins.
local function finish(j, state, result)
  if j.places then late.joins().report(j, state, result) end
  local for_ms, remains = j.remember, nil
  if state == 'x' then
    if j.claim or j.attempt > 1 or j.crashes > 0 or j.suspect or has_notes(j) then remains = call('HGET', JOBS, j.id) end
    if for_ms == 0 then for_ms = remains and ${rememberedForMs('cancelled', 0, true)} or ${rememberedForMs('cancelled', 0)} end
  end
  drop(j, remains)
  if for_ms > 0 then remember(j, state, now, for_ms, remains) end
end
-- The form of a death is in redis-deaths.ts.
local function keep_death(j, error)
  local n, reason, kept = pack('>I7', call('HINCRBY', META, 'deaths', 1)), j.reason, error or call('HGET', NOTES, 'e' .. j.id)
  local head = j.task .. '\0' .. n .. pack('>I6I3I2I4I4', now, j.attempt, j.crashes, reason and #reason + 1 or 0, kept and #kept + 1 or 0)
  call('ZADD', DEATHS, 0, head .. j.id .. '\0' .. (reason or '') .. (kept or ''))
  call('HSET', NOTES, 'd' .. j.id, n)
end
${goingBack('  expire_again(j)\n')}local function bury(j, reason, error)
  stay(j)
  leave(j)
  j.reason = reason
  if error then call('HSET', NOTES, 'e' .. j.id, error) end
  if j.reports then keep_death(j, error) end
  if j.places then late.joins().report(j, 'd', error or call('HGET', NOTES, 'e' .. j.id)) end
  enter(j, 'd')
end
-- After the last failure, or one crash too many.
local function exhaust(j, reason) bury(j, reason) end
-- Counts a failure of a running job. The error before it is forgotten.
local function fail_claim(j, delay_ms, last, error, reason)
  call('HINCRBY', META, 'failed', 1)
  if j.attempt > 1 then call('ZREM', RETRIES, retry_place(j)) end
  j.attempt = j.attempt + 1
  call('ZADD', RETRIES, 0, retry_place(j))
  if error then call('HSET', NOTES, 'e' .. j.id, error) else call('HDEL', NOTES, 'e' .. j.id) end
  if last then bury(j, reason, error)
  elseif has(j.claim.flags, CANCEL) then finish(j, 'x')
  else schedule(j, delay_ms) end
end
-- Whether the job is kept beyond its time and not yet trimmed.
local function is_hidden(j)
  if j.claim then return false end
  if j.state == 'c' then
    local expires = call('ZSCORE', EXPIRY, j.seq .. j.id)
    return expires and tonumber(expires) <= now
  end
  if j.state == 'd' then
    local age = call('HGET', META, 'deadAge')
    return age and j.updated + tonumber(age) <= now
  end
  return false
end
${joinFunctions}${stepFunctions}`

const plainForm = `
local function know_form()
  local form = call('HMGET', META, 'order', 'paused')
  LIFO, STOPPED = form[1] == 'lifo', form[2] == '1'
end
`

/** Begins a script of plain queues. Functions that change jobs, and `others`, are made when one is first called. */
export const withJobs = (script: string, others = '') =>
  beginning + plainForm + withLazy(jobStates + plainJobs + others, script, 'plain')

/** The order of two otherwise equal plain jobs. */
export const bySequence = `
local function tied(a, b) return unpackn('>I6', a.seq) < unpackn('>I6', b.seq) end
`

/**
 * The order of bytes in Lua, whose `<` compares texts by the locale of the server. The translation of
 * `rules/byte-order`.
 */
export const byteOrder = `-- Whether one text comes before the other by its bytes.
local function comes_before(a, b)
  for i = 1, math.min(#a, #b) do
    local one, other = byte(a, i), byte(b, i)
    if one ~= other then return one < other end
  end
  return #a < #b
end
`
