/** The claim script of ordered queues: the one atomic step in which jobs are recovered, promoted and taken with their payloads. */

import { upkeepLimit } from '../../rules/bounds.js'
import { crashes } from '../lua/crash-lua.js'
import { leads } from '../lua/leads-lua.js'
import { orderedJobs } from '../lua/ordered-lua.js'
import { shardScript } from '../lua/prelude.js'
import { readyAges } from '../lua/ready-lua.js'
import { setBack } from '../lua/set-back-lua.js'
import { transit } from '../lua/transit-lua.js'
import { taking } from './fair-share-lua.js'
import { gate, heads } from './throttle-gate-lua.js'

/** Most payloads of a claim: it is not to keep others waiting for them, however small they are. */
const mostPayloads = 4_000

/**
 * KEYS: those of each shard asked, one after the other, and what `gate-lua.ts` says.
 * ARGV: worker, alone (1 or 0), heads (1 or 0), most bytes, gate (`gate-lua.ts`), jobs that the first queue has granted before,
 * and what they weigh;
 * of each shard the number of its queue (in the order in which they are asked), its limit, lease in ms, and most payloads of
 * an id (0: all).
 * Returns { now, grants, whether nothing more may be granted (1 or 0), waits, crashed, buried, heads, more, weight of all }.
 * grants: index of the shard that granted, fence, jobs, pasts, errors; of a shard perhaps several in a row. jobs is one text:
 * of each its id and NUL, the length of its record in 3 bytes, the record, the length of its payloads in 4 bytes, the payloads
 * (as in INHAND), and `m` where some were left behind, else `.`. pasts and errors: none, or of each job its past, and its error
 * behind `=`, or ''.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · heads: per shard the age in ms, or -1.
 *
 * The first queue that grants is filled from its shards up to the limit of each, less what those before it granted, and
 * until it has enough bytes; of
 * `exclusive: 'shard'` one shard only. Refuses `unknown`, and `limited` where a shard is limited otherwise than it is given.
 */
const text = String.raw`
local worker, alone, wants_heads, most_bytes, granted = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4]), tonumber(ARGV[6])
local grants, crashed, buried, heads = {}, {}, {}, {}
local more = false

-- What the claim has taken so far, bytes and payloads; and of the shard its number, its fence (nil before the first job) and ids.
local hand = { bytes = tonumber(ARGV[7]), payloads = 0 }
local take_places, take_ready
do
-- The payloads that a claim takes of a set: the first, as many as it may, and of those so many bytes; and whether some are left.
local function taken_of(id, max)
  local members, from, own = members_in(PAYLOADS, id, max == 0 and -1 or max + 1), #id + 16, 0
  for i = 1, #members do
    local size = unpackn('>I4', members[i], from)
    if i > 1 and max > 0 and (i > max or own + size > most_bytes) then return members, i - 1, own end
    own = own + size
  end
  return members, #members, own
end
-- Of the first of these places, as many as they have room in hand for; they are left in their set. Returns how many, and
-- whether the next has no record: they end there.
function take_places(places, has_group)
  local ids, counts, lefts, gone, fields, count, is_lost = {}, {}, {}, {}, {}, 0, false
  if not places[1] then return 0, false end
  for i = 1, #places do ids[i] = sub(places[i], 16) end
  local records = call('HMGET', JOBS, unpack(ids))
  for i = 1, #places do
    if hand.bytes >= most_bytes or hand.payloads >= ${mostPayloads} then break end
    is_lost = not records[i]
    if is_lost then break end
    local id = ids[i]
    local members, number, own_bytes = taken_of(id, hand.max)
    local digest_from = #id + 20
    for m = 1, number do
      gone[#gone + 1] = members[m]
      fields[#fields + 1] = id .. '\0' .. sub(members[m], digest_from)
    end
    counts[i], lefts[i], count = number, number < #members, i
    hand.bytes, hand.payloads = hand.bytes + own_bytes, hand.payloads + number
  end
  if count == 0 then return 0, is_lost end
  for i = #ids, count + 1, -1 do ids[i] = nil end
  local values = values_of(BODIES, fields)
  local pasts, errors = {}, {}
  if call('EXISTS', PAST) == 1 then
    local notes, past_found = {}, call('HMGET', PAST, unpack(ids))
    for i = 1, count do notes[i] = 'e' .. ids[i] end
    errors = call('HMGET', NOTES, unpack(notes))
    for i = 1, count do pasts[i], errors[i] = past_found[i] or '', errors[i] and '=' .. errors[i] or '' end
  end

  local last = call('HMGET', META, 'fence', 'stamp')
  hand.fence = hand.fence or math.max(now * 1000, tonumber(last[1]) + 1)
  local base = (alone and ALONE or 0) + (has_group and HASGROUP or 0)
  local head, head_past = claim_head(hand.fence, now, base, worker), claim_head(hand.fence, now, base + HASPAST, worker)
  local claims, hands, besides, text, stamp, value = {}, {}, {}, {}, tonumber(last[2]), 0
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
      besides[#besides + 1] = pack('>I7', stamp) .. created .. 'r'
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
  many('HSET', INHAND, hands)
  many('HSET', BESIDE, besides)
  for _, part in ipairs({ hand.n, hand.fence, table.concat(text), pasts, errors }) do grants[#grants + 1] = part end
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
`

