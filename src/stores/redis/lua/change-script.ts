/** The change script: one bounded step of administration over selected jobs of a shard. */

import { redisScript } from '../redis-script.js'
import { jobs, prelude } from './prelude.js'
import { readyJobs } from './ready-lua.js'

/**
 * KEYS: those of one shard.
 * ARGV: verb, states, most jobs to change, whether the verb rings (1 or 0), reason ('' or '=' and text), where (ids, all
 * or failed), ids.
 * verb: cancel · delete · run · bury · revive. states, in the order in which they are taken: w ready, s scheduled,
 * u running, c completed, d dead.
 * Returns { changed, more }. Refuses `unknown`.
 */
const text = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
know_order()
local verb, states, most, rings = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local reason = ARGV[5] ~= '' and sub(ARGV[5], 2) or nil

local function state_of(j)
  if j.claim then return 'u' end
  if j.state == 'l' or j.state == 'r' or j.state == 'x' then return 'w' end
  return j.state
end
local function by_claim()
  local claims = call('HGETALL', CLAIMS)
  local running = {}
  for i = 1, #claims, 2 do
    local claim = read_claim(claims[i + 1])
    running[#running + 1] = { id = claims[i], fence = claim.fence, seq = unpackn('>I6', claim.seq) }
  end
  table.sort(running, function(a, b)
    if a.fence ~= b.fence then return a.fence < b.fence end
    return a.seq < b.seq
  end)
  return running
end
local function all_in(state, count)
  local ids = {}
  if state == 'w' then
    sweep_line(10)
    for _, one in ipairs(first_ready(count, tonumber(call('HGET', META, 'stale')))) do ids[#ids + 1] = one.id end
    if #ids < count then
      for _, member in ipairs(call('ZRANGE', SUSPECTS, 0, count - #ids - 1)) do ids[#ids + 1] = sub(member, 16) end
    end
  elseif state == 's' then
    for _, member in ipairs(call('ZRANGE', LATER, 0, count - 1)) do ids[#ids + 1] = sub(member, 14) end
  elseif state == 'd' then
    for _, member in ipairs(call('ZRANGE', DEAD, 0, count - 1, 'REV')) do ids[#ids + 1] = sub(member, 13) end
  elseif state == 'u' then
    for _, one in ipairs(by_claim()) do ids[#ids + 1] = one.id end
  end
  return ids
end
-- Whether it runs and is to be cancelled already.
local function is_asked(j) return verb == 'cancel' and j.claim and has(j.claim.flags, CANCEL) end
local function parts_of(j)
  local state = find(states, state_of(j), 1, true)
  if j.claim then return { state, j.claim.fence } end
  if state_of(j) == 's' then return { state, j.stamp } end
  return { state, j.suspect and 1 or 0, -j.priority, LIFO and -j.stamp or j.stamp }
end
-- Of those that failed at least so many, if there are: the first may all be in other states.
local function failed_in(count)
  local found, seen = {}, 0
  repeat
    local members = call('ZRANGE', RETRIES, seen, seen + 999)
    for _, member in ipairs(members) do
      local j = job(sub(member, 10))
      if find(states, state_of(j), 1, true) and not is_asked(j) then
        local parts = parts_of(j)
        parts[#parts + 1] = unpackn('>I6', j.seq)
        found[#found + 1] = { id = j.id, parts = parts }
      end
    end
    seen = seen + #members
  until #found >= count or #members == 0
  table.sort(found, function(a, b)
    for i = 1, math.min(#a.parts, #b.parts) do
      if a.parts[i] ~= b.parts[i] then return a.parts[i] < b.parts[i] end
    end
    return false
  end)
  local ids = {}
  for i, one in ipairs(found) do ids[i] = one.id end
  return ids
end

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
    if not has(flags, HASPAST) then flags = flags + HASPAST end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', PAST, j.id, write_past(j))
  elseif verb == 'delete' then drop(j)
  elseif verb == 'bury' then bury(j, 'buried')
  else
    leave(j)
    if verb == 'revive' then j.attempt, j.crashes, j.reason = 1, 0, nil end
    j.stamp = stamped()
    enter(j, 'r')
  end
  return true
end

local length, selected = call('LLEN', LINE), {}
if ARGV[6] == 'ids' then
  local seen = {}
  for i = 7, #ARGV do
    if not seen[ARGV[i]] then
      seen[ARGV[i]] = true
      selected[#selected + 1] = ARGV[i]
    end
  end
elseif ARGV[6] == 'failed' then selected = failed_in(2000)
else
  for i = 1, #states do
    for _, id in ipairs(all_in(sub(states, i, i), most + 1)) do selected[#selected + 1] = id end
    if #selected > most then break end
  end
end
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
-- More stale elements stand before them than one step passes over. Where a step does nothing, the next would not either.
local left = call('LLEN', LINE)
local does_anything = changed > 0 or left < length
if ARGV[6] == 'all' and find(states, 'w', 1, true) and does_anything and left > tonumber(call('HGET', META, 'stale')) then more = true end
if calls then ring_unpaused() end
if changed > 0 then tell_ends() end
return { changed, more and 1 or 0 }
`

export const changeScript = (isCluster: boolean) =>
  redisScript('change', prelude(isCluster) + jobs + readyJobs + text, { whenFull: true })
