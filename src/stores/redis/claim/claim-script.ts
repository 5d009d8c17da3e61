/** The claim script: the one atomic step in which jobs are recovered, promoted and taken. */

import { upkeepLimit } from '../../rules/bounds.js'
import { crashes } from '../lua/crash-lua.js'
import { leads } from '../lua/leads-lua.js'
import { besideJobs, bySequence, shardScript } from '../lua/prelude.js'
import { readyJobs, recordWeight } from '../lua/ready-lua.js'
import { setBack } from '../lua/set-back-lua.js'
import { taking } from './fair-share-lua.js'
import { gate, heads } from './throttle-gate-lua.js'

/**
 * KEYS: those of each shard asked, one after the other, and what `gate-lua.ts` says.
 * ARGV: worker, alone (1 or 0), heads (1 or 0), most bytes, gate (`gate-lua.ts`); of each shard its limit and lease in ms.
 * Returns { now, index of the shard that granted or -1, fence, jobs, pasts, errors, waits, crashed, buried, heads, more, checkpoints }.
 * jobs is one text: of each its id and NUL, the length of its record in 3 bytes, and the record. Of jobs from the line there
 * are no pasts and errors; where others were taken there is one for each job, or ''. checkpoints: of each job that has one its
 * number among the jobs, from 0, and that.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · heads: per shard the age in ms, or -1.
 *
 * Refuses `unknown`, and `limited` where a shard is limited otherwise than it is given.
 */
const text = String.raw`
local worker, alone, wants_heads, most_bytes = ARGV[1], ARGV[2] == '1', ARGV[3] == '1', tonumber(ARGV[4])
local crashed, buried, heads = {}, {}, {}
local granted, fence, ids, records, pasts, errors, checkpoints = -1, 0, {}, {}, {}, {}, {}
local more, bytes = false, 0

local checkpoint_at = {}
-- Whether the claim has enough, asked only if the lengths of its records, which are longer than what they weigh, could be enough.
local function is_filled()
${recordWeight}  bytes = 0
  for i = 1, #ids do
    local checkpoint = checkpoint_at[i]
    bytes = bytes + record_weight(records[i]) + (checkpoint and #checkpoint - find(checkpoint, '\0', 1, true) or 0)
  end
  return bytes >= most_bytes
end
-- Records of the first jobs among those found: a claim ends where it has enough bytes. Large ones are not read in vain:
-- the first few tell how many more there may be. Returns how many there are, which stand behind those of before, and whether
-- the next has no record: they end there. notes_of: where others than those of the line are among them.
local function records_of(found, notes_of)
  local before, count, step = #ids, 0, 4
  while count < #found and not (bytes >= most_bytes and is_filled()) do
    if count > 0 then step = math.min(step * 4, math.ceil((most_bytes - bytes) * (before + count) / math.max(1, bytes))) end
    local from, upto = count + 1, math.min(count + step, #found)
    local some, past_found, error_found, checkpoint_found = call('HMGET', JOBS, unpack(found, from, upto)), nil, nil, nil
    if notes_of then past_found, error_found, checkpoint_found = notes_of({ unpack(found, from, upto) }) end
    for i = 1, #some do
      if bytes >= most_bytes and is_filled() then break end
      if not some[i] then return count, true end
      count = count + 1
      local number = before + count
      ids[number], records[number] = found[count], some[i]
      bytes = bytes + #some[i]
      if notes_of then
        pasts[number], errors[number] = past_found[i] or '', error_found[i] and '=' .. error_found[i] or ''
        local checkpoint = checkpoint_found[i]
        if checkpoint then
          checkpoints[#checkpoints + 1] = number - 1
          checkpoints[#checkpoints + 1] = checkpoint
          checkpoint_at[number], bytes = checkpoint, bytes + #checkpoint
        end
      end
    end
  end
  return count, false
end
-- Writes the last so many claims down; elements as in the line. The lease that all of them share comes with the last.
local heads_by = {}
local function write_claims(count, elements, last_fence, has_group)
  if fence == 0 then
    fence = math.max(now * 1000, tonumber(last_fence) + 1)
    call('HSET', META, 'fence', fence, 'seenAt', now)
  end
  local base, from = (alone and ALONE or 0) + (has_group and HASGROUP or 0), #ids - count
  local claims = {}
  for i = 1, count do
    local rec, flags = records[from + i], base
    if byte(rec, byte(rec, 1) < 97 and 21 or 15) % 2 == 1 then flags = flags + REMEMBERED end
    if pasts[from + i] and pasts[from + i] ~= '' then flags = flags + HASPAST end
    local head = heads_by[flags]
    if not head then
      head = claim_head(fence, now, flags, worker)
      heads_by[flags] = head
    end
    claims[i * 2 - 1], claims[i * 2] = ids[from + i], head .. elements[i]
  end
  many('HSET', CLAIMS, claims)
end
local function share_lease(lease_ms)
  local fence_bytes = pack('>I7', fence)
  call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
  call('HSET', BATCHES, 'n' .. fence_bytes, #ids, 'i' .. fence_bytes, table.concat(ids, '\0'))
end
local meta
-- From the line alone, which is what nearly every claim does.
local function take_from_line(limit)
  for _ = 1, ${upkeepLimit} do
    local elements, found = call('LRANGE', LINE, 0, limit - 1), {}
    for i = 1, #elements do found[i] = sub(elements[i], 14) end
    local count, is_lost = records_of(found)
    if count > 0 then
      write_claims(count, elements, meta.fence)
      call('LTRIM', LINE, count, -1)
    end
    if count > 0 or not is_lost then return count end
    call('LPOP', LINE)
    pass_over(found[1], sub(elements[1], 8, 13))
  end
  return 0
end
`

