/** The registry script: workers report that they are alive, and get the orders of operators. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: the workers of the namespace.
 * ARGV: verb, and its arguments: beat: id, ms until it expires, record · order: id, letter · list.
 * beat returns the letter of the worker's order, or '-'. order returns 1, or 0 if no such worker is alive. list returns
 * { id, seen at, ms since then, record, … } of the workers that have not expired. A field is when the worker was seen, when it
 * expires, the letter of its order, and its record. A field without these would never expire, and is removed: a live
 * worker reports again.
 */
const text = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
-- The order to a worker that is alive; otherwise nil.
local function order_of(known)
  if not known or #known < 13 then return nil end
  local _, until_at = struct.unpack('>I6I6', known)
  return until_at > now and string.sub(known, 13, 13) or nil
end
if ARGV[1] == 'beat' then
  local order = order_of(redis.call('HGET', KEYS[1], ARGV[2]))
  redis.call('HSET', KEYS[1], ARGV[2], struct.pack('>I6I6', now, now + tonumber(ARGV[3])) .. (order or '-') .. ARGV[4])
  return order or '-'
end
if ARGV[1] == 'order' then
  local known = redis.call('HGET', KEYS[1], ARGV[2])
  if not order_of(known) then return 0 end
  redis.call('HSET', KEYS[1], ARGV[2], string.sub(known, 1, 12) .. ARGV[3] .. string.sub(known, 14))
  return 1
end
local all, living = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local seen, until_at = 0, 0
  if #all[i + 1] >= 13 then seen, until_at = struct.unpack('>I6I6', all[i + 1]) end
  -- The clock was set back: the worker keeps the time that it had left when it was last seen.
  if seen > now + ${toleratedStepMs} then
    until_at, seen = until_at - seen + now, now
    redis.call('HSET', KEYS[1], all[i], struct.pack('>I6I6', seen, until_at) .. string.sub(all[i + 1], 13))
  end
  if until_at <= now then redis.call('HDEL', KEYS[1], all[i])
  else for _, part in ipairs({ all[i], seen, math.max(0, now - seen), string.sub(all[i + 1], 14) }) do living[#living + 1] = part end end
end
return living
`

export const registryScript = redisScript('registry', text, { whenFull: true })
