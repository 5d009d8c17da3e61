/**
 * The lease amnesty of a restarted server, in Lua: it spares leases that ended while nobody could renew them. The
 * translation of a part of `recover`. The function is made only when a claim finds ended leases.
 */
export const leaseAmnesty = `
-- Until when ended leases are left alone. If this is another run of the server than the last one that a claim found,
-- they are spared for one lease from its start. If the server has taken over as master since, they are spared for one
-- lease from now, because the server does not say since when it is the master. If the user may not ask for these, none
-- are spared.
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
