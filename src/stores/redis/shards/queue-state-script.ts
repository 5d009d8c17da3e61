/**
 * The queue state script: pauses, resumes, drains, holds or releases a shard or a group in it, fails a running job from
 * outside, or ends a lead.
 */

import { guard, scriptPair } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'

/**
 * KEYS: those of one shard; for an ordered queue with `maxRunning` then those of all its shards.
 * ARGV: verb, and its arguments: pause · resume · drain · fail: id, ms, last (1 or 0), reason (plain queues only) ·
 * unlead: worker · hold: queue or group, ms, the group · reopen: opens what its throttle has shut, or only the group
 * that is given · release: the group, or nothing for all holds · pause-group, resume-group: the group ·
 * relimit: gives turns by the new limits of running jobs.
 * Returns 1, or for a `fail` 0 if the job does not run and 2 if joins in other shards are to be told; for `release` how many holds it ended. Refuses `unknown`.
 */
const text = `
local verb = ARGV[1]
if verb == 'pause' then
  call('HSET', META, 'paused', 1)
  -- Wakes nobody, because nothing is granted.
  call('DEL', WAKE)
elseif verb == 'drain' then call('HSET', META, 'draining', 1)
elseif verb == 'hold' then
  local seen = call('HGET', META, 'seenAt')
  if ${isSetBack('seen')} then turn_back(seen) end
  lanes.hold_back(ARGV[2] == 'group' and ARGV[4] ~= '' and ARGV[4] or nil, now + tonumber(ARGV[3]))
elseif verb == 'reopen' then
  if ARGV[2] then lanes.look(ARGV[2])
  else
    call('HDEL', META, 'shutUntil')
    lanes.open_all()
  end
  ring_unpaused()
elseif verb == 'release' then
  local seen = call('HGET', META, 'seenAt')
  if ${isSetBack('seen')} then turn_back(seen) end
  local ended = lanes.release(ARGV[2])
  ring_unpaused()
  return ended
elseif verb == 'pause-group' then lanes.pause(ARGV[2], true)
elseif verb == 'resume-group' then
  lanes.pause(ARGV[2], false)
  ring_unpaused()
elseif verb == 'relimit' then
  local busy = call('HKEYS', RUNNING_BY_GROUP)
  -- By their bytes: the order of < depends on the server's locale.
  table.sort(busy, function(a, b)
    for i = 1, math.min(#a, #b) do
      local x, y = byte(a, i), byte(b, i)
      if x ~= y then return x < y end
    end
    return #a < #b
  end)
  for _, group in ipairs(busy) do lanes.refresh(group) end
  ring_unpaused()
elseif verb == 'resume' then
  call('HDEL', META, 'paused', 'draining')
  -- A reshard may have read before what this new shard is to take over.
  if call('HGET', META, 'resharding') == 'new' and call('HEXISTS', META, 'inherited') == 0 then call('HSET', META, 'resumed', 1) end
  ring()
elseif verb == 'unlead' then
  local leader, suspect_leader = unpack(call('HMGET', META, 'lead', 'suspectLead'))
  if leader == ARGV[2] then call('HDEL', META, 'lead', 'leadAt') end
  if suspect_leader == ARGV[2] then call('HDEL', META, 'suspectLead', 'suspectLeadAt') end
else
  local id = ARGV[2]
  local j = job(id)
  if not j or not j.claim then return 0 end
  fail_claim(j, tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], ARGV[5])
  if is_calling_id(id) or ((EXCLUSIVE or limits().limited) and lanes.has_freed()) then ring_unpaused() end
  tell_ends()
  if REPORTS and joins().flush() then return 2 end
end
return 1
`

export const queueStateScripts = scriptPair('queue-state', guard + text, { rare: setBack, whenFull: true })