/** Made only where a claim does not take from the line alone. */
const slow = `
-- Pasts, errors and checkpoints of some jobs, each by their number.
local function notes_of(list)
  local notes, noted, past_found, error_found, checkpoint_found = {}, {}, call('HMGET', PAST, unpack(list)), {}, {}
  for i = 1, #list do
    -- Of one that is fresh nothing is noted.
    if past_found[i] then
      noted[#noted + 1] = i
      notes[#notes + 1] = 'e' .. list[i]
      notes[#notes + 1] = 'k' .. list[i]
    end
  end
  local found = notes[1] and call('HMGET', NOTES, unpack(notes))
  for n, i in ipairs(noted) do error_found[i], checkpoint_found[i] = found[n * 2 - 1], found[n * 2] end
  return past_found, error_found, checkpoint_found
end
-- So many elements of the line go, of which so many are no stale ones.
local function pass_line(upto, others)
  call('LTRIM', LINE, upto, -1)
  if upto == others then return end
  local left, is_doubtful = let_go(upto - others)
  meta.stale, meta.lost = left, meta.lost or is_doubtful
end
-- Of jobs found, { id, element of LINE or not }, what they were before; returns how many are taken, and whether the next has no record.
local function take_found(found, has_group)
  local list, before = {}, #ids
  for i = 1, #found do list[i] = found[i].id end
  local count, is_lost = records_of(list, notes_of)
  if count == 0 then return 0, is_lost end
  local elements = {}
  for i = 1, count do elements[i] = found[i].element or sub(records[before + i], 2, 14) .. ids[before + i] end
  write_claims(count, elements, meta.fence, has_group)
  return count, is_lost
end
local function take_ready(count, tries)
  local found = first_ready(count, stale_at_least(meta.stale, meta.lost), most_bytes)
  local taken, is_lost = take_found(found, false)
  if taken == 0 and is_lost then
    local id, member, element = found[1].id, found[1].member, found[1].element
    if member then call('ZREM', READY, member) else pass_line(found[1].upto, 1) end
    pass_over(id, member and sub(member, 10, 15) or sub(element, 8, 13))
    tries = tries or ${upkeepLimit}
    return tries > 1 and take_ready(count, tries - 1) or 0
  end
  local line_upto, rank = 0, 0
  for i = 1, taken do
    if found[i].upto then line_upto = found[i].upto else rank = rank + 1 end
  end
  if rank > 0 then call('ZREMRANGEBYRANK', READY, 0, rank - 1) end
  if line_upto > 0 then pass_line(line_upto, taken - rank) end
  return taken
end
local function take_lane(group, count, tries)
  local found, places = {}, {}
  for i, member in ipairs(lanes.first_of(group, count)) do found[i] = { id = sub(member, #group + 17), place = sub(member, #group + 2) } end
  local taken, is_lost = take_found(found, true)
  if taken == 0 and is_lost then
    lanes.leave(group, { found[1].place })
    pass_over(found[1].id, sub(found[1].place, 10, 15))
    tries = tries or ${upkeepLimit}
    return tries > 1 and take_lane(group, count, tries - 1) or 0
  end
  for i = 1, taken do places[i] = found[i].place end
  lanes.leave(group, places)
  if taken > 0 then call('HINCRBY', BUSY, group, taken) end
  return taken
end
local function take_suspect(member, group)
  take_found({ { id = sub(member, 16) } }, group ~= '')
  call('ZREM', SUSPECTS, member)
  if group ~= '' then call('HINCRBY', BUSY, group, 1) end
end
`

