/** The change script: one bounded step of administration over selected jobs of a shard. */

import { bySequence, jobs, shardScript } from '../lua/prelude.js'
import { readyJobs } from '../lua/ready-lua.js'
import { selection } from './selection-lua.js'

const guard = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
know_order()
`

/**
 * KEYS: those of one shard.
 * ARGV: verb, states, most jobs to change, whether the verb rings (1 or 0), reason ('' or '=' and text), where (ids, all
 * or failed), ids.
 * verb: cancel · delete · run · bury · revive. states, in the order in which they are taken: w ready, s scheduled,
 * u running, c completed, d dead.
 * Returns { changed, more }. Refuses `unknown`.
 */
const text = `
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

local length, selected = call('LLEN', LINE), selected_from(6)
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
if changed > 0 and verb == 'delete' then call('HSET', META, 'lostAt', now) end
if changed > 0 then tell_ends() end
return { changed, more and 1 or 0 }
`

export const changeScript = shardScript('change', 'plain', jobs + bySequence + readyJobs + guard + selection + text, {
  whenFull: true,
})
