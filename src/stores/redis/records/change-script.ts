/** The change scripts: one bounded step of administration over selected jobs of a shard. */

import { refuse } from '../client/redis-script.js'
import { bySequence } from '../lua/prelude.js'
import { readyJobs } from '../lua/ready-lua.js'
import { flagsAt } from '../lua/record-lua.js'
import { scriptPair } from '../lua/script-kinds.js'

/**
 * The jobs that a step of administration changes, in the order in which it takes them. It needs `tied` and the ready jobs.
 */
const selection = String.raw`
local verb, states, most, rings = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local reason = ARGV[5] ~= '' and sub(ARGV[5], 2) or nil

local function state_of(j)
  if j.claim then return 'u' end
  if j.state == 'l' or j.state == 'r' or j.state == 'x' then return 'w' end
  return (j.state == 'w' or j.state == 'a') and 'j' or j.state
end
local function by_claim()
  local claims = call('HGETALL', CLAIMS)
  local running = {}
  for i = 1, #claims, 2 do
    local claim = read_claim(claims[i + 1])
    running[#running + 1] = { id = claims[i], fence = claim.fence, seq = claim.seq }
  end
  table.sort(running, function(a, b)
    if a.fence ~= b.fence then return a.fence < b.fence end
    return tied(a, b)
  end)
  return running
end
local function all_in(state, count)
  local ids = {}
  if state == 'w' then
    sweep_list(10)
    for _, one in ipairs(first_ready(count, stale_at_least(unpack(call('HMGET', META, 'stale', 'lost'))))) do ids[#ids + 1] = one.id end
    if #ids < count then
      for _, member in ipairs(call('ZRANGE', LANES, 0, count - #ids - 1)) do ids[#ids + 1] = sub(member, find(member, '\0', 1, true) + 16) end
    end
    if #ids < count then
      for _, member in ipairs(call('ZRANGE', SUSPECTS, 0, count - #ids - 1)) do ids[#ids + 1] = sub(member, 16) end
    end
  elseif state == 's' then
    for _, member in ipairs(call('ZRANGE', SCHEDULED, 0, count - 1)) do ids[#ids + 1] = sub(member, 14) end
  elseif state == 'j' then
    for _, member in ipairs(call('ZRANGE', JOINING, 0, count - 1)) do ids[#ids + 1] = sub(member, 14) end
  elseif state == 'd' then
    local from = ARGV[7] == 'all' and tonumber(ARGV[8]) or 0
    for _, member in ipairs(call('ZRANGE', DEAD, from, from + count - 1, 'REV')) do ids[#ids + 1] = sub(member, 13) end
  elseif state == 'u' then
    for _, one in ipairs(by_claim()) do ids[#ids + 1] = one.id end
  end
  return ids
end
-- Whether the job runs and needs no change: it is being cancelled already, or has no successor to run early.
local function is_asked(j)
  if not j.claim then return false end
  if verb == 'cancel' then return has(j.claim.flags, CANCEL) end
  if verb ~= 'run' then return false end
  local stamp, _, is_ready = successor_of(j.id)
  return not stamp or is_ready or math.floor(stamp / 1000) <= now
end
local function parts_of(j)
  local state = find(states, state_of(j), 1, true)
  if j.claim then return { state, j.claim.fence } end
  if state_of(j) == 's' then return { state, j.stamp } end
  return { state, j.suspect and 1 or 0, -j.priority, LIFO and -j.stamp or j.stamp }
end
-- At least count failed jobs in the wanted states, if there are as many. The first ones may all be in other states.
local function failed_in(count)
  local found, seen = {}, 0
  repeat
    local members = call('ZRANGE', RETRIES, seen, seen + 999)
    for _, member in ipairs(members) do
      local j = job(sub(member, 10))
      if find(states, state_of(j), 1, true) and not is_asked(j) then
        found[#found + 1] = { id = j.id, seq = j.seq, parts = parts_of(j) }
      end
    end
    seen = seen + #members
  until #found >= count or #members == 0
  table.sort(found, function(a, b)
    for i = 1, math.min(#a.parts, #b.parts) do
      if a.parts[i] ~= b.parts[i] then return a.parts[i] < b.parts[i] end
    end
    return tied(a, b)
  end)
  local ids = {}
  for i, one in ipairs(found) do ids[i] = one.id end
  return ids
end
-- The jobs that ARGV names from this position on: ids, each once, or all, or failed.
local function selected_from(from)
  local selected = {}
  if ARGV[from] == 'ids' then
    local seen = {}
    for i = from + 1, #ARGV do
      if not seen[ARGV[i]] then
        seen[ARGV[i]] = true
        selected[#selected + 1] = ARGV[i]
      end
    end
  elseif ARGV[from] == 'failed' then selected = failed_in(2000)
  else
    for i = 1, #states do
      for _, id in ipairs(all_in(sub(states, i, i), most + 1)) do selected[#selected + 1] = id end
      if #selected > most then break end
    end
  end
  return selected
end
`

