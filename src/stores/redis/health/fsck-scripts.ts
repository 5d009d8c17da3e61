/**
 * The fsck scripts: they check whether the keys of a shard are consistent, a few elements at a time, and write nothing.
 * Each element is judged in the step that reads it, together with all other data of its job: a change during the check
 * is no breach.
 */

import type { QueueKind } from '../../contract/queue-settings.js'
import { callMemoryCount } from '../../rules/bounds.js'
import { redisScript, refuse } from '../client/redis-script.js'
import { mostCounted } from '../lua/prelude.js'
import { standing } from '../lua/ready-lua.js'
import { type KindText, scriptPair } from '../lua/script-kinds.js'
import { broughtOnMs } from '../lua/transit-lua.js'
import { keyNames } from '../redis-keys.js'

/** To be inserted before the sums: counts that must be equal. */
const orderedSums = `
local ORDERED = true
if call('ZCARD', PAYLOADS) ~= call('HLEN', BODIES) then say('uneven', 'payloads', '') end
if call('ZCARD', DEAD_PAYLOADS) ~= call('HLEN', DEAD_BODIES) then say('uneven', 'dead-payloads', '') end
local many = count_many()
if many and many ~= tonumber(call('HGET', META, 'many') or 0) then say('uncounted', 'payloads', '') end
if call('ZCARD', DEAD) ~= call('HLEN', MORGUE) then say('uneven', 'dead', '') end
`

/** To be inserted between the checks for all queues and their steps. */
const orderedChecks = String.raw`
sets.payloads, sets['dead-payloads'] = true, true
local is_claimed = function(id) return call('HEXISTS', CLAIMS, id) == 1 end
local function id_in(text) return string.match(text, '^%Z+') or '' end
local function check_listed(bodies, owner)
  return function(member, score)
    local id = id_in(member)
    if #member ~= #id + 41 then return say('unreadable', name, id) end
    if score ~= '0' then say('scored', name, id) end
    local digest = sub(member, #id + 20)
    local value = call('HGET', bodies, id .. '\0' .. digest)
    if not value then return say('bodiless', name, id) end
    if member_of(id, digest, value) ~= member then say('misplaced', name, id) end
    if call('HEXISTS', owner, id) == 0 then say('jobless', name, id)
    elseif owner == JOBS and is_claimed(id) and call('HEXISTS', SUCCESSORS, id) == 0 then say('jobless', name, id) end
  end
end
local function check_body(set, other)
  return function(field, value)
    local id = id_in(field)
    if #field ~= #id + 23 or #value < 15 then return say('unreadable', name, id) end
    if not call('ZSCORE', set, member_of(id, sub(field, #id + 2), value)) then say('unlisted', other, id) end
  end
end
for name, check in pairs({
  payloads = check_listed(BODIES, JOBS),
  ['dead-payloads'] = check_listed(DEAD_BODIES, MORGUE),
  bodies = check_body(PAYLOADS, 'payloads'),
  ['dead-bodies'] = check_body(DEAD_PAYLOADS, 'dead-payloads'),
  transit = function(field, value)
    if field == 'at' and now - (tonumber(value) or 0) >= ${broughtOnMs} then say('stranded', name, '') end
  end,
  ['claimed-payloads'] = function(id, packed)
    if #packed < 30 then say('unreadable', name, id) elseif not is_claimed(id) then say('jobless', name, id) end
  end,
  successors = function(id)
    if not is_claimed(id) or count_in(PAYLOADS, id) == 0 then say('jobless', name, id) end
  end,
  morgue = function(id, header)
    if #header < 30 or not string.match(header, '^%Z*%z%Z*%z', 25) then return say('unreadable', name, id) end
    if not call('ZSCORE', DEAD, end_place(read_header(id, header))) then say('placeless', 'dead', id) end
    if count_in(DEAD_PAYLOADS, id) == 0 then say('payloadless', 'dead-payloads', id) end
  end,
  dead = function(member, score)
    local id = sub(member, 13)
    if score ~= '0' then say('scored', name, id) end
    local header = call('HGET', MORGUE, id)
    if not header then say('jobless', name, id)
    elseif #header >= 30 and end_place(read_header(id, header)) ~= member then say('misplaced', name, id) end
  end,
  jobs = function(id)
    check_job(id)
    local rec = call('HGET', JOBS, id)
    if #rec >= 16 and own_at(rec) then
      if call('HEXISTS', CLAIMED_PAYLOADS, id) == 1 then say('misplaced', 'claimed-payloads', id) end
      if not is_claimed(id) and count_in(PAYLOADS, id) > 0 then say('misplaced', 'payloads', id) end
    elseif is_claimed(id) then
      if call('HEXISTS', CLAIMED_PAYLOADS, id) == 0 then say('payloadless', 'claimed-payloads', id) end
    elseif count_in(PAYLOADS, id) == 0 then say('payloadless', 'payloads', id) end
  end,
}) do own_checks[name] = check end
sets.dead = true
`

