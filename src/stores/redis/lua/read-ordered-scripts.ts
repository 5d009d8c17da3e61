/** The scripts that only read a shard of an ordered queue: jobs as records, sections of its order, its depth, and whether it needs a claimer. */

import { leads } from './leads-lua.js'
import { orderedJobs } from './ordered-lua.js'
import { shardScript } from './prelude.js'
import { depthCounts } from './read-scripts.js'
import { readyJobs } from './ready-lua.js'
import { isSetBack } from './set-back-lua.js'

const guard = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
know_form()
`

/**
 * KEYS: those of one shard. ARGV: live or dead, most payloads of each, ids.
 * Returns { now, maximal age of the dead or '', views }; nil stands for what there is not. A view of a live job is { record,
 * past, claim, error, beat, payloads, their number, number beside }, of an entry in the morgue { header, payloads, their number }.
 */
const view = `
local views, most = {}, tonumber(ARGV[2])
local function values_in(set, bodies, id) return values_of(bodies, fields_of(id, members_in(set, id, most))) end
local function first_in_hand(packed)
  local values, from = {}, 5
  while from <= #packed and #values < most do
    local stop = from + 3 + unpackn('>I4', packed, from)
    values[#values + 1] = sub(packed, from + 26, stop)
    from = stop + 1
  end
  return values, (unpackn('>I4', packed))
end
for i = 3, #ARGV do
  local id = ARGV[i]
  if ARGV[1] == 'dead' then
    local header = call('HGET', MORGUE, id)
    views[i - 2] = { header, header and values_in(BURIED, REMAINS, id) or {}, header and count_in(BURIED, id) or 0 }
  else
    local rec, claim = call('HGET', JOBS, id), call('HGET', CLAIMS, id)
    local notes = call('HMGET', NOTES, 'e' .. id, 'b' .. id)
    local values, count, beside = {}, 0, false
    if claim then
      values, count = first_in_hand(call('HGET', INHAND, id))
      beside = call('HEXISTS', BESIDE, id) == 1 and count_in(PAYLOADS, id)
    elseif rec then values, count = values_in(PAYLOADS, BODIES, id), count_in(PAYLOADS, id) end
    views[i - 2] = { rec, call('HGET', PAST, id), claim, notes[1], notes[2], values, count, beside }
  end
end
return { now, call('HGET', META, 'deadAge') or '', views }
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, later, dead, retries, running), place after which, with its id,
 * or '', most jobs.
 * Returns ids in the order of the section, of the dead the latest first; of running ones, in no order, each id and its claim.
 */
const section = `
local section, after, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if section == 'running' then return call('HGETALL', CLAIMS) end
local ids = {}
if section ~= 'dead' then
  local key, from = unpack(({ ready = { READY, 16 }, suspects = { SUSPECTS, 16 }, later = { LATER, 14 }, retries = { RETRIES, 10 } })[section])
  local function members(set) return call('ZRANGE', set, after == '' and '-' or '(' .. after, '+', 'BYLEX', 'LIMIT', 0, most) end
  local found = members(key)
  if section == 'ready' and call('EXISTS', GROUPED) == 1 then
    for _, member in ipairs(members(GROUPED)) do found[#found + 1] = member end
    table.sort(found, function(a, b) return tied({ id = a }, { id = b }) end)
  end
  for i = 1, math.min(#found, most) do ids[i] = sub(found[i], from) end
  return ids
end
-- Those of one moment by id.
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

/**
 * KEYS: those of one shard. ARGV: live or dead, id after which or '', most.
 * Returns ids in the order of their bytes.
 */
const ids = String.raw`
local after, most = ARGV[2], tonumber(ARGV[3])
local set, running = ARGV[1] == 'dead' and BURIED or PAYLOADS, {}
local last = { id = after }
if ARGV[1] == 'live' then
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    if after == '' or tied(last, { id = id }) then running[#running + 1] = { id = id } end
  end
  table.sort(running, tied)
end
local function next_in(id)
  local member = call('ZRANGE', set, id == '' and '-' or '(' .. id .. '\1', '+', 'BYLEX', 'LIMIT', 0, 1)[1]
  return member and { id = sub(member, 1, find(member, '\0', 1, true) - 1) }
end
local ids, one, r = {}, next_in(after), 1
while #ids < most and (one or running[r]) do
  local from_set = one and (not running[r] or not tied(running[r], one))
  local chosen = from_set and one or running[r]
  ids[#ids + 1] = chosen.id
  if running[r] and running[r].id == chosen.id then r = r + 1 end
  if one and one.id == chosen.id then one = next_in(one.id) end
end
return ids
`

/**
 * KEYS: those of one shard. No ARGV.
 * Returns what the depth script of plain queues does, and the number of payloads that wait.
 */
const depth = `
local away = call('HMGET', TRANSIT, 'live', 'dead')
counts[2], counts[6] = counts[2] + tonumber(away[1] or 0), counts[6] + tonumber(away[2] or 0)
counts[#counts + 1] = call('ZCARD', PAYLOADS)
return counts
`

/**
 * KEYS: those of each shard asked, one after the other; of a queue with `maxRunning` then those of all its shards.
 * ARGV: the number of those.
 * Returns for each 1 where a claim would find something and nobody can be relied on to find it, else 0.
 */
const look = `
SIBLINGS = tonumber(ARGV[1])
SIBLINGS_FROM = #KEYS / SIZE - SIBLINGS
local needs = {}
for n = 0, SIBLINGS_FROM - 1 do
  at(n)
  needs[n + 1] = 0
  if call('EXISTS', READY, LANES, SUSPECTS, LATER, LEASES) > 0 then
    know_form()
    if not STOPPED then
      local can = limits().limited and lanes.is_claimable() or (not own.limited and call('EXISTS', READY, LANES) > 0 and not is_full())
      local meta = call('HMGET', META, 'leadAt', 'sparesUntil', 'seenAt')
      -- Claims follow a clock that was set back.
      if can or ${isSetBack('meta[3]')} then needs[n + 1] = 1 else
        local lead_at, change = tonumber(meta[1]), first_change(tonumber(meta[2]))
        if change and change <= now and not (is_led(lead_at) and lead_at <= now + 1000) then needs[n + 1] = 1 end
      end
    end
  end
end
return needs
`

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns those of the ids of which no job is there; none while jobs are in transit, which may be of any id.
 */
const ended = `
local gone = {}
if call('EXISTS', TRANSIT) == 1 then return gone end
for _, id in ipairs(ARGV) do
  if call('HEXISTS', JOBS, id) == 0 then gone[#gone + 1] = id end
end
return gone
`

const script = (name: string, ...parts: string[]) =>
  shardScript(name, 'ordered', orderedJobs + readyJobs + parts.join(''), { readOnly: true })

export const viewOrderedScript = script('view-ordered', guard, view)
export const sectionOrderedScript = script('section-ordered', guard, section)
export const idsOrderedScript = script('ids-ordered', guard, ids)
export const depthOrderedScript = script('depth-ordered', guard, depthCounts, depth)
export const endedOrderedScript = script('ended-ordered', guard, ended)
export const lookOrderedScript = script('look-ordered', leads, look)
