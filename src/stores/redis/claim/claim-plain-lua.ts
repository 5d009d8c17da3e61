/** How a claim takes the jobs of a plain shard, in Lua. */

import { upkeepLimit } from '../../rules/bounds.js'
import { expiredReason } from '../../rules/sequence.js'
import { bySequence } from '../lua/prelude.js'
import { readyJobs } from '../lua/ready-lua.js'
import { flagsAt, recordWeight } from '../lua/record-lua.js'
import type { ClaimKind } from './claim-loop-lua.js'

/** `meta.expiringAt` is at or before the first expiry. Nobody looks while it is in the future or absent. */
const expiry = `
-- Ends expired jobs and adds index, id and task of each to expired. Returns when the next job expires, or nil.
local function end_expired(index, expired)
  local members = call('ZRANGE', EXPIRING, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${upkeepLimit})
  local count = 0
  for _, member in ipairs(members) do
    local j = job(sub(member, 7))
    if j and is_waiting(j) then
      count = count + 1
      for _, part in ipairs({ index, j.id, j.task }) do expired[#expired + 1] = part end
      j.reason = '${expiredReason}'
      if j.places then joins().report(j, 'e') end
      finish(j, 'x')
    else
      call('ZREM', EXPIRING, member)
      if not j then pass_over(sub(member, 7), sub(member, 1, 6)) end
    end
  end
  if count > 0 then
    call('HINCRBY', META, 'expired', count)
    tell_ends()
  end
  local first_at = call('ZRANGE', EXPIRING, 0, 0, 'WITHSCORES')[2]
  if first_at then call('HSET', META, 'expiringAt', first_at) else call('HDEL', META, 'expiringAt') end
  return first_at
end
`

const take = String.raw`
local ids, records, pasts, errors, checkpoints, expiries = {}, {}, {}, {}, {}, {}
-- The place of a member that has only one and whose id is not remembered, or nil.
local function only_place(rec)
  return string.match(rec, '^0 (%d+%.%d+)%z', find(rec, '\0', (${flagsAt('rec')}) + 1, true) + 1)
end
local fence, bytes = 0, 0
local checkpoint_at = {}
-- Whether the claim has enough bytes. Records are longer than their weight: call it only once their lengths are enough.
local function is_filled()
${recordWeight}  bytes = 0
  for i = 1, #ids do
    local checkpoint = checkpoint_at[i]
    bytes = bytes + record_weight(records[i]) + (checkpoint and #checkpoint - find(checkpoint, '\0', 1, true) or 0)
  end
  return bytes >= most_bytes
end
-- Reads the records of the first of these jobs, until the claim has enough bytes, and puts them after those it already
-- has. It reads few first and estimates from their size how many more to read, so that it does not read large ones in
-- vain. Returns how many it read, and whether it stopped at a job without a record.
-- notes_of: given if the jobs may have a past, an error or a checkpoint.
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
-- Writes the claims of the last count ids. elements are as in the ready list. grant adds the lease that they share.
local heads_by = {}
local meta
local function write_claims(count, elements, last_fence, has_group)
  if fence == 0 then
    fence = math.max(now * 1000, tonumber(last_fence) + 1)
    call('HSET', META, 'fence', fence, 'seenAt', now)
  end
  local base, from = (alone and ALONE or 0) + (has_group and HASGROUP or 0), #ids - count
  local claims, expires_at = {}, {}
  -- While it runs, a job does not expire. When it waits again it does: its note says when.
  if meta.expiring_at then
    local members, notes = {}, {}
    for i = 1, count do members[i] = sub(elements[i], 8) end
    for i, score in ipairs(call('ZMSCORE', EXPIRING, unpack(members))) do
      if score then
        expires_at[i] = score
        notes[#notes + 1] = 'x' .. ids[from + i]
        notes[#notes + 1] = score
        expiries[#expiries + 1] = from + i - 1
        expiries[#expiries + 1] = score
      end
    end
    many('HSET', NOTES, notes)
    many('ZREM', EXPIRING, members)
  end
  for i = 1, count do
    local rec, flags, place = records[from + i], base, ''
    if byte(rec, ${flagsAt('rec')}) % 2 == 1 then flags, place = flags + REMEMBERED, only_place(rec) or '' end
    if pasts[from + i] and pasts[from + i] ~= '' then flags = flags + HASHISTORY end
    if expires_at[i] then flags = flags + BEATEN end
    local head = heads_by[flags]
    if not head then
      head = claim_head(fence, now, flags, worker)
      heads_by[flags] = head
    end
    claims[i * 2 - 1], claims[i * 2] = ids[from + i], head .. elements[i] .. place
  end
  many('HSET', CLAIMS, claims)
end
-- Puts all jobs taken under one lease, and adds them to the reply as one text: the ids, each with a NUL behind it, and
-- one more NUL; the lengths of the records, 3 bytes each; and the records.
local function grant(n, lease_ms)
  local fence_bytes, lengths, id_list = pack('>I7', fence), {}, table.concat(ids, '\0')
  call('ZADD', LEASES, now + lease_ms, '\0' .. fence_bytes)
  call('HSET', BATCHES, 'n' .. fence_bytes, #ids, 'i' .. fence_bytes, id_list)
  for i = 1, #ids do lengths[i] = #records[i] end
  local jobs = id_list .. '\0\0' .. pack('>' .. string.rep('I3', #ids), unpack(lengths)) .. table.concat(records)
  for _, part in ipairs({ n, fence, jobs, pasts, errors, checkpoints, expiries }) do grants[#grants + 1] = part end
end
-- Takes jobs from the ready list alone, as nearly every claim does.
local function take_from_list(limit)
  for _ = 1, ${upkeepLimit} do
    local elements, found = call('LRANGE', READY_LIST, 0, limit - 1), {}
    for i = 1, #elements do found[i] = sub(elements[i], 14) end
    local count, is_lost = records_of(found)
    if count > 0 then
      write_claims(count, elements, meta.fence)
      call('LTRIM', READY_LIST, count, -1)
    end
    if count > 0 or not is_lost then return count end
    call('LPOP', READY_LIST)
    pass_over(found[1], sub(elements[1], 8, 13))
  end
  return 0
end
`

