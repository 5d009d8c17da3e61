/** How a claim takes the jobs of an ordered shard with their payloads, in Lua. */

import { upkeepLimit } from '../../rules/bounds.js'
import { readyJobs } from '../lua/ready-lua.js'
import { isDated } from '../lua/record-lua.js'
import { stranding } from '../lua/transit-lua.js'
import type { ClaimKind } from './claim-loop-lua.js'

/** The most payloads of a claim. Even small ones must not keep other calls waiting. */
const mostPayloads = 4_000

const take = String.raw`
-- The bytes and payloads that the claim has taken so far. For the current shard also its number n, its fence (nil
-- before the first job) and the ids taken.
local hand = { bytes = tonumber(ARGV[7]), payloads = 0 }
local function is_filled() return hand.bytes >= most_bytes or hand.payloads >= ${mostPayloads} end
local take_places, take_ready
do
-- The payloads that a claim takes of an id. max 0: all; otherwise the first ones, at most max and at most as many bytes
-- as a claim may have, but at least one. Returns the members found, how many of them are taken, and their bytes.
local function taken_of(id, max)
  local members, from, own = members_in(PAYLOADS, id, max == 0 and -1 or max + 1), #id + 16, 0
  for i = 1, #members do
    local size = unpackn('>I4', members[i], from)
    if i > 1 and max > 0 and (i > max or own + size > most_bytes) then return members, i - 1, own end
    own = own + size
  end
  return members, #members, own
end
-- Takes jobs at the first of these places, as many as the claim has room for, and leaves the places in their set.
-- Returns how many, and whether it stopped at a job without a record. It reads few records first and then more at a
-- time, so that it does not read large ones in vain.
function take_places(places, has_group)
  local ids, records, counts, lefts, gone, fields, count, many_taken, is_lost = {}, {}, {}, {}, {}, {}, 0, 0, false
  local some, upto, step = nil, 0, 4
  for i = 1, #places do ids[i] = sub(places[i], 16) end
  for i = 1, #ids do
    if is_filled() then break end
    if i > upto then
      some, step = call('HMGET', JOBS, unpack(ids, i, math.min(#ids, i + step - 1))), step * 4
      for n = 1, #some do records[upto + n] = some[n] end
      upto = upto + #some
    end
    local rec, id = records[i], ids[i]
    is_lost = not rec
    if is_lost then break end
    local own, number, own_bytes = own_at(rec), 1, 0
    if own then
      own_bytes = weight_from(rec, own + 22)
      counts[i] = 0
    else
      local members
      members, number, own_bytes = taken_of(id, hand.max)
      local digest_from = #id + 20
      for m = 1, number do
        gone[#gone + 1] = members[m]
        fields[#fields + 1] = id .. '\0' .. sub(members[m], digest_from)
      end
      counts[i], lefts[i], many_taken = number, number < #members, many_taken + 1
    end
    count, hand.bytes, hand.payloads = i, hand.bytes + own_bytes, hand.payloads + number
  end
  if count == 0 then return 0, is_lost end
  for i = #ids, count + 1, -1 do ids[i] = nil end
  local values = values_of(BODIES, fields)
  local pasts, errors = {}, {}
  if call('EXISTS', HISTORY) == 1 then
    local notes, past_found = {}, call('HMGET', HISTORY, unpack(ids))
    for i = 1, count do notes[i] = 'e' .. ids[i] end
    errors = call('HMGET', NOTES, unpack(notes))
    for i = 1, count do pasts[i], errors[i] = past_found[i] or '', errors[i] and '=' .. errors[i] or '' end
  end

  local last = call('HMGET', META, 'fence', 'stamp')
  hand.fence = hand.fence or math.max(now * 1000, tonumber(last[1]) + 1)
  local base = (alone and ALONE or 0) + (has_group and HASGROUP or 0)
  local head, head_past = claim_head(hand.fence, now, base, worker), claim_head(hand.fence, now, base + HASHISTORY, worker)
  local claims, hands, successors, text, stamp, value = {}, {}, {}, {}, tonumber(last[2]), 0
  for i = 1, count do
    local id, rec, number, packed = ids[i], records[i], counts[i], ''
    if number == 0 then
      -- The only payload stays in the record and is returned with it.
    elseif number == 1 then
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
    if number > 0 then
      hands[#hands + 1] = id
      hands[#hands + 1] = packed
    end
    claims[i * 2 - 1], claims[i * 2] = id, (pasts[i] and pasts[i] ~= '' and head_past or head) .. sub(rec, 2, 14) .. id
    if lefts[i] then
      stamp = next_stamp(stamp)
      local created = ${isDated('rec')} and sub(rec, 15, 20) or pack('>I6', math.floor(unpackn('>I7', rec, 2) / 1000))
      successors[#successors + 1] = id
      successors[#successors + 1] = pack('>I7', stamp) .. created .. 'r'
    end
    local t = i * 7
    text[t - 6], text[t - 5], text[t - 4], text[t - 3] = id, '\0', pack('>I3', #rec), rec
    text[t - 2], text[t - 1], text[t] = pack('>I4', #packed), packed, lefts[i] and 'm' or '.'
    hand.ids[#hand.ids + 1] = id
  end
  call('HSET', META, 'fence', hand.fence, 'stamp', stamp, 'seenAt', now)
  many('HSET', CLAIMS, claims)
  many('ZREM', PAYLOADS, gone)
  many('HDEL', BODIES, fields)
  many('HSET', CLAIMED_PAYLOADS, hands)
  many('HSET', SUCCESSORS, successors)
  if many_taken > 0 then call('HINCRBY', META, 'many', -many_taken) end
  for _, part in ipairs({ hand.n, hand.fence, table.concat(text), pasts, errors, {}, {} }) do grants[#grants + 1] = part end
  return count, false
end
function take_ready(count)
  for _ = 1, ${upkeepLimit} do
    local places = call('ZRANGE', READY, 0, count - 1)
    local taken, is_lost = take_places(places, false)
    if taken > 0 then call('ZREMRANGEBYRANK', READY, 0, taken - 1) end
    if taken > 0 or not is_lost then return taken end
    call('ZREM', READY, places[1])
    pass_over(sub(places[1], 16), sub(places[1], 10, 15))
  end
  return 0
end
end
-- Puts all jobs taken from the shard under one lease.
local function grant(n, lease_ms)
  local fence_bytes = pack('>I7', hand.fence)
  call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
  call('HSET', BATCHES, 'n' .. fence_bytes, #hand.ids, 'i' .. fence_bytes, table.concat(hand.ids, '\0'))
end
`