/**
 * Another place for a job that waits for a claim: see `Records.reschedule`. `reason` says it: the priority or nothing, a comma, and
 * `d` with ms from now, or `r` with an instant in ms, or nothing.
 */
const newPlace = `
local new_priority, how, ms = string.match(reason or ',', '^(-?%d*),([dr]?)(%d*)$')
local new_due = how == 'd' and now + tonumber(ms) or (how == 'r' and tonumber(ms) or nil)
-- The record of the job with another priority, behind its task and the time for which its id is remembered.
local function set_priority(j, priority)
  local rec = call('HGET', JOBS, j.id)
  local from = ${flagsAt('rec')}
  local flags = byte(rec, from)
  local stop = find(rec, '\\0', from + 1, true)
  if flags % 2 == 1 then stop = find(rec, '\\0', stop + 1, true) end
  local rest = stop + 1
  if flags % 4 >= 2 then rest = find(rec, '\\0', rest, true) + 1 else flags = flags + 2 end
  call('HSET', JOBS, j.id, sub(rec, 1, from - 1) .. char(flags) .. sub(rec, from + 1, stop) .. priority .. '\\0' .. sub(rec, rest))
  j.priority = tonumber(priority)
end
-- Whether the job was changed: a suspect stays as it is.
local function place_anew(j)
  if j.state == 'x' then return false end
  leave(j)
  local state = j.state == 's' and 's' or 'r'
  if new_due and new_due > now then state, j.stamp = 's', new_due * 1000
  elseif new_due then
    if due_at(j) > now then j.stamp = stamped() end
    state = 'r'
  end
  if new_priority ~= '' then set_priority(j, new_priority) end
  enter(j, state)
  return true
end
`

const plain = `
${newPlace}
local function change(j)
  if verb == 'cancel' then
    if not j.claim then
      j.reason = reason
      finish(j, 'x')
      return true
    end
    if is_asked(j) then return false end
    j.reason = reason
    local flags = j.claim.flags + CANCEL
    if not has(flags, HASHISTORY) then flags = flags + HASHISTORY end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', HISTORY, j.id, write_past(j))
  elseif verb == 'place' then return place_anew(j)
  elseif verb == 'delete' then drop(j)
  elseif verb == 'bury' then bury(j, 'buried')
  else
    local state = 'r'
    if verb == 'revive' and j.places then
      state = joins().revive(j)
      if not state then return false end
    end
    if verb == 'run' and j.steps then entries().end_sleeps(j) end
    complete_death(j)
    leave(j)
    if verb == 'revive' then j.attempt, j.crashes, j.reason = 1, 0, nil end
    j.stamp = stamped()
    enter(j, state)
  end
  return true
end

local length, selected = call('LLEN', READY_LIST), selected_from(7)
local changed, more, calls = 0, false, false
for _, id in ipairs(selected) do
  local j = job(id)
  if j and find(states, state_of(j), 1, true) and not is_hidden(j) then
    more = changed == most
    if more then break end
    if change(j) then
      changed = changed + 1
      calls = calls or (rings and is_calling(j))
    end
  end
end
-- There may be more stale elements than one step passes over. If a step changed nothing, the next would not either.
local left = call('LLEN', READY_LIST)
local does_anything = changed > 0 or left < length
if ARGV[7] == 'all' and find(states, 'w', 1, true) and does_anything and left > tonumber(call('HGET', META, 'stale')) then more = true end
if calls then ring_unpaused() end
if changed > 0 and verb == 'delete' then call('HSET', META, 'lostAt', now) end
if changed > 0 then tell_ends() end
local tells = REPORTS and joins().flush() and 1 or 0
-- Joins that cannot be revived stay in front of the others.
if verb == 'revive' and ARGV[7] == 'all' and not more and #selected > most then return { changed, 0, 0, tells, (tonumber(ARGV[8]) or 0) + #selected - changed } end
return { changed, more and 1 or 0, 0, tells }
`