const loop = String.raw`
for n = 0, ASKED - 1 do
  at(n)
  local _, limited, _, order, paused, stale, last_fence, lost, max_crashes, leader, lead_at, roomer, room_at, spares_until = unpack(gate.form())
  LIFO, STOPPED = order == 'lifo', paused == '1'
  meta = { stale = stale, fence = last_fence, lost = lost }
  limits(limited)
  local limit, lease_ms = tonumber(ARGV[6 + n * 2]), tonumber(ARGV[7 + n * 2])
  lead_at = tonumber(lead_at)

  -- Recover: every lease that has ended is a crash, once those who hold leases have had time to say that they live.
  local ended
  ended, spares_until = ended_leases(lease_ms, tonumber(spares_until))
  for _, j in ipairs(ended) do crash(j, tonumber(max_crashes), n, crashed, buried) end
  if #ended > 0 then tell_ends() end
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

  local count, lanes_left = 0, nil
  if limit > 0 and not STOPPED and not (own.limited and lanes.is_closed()) then
    local has_others = (alone or own.limited or meta.stale ~= '0' or meta.lost) or call('EXISTS', READY, LANES) > 0
    if not has_others then
      count, lanes_left = take_from_line(limit), 0
      own.groupless = call('LLEN', LINE)
    else
      ${slow}${taking}
      if meta.stale ~= '0' or meta.lost then
        sweep_line(1)
        meta.stale, meta.lost = unpack(call('HMGET', META, 'stale', 'lost'))
      end
      count = take(limit, alone)
    end
    if count > 0 then
      granted = n
      share_lease(lease_ms)
    end
  elseif limit == 0 and call('EXISTS', SHUT) == 1 and not STOPPED and not lanes.is_closed() then lanes.open_due() end
  lanes_left = lanes_left or call('ZCARD', LANES)
  local ready = (own.groupless or call('LLEN', LINE) - meta.stale + call('ZCARD', READY)) + lanes_left
  local suspects = call('ZCARD', SUSPECTS)
  local change, can = first_change(spares_until), not STOPPED and ready > 0
  if can and (own.limited or lanes_left > 0) then can = lanes.is_claimable() end
  -- What is left is shut: somebody must be told when it opens.
  local is_shut = count > 0 and ready > 0 and not can

  -- Who asks again when something changes by itself. A lead may have no room to ask again: whoever is rung leads from then on.
  local has_left = (count > 0 or can) and not is_shut and leader == worker and lead_at <= now
  if has_left then
    call('HDEL', META, 'leader', 'leadAt')
    lead_at = nil
  end
  local is_closed = STOPPED or (own.limited and lanes.is_closed())
  if (count == 0 or is_shut) and not can and not (alone and suspects > 0 and not is_closed) then
    local reason = STOPPED and 'paused' or (own.limited and lanes.reason_of(alone)) or (call('EXISTS', LATER) == 1 and 'scheduled' or 'empty')
    lead_at = lead_change(n, worker, reason, not STOPPED and change, leader, lead_at)
  end
  if not is_closed then lead_suspects(n, worker, suspects, alone or limit == 0, roomer, tonumber(room_at)) end

  -- One waiter was woken; whoever takes some and leaves some wakes the next. Who finds nothing left takes back the ring.
  if can or has_left then ring()
  elseif count > 0 then
    local first = call('ZRANGE', LATER, 0, 0)[1]
    if not first or (is_led(lead_at) and lead_at <= math.floor(unpackn('>I7', first) / 1000)) then call('DEL', WAKE) end
  elseif not STOPPED or ready == 0 then call('DEL', WAKE) end
  more = more or (not STOPPED and (can or (change and change <= now)))
  if count > 0 then break end
end
${heads}local taken = {}
for i = 1, #ids do
  local n = i * 4
  taken[n - 3], taken[n - 2], taken[n - 1], taken[n] = ids[i], '\0', pack('>I3', #records[i]), records[i]
end
return { now, granted, fence, table.concat(taken), pasts, errors, waits, crashed, buried, heads, more and 1 or 0, checkpoints }
`

/** Of the meta of a shard, in the order in which the loop takes them. */
const fields = [
  'order',
  'paused',
  'stale',
  'fence',
  'lost',
  'maxCrashes',
  'leader',
  'leadAt',
  'roomer',
  'roomAt',
  'sparesUntil',
]

const script = (name: string, isGated: boolean) =>
  shardScript(
    name,
    'plain',
    besideJobs(leads + gate(isGated, fields) + text + loop, bySequence + readyJobs + crashes + setBack),
    { whenFull: true },
  )

export const claimScript = script('claim', false)
/** For a queue that has a throttle. */
export const claimGatedScript = script('claim-gated', true)
