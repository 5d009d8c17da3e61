/** The claim script of ordered queues: the one atomic step in which jobs are recovered, promoted and taken with their payloads. */

import { redisScript } from '../redis-script.js'
import { crashes } from './crash-lua.js'
import { leads } from './leads-lua.js'
import { orderedJobs } from './ordered-lua.js'
import { prelude } from './prelude.js'
import { readyJobs } from './ready-lua.js'
import { transit } from './transit-lua.js'

/**
 * KEYS: those of each shard asked, one after the other.
 * ARGV: worker, alone (1 or 0), heads (1 or 0), most bytes, jobs that the first queue has granted before; of each shard the
 * number of its queue (in the order in which they are asked), its limit, lease in ms, and most payloads of an id (0: all).
 * Returns { now, grants, whether nothing more may be granted (1 or 0), waits, crashed, buried, heads, more }.
 * grants: of each shard that granted its index, fence, jobs, pasts, errors. jobs is one text: of each its id and NUL, the
 * length of its record in 3 bytes, the record, the length of its payloads in 4 bytes, the payloads (as in INHAND), and `m`
 * where some were left behind, else `.`. pasts and errors: none, or of each job its past, and its error behind `=`, or ''.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · heads: per shard the age in ms, or -1.
 *
 * The first queue that grants is filled from its shards up to the limit of each, less what those before it granted; of
 * `exclusive: 'shard'` one shard only. Refuses `unknown`.
 */
