/** The scripts that only read a shard: jobs as records, sections of its order, its depth, claims, and whether it needs a claimer. */

import { leads } from './leads-lua.js'
import { jobs, shardScript } from './prelude.js'
import { readyJobs } from './ready-lua.js'
import { isSetBack } from './set-back-lua.js'

const guard = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
know_order()
`

/**
 * KEYS: those of one shard. ARGV: whether the jobs are looked at alone (1 or 0), ids.
 * Returns { now, maximal age of the dead or '', views }; a view is { record, past, claim, error, beat, result, worker, expiry, ended,
 * checkpoint, log } with nil for what there is not, nor is shown of jobs that are not alone.
 */
const view = `
local views, alone = {}, ARGV[1] == '1'
for i = 2, #ARGV do
  local id = ARGV[i]
  local rec = call('HGET', JOBS, id)
  local notes = call('HMGET', NOTES, 'e' .. id, 'b' .. id, 'r' .. id, 'w' .. id)
  views[i - 1] = {
    rec, call('HGET', PAST, id), call('HGET', CLAIMS, id), notes[1], notes[2], notes[3], notes[4],
    rec and call('ZSCORE', EXPIRY, sub(rec, 9, 14) .. id), call('HGET', ENDED, id),
    alone and call('HGET', NOTES, 'k' .. id), alone and call('HGET', NOTES, 'l' .. id) }
end
return { now, call('HGET', META, 'deadAge') or '', views }
`

/**
 * KEYS: those of one shard. ARGV: section (ready, suspects, later, done, dead, retries, running), place after which, or '',
 * most jobs.
 * Returns ids in the order of the section; of running ones, in no order, each id and its claim.
 */
const section = String.raw`
local function is_place_before(a, b)
  local p, s, t, q = unpackn('>I2I4I3I6', a)
  local x, y, z, w = unpackn('>I2I4I3I6', b)
  if p ~= x then return p < x end
  if s ~= y then return s < y end
  if t ~= z then return t < z end
  return q < w
end
local section, after, most = ARGV[1], ARGV[2], tonumber(ARGV[3])
if section == 'running' then return call('HGETALL', CLAIMS) end
local ids = {}
local sets = { suspects = { SUSPECTS, 16 }, later = { LATER, 14 }, done = { DONE, 13, true }, dead = { DEAD, 13, true }, retries = { RETRIES, 10 } }
local function members(key, reverse)
  if reverse then return call('ZRANGE', key, after == '' and '+' or '(' .. after, '-', 'BYLEX', 'REV', 'LIMIT', 0, most) end
  return call('ZRANGE', key, after == '' and '-' or '(' .. after .. '\255', '+', 'BYLEX', 'LIMIT', 0, most)