const ordered = `
local most_payloads, where = tonumber(ARGV[6]), ARGV[7]
-- A job that follows a running one may be run too.
if verb == 'run' then states = states .. 'u' end
local wants_dead = find(states, 'd', 1, true)
states = (string.gsub(states, 'd', ''))
local lives = states ~= '' and selected_from(7) or {}
local deads = wants_dead and (where == 'ids' and selected_from(7) or all_in('d', most + 1)) or {}

local function revive(d)
  local list = list_in(DEAD_PAYLOADS, DEAD_BODIES, d.id, -1)
  drop_dead(d)
  local stamp, j = stamped(), job(d.id)
  add_waiting(d.id, j, list)
  if not j then begin('r', d.id, name_of(d), stamp, d.created, d.error and { error = d.error })
  elseif j.claim then
    local _, created = successor_of(d.id)
    call('HSET', SUCCESSORS, d.id, write_successor(stamp, created or d.created, true))
  else
    leave(j)
    unlist_failed(j)
    j.attempt, j.stamp = 1, stamp
    enter(j, j.suspect and 'x' or 'r')
  end
end
local function change(j)
  if verb == 'cancel' and j.claim then
    drop_successor(j.id)
    j.reason = reason
    local flags = j.claim.flags + CANCEL
    if not has(flags, HASHISTORY) then flags = flags + HASHISTORY end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', HISTORY, j.id, write_past(j))
  elseif verb == 'bury' then bury(j, 'buried')
  elseif verb == 'run' and j.claim then
    local _, created = successor_of(j.id)
    call('HSET', SUCCESSORS, j.id, write_successor(stamped(), created, true))
  elseif verb == 'run' then
    leave(j)
    j.stamp = stamped()
    enter(j, 'r')
  else finish(j) end
end
local changed, payloads, more, calls = 0, 0, false, false
-- Whether the job is left for the next step.
local function is_full_step()
  more = changed >= most or payloads >= most_payloads
  return more
end
for _, id in ipairs(lives) do
  local j = job(id)
  if j and find(states, state_of(j), 1, true) and not is_asked(j) then
    if is_full_step() then break end
    local count = waiting_of(j)
    change(j)
    changed, payloads = changed + 1, payloads + count
    calls = calls or (rings and is_calling_id(id))
  end
end
for _, id in ipairs(deads) do
  local d = dead_job(id)
  if d and not is_hidden(d) and not more then
    if is_full_step() then break end
    local count = count_in(DEAD_PAYLOADS, id)
    if verb == 'revive' then revive(d) else drop_dead(d) end
    changed, payloads = changed + 1, payloads + count
    calls = calls or (rings and is_calling_id(id))
  end
end
if calls then ring_unpaused() end
if changed > 0 then tell_ends() end
return { changed, more and 1 or 0, payloads }
`

/**
 * KEYS: those of one shard; for an ordered queue with `maxRunning` then those of all its shards.
 * ARGV: verb, states, most jobs to change, whether the verb rings (1 or 0), reason ('' or '=' and text), the number of
 * changed payloads at which the step ends (ordered queues only), where (ids, all or failed), ids; behind all for a plain
 * queue the number of dead jobs to pass over, the latest first.
 * verb: cancel · delete · run · place · bury · revive; `place` only in a plain queue, with the new place as the reason. states, in the order in which jobs are taken: w ready, s scheduled,
 * j waiting for members or a signal, u running, c completed, d dead. If states is only d, ids of an ordered queue are looked up in the morgue.
 * Returns { changed, more, payloads }, for a plain queue then whether joins in other shards are to be told (1 or 0), and, if
 * a revive of all has not seen all, how many to pass over next. Refuses `unknown`, and `moved` if the shard is closed.
 */
const text = (change: string) => `
local closed = call('HMGET', META, 'kind', 'closed')
if not closed[1] then ${refuse('unknown')} end
if closed[2] then ${refuse('moved')} end
know_form()
${selection}${change}`

export const changeScripts = scriptPair(
  'change',
  { plain: text(plain), ordered: text(ordered) },
  { rare: { plain: bySequence + readyJobs, ordered: readyJobs }, whenFull: true },
)