const takeOthers = `
local function take_lane(group, count, tries)
  local places = lanes.first_of(group, count)
  for i = 1, #places do places[i] = sub(places[i], #group + 2) end
  local taken, is_lost = take_places(places, true)
  if taken == 0 and is_lost then
    lanes.leave(group, { places[1] })
    pass_over(sub(places[1], 16), sub(places[1], 10, 15))
    tries = tries or ${upkeepLimit}
    return tries > 1 and take_lane(group, count, tries - 1) or 0
  end
  for i = #places, taken + 1, -1 do places[i] = nil end
  lanes.leave(group, places)
  if taken > 0 then call('HINCRBY', RUNNING_BY_GROUP, group, taken) end
  return taken
end
local function take_suspect(member, group)
  take_places({ member }, group ~= '')
  call('ZREM', SUSPECTS, member)
  if group ~= '' then call('HINCRBY', RUNNING_BY_GROUP, group, 1) end
end
`

export const orderedClaim: ClaimKind = {
  fields: ['exclusive', 'merge', 'resharding'],
  rare: stranding + readyJobs,
  take,
  begin: `EXCLUSIVE, LATEST, STOPPED = form[12] == 'shard', form[13] == 'latest', STOPPED or form[14] ~= false
  hand.n, hand.fence, hand.ids, hand.max = n, nil, {}, max_payloads`,
  before: `if call('EXISTS', TRANSIT) == 1 and is_stranded() then tells[#tells + 1] = n end`,
  expire: 'local has_expired = false',
  isSimple: `not alone and not own.limited and call('EXISTS', LANES) == 0`,
  takeSimple: 'count = take_ready(asked_for)',
  takeOthers,
  groupless: `call('ZCARD', READY)`,
  weight: 'hand.bytes',
}