/** To be inserted before the sums: counts that must be equal. */
const laneSums = `
if call('ZCARD', LANES) ~= call('ZCARD', GROUPED) then say('uneven', 'lanes', '') end
local claimed = call('HLEN', CLAIMS)
-- More claims would take too long to check.
if claimed <= ${mostCounted} then
  local busy, counted, claims = 0, call('HGETALL', RUNNING_BY_GROUP), call('HGETALL', CLAIMS)
  for i = 2, #counted, 2 do busy = busy + (tonumber(counted[i]) or 0) end
  for i = 2, #claims, 2 do
    if #claims[i] > 14 and has(byte(claims[i], 14) - 64, HASGROUP) then busy = busy - 1 end
  end
  if busy ~= 0 then say('uneven', 'running-by-group', '') end
end
`

/** To be inserted between the checks for all queues and their steps. */
const laneChecks = String.raw`
local function check_turn(group)
  if group ~= '' and #lanes.first_of(group, 1) == 0 then say('jobless', name, group) end
  if call('ZSCORE', TURNS, group) and call('ZSCORE', SHUT, group) then say('misplaced', name, group) end
end
own_checks.turns, own_checks.shut = check_turn, check_turn
own_checks.holds = function() end
own_checks['running-by-group'] = function(group, count)
  if group == '' or not (tonumber(count) and tonumber(count) > 0) then say('unreadable', name, group) end
end
own_checks.lanes = function(member, score)
  local stop = find(member, '\0', 1, true)
  if not stop or #member < stop + 16 then return say('unreadable', name, member) end
  local group, id = sub(member, 1, stop - 1), sub(member, stop + 16)
  if score ~= '0' then say('scored', name, id) end
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and (j.claim or j.state ~= 'r' or member ~= j.group .. '\0' .. place(j)) then say('misplaced', name, id) end
  -- A full group has no turn until one of its claims ends, and a paused one none until it is resumed.
  if not lanes.has_turn(group) and call('HEXISTS', RUNNING_BY_GROUP, group) == 0 and not call('ZSCORE', HOLDS, '\0' .. group) then say('turnless', name, group) end
end
own_checks.grouped = function(member, score)
  local id = sub(member, 16)
  if score ~= '0' then say('scored', name, id) end
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and (j.claim or j.state ~= 'r' or j.group == '' or member ~= place(j)) then say('misplaced', name, id) end
end
for _, set in ipairs({ 'turns', 'shut', 'holds', 'lanes', 'grouped' }) do sets[set] = true end
`