/** Made only where a claim does not take the first jobs of its shard. */
const slow = `
local function is_filled() return hand.bytes >= most_bytes or hand.payloads >= ${mostPayloads} end
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
  if taken > 0 then call('HINCRBY', BUSY, group, taken) end
  return taken
end
local function take_suspect(member, group)
  take_places({ member }, group ~= '')
  call('ZREM', SUSPECTS, member)
  if group ~= '' then call('HINCRBY', BUSY, group, 1) end
end
`

const loop = String.raw`
local queue, over = 1, false
for n = 0, ASKED - 1 do
  local a = 8 + n * 4
  local own_queue, limit, lease_ms, max = tonumber(ARGV[a]), tonumber(ARGV[a + 1]), tonumber(ARGV[a + 2]), tonumber(ARGV[a + 3])
  over = granted > 0 and (own_queue ~= queue or alone or limit <= granted or hand.bytes >= most_bytes or hand.payloads >= ${mostPayloads})
  if over then break end
  at(n)
  local form = gate.form()
  know_form()
  limits(form[2])
  over = granted > 0 and EXCLUSIVE
  if over then break end
  queue = own_queue
  local leader, lead_at, spares_until = form[5], tonumber(form[6]), tonumber(form[9])

  if call('EXISTS', TRANSIT) == 1 then return_transit() end
  -- Recover: every lease that has ended is a crash, once those who hold leases have had time to say that they live.
  do
    local before, ended = #crashed, nil
    ended, spares_until = ended_leases(lease_ms, spares_until)
    for _, j in ipairs(ended) do crash(j, tonumber(form[4]), n, crashed, buried) end
    if #crashed > before then tell_ends() end
  end
  -- Promote.
  for _, member in ipairs(call('ZRANGE', LATER, '-', '(' .. pack('>I7', (now + 1) * 1000), 'BYLEX', 'LIMIT', 0, 100)) do
    local j = job(sub(member, 14))
    if j then
      leave(j)
      enter(j, 'r')
    else
      call('ZREM', LATER, member)
      pass_over(sub(member, 14), sub(member, 8, 13))
    end
  end

  local count, asked_for, lanes_left = 0, limit - granted, nil
  if asked_for > 0 and not STOPPED and not is_full() and not (own.limited and lanes.opens_at() > now) then
    hand.n, hand.fence, hand.ids, hand.max = n, nil, {}, max
    if not alone and not own.limited and call('EXISTS', LANES) == 0 then
      lanes_left, count = 0, take_ready(asked_for)
    else
      ${slow}${taking}
      count = take(asked_for, alone)
    end
    if count > 0 then
      local fence_bytes = pack('>I7', hand.fence)
      call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
      call('HSET', BATCHES, 'n' .. fence_bytes, #hand.ids, 'i' .. fence_bytes, table.concat(hand.ids, '\0'))
    end
    granted = granted + count
  elseif asked_for == 0 and call('EXISTS', SHUT) == 1 and not STOPPED and not is_full() and lanes.opens_at() <= now then lanes.open_due() end
  lanes_left = lanes_left or call('ZCARD', LANES)
  local ready, suspects, change = (own.groupless or call('ZCARD', READY)) + lanes_left, call('ZCARD', SUSPECTS), first_change(spares_until)
  local is_open = not STOPPED and not is_full() and not (own.limited and lanes.opens_at() > now)
  local can = is_open and ready > 0
  if can and (own.limited or lanes_left > 0) then can = lanes.is_claimable() end
  -- What is left is shut: somebody must be told when it opens.
  local is_shut = count > 0 and ready > 0 and not (EXCLUSIVE and not is_open) and not can

  -- A lead may have no room to ask again: whoever is rung leads from then on.
  local has_left = (count > 0 or can) and not is_shut and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'leader', 'leadAt')
    lead_at = nil
  end
  if (count == 0 or is_shut) and not can and not (alone and suspects > 0 and is_open) then
    local reason = STOPPED and 'paused' or (own.limited and lanes.reason_of(alone))
    reason = reason or (is_full() and 'full') or (call('EXISTS', LATER) == 1 and 'scheduled' or 'empty')
    lead_at = lead_change(n, worker, reason, not STOPPED and change, leader, lead_at)
  end
  if is_open then lead_suspects(n, worker, suspects, alone or asked_for == 0, form[7], tonumber(form[8])) end

  -- One waiter was woken; whoever takes some and leaves some wakes the next. Who finds nothing left takes back the ring.
  if can or has_left then ring_unpaused()
  elseif count > 0 then
    local first = call('ZRANGE', LATER, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  else call('DEL', WAKE) end
  more = more or (not STOPPED and (can or (change and change <= now)))
end
${heads}return { now, grants, over and 1 or 0, waits, crashed, buried, heads, more and 1 or 0, hand.bytes }
`

/** Of the meta of a shard, in the order of `form`, behind the three that the gate reads. */
const fields = ['maxCrashes', 'leader', 'leadAt', 'roomer', 'roomAt', 'sparesUntil']

const script = (name: string, isGated: boolean) =>
  shardScript(
    name,
    'ordered',
    orderedJobs + transit + readyAges + crashes + setBack + leads + gate(isGated, fields) + text + loop,
    { whenFull: true },
  )

export const claimOrderedScript = script('claim-ordered', false)
/** For a queue that has a throttle. */
export const claimOrderedGatedScript = script('claim-ordered-gated', true)
