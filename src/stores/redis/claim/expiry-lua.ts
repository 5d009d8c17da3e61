/** Expiry in Lua: ends the waiting jobs of a plain shard whose time to begin is over. */

import { upkeepLimit } from '../../rules/bounds.js'
import { expiredReason } from '../../rules/expiry.js'

/** `meta.expiringAt` is at or before the first expiry. Nobody looks while it is in the future or absent. */
export const expiry = `
-- Ends expired jobs and adds index, id and task of each to expired. Returns when the next job expires, or nil.
local function end_expired(index, expired)
  local members = call('ZRANGE', EXPIRING, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${upkeepLimit})
  local count = 0
  for _, member in ipairs(members) do
    local j = job(sub(member, 7))
    if j and is_waiting(j) then
      count = count + 1
      for _, part in ipairs({ index, j.id, j.task }) do expired[#expired + 1] = part end
      j.reason = '${expiredReason}'
      finish(j, 'x')
    else
      call('ZREM', EXPIRING, member)
      if not j then pass_over(sub(member, 7), sub(member, 1, 6)) end
    end
  end
  if count > 0 then
    call('HINCRBY', META, 'expired', count)
    tell_ends()
  end
  local first_at = call('ZRANGE', EXPIRING, 0, 0, 'WITHSCORES')[2]
  if first_at then call('HSET', META, 'expiringAt', first_at) else call('HDEL', META, 'expiringAt') end
  return first_at
end
`