/** To be inserted between the checks for all queues and their steps. */
const joinChecks = `
local function fragment_there(serial) return call('HEXISTS', JOINS, 'h' .. serial) == 1 end
local function is_join(id)
  local rec = call('HGET', JOBS, id)
  return rec and find('wW', sub(rec, 1, 1), 1, true)
end
own_checks.joins = function(field, value)
  local kind, rest = sub(field, 1, 1), sub(field, 2)
  if kind == 'n' then
    if not fragment_there(value) then say('jobless', name, rest) end
  elseif kind == 'h' then
    if #value < 72 or not string.match(value, '%Z+%z%Z+%z%Z*%z%Z+$') then say('unreadable', name, rest) end
  elseif kind == 'b' then
    if not fragment_there(string.match(rest, '^%d+') or '') then say('jobless', name, rest) end
  elseif kind == 'j' then
    if not pcall(cjson.decode, value) then say('unreadable', name, rest) elseif not is_join(rest) then say('jobless', name, rest) end
  elseif kind == 'x' then
    if not call('ZSCORE', JOIN_TASKS, field) then say('unlisted', 'join-tasks', rest) end
  elseif field ~= '#' then say('foreign', name, field) end
end
own_checks.joined = function(field)
  if not fragment_there(string.match(field, '^%d+') or '') then say('jobless', name, field) end
end
own_checks['join-tasks'] = function(member)
  if not find('fztxwcr', sub(member, 1, 1), 1, true) then say('foreign', name, member) end
end
sets['join-tasks'] = true
`

/** To be inserted between the checks for all queues and their steps. */
const stepChecks = String.raw`
-- Of a job that waits for a signal: until when, or nil if that has no bound.
local function wait_until(id)
  local wait = call('HGET', STEPS, id .. '\0w')
  local until_at = wait and #wait > 6 and unpackn('>I6', wait) or 0
  return until_at > 0 and until_at or nil
end
local function awaits(j) return not j.claim and j.state == 'a' end
own_checks.steps = function(field, value)
  local id = string.match(field, '^%Z+') or ''
  local kind, rest, j = sub(field, #id + 2, #id + 2), sub(field, #id + 3), look(id)
  if j == nil then return say('jobless', name, id) elseif not j then return end
  if kind == 'w' then
    if #value < 7 then say('unreadable', name, id)
    elseif not awaits(j) then say('misplaced', name, id)
    elseif tonumber(call('ZSCORE', SIGNAL_WAITS, j.seq .. id) or nil) ~= wait_until(id) then say('untimed', 'signal-waits', id) end
  elseif not j.steps then say('unmarked', name, id)
  elseif kind == '' then
    if #value ~= 14 then say('unreadable', name, id) end
  elseif kind == '#' then
    if call('HEXISTS', STEPS, id .. '\0' .. value) == 0 then say('uneven', name, id) end
  elseif kind == 'n' or kind == 'g' then
    if #value < 17 then say('unreadable', name, id)
    elseif call('HGET', STEPS, id .. '\0#' .. string.format('%d', unpackn('>I4', value, 2))) ~= kind .. rest then say('uneven', name, id) end
  else say('foreign', name, field) end
end
own_checks['signal-waits'] = function(member, score)
  local id = sub(member, 7)
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and not (awaits(j) and member == j.seq .. id and tonumber(score) == wait_until(id)) then say('misplaced', name, id) end
end
sets['signal-waits'] = true
own_checks.deaths = function(death, score)
  local task_end = find(death, '\0', 1, true)
  local function unreadable() say('unreadable', name, sub(death, 1, (task_end or 1) - 1)) end
  local id_end = task_end and #death >= task_end + 28 and score == '0' and find(death, '\0', task_end + 27, true)
  if not id_end then return unreadable() end
  local number, reason, kept = sub(death, task_end + 1, task_end + 7), unpackn('>I4I4', death, task_end + 19)
  -- Without a record of its own it is the death of a job in the morgue.
  local id = sub(death, task_end + 27, id_end - 1)
  if #death <= id_end + math.max(0, reason - 1) + math.max(0, kept - 1) and call('HGET', NOTES, 'd' .. id) ~= number then unreadable() end
end
sets.deaths = true
`

