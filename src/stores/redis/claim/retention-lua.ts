/** Retention in Lua: what a settle call removes besides, because it is no longer kept. */

import { resultDropped } from '../../contract/job-records.js'
import { longestExpectMs, trimLimit } from '../../rules/bounds.js'

/**
 * Retention: removes expired and excess jobs, at most `trimLimit` of each kind per call, which is more than a call adds.
 */
export const retention = `
-- The instant until which somebody waits for the result of the job; 0: nobody does. Nobody waits for longer than a minute:
-- a later instant is from before the clock was set back.
local function expected_until(id)
  local entries, until_at = call('HGET', ENDS, id), 0
  for at = 9, #(entries or ''), 14 do
    local one = unpackn('>I6', entries, at)
    if one <= now + ${longestExpectMs} then until_at = math.max(until_at, one) end
  end
  return until_at
end
-- Removes a completed job whose result is no longer kept. Its id stays remembered for as long as without a result.
local lost_at = 0
local function lose(j)
  lost_at = math.max(lost_at, j.updated)
  drop(j)
end
local function drop_result(id)
  local j = job(id)
  if (call('HGET', NOTES, 'r' .. id) or '') ~= '' then j.reason = '${resultDropped}' end
  drop(j)
  if j.updated + j.remember > now then remember(j, 'c', j.updated, j.remember) end
end
-- Whether the job has completed in its first attempt, without steps, and no join, lane or memory knows of it.
local function is_only_kept(past, rec)
  if not rec or byte(past) ~= 99 or unpackn('>I3', past, 15) > 1 then return false end
  local _, for_ms, _, group, places = written(rec)
  return group == '' and not places and unpackn('>I6', past, 2) + for_ms <= now
end
-- The same for jobs in the form of EXPIRY. Most are only kept, and are removed together.
local function drop_results(members)
  local ids, left, elements, ends, notes = {}, {}, {}, {}, {}
  for i, member in ipairs(members) do ids[i] = sub(member, 7) end
  local pasts = ids[1] and call('HMGET', HISTORY, unpack(ids))
  for i, id in ipairs(ids) do
    if is_only_kept(pasts[i], call('HGET', JOBS, id)) then
      local n = #left + 1
      left[n], elements[n], ends[n] = id, members[i], sub(pasts[i], 2, 7) .. members[i]
      for _, note in ipairs({ 'b', 'e', 'f', 'k', 'l', 'p', 'r', 'w' }) do notes[#notes + 1] = note .. id end
    else drop_result(id) end
  end
  many('ZREM', EXPIRY, elements)
  many('ZREM', COMPLETED, ends)
  many('HDEL', JOBS, left)
  many('HDEL', HISTORY, left)
  many('HDEL', NOTES, notes)
end
local function trim()
  if call('EXISTS', ENDED_UNTIL, COMPLETED, DEAD) == 0 then return end
  for _, member in ipairs(call('ZRANGE', ENDED_UNTIL, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${trimLimit})) do
    call('ZREM', ENDED_UNTIL, member)
    call('HDEL', ENDED, sub(member, 7))
    if byte(member) > 127 then drop_notes(sub(member, 7)) end
  end
  drop_results(call('ZRANGE', EXPIRY, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${trimLimit}))
  local bounds = call('HMGET', META, 'resultsCount', 'deadAge', 'deadCount')
  if bounds[1] then
    local excess = math.min(${trimLimit}, call('ZCARD', COMPLETED) - tonumber(bounds[1]))
    if excess > 0 then
      -- Those that somebody waits for stay; no others go in their place.
      local waits, members = call('EXISTS', ENDS) == 1, {}
      for _, member in ipairs(call('ZRANGE', COMPLETED, 0, excess - 1)) do
        if not waits or expected_until(sub(member, 13)) <= now then members[#members + 1] = sub(member, 7) end
      end
      drop_results(members)
    end
  end
  -- The age may reach back before 1970.
  local edge_at = bounds[2] and now - tonumber(bounds[2]) + 1 or 0
  if edge_at > 0 then
    local edge = '(' .. pack('>I6', edge_at)
    for _, member in ipairs(call('ZRANGE', DEAD, '-', edge, 'BYLEX', 'LIMIT', 0, ${trimLimit})) do lose(job(sub(member, 13))) end
  end
  if bounds[3] then
    local excess = math.min(${trimLimit}, call('ZCARD', DEAD) - tonumber(bounds[3]))
    if excess > 0 then
      for _, member in ipairs(call('ZRANGE', DEAD, 0, excess - 1)) do lose(job(sub(member, 13))) end
    end
  end
  -- A caller that waits for a missing job can tell from this whether it may have been one of those removed.
  if lost_at > tonumber(call('HGET', META, 'lostAt') or 0) then call('HSET', META, 'lostAt', lost_at) end
end
`

/** Retention for an ordered queue, which keeps only its dead jobs. */
export const orderedRetention = `
local function trim()
  if call('EXISTS', DEAD) == 0 then return end
  local bounds = call('HMGET', META, 'deadAge', 'deadCount')
  local edge_at = bounds[1] and now - tonumber(bounds[1]) + 1 or 0
  if edge_at > 0 then
    for _, member in ipairs(call('ZRANGE', DEAD, '-', '(' .. pack('>I6', edge_at), 'BYLEX', 'LIMIT', 0, ${trimLimit})) do drop_dead(dead_job(sub(member, 13))) end
  end
  local excess = bounds[2] and math.min(${trimLimit}, call('ZCARD', DEAD) - tonumber(bounds[2])) or 0
  if excess > 0 then
    for _, member in ipairs(call('ZRANGE', DEAD, 0, excess - 1)) do drop_dead(dead_job(sub(member, 13))) end
  end
end
`
