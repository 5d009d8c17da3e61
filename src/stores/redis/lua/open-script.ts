/** The open script: a shard is made, or given its latest settings. */

import { redisScript } from '../redis-script.js'
import { prelude } from './prelude.js'

/**
 * KEYS: those of one shard.
 * ARGV: write (1) or only ask (0), kind, order, maxPending, maxCrashes, resultsCount, age and count of the dead; '' for none.
 * Returns { kind, order, paused, draining } as stored; where only asked and there is no shard, nothing.
 */
const text = `
local function state()
  local values = call('HMGET', META, 'kind', 'order', 'paused', 'draining')
  return { values[1], values[2], values[3] == '1' and 1 or 0, values[4] == '1' and 1 or 0 }
end
local kind, order = unpack(call('HMGET', META, 'kind', 'order'))
if ARGV[1] == '0' then return kind and state() or false end
if kind and (kind ~= ARGV[2] or order ~= ARGV[3]) then return state() end
if not kind then
  call('HSET', META, 'kind', ARGV[2], 'order', ARGV[3], 'seq', 0, 'stamp', 0, 'fence', 0, 'stale', 0, 'processed', 0, 'failed', 0, 'crashed', 0)
end
for n, field in ipairs({ 'maxPending', 'maxCrashes', 'resultsCount', 'deadAge', 'deadCount' }) do
  local value = ARGV[n + 3]
  if value == '' then call('HDEL', META, field) else call('HSET', META, field, value) end
end
return state()
`

export const openScript = (isCluster: boolean) => redisScript('open', prelude(isCluster) + text, { whenFull: true })