/** A breach is reported as word, key, id. Jobs are read with care, because here their bytes may be anything. */
const breaches = String.raw`
local found = {}
local function say(word, key, id)
  for _, part in ipairs({ word, key, id }) do found[#found + 1] = part end
end
local function is_whole(rec)
  local from = #rec > 16 and (find('lrsw', sub(rec, 1, 1), 1, true) and 15 or (find('LRSW', sub(rec, 1, 1), 1, true) and 21))
  local flags = from and byte(rec, from)
  if not flags or flags < 64 or flags > 127 then return false end
  local function field()
    local stop = find(rec, '\0', from + 1, true)
    if not stop then return '' end
    local text = sub(rec, from + 1, stop - 1)
    from = stop
    return text
  end
  if field() == '' then return false end
  if has(flags, 1) and not string.match(field(), '^%d+!?[w%d. ]*$') then return false end
  if has(flags, 2) and not string.match(field(), '^%-?%d+$') then return false end
  for _, bit in ipairs({ 4, 8 }) do
    if has(flags, bit) and not find(rec, '\0', from + 1, true) then return false end
    if has(flags, bit) then field() end
  end
  local length = has(flags, 16) and string.match(field(), '^b?(%d+)$')
  return not has(flags, 16) or (length ~= nil and from + tonumber(length) <= #rec)
end
local function is_past(past)
  local behind = sub(past, 20, 20) == '+' and 26 or 19
  return #past >= behind and find('lrxswacd', string.lower(sub(past, 1, 1)), 1, true) and (#past == behind or sub(past, behind + 1, behind + 1) == '=')
end
-- The job; nil if there is none; false and the key if it is unreadable.
local function look(id)
  local rec, past, claim = call('HGET', JOBS, id), call('HGET', HISTORY, id), call('HGET', CLAIMS, id)
  if not rec then return nil end
  if not is_whole(rec) then return false, 'jobs' end
  if past and not is_past(past) then return false, 'history' end
  if claim and (#claim < 15 or #claim < 28 + byte(claim, 15) or read_claim(claim).seq ~= sub(rec, 9, 14)) then return false, 'claims' end
  return job_of(id, rec, past, claim)
end
local function has_failed(j) return j.attempt > 1 and (j.claim or is_waiting(j)) end
local function since_place(j) return pack('>I7', j.stamp) .. j.seq .. j.id end
-- Where the job must be: the set and its member there; for the ready list only the element.
local function standing(j)
  if j.claim then return 'leases', has(j.claim.flags, OWNLEASE) and j.id or '\0' .. sub(j.claim.text, 1, 7) end
  if j.state == 'l' then return 'ready-list', since_place(j) end
  if j.state == 'r' and j.group ~= '' then return 'lanes', j.group .. '\0' .. place(j) end
  if j.state == 'r' then return 'ready', place(j) end
  if j.state == 'x' then return 'suspects', place(j) end
  if j.state == 's' then return 'scheduled', since_place(j) end
  if j.state == 'w' or j.state == 'a' then return 'joining', since_place(j) end
  return j.state == 'd' and 'dead' or 'completed', end_place(j)
end
`

/** Lua: the keys of a shard by name. */
const keysByName = (kind: QueueKind) => `local keys = {}
for i, name in ipairs({ ${keyNames(kind)
  .map((name) => `'${name}'`)
  .join(', ')} }) do keys[name] = KEYS[i] end
`

/**
 * KEYS: those of one shard.
 * ARGV: key to walk, cursor ('0' at first), about how many elements, search the ready list for each job (1 or 0).
 * Returns { next cursor or '0', bytes read, breaches }. The ready list is walked from its end: elements only
 * move away from it, so that none is missed.
 *
 * Refuses `unknown`.
 */
