/** The depth scripts: the number of jobs of a shard in each state. */

import { readerPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. No ARGV.
 * Returns { now, ready, suspects, scheduled, running, dead, retries, lagMs, processed, failed, crashed, paused,
 * draining, expired }, then for a plain queue `lostAt` or 0, for an ordered queue the number of waiting payloads.
 */
const counts = `
local meta = call('HMGET', META, 'stale', 'processed', 'failed', 'crashed', 'paused', 'draining', 'expired')
local suspects, later, running = call('ZCARD', SUSPECTS), call('ZCARD', SCHEDULED), call('HLEN', CLAIMS)
local failed = call('ZCARD', RETRIES)
-- Failed jobs that are running do not count as waiting for a retry.
if failed > 0 and running > 0 then
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    local past = call('HGET', HISTORY, id)
    if past and read_past(past).attempt > 1 then failed = failed - 1 end
  end
end
local oldest = oldest_ready(tonumber(meta[1]))
local others = { oldest_in(SUSPECTS) or false, call('ZRANGE', SCHEDULED, 0, 0)[1] or false }
if others[2] then others[2] = unpackn('>I7', others[2]) end
for i = 1, 2 do
  if others[i] and (not oldest or others[i] < oldest) then oldest = others[i] end
end
local counts = {
  now, ready_count(tonumber(meta[1])) + suspects, suspects, later, running, call('ZCARD', DEAD), failed, oldest and age_of(oldest) or 0,
  tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4]), meta[5] == '1' and 1 or 0, meta[6] == '1' and 1 or 0, tonumber(meta[7] or 0) }
`

const plain = `
counts[#counts + 1] = tonumber(call('HGET', META, 'lostAt') or 0)
return counts
`

const ordered = `
local away = call('HMGET', TRANSIT, 'live', 'dead')
counts[2], counts[6] = counts[2] + tonumber(away[1] or 0), counts[6] + tonumber(away[2] or 0)
counts[#counts + 1] = payload_count(call('HGET', META, 'many'))
return counts
`

export const depthScripts = readerPair('depth', { plain: counts + plain, ordered: counts + ordered })
