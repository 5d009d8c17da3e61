/**
 * The changes that a claim finds due: leases that have ended, and the crashes that they mean. And the lead: the worker
 * that asks again when something changes by itself. It needs the `tied` of the kind of queue.
 */

import { upkeepLimit } from '../../rules/bounds.js'
import { suspectLeadMs } from '../../rules/wake-lead.js'

/**
 * The lease amnesty of a restarted server, in Lua: it spares leases that ended while nobody could renew them. The
 * translation of a part of `recover`. The function is made only when a claim finds ended leases.
 */
const leaseAmnesty = `
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

export const leads = `
local waits = {}
local function wait_for(index, reason, for_ms, leads)
  for _, part in ipairs({ index, reason, for_ms or -1, leads and 1 or 0 }) do waits[#waits + 1] = part end
end
-- The instant of the next change, or nil. spares_until: until when ended leases are left alone.
local function first_change(spares_until)
  local change
  local first = call('ZRANGE', SCHEDULED, 0, 0)[1]
  if first then change = math.floor(unpackn('>I7', first) / 1000) end
  local lease = call('ZRANGE', LEASES, 0, 0, 'WITHSCORES')[2]
  if lease then
    lease = math.max(lease, spares_until or 0)
    if not change or lease < change then change = lease end
  end
  local opening = limits().limited and lanes.next_opening()
  if opening and (not change or opening < change) then change = opening end
  return change
end

-- The jobs whose leases have ended, in the order of these ends, then in that of tied. Returns none while ended leases
-- are left alone. The second result is until when they are.
local function ended_leases(lease_ms, spares_until)
  local ended, last_at = {}, nil
  local members = call('ZRANGE', LEASES, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${upkeepLimit})
  if not members[1] then return ended, spares_until end
  ${leaseAmnesty}
  spares_until = spared_until(lease_ms)
  if spares_until > now then return ended, spares_until end
  for _, member in ipairs(members) do
    local ended_at, fence_bytes = tonumber(call('ZSCORE', LEASES, member)), sub(member, 2)
    -- A shared lease may have many jobs: leases that ended later wait for the next call.
    if #ended >= ${upkeepLimit} and ended_at ~= last_at then break end
    last_at = ended_at
    local is_shared = byte(member) == 0
    local of_some = false
    for id in string.gmatch(is_shared and (call('HGET', BATCHES, 'i' .. fence_bytes) or '') or member, '%Z+') do
      local j, claim = job(id), nil
      claim = j and j.claim and j.claim.text or (not j and call('HGET', CLAIMS, id))
      if claim and has(byte(claim, 14) - 64, OWNLEASE) ~= is_shared and (not is_shared or sub(claim, 1, 7) == fence_bytes) then
        of_some = true
        if j then
          j.ended_at = ended_at
          ended[#ended + 1] = j
        else pass_over(id, read_claim(claim).seq, claim) end
      end
    end
    -- A lease without a claim would be found again by every call.
    if not of_some then
      call('ZREM', LEASES, member)
      if is_shared then call('HDEL', BATCHES, 'n' .. fence_bytes, 'i' .. fence_bytes) end
    end
  end
  table.sort(ended, function(a, b)
    if a.ended_at ~= b.ended_at then return a.ended_at < b.ended_at end
    return tied(a, b)
  end)
  for i = #ended, ${upkeepLimit + 1}, -1 do ended[i] = nil end
  return ended, spares_until
end
-- Reports the wait for the next change, and makes the worker the lead if it asks before the present one. Returns when
-- the lead asks, or nil if there is none.
local function lead_change(index, worker, reason, change, leader, lead_at)
  local for_ms = change and math.max(0, change - now) or nil
  if for_ms then
    if not (is_led(lead_at) and leader ~= worker and lead_at <= now + for_ms) then
      leader, lead_at = worker, now + for_ms
      call('HSET', META, 'lead', worker, 'leadAt', lead_at, 'seenAt', now)
    end
  elseif leader == worker then
    call('HDEL', META, 'lead', 'leadAt')
    lead_at = nil
  end
  wait_for(index, reason, for_ms, for_ms and leader == worker)
  return lead_at
end
-- Reports the wait for suspects, and makes the worker the one that makes room for them if there is none.
local function lead_suspects(index, worker, suspects, makes_room, suspect_leader, suspect_lead_at)
  if suspects > 0 then
    local leads = not (is_led(suspect_lead_at) and not (suspect_leader == worker and makes_room))
    if leads then call('HSET', META, 'suspectLead', worker, 'suspectLeadAt', now + ${suspectLeadMs}, 'seenAt', now) end
    wait_for(index, 'suspect', ${suspectLeadMs}, leads)
  elseif suspect_leader then call('HDEL', META, 'suspectLead', 'suspectLeadAt') end
end
`

/** A crash in Lua: it ends the claim of a running job whose lease has ended. The translation of `afterCrash`. */
export const crashes = `
-- Ends the claim and reports it: adds index, id, task, worker, charged, crashes to crashed; for a job that is buried
-- also index, id, task, reason, fence and, in an ordered queue, its buried payload, otherwise '', to buried.
-- error: how the worker died; nil if that is not known.
local function crash(j, max_crashes, index, crashed, buried, error)
  local alone = has(j.claim.flags, ALONE)
  if alone then j.crashes = j.crashes + 1 end
  for _, part in ipairs({ index, j.id, j.task, j.claim.worker, alone and 1 or 0, j.crashes }) do crashed[#crashed + 1] = part end
  call('HINCRBY', META, 'crashed', 1)
  if error then call('HSET', NOTES, 'e' .. j.id, error) end
  if has(j.claim.flags, CANCEL) then finish(j, 'x')
  elseif alone and j.crashes >= max_crashes then
    local fence = j.claim.fence
    for _, part in ipairs({ index, j.id, j.task, 'crashed', fence, exhaust(j, 'crashed') or '' }) do buried[#buried + 1] = part end
  else put_back(j, true) end
end
`