const walk = (kind: QueueKind) => String.raw`
if call('EXISTS', META) == 0 then ${refuse('unknown')} end
know_form()
local name, cursor, count, deep = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
${keysByName(kind)}local key = keys[name]
local limits = call('HMGET', META, 'seq', 'fence')
local last_seq, last_fence = tonumber(limits[1]) or 0, tonumber(limits[2]) or 0
local bytes = 0

-- Sequence numbers grow along the ready list by one or more: the difference to an element limits the distance from it.
local function seq_at(index) return unpackn('>I6', call('LINDEX', READY_LIST, index), 8) end
local function in_list(j)
  local seq, low, high = unpackn('>I6', j.seq), 0, call('LLEN', READY_LIST) - 1
  if high < 0 then return false end
  local from, to, halves = seq_at(0), seq_at(-1), false
  while low <= high and from <= seq and seq <= to do
    local share = halves and 0.5 or (seq - from) / math.max(1, to - from)
    local guess = low + math.floor(share * (high - low))
    local other = seq_at(guess)
    if other == seq then return call('LINDEX', READY_LIST, guess) == since_place(j) end
    if other < seq then low, high, from = guess + 1, math.min(high, guess + seq - other), other + 1
    else low, high, to = math.max(low, guess - (other - seq)), guess - 1, other - 1 end
    halves = not halves
  end
  return false
end
local function is_standing(j)
  local set, member = standing(j)
  -- In the ready list, a job with a past would be passed over.
  if set == 'ready-list' then return j.fresh and (not deep or in_list(j)) end
  return call('ZSCORE', keys[set], member)
end
local function has_right_flags(j)
  local flags, notes = j.claim.flags, call('HMGET', NOTES, 'b' .. j.id, 'k' .. j.id, 'l' .. j.id, 'f' .. j.id, 'x' .. j.id)
  local has_said = notes[1] or notes[5] or (j.fresh and (notes[2] or notes[3] or notes[4]))
  return has(flags, HASHISTORY) == not j.fresh and has(flags, HASGROUP) == (j.group ~= '') and has(flags, REMEMBERED) == (j.remember > 0 or j.places ~= nil or j.reports) and (has(flags, BEATEN) or not has_said)
end
local function check_job(id)
  local j, broken = look(id)
  if not j then return say('unreadable', broken, id) end
  if not is_standing(j) then say('placeless', (standing(j)), id) end
  if not j.claim and j.state == 'r' and j.group ~= '' and not call('ZSCORE', GROUPED, place(j)) then say('placeless', 'grouped', id) end
  if j.claim and j.group ~= '' and call('HEXISTS', RUNNING_BY_GROUP, j.group) == 0 then say('uncounted', 'running-by-group', id) end
  if unpackn('>I6', j.seq) > last_seq then say('ahead', 'jobs', id) end
  if has_failed(j) and not call('ZSCORE', RETRIES, retry_place(j)) then say('unlisted', 'retries', id) end
  if j.claim then
    if j.claim.fence > last_fence then say('ahead', 'claims', id) end
    if not has_right_flags(j) then say('misflagged', 'claims', id) end
  elseif j.state == 'c' and call('HEXISTS', NOTES, 'r' .. id) == 0 then say('resultless', 'notes', id) end
  if call('HEXISTS', ENDED, id) == 1 then say('remembered', 'ended', id) end
end
local function check_field(field, value)
  if call('HEXISTS', JOBS, field) == 0 then say('jobless', name, field) end
end
-- A note belongs to a job, or to what remains of a cancelled one.
local function check_note(field)
  local letter, id = sub(field, 1, 1), sub(field, 2)
  if not find('ebrwklfxpd', letter, 1, true) then return say('foreign', name, field) end
  if letter ~= 'p' and call('HEXISTS', JOBS, id) == 1 then return end
  local memory = call('HGET', ENDED, id)
  if find('rxd', letter, 1, true) or not memory or byte(memory) < 128 then say('jobless', name, id) end
end
-- Checks the lease that the claims of one call share, and the count of these claims.
local function check_shared(fence_bytes)
  local count, sharing = tonumber(call('HGET', BATCHES, 'n' .. fence_bytes)), 0
  for id in string.gmatch(call('HGET', BATCHES, 'i' .. fence_bytes) or '', '%Z+') do
    local claim = call('HGET', CLAIMS, id)
    if claim and #claim >= 15 and sub(claim, 1, 7) == fence_bytes and not has(byte(claim, 14) - 64, OWNLEASE) then
      sharing = sharing + 1
      if call('HEXISTS', JOBS, id) == 0 then say('jobless', 'leases', id) end
    end
  end
  if count ~= sharing or sharing == 0 then say('miscounted', 'batches', string.format('%.0f', unpackn('>I7', fence_bytes))) end
end
local function check_batch(field)
  if #field ~= 8 or not find('ni', sub(field, 1, 1), 1, true) then return say('foreign', name, field) end
  if not call('ZSCORE', LEASES, '\0' .. sub(field, 2)) then say('leaseless', name, string.format('%.0f', unpackn('>I7', field, 2))) end
end
local function check_memory(id, memory)
  if #memory < 39 then return say('unreadable', name, id) end
  local score = call('ZSCORE', ENDED_UNTIL, sub(memory, 1, 6) .. id)
  if not score or tonumber(score) ~= unpackn('>I6', memory, 33) then say('unlisted', 'ended-until', id) end
  if byte(memory) > 127 and call('HEXISTS', NOTES, 'p' .. id) == 0 then say('inputless', 'notes', id) end
end

local ids_from = { ready = 16, suspects = 16, scheduled = 14, joining = 14, leases = 1, completed = 13, expiry = 7, expiring = 7, dead = 13, retries = 10, ['ended-until'] = 7 }
local timed = { leases = true, expiry = true, expiring = true, ['ended-until'] = true }
local function belongs(j, member)
  if name == 'retries' then return has_failed(j) and member == retry_place(j) end
  if name == 'expiry' then return not j.claim and j.state == 'c' and member == j.seq .. j.id end
  if name == 'expiring' then return is_waiting(j) and member == j.seq .. j.id end
  local set, own = standing(j)
  return set == name and own == member
end
local function check_member(member, score)
  if name == 'leases' and byte(member) == 0 then
    if #member ~= 8 then return say('unreadable', name, member) end
    return check_shared(sub(member, 2))
  end
  local id = sub(member, ids_from[name])
  if not timed[name] and score ~= '0' then say('scored', name, id) end
  if name == 'ended-until' then
    local memory = call('HGET', ENDED, id)
    if not memory or sub(memory, 1, 6) ~= sub(member, 1, 6) then say('jobless', name, id) end
    return
  end
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and not belongs(j, member) then say('misplaced', name, id) end
  if j and name == 'joining' and j.state == 'w' and call('HEXISTS', JOINS, 'j' .. id) == 0 then say('joinless', name, id) end
  if j and name == 'joining' and j.state == 'a' and call('HEXISTS', STEPS, id .. '\0w') == 0 then say('signalless', name, id) end
end
-- A stale element is passed over; any other must be of a ready job, because claims grant it.
local function check_element(element, before)
  if #element < 14 then return say('unreadable', name, element) end
  local stamp, seq, id = unpackn('>I7', element), unpackn('>I6', element, 8), sub(element, 14)
  if before and #before >= 14 then
    if unpackn('>I7', before) >= stamp or unpackn('>I6', before, 8) >= seq then say('disordered', name, id) end
  end
  local j = look(id)
  if not j or not j.fresh or sub(element, 8, 13) ~= j.seq then return end
  local set, own = standing(j)
  if set ~= 'ready-list' or own ~= element then say('misplaced', name, id) end
end
-- Checks for other keys, and which of these keys are sorted sets.
local own_checks, sets = {}, {}
`