const text = String.raw`
local worker, alone, wants_heads, most_bytes, granted = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[5])
-- A claim is not to keep others waiting for payloads, however small they are.
local most_payloads = 4000
local grants, crashed, buried, heads = {}, {}, {}, {}
local more = false
for n = 0, #KEYS / SIZE - 1 do
  at(n)
  if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
end

-- The payloads that a claim takes of a set: the first, as many as it may, and of those so many bytes; and whether some are left.
local function taken_of(id, max)
  local members, from, bytes = members_in(PAYLOADS, id, max == 0 and -1 or max + 1), #id + 16, 0
  for i = 1, #members do
    local size = unpackn('>I4', members[i], from)
    if i > 1 and max > 0 and (i > max or bytes + size > most_bytes) then return members, i - 1, bytes end
    bytes = bytes + size
  end
  return members, #members, bytes
end
local function take(n, limit, lease_ms, max, meta)
  local suspect = alone and call('ZRANGE', SUSPECTS, 0, 0)[1]
  local places = suspect and { suspect } or call('ZRANGE', READY, 0, limit - 1)
  local ids, counts, lefts, gone, fields, bytes, count = {}, {}, {}, {}, {}, 0, 0
  for i = 1, #places do
    if bytes >= most_bytes or #gone >= most_payloads then break end
    local id = sub(places[i], 16)
    local members, number, own_bytes = taken_of(id, max)
    local digest_from = #id + 20
    for m = 1, number do
      gone[#gone + 1] = members[m]
      fields[#fields + 1] = id .. '\0' .. sub(members[m], digest_from)
    end
    ids[i], counts[i], lefts[i], bytes, count = id, number, number < #members, bytes + own_bytes, i
  end
  if count == 0 then return 0 end
  local records, values = call('HMGET', JOBS, unpack(ids)), values_of(BODIES, fields)
  local pasts, errors = {}, {}
  if call('EXISTS', PAST) == 1 then
    local notes, past_found = {}, call('HMGET', PAST, unpack(ids))
    for i = 1, count do notes[i] = 'e' .. ids[i] end
    errors = call('HMGET', NOTES, unpack(notes))
    for i = 1, count do pasts[i], errors[i] = past_found[i] or '', errors[i] and '=' .. errors[i] or '' end
  end

  local fence = math.max(now * 1000, tonumber(meta.fence) + 1)
  local base = alone and ALONE or 0
  local head, head_past = claim_head(fence, now, base, worker), claim_head(fence, now, base + HASPAST, worker)
  local claims, hands, besides, text, stamp, value = {}, {}, {}, {}, tonumber(meta.stamp), 0
  for i = 1, count do
    local id, rec, number, packed = ids[i], records[i], counts[i], nil
    if number == 1 then
      value = value + 1
      packed = pack('>I4I4', 1, 22 + #values[value]) .. sub(fields[value], #id + 2) .. values[value]
    else
      local parts = { pack('>I4', number) }
      for _ = 1, number do
        value = value + 1
        parts[#parts + 1] = pack('>I4', 22 + #values[value])
        parts[#parts + 1] = sub(fields[value], #id + 2)
        parts[#parts + 1] = values[value]
      end
      packed = table.concat(parts)
    end
    hands[i * 2 - 1], hands[i * 2] = id, packed
    claims[i * 2 - 1], claims[i * 2] = id, (pasts[i] and pasts[i] ~= '' and head_past or head) .. sub(rec, 2, 14) .. id
    if lefts[i] then
      stamp = next_stamp(stamp)
      local created = byte(rec) < 97 and sub(rec, 15, 20) or pack('>I6', math.floor(unpackn('>I7', rec, 2) / 1000))
      besides[#besides + 1] = id
      besides[#besides + 1] = pack('>I7', stamp) .. created
    end
    local t = i * 7
    text[t - 6], text[t - 5], text[t - 4], text[t - 3] = id, '\0', pack('>I3', #rec), rec
    text[t - 2], text[t - 1], text[t] = pack('>I4', #packed), packed, lefts[i] and 'm' or '.'
  end
  local fence_bytes = pack('>I7', fence)
  call('HSET', META, 'fence', fence, 'stamp', stamp)
  many('HSET', CLAIMS, claims)
  call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
  call('HSET', BATCHES, 'n' .. fence_bytes, count, 'i' .. fence_bytes, table.concat(ids, '\0'))
  call('ZREMRANGEBYRANK', suspect and SUSPECTS or READY, 0, count - 1)
  many('ZREM', PAYLOADS, gone)
  many('HDEL', BODIES, fields)
  many('HSET', INHAND, hands)
  many('HSET', BESIDE, besides)
  for _, part in ipairs({ n, fence, table.concat(text), pasts, errors }) do grants[#grants + 1] = part end
  return count
end

local queue, over = 1, false
for n = 0, #KEYS / SIZE - 1 do
  local a = 6 + n * 4
  local own_queue, limit, lease_ms, max = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  over = granted > 0 and (own_queue ~= queue or alone or limit <= granted)
  if over then break end
  at(n)
  local values = call('HMGET', META, 'fence', 'stamp', 'maxCrashes', 'leader', 'leadAt', 'roomer', 'roomAt')
  know_form()
  over = granted > 0 and EXCLUSIVE
  if over then break end
  queue = own_queue
  local leader, lead_at = values[4], tonumber(values[5])

  if call('EXISTS', TRANSIT) == 1 then return_transit() end
  -- Recover: every lease that has ended is a crash.
  local before = #crashed
  for _, j in ipairs(ended_leases()) do crash(j, tonumber(values[3]), n, crashed, buried) end
  -- Promote.
  for _, member in ipairs(call('ZRANGE', LATER, '-', '(' .. pack('>I7', (now + 1) * 1000), 'BYLEX', 'LIMIT', 0, 100)) do
    local j = job(sub(member, 14))
    leave(j)
    enter(j, 'r')
  end
  if #crashed > before then tell_ends() end

  local count, room = 0, limit - granted
  if room > 0 and not STOPPED and not is_full() then
    count = take(n, alone and 1 or room, lease_ms, max, { fence = values[1], stamp = call('HGET', META, 'stamp') })
    granted = granted + count
  end
  local ready, suspects, full, change = call('ZCARD', READY), call('ZCARD', SUSPECTS), is_full(), first_change()
  local is_open = not STOPPED and not full

  -- A lead that was granted something may have no room to ask again.
  local has_left = count > 0 and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'leader', 'leadAt')
    lead_at = nil
  end
  if count == 0 and not (is_open and (ready > 0 or (alone and suspects > 0))) then
    local reason = STOPPED and 'paused' or (full and 'full' or (call('EXISTS', LATER) == 1 and 'scheduled' or 'empty'))
    lead_at = lead_change(n, worker, reason, not STOPPED and change, leader, lead_at)
  end
  if is_open then lead_suspects(n, worker, suspects, alone or room == 0, values[6], tonumber(values[7])) end

  -- One waiter was woken; whoever takes some and leaves some wakes the next. Who finds nothing left takes back the ring.
  if (is_open and ready > 0) or has_left then ring_unpaused()
  elseif count > 0 then
    local first = call('ZRANGE', LATER, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  else call('DEL', WAKE) end
  more = more or (not STOPPED and ((not full and ready > 0) or (change and change <= now)))
end
if wants_heads then
  for n = 0, #KEYS / SIZE - 1 do
    at(n)
    know_order()
    local oldest = oldest_in(READY)
    heads[n + 1] = oldest and age_of(oldest) or -1
  end
end
return { now, grants, over and 1 or 0, waits, crashed, buried, heads, more and 1 or 0 }
`

export const claimOrderedScript = (isCluster: boolean) =>
  redisScript(
    'claim-ordered',
    prelude(isCluster, 'ordered') + orderedJobs + transit + readyJobs + crashes + leads + text,
    {
      whenFull: true,
    },
  )
