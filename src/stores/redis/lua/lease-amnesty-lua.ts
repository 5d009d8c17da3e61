/**
 * The lease amnesty of a server that was started anew, in Lua: leases that ended while nobody could renew them. The translation
 * of a part of `recover`. Made only where a claim finds such leases.
 */
export const leaseAmnesty = `
-- Until when leases that have ended are left alone. For another run of the server than the last that a claim found here that
-- is one lease from its start. So it is where the server has taken over from another since, but from now: it does not tell
-- for how long it has been the master. A user who may not ask for either leaves none alone.
local function spared_until(lease_ms)
  local known, told = call('HMGET', META, 'run', 'sparesUntil'), redis.pcall('INFO', 'server', 'replication')
  local run = type(told) == 'string' and string.match(told, 'run_id:(%x+)')
  local took_over = run and string.match(told, 'second_repl_offset:(%d+)')
  if took_over then run = run .. ' ' .. took_over end
  if not run or run == known[1] then return tonumber(known[2]) or 0 end
  local since = took_over and now or now - string.match(told, 'uptime_in_seconds:(%d+)') * 1000
  call('HSET', META, 'run', run, 'sparesUntil', since + lease_ms, 'seenAt', now)
  return since + lease_ms
end
`