/** The end of both walks. */
const steps = `
local next = '0'
if name == 'ready-list' then
  -- Each page repeats the last element of the page before, to check the order.
  local seen = tonumber(cursor)
  local elements = call('LRANGE', READY_LIST, -(seen + count), seen == 0 and -1 or -seen)
  if call('LLEN', READY_LIST) > seen + count then next = string.format('%.0f', seen + count) end
  for i, element in ipairs(elements) do
    bytes = bytes + #element
    check_element(element, elements[i - 1])
  end
else
  local page = call((ids_from[name] or sets[name]) and 'ZSCAN' or 'HSCAN', key, cursor, 'COUNT', count)
  next = page[1]
  for i = 1, #page[2], 2 do
    local one, value = page[2][i], page[2][i + 1]
    bytes = bytes + #one + #value
    if own_checks[name] then own_checks[name](one, value)
    elseif ids_from[name] then check_member(one, value)
    elseif name == 'jobs' then check_job(one)
    elseif name == 'ended' then check_memory(one, value)
    elseif name == 'batches' then check_batch(one)
    elseif name == 'notes' then check_note(one)
    else check_field(one, value) end
  end
end
return { next, bytes, found }
`

/**
 * KEYS: those of one shard. No ARGV.
 * Returns the type of each key, 'none' if it does not exist.
 */
