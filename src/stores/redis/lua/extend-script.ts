/** The extend script: leases of one shard are renewed, and what beats say is written down. */

import { redisScript } from '../redis-script.js'
import { besideJobs, prelude } from './prelude.js'

/**
 * KEYS: those of one shard.
 * ARGV: of each item id, fence, lease in ms and its beat: '' for none, else started (1 or ''), host, pid and progress, each
 * with NUL behind it; what is empty stays as it was.
 * Returns one letter per item: o ok, l lost, c cancel. Refuses `unknown`. Never shortens a lease.
 */
const text = String.raw`
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
local answers = {}
local parts = '^(%Z*)%z(%Z*)%z(%Z*)%z(%Z*)'
for n = 1, #ARGV, 4 do
  local id = ARGV[n]
  local claim = call('HGET', CLAIMS, id)
  if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[n + 1])) then
    answers[#answers + 1] = 'l'
  else
    local flags = byte(claim, 14) - 64
    local ends_at, was = now + tonumber(ARGV[n + 2]), flags
    if has(flags, OWNLEASE) then call('ZADD', LEASES, 'GT', ends_at, id)
    elseif ends_at > tonumber(call('ZSCORE', LEASES, '\0' .. sub(claim, 1, 7))) then
      leave_lease(sub(claim, 1, 7), 1)
      call('ZADD', LEASES, ends_at, id)
      flags = flags + OWNLEASE
    end
    if ARGV[n + 3] ~= '' then
      local started, host, pid, progress = string.match(ARGV[n + 3], parts)
      local was_started, was_host, was_pid, was_progress = string.match(call('HGET', NOTES, 'b' .. id) or '\0\0\0\0', parts)
      if was_started == '' and started == '1' then was_started = string.format('%.0f', now) end
      call('HSET', NOTES, 'b' .. id, table.concat({
        was_started, host ~= '' and host or was_host, pid ~= '' and pid or was_pid,
        progress ~= '' and progress or was_progress, string.format('%.0f', now) }, '\0'))
      if not has(flags, BEATEN) then flags = flags + BEATEN end
    end
    if flags ~= was then call('HSET', CLAIMS, id, with_flags(claim, flags)) end
    answers[#answers + 1] = has(flags, CANCEL) and 'c' or 'o'
  end
end
return table.concat(answers)
`

export const extendScript = (isCluster: boolean) =>
  redisScript('extend', prelude(isCluster) + besideJobs(text), { whenFull: true })
