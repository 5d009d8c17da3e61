/** The queue state script: a shard is paused, resumed or drained, a running job is failed from outside, a lead ends. */

import { orderedJobs } from '../lua/ordered-lua.js'
import { jobs, shardScript } from '../lua/prelude.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'

/**
 * KEYS: those of one shard.
 * ARGV: verb and what it needs: pause · resume · drain · ring · fail: id, ms, last (1 or 0), reason (of a plain queue) ·
 * unlead: worker · hold: queue or group, ms, the group · reopen, what its throttle has shut.
 * Returns 1, or 0 for a `fail` of a job that does not run. Refuses `unknown`.
 */
const text = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
local verb = ARGV[1]
if verb == 'pause' then
  call('HSET', META, 'paused', 1)
  -- Nobody is to be woken for what nobody is given.
  call('DEL', WAKE)
elseif verb == 'drain' then call('HSET', META, 'draining', 1)
elseif verb == 'ring' then ring_unpaused()
elseif verb == 'hold' then
  local seen = call('HGET', META, 'seenAt')
  if ${isSetBack('seen')} then turn_back(seen) end
  lanes.hold_back(ARGV[2] == 'group' and ARGV[4] ~= '' and ARGV[4] or nil, now + tonumber(ARGV[3]))
elseif verb == 'reopen' then
  call('HDEL', META, 'shutUntil')
  while call('EXISTS', SHUT) == 1 do
    for _, group in ipairs(call('ZRANGE', SHUT, 0, 99)) do lanes.open(group) end
  end
  ring_unpaused()
elseif verb == 'resume' then
  call('HDEL', META, 'paused', 'draining')
  ring()
elseif verb == 'unlead' then
  local leader, roomer = unpack(call('HMGET', META, 'leader', 'roomer'))
  if leader == ARGV[2] then call('HDEL', META, 'leader', 'leadAt') end
  if roomer == ARGV[2] then call('HDEL', META, 'roomer', 'roomAt') end
else
  know_order()
  local j = job(ARGV[2])
  if not j or not j.claim then return 0 end
  fail_claim(j, tonumber(ARGV[3]), ARGV[4] == '1', ARGV[5], ARGV[5])
  STOPPED = call('HGET', META, 'paused') == '1'
  if is_calling(j) or (limits().limited and lanes.has_freed()) then ring_unpaused() end
  tell_ends()
end
return 1
`

export const queueStateScript = shardScript('switch', 'plain', jobs + setBack + text, { whenFull: true })

/**
 * KEYS: those of one shard of an ordered queue; with `maxRunning` then those of all its shards.
 * ARGV: id, ms, last (1 or 0), reason.
 * Returns 1, or 0 where the job does not run. Refuses `unknown`.
 */
const failure = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
know_form()
local j = job(ARGV[1])
if not j or not j.claim then return 0 end
fail_claim(j, tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4], ARGV[4])
if is_calling_id(ARGV[1]) or ((EXCLUSIVE or limits().limited) and lanes.has_freed()) then ring_unpaused() end
tell_ends()
return 1
`

export const failOrderedScript = shardScript('fail-ordered', 'ordered', orderedJobs + failure, { whenFull: true })
