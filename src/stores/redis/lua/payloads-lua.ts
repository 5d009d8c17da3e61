/**
 * The payloads of ordered jobs in Lua. Each set of payloads is a sorted set, which has the order, and a hash with the
 * bodies. The translation of `rules/payloads`. It needs the prelude of ordered queues.
 */

import { mostCounted } from './prelude.js'
import { flagsAt } from './record-lua.js'

export const payloadReads = String.raw`
local LATEST, DISTINCT = false, false
-- A place. The sign of its score is inverted, for a negative score all bits, so that the order of bytes is that of
-- numbers.
local function place_bytes(score, arrival)
  if score >= 0 then return pack('>dI6', -score, arrival) end
  local b = { byte(pack('>d', score), 1, 8) }
  for i = 1, 8 do b[i] = 255 - b[i] end
  return char(unpack(b)) .. pack('>I6', arrival)
end
-- The bytes of payload and meta of a value that begins at from and ends the text. They come after the place (14 bytes),
-- the flags, and the codec and the length of meta if flagged. A payload's member of a set contains this weight.
local function weight_from(text, from)
  local flags, stop = byte(text, from + 14) or 0, from + 14
  if flags % 8 >= 4 then stop = find(text, '\0', stop + 1, true) or stop end
  if flags % 32 >= 16 then stop = find(text, '\0', stop + 1, true) or stop end
  return math.max(0, #text - stop)
end
local function member_of(id, digest, value) return id .. '\0' .. sub(value, 1, 14) .. pack('>I4', weight_from(value, 1)) .. digest end
-- Where the only payload of a record begins, its digest and then its value; nil if its payloads are in their set.
local function own_at(rec)
  local flags_at = ${flagsAt('rec')}
  local stop = find(rec, '\0', flags_at + 1, true)
  if byte(rec, flags_at) == 72 then stop = find(rec, '\0', stop + 1, true) end
  return #rec > stop and stop + 1 or nil
end
-- Whether the place of a value comes before that of the other. False for equal places.
local function is_before(value, other)
  local a, b, c = unpackn('>I4I4I6', value)
  local x, y, z = unpackn('>I4I4I6', other)
  if a ~= x then return a < x end
  if b ~= y then return b < y end
  return c < z
end
-- The first count members of an id's set; -1 for all.
local function members_in(set, id, count) return call('ZRANGE', set, '[' .. id .. '\0', '(' .. id .. '\1', 'BYLEX', 'LIMIT', 0, count) end
local function count_in(set, id) return call('ZLEXCOUNT', set, '[' .. id .. '\0', '(' .. id .. '\1') end
local function fields_of(id, members)
  local fields, from = {}, #id + 20
  for i = 1, #members do fields[i] = id .. '\0' .. sub(members[i], from) end
  return fields
end
-- The number of waiting payloads, in records and in sets. many: the waiting jobs whose payloads are in their sets.
local function payload_count(many) return call('ZCARD', PAYLOADS) + call('HLEN', JOBS) - call('HLEN', CLAIMS) - tonumber(many or 0) end
local function values_of(bodies, fields)
  local values = {}
  for i = 1, #fields, 1000 do
    local some = call('HMGET', bodies, unpack(fields, i, math.min(i + 999, #fields)))
    for n = 1, #some do values[i + n - 1] = some[n] end
  end
  return values
end
`

/** Functions that change sets. Most calls change them in simpler ways. */
export const payloadChanges = String.raw`
-- Removes these members from a set.
local function remove_members(set, bodies, id, members)
  many('ZREM', set, members)
  many('HDEL', bodies, fields_of(id, members))
end
local function keep_last(set, bodies, id)
  local members = members_in(set, id, -1)
  members[#members] = nil
  if #members > 0 then remove_members(set, bodies, id, members) end
end
-- The first count payloads of an id's set as a list: digest and value in turn.
local function list_in(set, bodies, id, count)
  local members, list = members_in(set, id, count), {}
  local values, from = values_of(bodies, fields_of(id, members)), #id + 20
  for i = 1, #members do list[i * 2 - 1], list[i * 2] = sub(members[i], from), values[i] end
  return list, members
end
-- Adds payloads to the set of an id. Of those with one digest the first in order stays, whole. The translation of merged.
local function add_payloads(set, bodies, id, list)
  local fields = {}
  for i = 1, #list, 2 do fields[#fields + 1] = id .. '\0' .. list[i] end
  local equals = values_of(bodies, fields)
  local gone, members, values = {}, {}, {}
  for i = 1, #fields do
    local digest, value, equal = list[i * 2 - 1], list[i * 2], equals[i]
    if not equal or is_before(value, equal) then
      if equal then gone[#gone + 1] = member_of(id, digest, equal) end
      members[#members + 1] = 0
      members[#members + 1] = member_of(id, digest, value)
      values[#values + 1] = fields[i]
      values[#values + 1] = value
    end
  end
  many('ZREM', set, gone)
  many('ZADD', set, members)
  many('HSET', bodies, values)
  if LATEST then keep_last(set, bodies, id) end
end
local function drop_payloads(set, bodies, id)
  local members = members_in(set, id, -1)
  if #members > 0 then remove_members(set, bodies, id, members) end
end
-- The only payload of a record, as a list; nil if its payloads are in their set.
local function own_list(id)
  local rec = call('HGET', JOBS, id)
  local from = rec and own_at(rec)
  if not from then return nil end
  return { sub(rec, from, from + 21), sub(rec, from + 22) }, sub(rec, 1, from - 1)
end
-- Adds payloads to those that wait for an id. If j is a waiting job, all its payloads are in their set afterwards.
local function add_waiting(id, j, list)
  local own, rec
  if j and not j.claim then own, rec = own_list(id) end
  if own then
    call('HSET', JOBS, id, rec)
    call('HINCRBY', META, 'many', 1)
    add_payloads(PAYLOADS, BODIES, id, own)
  end
  add_payloads(PAYLOADS, BODIES, id, list)
end
-- Counts the waiting jobs whose payloads are in sets, one by one. Nil if there are too many jobs to count.
local function count_many()
  if call('HLEN', JOBS) > ${mostCounted} then return nil end
  local many = 0
  for _, id in ipairs(call('HKEYS', JOBS)) do
    local rec = call('HEXISTS', CLAIMS, id) == 0 and call('HGET', JOBS, id)
    if rec and #rec > 16 and not own_at(rec) then many = many + 1 end
  end
  return many
end
-- The number of payloads that wait for an id, whether its job waits or runs.
local function waiting_of(j) return not j.claim and own_list(j.id) and 1 or count_in(PAYLOADS, j.id) end
-- The payloads that a claim took, as a list.
local function hand_of(id)
  local packed, list, from = call('HGET', CLAIMED_PAYLOADS, id), {}, 5
  if not packed then return (own_list(id)) end
  while from <= #packed do
    local stop = from + 3 + unpackn('>I4', packed, from)
    list[#list + 1] = sub(packed, from + 4, from + 25)
    list[#list + 1] = sub(packed, from + 26, stop)
    from = stop + 1
  end
  return list
end
`