end
if section ~= 'ready' then
  local key, from, reverse = unpack(sets[section])
  for _, member in ipairs(members(key, reverse)) do ids[#ids + 1] = sub(member, from) end
  return ids
end

-- Where the line goes on after the place: its elements stand in the order of their stamps.
local from, length = 0, call('LLEN', LINE)
if after ~= '' then
  local priority = unpackn('>I2', after)
  if priority > 32767 then from = length
  elseif priority == 32767 then
    local stamp, seq = unpackn('>I7', after, 3), unpackn('>I6', after, 10)
    local high = length
    while from < high do
      local middle = math.floor((from + high) / 2)
      local element = call('LINDEX', LINE, middle)
      local s, q = unpackn('>I7', element), unpackn('>I6', element, 8)
      if s < stamp or (s == stamp and q <= seq) then from = middle + 1 else high = middle end
    end
  end
end
local line = {}
-- Where some are stale the records tell which, and those may be large.
local is_clean = call('HGET', META, 'stale') == '0'
while #line < most and from < length do
  local elements = call('LRANGE', LINE, from, from + (is_clean and most or math.min(most, 50)) - 1)
  local some = {}
  for i, element in ipairs(elements) do some[i] = sub(element, 14) end
  local records, pasts = not is_clean and call('HMGET', JOBS, unpack(some)), not is_clean and call('HMGET', PAST, unpack(some))
  for i, element in ipairs(elements) do
    if is_clean or (records[i] and not pasts[i] and sub(records[i], 9, 14) == sub(element, 8, 13)) then line[#line + 1] = element end
  end
  from = from + #elements
end
local others, l, m = members(READY), 1, 1
local laned = members(GROUPED)
if #laned > 0 then
  for _, member in ipairs(laned) do others[#others + 1] = member end
  table.sort(others, is_place_before)
end
while #ids < most and (line[l] or others[m]) do
  if not others[m] or (line[l] and line_first(line[l], others[m])) then
    ids[#ids + 1] = sub(line[l], 14)
    l = l + 1
  else
    ids[#ids + 1] = sub(others[m], 16)
    m = m + 1
  end
end
return ids
`

/**
 * KEYS: those of one shard. No ARGV.
 * Returns { now, ready, suspects, scheduled, running, dead, retries, lagMs, processed, failed, crashed, paused, draining }.
 */
export const depthCounts = `
local meta = call('HMGET', META, 'stale', 'processed', 'failed', 'crashed', 'paused', 'draining')
local suspects, later, running = call('ZCARD', SUSPECTS), call('ZCARD', LATER), call('HLEN', CLAIMS)
local failed = call('ZCARD', RETRIES)
-- Of those that failed the ones that run do not wait.
if failed > 0 and running > 0 then
  for _, id in ipairs(call('HKEYS', CLAIMS)) do
    local past = call('HGET', PAST, id)
    if past and read_past(past).attempt > 1 then failed = failed - 1 end
  end
end
local oldest = oldest_ready(tonumber(meta[1]))
local others = { oldest_in(SUSPECTS) or false, call('ZRANGE', LATER, 0, 0)[1] or false }
if others[2] then others[2] = unpackn('>I7', others[2]) end
for i = 1, 2 do
  if others[i] and (not oldest or others[i] < oldest) then oldest = others[i] end
end
local counts = {
  now, ready_count(tonumber(meta[1])) + suspects, suspects, later, running, call('ZCARD', DEAD), failed, oldest and age_of(oldest) or 0,
  tonumber(meta[2]), tonumber(meta[3]), tonumber(meta[4]), meta[5] == '1' and 1 or 0, meta[6] == '1' and 1 or 0 }
`

/** Of a plain queue behind them `lostAt`, or 0. */
const plainCounts = `
counts[#counts + 1] = tonumber(call('HGET', META, 'lostAt') or 0)
return counts
`

/**
 * KEYS: those of each shard asked, one after the other. No ARGV.
 * Returns for each 1 where a claim would find something and nobody can be relied on to find it, else 0.
 */
const look = `
SIBLINGS = 0
local needs = {}
for n = 0, #KEYS / SIZE - 1 do
  at(n)
  needs[n + 1] = 0
  if call('EXISTS', LINE, READY, LANES, SUSPECTS, LATER, LEASES) > 0 then
    local meta = call('HMGET', META, 'paused', 'leadAt', 'limited', 'stale', 'sparesUntil', 'seenAt')
    STOPPED = meta[1] == '1'
    limits(meta[3])
    if not STOPPED then
      local can = own.limited and lanes.is_claimable() or (not own.limited and ready_count(tonumber(meta[4])) > 0)
      -- Claims follow a clock that was set back.
      if can or ${isSetBack('meta[6]')} then needs[n + 1] = 1 else
        local lead_at = tonumber(meta[2])
        local change = first_change(tonumber(meta[5]))
        if change and change <= now and not (is_led(lead_at) and lead_at <= now + 1000) then needs[n + 1] = 1 end
      end
    end
  end
end
return needs
`

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns those of the ids whose jobs have ended or are not there.
 */
const ended = `
local gone = {}
for _, id in ipairs(ARGV) do
  local is_there = call('HEXISTS', JOBS, id) == 1
  local past = is_there and call('HEXISTS', CLAIMS, id) == 0 and call('HGET', PAST, id)
  local state = past and sub(past, 1, 1)
  if not is_there or state == 'c' or state == 'd' then gone[#gone + 1] = id end
end
return gone
`

/**
 * KEYS: those of one shard. No ARGV.
 * Returns the age in ms of the oldest ready job that every claim may be given, or -1.
 */
const heads = `
local oldest = oldest_ready(tonumber(call('HGET', META, 'stale')))
return oldest and age_of(oldest) or -1
`

/**
 * KEYS: those of one shard. ARGV: worker.
 * Returns of each of its claims id, claim, what beats said or '', and task.
 */
const held = `
local claims, found = call('HGETALL', CLAIMS), {}
for i = 1, #claims, 2 do
  if read_claim(claims[i + 1]).worker == ARGV[1] then
    for _, part in ipairs({ claims[i], claims[i + 1], call('HGET', NOTES, 'b' .. claims[i]) or '', (written(call('HGET', JOBS, claims[i]))) }) do
      found[#found + 1] = part
    end
  end
end
return found
`

/**
 * KEYS: those of one shard. ARGV: of each claim its id and fence.
 * Returns of each the group of its job, '' for none, or nothing for a claim that is not the current one.
 */
const groups = `
local groups = {}
for n = 1, #ARGV, 2 do
  local claim, group = call('HGET', CLAIMS, ARGV[n]), false
  if claim and sub(claim, 1, 7) == pack('>I7', tonumber(ARGV[n + 1])) then group = select(4, written(call('HGET', JOBS, ARGV[n]))) end
  groups[#groups + 1] = group
end
return groups
`

const script = (name: string, ...parts: string[]) =>
  shardScript(name, 'plain', jobs + readyJobs + parts.join(''), { readOnly: true })

export const viewScript = script('view', guard, view)
export const sectionScript = script('section', guard, section)
export const depthScript = script('depth', guard, depthCounts, plainCounts)
export const headsScript = script('heads', guard, heads)
export const lookScript = script('look', leads, look)
export const endedScript = script('ended', guard, ended)
export const heldScript = script('held', guard, held)
export const groupsScript = script('groups', guard, groups)