const takeOthers = `
-- Returns the pasts, errors and checkpoints of these jobs, each by the job's number in the list.
local function notes_of(list)
  local notes, noted, past_found, error_found, checkpoint_found = {}, {}, call('HMGET', HISTORY, unpack(list)), {}, {}
  for i = 1, #list do
    -- A fresh job has no notes.
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
-- Removes the first upto elements from the ready list; others is how many of them are not stale.
local function pass_list(upto, others)
  call('LTRIM', READY_LIST, upto, -1)
  if upto == others then return end
  local left, is_doubtful = let_go(upto - others)
  meta.stale, meta.lost = left, meta.lost or is_doubtful
end
-- Takes these jobs. Each has its id and, if it comes from READY_LIST, its element. Returns how many it took, and
-- whether it stopped at a job without a record.
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
    if member then call('ZREM', READY, member) else pass_list(found[1].upto, 1) end
    pass_over(id, member and sub(member, 10, 15) or sub(element, 8, 13))
    tries = tries or ${upkeepLimit}
    return tries > 1 and take_ready(count, tries - 1) or 0
  end
  local list_upto, rank = 0, 0
  for i = 1, taken do
    if found[i].upto then list_upto = found[i].upto else rank = rank + 1 end
  end
  if rank > 0 then call('ZREMRANGEBYRANK', READY, 0, rank - 1) end
  if list_upto > 0 then pass_list(list_upto, taken - rank) end
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
  if taken > 0 then call('HINCRBY', RUNNING_BY_GROUP, group, taken) end
  return taken
end
local function take_suspect(member, group)
  take_found({ { id = sub(member, 16) } }, group ~= '')
  call('ZREM', SUSPECTS, member)
  if group ~= '' then call('HINCRBY', RUNNING_BY_GROUP, group, 1) end
end
if meta.stale ~= '0' or meta.lost then
  sweep_list(1)
  meta.stale, meta.lost = unpack(call('HMGET', META, 'stale', 'lost'))
end
`

export const plainClaim: ClaimKind = {
  fields: ['stale', 'fence', 'lost', 'expiringAt'],
  rare: bySequence + readyJobs + expiry,
  take,
  begin: 'meta = { stale = form[12], fence = form[13], lost = form[14], expiring_at = form[15] }',
  before: '',
  expire: `if #ended > 0 then meta.expiring_at = call('HGET', META, 'expiringAt') end
  if meta.expiring_at and tonumber(meta.expiring_at) <= now then
    meta.expiring_at = end_expired(n, expired)
    meta.stale, meta.lost = unpack(call('HMGET', META, 'stale', 'lost'))
  end
  local has_expired = meta.expiring_at and tonumber(meta.expiring_at) <= now`,
  isSimple: `not (alone or own.limited or meta.stale ~= '0' or meta.lost) and call('EXISTS', READY, LANES) == 0`,
  takeSimple: `count = take_from_list(asked_for)
      own.groupless = call('LLEN', READY_LIST)`,
  takeOthers,
  groupless: `call('LLEN', READY_LIST) - meta.stale + call('ZCARD', READY)`,
  weight: '0',
}
