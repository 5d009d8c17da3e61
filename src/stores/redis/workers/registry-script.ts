/** The registry script: workers say that they live. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: the workers of the namespace.
 * ARGV: verb and what it needs: beat: id, ms until it lapses, record · list.
 * beat returns 1; list { id, seen at, record, … } of those that have not lapsed. A field without instants, which would never
 * lapse, is taken out: whoever lives says so again.
 */
const text = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[1] == 'beat' then
  redis.call('HSET', KEYS[1], ARGV[2], struct.pack('>I6I6', now, now + tonumber(ARGV[3])) .. ARGV[4])
  return 1
end
local all, living = redis.call('HGETALL', KEYS[1]), {}
for i = 1, #all, 2 do
  local seen, until_at = 0, 0
  if #all[i + 1] >= 12 then seen, until_at = struct.unpack('>I6I6', all[i + 1]) end
  -- The clock was set back: it lives on for as long as it was to live from then on.
  if seen > now + ${toleratedStepMs} then
    until_at, seen = until_at - seen + now, now
    redis.call('HSET', KEYS[1], all[i], struct.pack('>I6I6', seen, until_at) .. string.sub(all[i + 1], 13))
  end
  if until_at <= now then redis.call('HDEL', KEYS[1], all[i])
  else for _, part in ipairs({ all[i], seen, string.sub(all[i + 1], 13) }) do living[#living + 1] = part end end
end
return living
`

export const registryScript = redisScript('registry', text, { whenFull: true })
