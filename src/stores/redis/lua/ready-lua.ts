/**
 * The ready jobs of a shard, in the order in which claims take them, for scripts that take or count them.
 *
 * A list holds those that nothing can overtake: no priority, no group, first in first out. All others are in a sorted set beside it.
 * One set for all would need no stale elements and no merging, but then plain work ran at 0.83 of its speed (50 rounds in turns,
 * concurrency 100), and cost the server 5.3 µs a job instead of 4.4.
 */

import { mostLagLooks } from '../../rules/bounds.js'
import { recordWeight } from './record-lua.js'

/** The number of jobs in all places of a shard. Stale elements of the ready list count too. */
export const standing = `
local function standing_count()
  local count = call('LLEN', READY_LIST) + call('HLEN', CLAIMS)
  for _, key in ipairs({ READY, LANES, SUSPECTS, SCHEDULED, JOINING, COMPLETED, DEAD }) do count = count + call('ZCARD', key) end
  return count
end
`

export const readyJobs = `${standing}local function ready_count(stale) return call('LLEN', READY_LIST) - stale + call('ZCARD', READY) + call('ZCARD', LANES) end
-- The first count jobs of the ready list and the number of elements seen; passes over at most 1,000 stale elements.
-- upto: the number of elements up to this one. enough: stop after records of this weight. If elements may be stale,
-- their records are read, few at first, because they may be large.
local function head_of_list(count, stale, enough)${recordWeight}  local heads, seen, bytes, step = {}, 0, 0, 4
  while #heads < count and seen - #heads <= 1000 and not (enough and bytes >= enough) do
    local wanted = math.max(count - #heads, seen > 0 and 16 or 1)
    if stale > 0 then
      wanted = math.min(wanted, step)
      step = math.min(step * 4, 64)
    end
    local elements, ids = call('LRANGE', READY_LIST, seen, seen + wanted - 1), {}
    if #elements == 0 then break end
    for i = 1, #elements do ids[i] = sub(elements[i], 14) end
    local records = stale > 0 and call('HMGET', JOBS, unpack(ids))
    local pasts = stale > 0 and call('HMGET', HISTORY, unpack(ids))
    for i = 1, #ids do
      local is_fresh = not records or (records[i] and not pasts[i] and sub(records[i], 9, 14) == sub(elements[i], 8, 13))
      if is_fresh and #heads < count then
        heads[#heads + 1] = { element = elements[i], id = ids[i], upto = seen + i }
        if records then bytes = bytes + record_weight(records[i]) end
      end
    end
    seen = seen + #elements
  end
  return heads, seen
end
-- Records that count elements without a ready job have left the ready list. Returns how many stale elements are left,
-- and whether this is doubtful. The elements of jobs without a record look stale but were never counted: if such have
-- left, counted ones may still be there.
local function let_go(count)
  local left = call('HINCRBY', META, 'stale', -count)
  if left > 0 then return left, false end
  if left < 0 or standing_count() ~= call('HLEN', JOBS) then
    call('HSET', META, 'stale', 0)
    call('HINCRBY', META, 'lost', 0 - left)
    return 0, true
  end
  return 0, false
end
-- The number of stale elements, at least 1 once a job without a record was found: then each element is checked.
local function stale_at_least(stale, lost) return math.max(tonumber(stale), lost and 1 or 0) end
-- Removes stale elements from the head of the ready list, about 1,000 at a time.
local function sweep_list(times)
  for _ = 1, times do
    local counts = call('HMGET', META, 'stale', 'lost')
    local stale = stale_at_least(counts[1], counts[2])
    if stale == 0 then return end
    local heads, seen = head_of_list(1, stale)
    local upto = heads[1] and heads[1].upto - 1 or seen
    if upto > 0 then
      call('LTRIM', READY_LIST, upto, -1)
      let_go(upto)
    end
    if heads[1] or upto == 0 then return end
  end
end
-- Whether the first job of the ready list comes before the first of the other ready jobs. Both exist.
local function list_first(element, member)
  local priority = unpackn('>I2', member)
  if priority ~= 32767 then return priority > 32767 end
  local stamp, other = unpackn('>I7', element), unpackn('>I7', member, 3)
  if stamp ~= other then return stamp < other end
  return unpackn('>I6', element, 8) < unpackn('>I6', member, 10)
end
-- The first ready jobs, at most count, until they have enough bytes. Each has its id, and its member of READY, or its
-- element of READY_LIST with the number of elements up to it.
local function first_ready(count, stale, enough)
  local members = call('ZRANGE', READY, 0, count - 1)
  local listed = head_of_list(count, stale, enough)
  local taken, m, l = {}, 1, 1
  while #taken < count and (members[m] or listed[l]) do
    if not members[m] or (listed[l] and list_first(listed[l].element, members[m])) then
      taken[#taken + 1] = { id = listed[l].id, element = listed[l].element, upto = listed[l].upto }
      l = l + 1
    else
      taken[#taken + 1] = { id = sub(members[m], 16), member = members[m] }
      m = m + 1
    end
  end
  return taken
end
local function stamp_in(member)
  local bytes = sub(member, 3, 9)
  return unpackn('>I7', LIFO and inverted(bytes) or bytes)
end
-- Since when the oldest job of one priority could begin, in µs. Each job could not before its stamp, nor before its
-- wait was over. So only those are looked at that come before the oldest so far, which are few unless many have waited.
local function able_in(key, low, high)
  local oldest, seen, step = math.huge, 0, 1
  while seen < ${mostLagLooks} do
    local members, ids
    if LIFO then members = call('ZRANGE', key, high, low, 'BYLEX', 'REV', 'LIMIT', seen, step)
    else members = call('ZRANGE', key, low, high, 'BYLEX', 'LIMIT', seen, step) end
    if #members == 0 then return oldest end
    ids = {}
    for i, member in ipairs(members) do ids[i] = sub(member, 16) end
    local pasts = call('HMGET', HISTORY, unpack(ids))
    for i, member in ipairs(members) do
      local stamp = stamp_in(member)
      if stamp >= oldest then return oldest end
      local waited = pasts[i] and waited_in(pasts[i]) or 0
      oldest = math.min(oldest, math.max(stamp, waited * 1000))
    end
    seen, step = seen + #members, 100
  end
  return oldest
end
-- The same for a set of places, or nil. Of each priority only the first job can be the oldest, or the last if last in is
-- first out, unless jobs of the queue have waited.
local function oldest_in(key, waited)
  local oldest
  local from = '-'
  for _ = 1, 256 do
    local first = call('ZRANGE', key, from, '+', 'BYLEX', 'LIMIT', 0, 1)[1]
    if not first then return oldest end
    local priority = sub(first, 1, 2)
    local nextone = unpackn('>I2', priority) + 1
    local edge = nextone > 65535 and '+' or '(' .. pack('>I2', nextone)
    local since
    if waited then since = able_in(key, '[' .. priority, edge)
    else
      if LIFO then first = call('ZRANGE', key, edge, '[' .. priority, 'BYLEX', 'REV', 'LIMIT', 0, 1)[1] end
      since = stamp_in(first)
    end
    if not oldest or since < oldest then oldest = since end
    if nextone > 65535 then return oldest end
    from = '[' .. pack('>I2', nextone)
  end
  return oldest
end
-- Since when the oldest of all ready jobs that every claim may take could begin, in µs. stale, waited: those of META.
local function oldest_ready(stale, waited)
  local oldest = oldest_in(READY, waited)
  -- A job that has waited is never in the list.
  local first = head_of_list(1, tonumber(stale))[1]
  local others = { first and unpackn('>I7', first.element) or false, oldest_in(GROUPED, waited) or false }
  for i = 1, 2 do
    if others[i] and (not oldest or others[i] < oldest) then oldest = others[i] end
  end
  return oldest
end
local function age_of(since) return math.max(0, now - math.floor(since / 1000)) end
`
