/** The open script: creates a shard, or gives it its settings. */

import { shardScript } from '../lua/prelude.js'

/**
 * KEYS: those of one shard.
 * ARGV: what to do: write (1), write if the shard exists (2), only ask (0), or ask whether it is closed or missing
 * (closed); then kind, order, exclusive, merge ('' as stored, at first all), maxPending, maxCrashes, resultsCount, age
 * and count of the dead, each '' for none; for an ordered queue the bounds of all its shards together; maxRunning and
 * its part for each group; scope and by of the throttle, '' as stored; the limits that have been said, and the number of
 * their change; for a shard of a new generation also the fields and values with which its META begins.
 * Limits are written unless the shard knows a later change, or another one of the same number, which was first.
 * Returns { kind, order, exclusive, paused, draining, limits, their number } as stored, or nil if the shard neither
 * exists nor was created; for closed 1 or 0.
 */
const text = `
local function state()
  local values = call('HMGET', META, 'kind', 'order', 'exclusive', 'paused', 'draining', 'limits', 'limitsTurn')
  return { values[1], values[2], values[3] or 'id', values[4] == '1' and 1 or 0, values[5] == '1' and 1 or 0, values[6] or '{}', tonumber(values[7] or 0) }
end
local stored = call('HMGET', META, 'kind', 'order', 'exclusive')
if ARGV[1] == 'closed' then return (not stored[1] or call('HEXISTS', META, 'closed') == 1) and 1 or 0 end
if ARGV[1] == '0' then return stored[1] and state() or false end
if ARGV[1] == '2' and not stored[1] then return false end
if stored[1] and (stored[1] ~= ARGV[2] or stored[2] ~= ARGV[3] or (stored[3] or 'id') ~= ARGV[4]) then return state() end
if not stored[1] then
  call('HSET', META, 'kind', ARGV[2], 'order', ARGV[3], 'seq', 0, 'stamp', 0, 'fence', 0, 'stale', 0, 'processed', 0, 'failed', 0, 'crashed', 0)
  if ARGV[2] == 'ordered' then call('HSET', META, 'exclusive', ARGV[4], 'merge', 'all') end
  for n = 18, #ARGV, 2 do call('HSET', META, ARGV[n], ARGV[n + 1]) end
end
if ARGV[5] ~= '' then call('HSET', META, 'merge', ARGV[5]) end
local known = call('HMGET', META, 'limits', 'limitsTurn')
local turn, last = tonumber(ARGV[17]), tonumber(known[2] or -1)
if turn > last or (turn == last and ARGV[16] == known[1]) then
  for n, field in ipairs({ 'maxPending', 'maxCrashes', 'resultsCount', 'deadAge', 'deadCount', 'bounds', 'maxRunning', 'perGroup' }) do
    local value = ARGV[n + 5]
    if value == '' then call('HDEL', META, field) else call('HSET', META, field, value) end
  end
  call('HSET', META, 'limits', ARGV[16], 'limitsTurn', turn)
end
if (ARGV[14] or '') ~= '' then call('HSET', META, 'scope', ARGV[14], 'by', ARGV[15]) end
if (ARGV[12] or '') .. (ARGV[13] or '') .. (ARGV[14] or '') ~= '' then call('HSET', META, 'limited', 1) end
return state()
`

export const openScript = shardScript('open', 'plain', text, { whenFull: true })
