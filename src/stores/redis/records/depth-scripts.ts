/** The depth scripts: how many jobs of a shard are in each state. */

import { reader } from '../lua/reader-lua.js'

/**
 * KEYS: those of one shard. No ARGV.
 * Returns { now, ready, suspects, scheduled, running, dead, retries, lagMs, processed, failed, crashed, paused, draining }.
 */
const counts = `
local meta = call('HMGET', META, 'stale', 'processed', 'failed', 'crashed', 'paused', 'draining')
local suspects, later, running = call('ZCARD', SUSPECTS), call('ZCARD', LATER), call('HLEN', CLAIMS)
local failed = call('ZCARD', RETRIES)
-- Of those that failed the ones that run do not wait.
if failed > 0 and running > 0 then
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    local past = call('HGET', PAST, id)
    if past and read_past(past).attempt > 1 then failed = failed - 1 end
  end
end
local oldest = oldest_ready(tonumber(meta[1]))
local others = { oldest_in(SUSPECTS) or false, call('ZRANGE', LATER, 0, 0)[1] or false }
if others[2] then others[2] = unpackn('>I7', others[2]) end
for i = 1, 2 do
  if others[i] and (not oldest or others[i] < oldest) then oldest = others[i] end
end
local counts = {
  now, ready_count(tonumber(meta[1])) + suspects, suspects, later, running, call('ZCARD', DEAD), failed, oldest and age_of(oldest) or 0,
  tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4]), meta[5] == '1' and 1 or 0, meta[6] == '1' and 1 or 0 }
`

/** Of a plain queue behind them `lostAt`, or 0. */
const plain = `
counts[#counts + 1] = tonumber(call('HGET', META, 'lostAt') or 0)
return counts
`

/**
 * KEYS: those of one shard. No ARGV.
 * Returns what the depth script of plain queues does, and the number of payloads that wait.
 */
const ordered = `
local away = call('HMGET', TRANSIT, 'live', 'dead')
counts[2], counts[6] = counts[2] + tonumber(away[1] or 0), counts[6] + tonumber(away[2] or 0)
counts[#counts + 1] = call('ZCARD', PAYLOADS)
return counts
`

export const depthScript = reader('depth', 'plain', counts + plain)
export const depthOrderedScript = reader('depth-ordered', 'ordered', counts + ordered)
