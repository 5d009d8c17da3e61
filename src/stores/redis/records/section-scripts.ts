/** The section scripts: pages of the jobs of a shard, in the order of one of its keys. */

import { byteOrder } from '../lua/prelude.js'
import { readerPair } from '../lua/script-kinds.js'

/**
 * The most elements of a ready list that one call looks at if some are stale: any number of these may be in a row, and more would
 * keep other calls waiting.
 */
const mostLooked = 1_000

/** Ends the script for running jobs, and for those in the lane of the group, if one is asked for. */
const beginning = `
local section, after, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if section == 'running' then return call('HGETALL', CLAIMS) end
-- reached: where the walk through the section was left, if that was before its end.
local function page(places, reached) return { places, places[most] or reached or false } end
local lane = ARGV[4] .. '\\0'
if section == 'ready' and #lane > 1 then
  local places = call('ZRANGE', LANES, after == '' and '[' .. lane or '(' .. lane .. after, '(' .. ARGV[4] .. '\\1', 'BYLEX', 'LIMIT', 0, most)
  for i, member in ipairs(places) do places[i] = sub(member, #lane + 1) end
  return page(places)
end
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, scheduled, joining, completed, dead, retries, running), place to
 * continue after, with its id, or '', most jobs, group or ''. Of the ready jobs only those of the group are looked at; the other
 * sections have all their jobs.
 * Returns { places, each with its id, in the order of the section; the place after which to continue, or nil if there is nothing
 * more }. There may be more even if there are fewer than most. For running jobs: in no order, each id and its claim.
 */
const plain = `
local function is_place_before(a, b)
  local p, s, t, q = unpackn('>I2I4I3I6', a)
  local x, y, z, w = unpackn('>I2I4I3I6', b)
  if p ~= x then return p < x end
  if s ~= y then return s < y end
  if t ~= z then return t < z end
  return q < w
end
${byteOrder}${beginning}-- Failed jobs that wait for a signal are behind the retries.
local last = section == 'retries' and '(\\255\\255\\255' or '+'
local is_reverse = section == 'completed' or section == 'dead'
local function members(key)
  if is_reverse then return call('ZRANGE', key, after == '' and '+' or '(' .. after, '-', 'BYLEX', 'REV', 'LIMIT', 0, most) end
  return call('ZRANGE', key, after == '' and '-' or '(' .. after, last, 'BYLEX', 'LIMIT', 0, most)
end
if section ~= 'ready' then
  local sets = { suspects = SUSPECTS, scheduled = SCHEDULED, joining = JOINING, completed = COMPLETED, dead = DEAD, retries = RETRIES }
  return page(members(sets[section]))
end

-- Finds the point where the ready list continues after the place. Its elements are in the order of their stamps.
local from, length = 0, call('LLEN', READY_LIST)
if after ~= '' then
  local priority = unpackn('>I2', after)
  if priority > 32767 then from = length
  elseif priority == 32767 then
    local stamp, seq, id = unpackn('>I7', after, 3), unpackn('>I6', after, 10), sub(after, 16)
    local high = length
    while from < high do
      local middle = math.floor((from + high) / 2)
      local element = call('LINDEX', READY_LIST, middle)
      local s, q = unpackn('>I7', element), unpackn('>I6', element, 8)
      -- A job of another shard may have the same stamp and sequence number.
      local is_first = s < stamp or (s == stamp and (q < seq or (q == seq and not comes_before(id, sub(element, 14)))))
      if is_first then from = middle + 1 else high = middle end
    end
  end
end
local listed, looked, reached = {}, 0, nil
-- If some elements are stale, the records show which. Records may be large.
local is_clean = call('HGET', META, 'stale') == '0'
while #listed < most and from < length and looked < ${mostLooked} do
  local elements = call('LRANGE', READY_LIST, from, from + (is_clean and most or math.min(most, 50)) - 1)
  local some = {}
  for i, element in ipairs(elements) do some[i] = sub(element, 14) end
  local records, pasts = not is_clean and call('HMGET', JOBS, unpack(some)), not is_clean and call('HMGET', HISTORY, unpack(some))
  for i, element in ipairs(elements) do
    if is_clean or (records[i] and not pasts[i] and sub(records[i], 9, 14) == sub(element, 8, 13)) then listed[#listed + 1] = element end
  end
  from, looked, reached = from + #elements, looked + #elements, elements[#elements]
end
if from == length then reached = nil end
local places, others, l, m = {}, members(READY), 1, 1
local laned = members(GROUPED)
if #laned > 0 then
  for _, member in ipairs(laned) do others[#others + 1] = member end
  table.sort(others, is_place_before)
end
-- Behind the element reached the list may have jobs that come before the others.
while #places < most and (listed[l] or (others[m] and not (reached and list_first(reached, others[m])))) do
  if not others[m] or (listed[l] and list_first(listed[l], others[m])) then
    places[#places + 1] = pack('>I2', 32767) .. listed[l]
    l = l + 1
  else
    places[#places + 1] = others[m]
    m = m + 1
  end
end
return page(places, reached and pack('>I2', 32767) .. reached)
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, scheduled, dead, retries, running), place to continue
 * after, with its id, or '', most jobs, group or ''. Of the ready jobs only those of the group are looked at; the other sections have
 * all their jobs.
 * Returns the same as that of plain queues, the latest dead first.
 */
const ordered = `
${beginning}local places = {}
if section ~= 'dead' then
  local function members(set) return call('ZRANGE', set, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, most) end
  local found = members(({ ready = READY, suspects = SUSPECTS, scheduled = SCHEDULED, retries = RETRIES })[section])
  if section == 'ready' and call('EXISTS', GROUPED) == 1 then
    for _, member in ipairs(members(GROUPED)) do found[#found + 1] = member end
    table.sort(found, function(a, b) return tied({ id = a }, { id = b }) end)
  end
  for i = 1, math.min(#found, most) do places[i] = found[i] end
  return page(places)
end
-- Jobs that died at the same moment, by id.
local function moment_after(place, from)
  local edge = '(' .. pack('>I6', unpackn('>I6', place) + 1)
  for _, member in ipairs(call('ZRANGE', DEAD, from, edge, 'BYLEX', 'LIMIT', 0, most - #places)) do places[#places + 1] = member end
end
local edge = '+'
if after ~= '' then
  moment_after(after, '(' .. after)
  edge = '(' .. sub(after, 1, 6)
end
while #places < most do
  local latest = call('ZRANGE', DEAD, edge, '-', 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
  if not latest then break end
  edge = '(' .. sub(latest, 1, 6)
  moment_after(latest, '[' .. sub(latest, 1, 6))
end
return page(places)
`

export const sectionScripts = readerPair('section', { plain, ordered })