const types = `
local types = {}
for i, key in ipairs(KEYS) do types[i] = call('TYPE', key).ok end
return types
`

/**
 * KEYS: those of one shard, of the right types. No ARGV.
 * Returns { jobs, how many more there are than places of jobs, fields and values of META, breaches }. The sets together
 * must have each job once; stale elements of the ready list do not count.
 */
const sums = `
local stale = tonumber(call('HGET', META, 'stale')) or 0
local count = call('HLEN', JOBS)
-- The morgue of an ordered shard has its own records.
local placed = standing_count() - stale - (ORDERED and call('ZCARD', DEAD) or 0)
if stale > call('LLEN', READY_LIST) then say('overcounted', 'ready-list', 'stale') end

-- Enqueues keep at most this many. To check a larger memory would take too long.
local calls, listed_calls = call('HLEN', CALLS), call('LLEN', CALL_ORDER)
if calls > ${callMemoryCount} or listed_calls > ${callMemoryCount} then say('overgrown', 'calls', '')
else
  local kept, listed = {}, {}
  for _, id in ipairs(call('HKEYS', CALLS)) do kept[id] = true end
  for _, id in ipairs(call('LRANGE', CALL_ORDER, 0, -1)) do
    listed[id] = true
    if not kept[id] then say('jobless', 'call-order', id) end
  end
  for id in pairs(kept) do
    if not listed[id] then say('unlisted', 'call-order', id) end
  end
end
return { count, count - placed, call('HGETALL', META), found }
`

/**
 * KEYS: any key on the server in question. ARGV: cursor, pattern, about how many.
 * Returns { next cursor, keys }: the keys of that server that match.
 */
const scan = `return redis.call('SCAN', ARGV[1], 'MATCH', ARGV[2], 'COUNT', ARGV[3])`

const check = (name: string, text: KindText) => scriptPair(`check-${name}`, text, { rare: standing, readOnly: true })

export const checkScripts = {
  types: check('types', types),
  sums: check('sums', {
    plain: `${breaches}local ORDERED = false${laneSums}${sums}`,
    ordered: breaches + orderedSums + laneSums + sums,
  }),
  walk: check('walk', {
    plain: breaches + walk('plain') + laneChecks + joinChecks + stepChecks + steps,
    ordered: breaches + walk('ordered') + laneChecks + joinChecks + stepChecks + orderedChecks + steps,
  }),
}

export const scanScript = redisScript('check-scan', scan, { readOnly: true })
