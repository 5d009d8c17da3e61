/** The section scripts: pages of the jobs of a shard, in the order of one of its keys. */

import { byteOrder } from '../lua/prelude.js'
import { readerPair } from '../lua/script-kinds.js'

/** Ends the script with the ids in the lane of the group, if one is asked for. */
const inLane = `
local lane = ARGV[4] .. '\\0'
if section == 'ready' and #lane > 1 then
  local ids = call('ZRANGE', LANES, after == '' and '[' .. lane or '(' .. lane .. after, '(' .. ARGV[4] .. '\\1', 'BYLEX', 'LIMIT', 0, most)
  for i, member in ipairs(ids) do ids[i] = sub(member, #lane + 16) end
  return ids
end
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, scheduled, joining, completed, dead, retries, running), place to
 * continue after, with its id, or '', most jobs, group or ''. Of the ready jobs only those of the group are looked at; the other
 * sections have all their jobs.
 * Returns ids in the order of the section; for running jobs, in no order, each id and its claim.
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
${byteOrder}local section, after, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if section == 'running' then return call('HGETALL', CLAIMS) end
${inLane}local ids = {}
local sets = { suspects = { SUSPECTS, 16 }, scheduled = { SCHEDULED, 14 }, joining = { JOINING, 14 }, completed = { COMPLETED, 13, true }, dead = { DEAD, 13, true }, retries = { RETRIES, 10 } }
-- Failed jobs that wait for a signal are behind the retries.
local last = section == 'retries' and '(\\255\\255\\255' or '+'
local function members(key, reverse)
  if reverse then return call('ZRANGE', key, after == '' and '+' or '(' .. after, '-', 'BYLEX', 'REV', 'LIMIT', 0, most) end
  return call('ZRANGE', key, after == '' and '-' or '(' .. after, last, 'BYLEX', 'LIMIT', 0, most)
end
if section ~= 'ready' then
  local key, from, reverse = unpack(sets[section])
  for _, member in ipairs(members(key, reverse)) do ids[#ids + 1] = sub(member, from) end
  return ids
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
local listed = {}
-- If some elements are stale, the records show which. Records may be large.
local is_clean = call('HGET', META, 'stale') == '0'
while #listed < most and from < length do
  local elements = call('LRANGE', READY_LIST, from, from + (is_clean and most or math.min(most, 50)) - 1)
  local some = {}
  for i, element in ipairs(elements) do some[i] = sub(element, 14) end
  local records, pasts = not is_clean and call('HMGET', JOBS, unpack(some)), not is_clean and call('HMGET', HISTORY, unpack(some))
  for i, element in ipairs(elements) do
    if is_clean or (records[i] and not pasts[i] and sub(records[i], 9, 14) == sub(element, 8, 13)) then listed[#listed + 1] = element end
  end
  from = from + #elements
end
local others, l, m = members(READY), 1, 1
local laned = members(GROUPED)
if #laned > 0 then
  for _, member in ipairs(laned) do others[#others + 1] = member end
  table.sort(others, is_place_before)
end
while #ids < most and (listed[l] or others[m]) do
  if not others[m] or (listed[l] and list_first(listed[l], others[m])) then
    ids[#ids + 1] = sub(listed[l], 14)
    l = l + 1
  else
    ids[#ids + 1] = sub(others[m], 16)
    m = m + 1
  end
end
return ids
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, scheduled, dead, retries, running), place to continue
 * after, with its id, or '', most jobs, group or ''. Of the ready jobs only those of the group are looked at; the other sections have
 * all their jobs.
 * Returns ids in the order of the section, the latest dead first; for running jobs, in no order, each id and its claim.
 */
const ordered = `
local section, after, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if section == 'running' then return call('HGETALL', CLAIMS) end
${inLane}local ids = {}
if section ~= 'dead' then
  local key, from = unpack(({ ready = { READY, 16 }, suspects = { SUSPECTS, 16 }, scheduled = { SCHEDULED, 14 }, retries = { RETRIES, 10 } })[section])
  local function members(set) return call('ZRANGE', set, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, most) end
  local found = members(key)
  if section == 'ready' and call('EXISTS', GROUPED) == 1 then
    for _, member in ipairs(members(GROUPED)) do found[#found + 1] = member end
    table.sort(found, function(a, b) return tied({ id = a }, { id = b }) end)
  end
  for i = 1, math.min(#found, most) do ids[i] = sub(found[i], from) end
  return ids
end
-- Jobs that died at the same moment, by id.
local function moment_after(place, from)
  local edge = '(' .. pack('>I6', unpackn('>I6', place) + 1)
  for _, member in ipairs(call('ZRANGE', DEAD, from, edge, 'BYLEX', 'LIMIT', 0, most - #ids)) do ids[#ids + 1] = sub(member, 13) end
end
local edge = '+'
if after ~= '' then
  moment_after(after, '(' .. after)
  edge = '(' .. sub(after, 1, 6)
end
while #ids < most do
  local latest = call('ZRANGE', DEAD, edge, '-', 'BYLEX', 'REV', 'LIMIT', 0, 1)[1]
  if not latest then break end
  edge = '(' .. sub(latest, 1, 6)
  moment_after(latest, '[' .. sub(latest, 1, 6))
end
return ids
`

export const sectionScripts = readerPair('section', { plain, ordered })
