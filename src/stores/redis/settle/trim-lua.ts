/**
 * Retention in Lua: removes expired and excess jobs, at most 300 of each kind per call, which is more than a call adds.
 */

import { resultDropped } from '../../contract/job-records.js'
import { longestExpectMs, trimLimit } from '../../rules/bounds.js'

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
local function trim()
  if call('EXISTS', ENDED_UNTIL, COMPLETED, DEAD) == 0 then return end
  for _, member in ipairs(call('ZRANGE', ENDED_UNTIL, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${trimLimit})) do
    call('ZREM', ENDED_UNTIL, member)
    call('HDEL', ENDED, sub(member, 7))
    if byte(member) > 127 then drop_notes(sub(member, 7)) end
  end
  for _, member in ipairs(call('ZRANGE', EXPIRY, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${trimLimit})) do drop_result(sub(member, 7)) end
  local bounds = call('HMGET', META, 'resultsCount', 'deadAge', 'deadCount')
  if bounds[1] then
    local excess = math.min(${trimLimit}, call('ZCARD', COMPLETED) - tonumber(bounds[1]))
    if excess > 0 then
      -- Those that somebody waits for stay; no others go in their place.
      local waits = call('EXISTS', ENDS) == 1
      for _, member in ipairs(call('ZRANGE', COMPLETED, 0, excess - 1)) do
        local id = sub(member, 13)
        if not waits or expected_until(id) <= now then drop_result(id) end
      end
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
