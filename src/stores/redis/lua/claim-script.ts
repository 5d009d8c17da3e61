/** The claim script: the one atomic step in which jobs are recovered, promoted and taken. */

import { redisScript } from '../redis-script.js'
import { crashes } from './crash-lua.js'
import { leads } from './leads-lua.js'
import { bySequence, jobs, prelude } from './prelude.js'
import { readyJobs } from './ready-lua.js'

/**
 * KEYS: those of each shard asked, one after the other.
 * ARGV: worker, alone (1 or 0), heads (1 or 0), most bytes; of each shard its limit and lease in ms.
 * Returns { now, index of the shard that granted or -1, fence, jobs, pasts, errors, waits, crashed, buried, heads, more }.
 * jobs is one text: of each its id and NUL, the length of its record in 3 bytes, and the record. Of jobs from the line there
 * are no pasts and errors; where others were taken there is one for each job, or ''.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · heads: per shard the age in ms, or -1.
 *
 * Refuses `unknown`.
 */
const text = String.raw`
local worker, alone, wants_heads, most_bytes = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local crashed, buried, heads = {}, {}, {}
local granted, fence, ids, records, pasts, errors = -1, 0, {}, {}, {}, {}
local more = false
for n = 0, #KEYS / SIZE - 1 do
  at(n)
  if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
end

-- Records of the first jobs among those found: a claim ends where it has enough bytes. Large ones are not read in vain:
-- the first few tell how many more there may be.
local function records_of(found)
  local bytes, count, step = 0, 0, 4
  while count < #found and bytes < most_bytes do
    if count > 0 then step = math.min(step * 4, math.ceil((most_bytes - bytes) * count / bytes)) end
    local upto = math.min(count + step, #found)
    local some = call('HMGET', JOBS, unpack(found, count + 1, upto))
    for i = 1, #some do
      if count > 0 and bytes >= most_bytes then break end
      count = count + 1
      ids[count], records[count] = found[count], some[i]
      bytes = bytes + #some[i]
    end
  end
  return count
end
-- Writes the claims down; elements as in the line.
local function hold(count, elements, lease_ms, last_fence)
  fence = math.max(now * 1000, tonumber(last_fence) + 1)
  call('HSET', META, 'fence', fence)
  local heads_by, base = {}, alone and ALONE or 0
  local claims, fence_bytes = {}, pack('>I7', fence)
  for i = 1, count do
    local rec, flags = records[i], base
    if byte(rec, byte(rec, 1) < 97 and 21 or 15) % 2 == 1 then flags = flags + REMEMBERED end
    if pasts[i] and pasts[i] ~= '' then flags = flags + HASPAST end
    local head = heads_by[flags]
    if not head then
      head = claim_head(fence, now, flags, worker)
      heads_by[flags] = head
    end
    claims[i * 2 - 1], claims[i * 2] = ids[i], head .. elements[i]
  end
  many('HSET', CLAIMS, claims)
  call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
  call('HSET', BATCHES, 'n' .. fence_bytes, count, 'i' .. fence_bytes, table.concat(ids, '\0'))
end
-- From the line alone, which is what nearly every claim does.
local function take_from_line(limit, lease_ms, meta)
  local elements, found = call('LRANGE', LINE, 0, limit - 1), {}
  for i = 1, #elements do found[i] = sub(elements[i], 14) end
  local count = records_of(found)
  if count == 0 then return 0 end
  hold(count, elements, lease_ms, meta.fence)
  call('LTRIM', LINE, count, -1)
  return count
end
local function take_in_order(limit, lease_ms, meta)
  local suspect = alone and call('ZRANGE', SUSPECTS, 0, 0)[1]
  local taken = suspect and { { id = sub(suspect, 16), member = suspect } } or first_ready(limit, tonumber(meta.stale), most_bytes)
  local found = {}
  for i = 1, #taken do found[i] = taken[i].id end
  local count = records_of(found)
  if count == 0 then return 0 end
  local notes, elements, line_upto, rank = {}, {}, 0, 0
  for i = 1, count do
    notes[i] = 'e' .. ids[i]
    elements[i] = taken[i].element or sub(records[i], 2, 14) .. ids[i]
    if taken[i].upto then line_upto = taken[i].upto else rank = rank + 1 end
  end
  local past_found = call('HMGET', PAST, unpack(ids))
  errors = call('HMGET', NOTES, unpack(notes))
  for i = 1, count do pasts[i], errors[i] = past_found[i] or '', errors[i] and '=' .. errors[i] or '' end
  hold(count, elements, lease_ms, meta.fence)
  if suspect then call('ZREM', SUSPECTS, suspect)
  elseif rank > 0 then call('ZREMRANGEBYRANK', READY, 0, rank - 1) end
  if line_upto > 0 then
    call('LTRIM', LINE, line_upto, -1)
    if line_upto > count - rank then call('HINCRBY', META, 'stale', count - rank - line_upto) end
  end
  return count
end

for n = 0, #KEYS / SIZE - 1 do
  at(n)
  local values = call('HMGET', META, 'order', 'paused', 'stale', 'fence', 'maxCrashes', 'leader', 'leadAt', 'roomer', 'roomAt')
  LIFO = values[1] == 'lifo'
  local meta = { stale = values[3], fence = values[4] }
  local paused, limit, lease_ms = values[2] == '1', tonumber(ARGV[5 + n * 2]), tonumber(ARGV[6 + n * 2])
  local leader, lead_at = values[6], tonumber(values[7])

  -- Recover: every lease that has ended is a crash.
  for _, j in ipairs(ended_leases()) do crash(j, tonumber(values[5]), n, crashed, buried) end
  -- Promote.
  for _, member in ipairs(call('ZRANGE', LATER, '-', '(' .. pack('>I7', (now + 1) * 1000), 'BYLEX', 'LIMIT', 0, 100)) do
    local j = job(sub(member, 14))
    leave(j)
    enter(j, 'r')
  end
  if #crashed > 0 then tell_ends() end

  local count = 0
  if not paused and limit > 0 then
    local is_plain = not alone and meta.stale == '0' and call('EXISTS', READY) == 0
    if is_plain then count = take_from_line(limit, lease_ms, meta)
    else
      if meta.stale ~= '0' then
        sweep_line(1)
        meta.stale = call('HGET', META, 'stale')
      end
      count = take_in_order(alone and 1 or limit, lease_ms, meta)
      meta.stale = call('HGET', META, 'stale')
    end
    if count > 0 then granted = n end
  end
  local ready = ready_count(tonumber(meta.stale))
  local suspects = call('ZCARD', SUSPECTS)
  local change = first_change()

  -- Who asks again when something changes by itself. A lead that was granted something may have no room to ask again.
  local has_left = count > 0 and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'leader', 'leadAt')
    lead_at = nil
  end
  if count == 0 and (paused or not (ready > 0 or (alone and suspects > 0))) then
    local reason = paused and 'paused' or (call('EXISTS', LATER) == 1 and 'scheduled' or 'empty')
    lead_at = lead_change(n, worker, reason, not paused and change, leader, lead_at)
  end
  if not paused then lead_suspects(n, worker, suspects, alone or limit == 0, values[8], tonumber(values[9])) end

  -- One waiter was woken; whoever takes some and leaves some wakes the next. Who finds nothing left takes back the ring.
  if ready > 0 or has_left then
    if not paused then ring() end
  elseif count > 0 then
    local first = call('ZRANGE', LATER, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  else call('DEL', WAKE) end
  more = more or (not paused and (ready > 0 or (change and change <= now)))
  if count > 0 then break end
end
if wants_heads then
  for n = 0, #KEYS / SIZE - 1 do
    at(n)
    know_order()
    local oldest = oldest_ready(tonumber(call('HGET', META, 'stale')))
    heads[n + 1] = oldest and age_of(oldest) or -1
  end
end
local taken = {}
for i = 1, #ids do
  local n = i * 4
  taken[n - 3], taken[n - 2], taken[n - 1], taken[n] = ids[i], '\0', pack('>I3', #records[i]), records[i]
end
return { now, granted, fence, table.concat(taken), pasts, errors, waits, crashed, buried, heads, more and 1 or 0 }
`

export const claimScript = (isCluster: boolean) =>
  redisScript('claim', prelude(isCluster) + jobs + bySequence + readyJobs + crashes + leads + text, { whenFull: true })
