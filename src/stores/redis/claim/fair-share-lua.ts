/**
 * The fair share of one claim from a shard, in Lua: the ready jobs that its limits allow it to take. The translation of
 * `memory-fair-share`. It needs the gate, and a script that defines:
 * - `take_ready(count)`, `take_lane(group, count)`, `take_suspect(place)`:
 *   take at most `count` of the first jobs without a group or of a group, or take this suspect. The first two return
 *   how many they took, which is fewer if jobs are large.
 * - `is_filled()`: whether the claim has enough bytes.
 * - `weights_text`: JSON: how many turns groups have in a round, or ''.
 */

import { mostSuspects, mostVisits, turnStep } from '../../rules/fair-share.js'

/** The suspects of a shard whose groups let them start, in Lua. It needs the gate. */
export const openSuspect = `
-- Ms until the group lets a job start; without a limit: not by itself, because it is full or paused.
local function group_opens_in(group)
  if lanes.room_in(group) <= 0 then return math.huge end
  local held_ms = math.max(0, lanes.held_until(group) - now)
  if not own.by_group then return held_ms end
  local permits, for_ms = gate.permits(group)
  return permits > 0 and held_ms or math.max(held_ms, for_ms)
end
-- The first suspect whose group lets it start, and that group. Otherwise nil, nil, and ms until there is one.
-- Removes suspects without a record.
local function open_suspect()
  local soonest, known = math.huge, {}
  for _, member in ipairs(call('ZRANGE', SUSPECTS, 0, ${mostSuspects - 1})) do
    local rec = call('HGET', JOBS, sub(member, 16))
    local group = rec and select(4, written(rec))
    if not rec then
      call('ZREM', SUSPECTS, member)
      pass_over(sub(member, 16), sub(member, 10, 15))
    elseif not known[group] then
      known[group] = true
      local for_ms = group_opens_in(group)
      if for_ms == 0 then return member, group end
      soonest = math.min(soonest, for_ms)
    end
  end
  return nil, nil, soonest
end
`

export const fairShare = `
-- Takes at most limit jobs, in the order of the shard or lane by lane. A claim that runs alone takes one,
-- suspects first: only such claims get suspects.
local function take(limit, alone)
  -- How many jobs the throttle permits of a group; without a limit if it does not count by group.
  local function permits_in(group) return own.by_group and (gate.permits(group)) or math.huge end
  -- Reports count jobs of a group, or of all if it is nil, as started, perhaps none. For how many ms none may start now,
  -- or nil.
  local function denied(group, count)
    if count > 0 then gate.started(group, count) end
    local permits, for_ms = gate.permits(group)
    return permits <= 0 and for_ms or nil
  end
  -- Shuts what is left of a group and may not start now.
  local function started_in(group, count)
    local for_ms = own.by_group and denied(group, count)
    if not for_ms then return end
    local has_left = group == '' and lanes.groupless() > 0 or (group ~= '' and #lanes.first_of(group, 1) > 0)
    if has_left and lanes.room_in(group) > 0 then lanes.close(group, now + for_ms) end
  end
  local function left_in(group) return group == '' and lanes.groupless() or lanes.count(group) end
  local weights = weights_text ~= '' and cjson.decode(weights_text) or nil
  -- The number of turns in a round. With as many lanes as jobs to grant, each has one job.
  local function turns_of(most)
    local turns = call('ZCARD', TURNS)
    if not weights or turns >= most then return turns end
    for group, weight in pairs(weights) do
      local turn = call('ZSCORE', TURNS, group)
      if turn then turns = turns + math.max(0, weight - 1 - turn % ${turnStep}) end
    end
    return turns
  end
  -- Takes from a lane what its turn and its own limits allow.
  local function visit(group, turn, share)
    local count = left_in(group)
    local free = lanes.room_in(group)
    -- Only jobs without a group may have gone while '' still has a turn.
    if count <= 0 or free <= 0 then return 0 end
    if own.limited then
      local held = lanes.held_until(group)
      if held > now then
        lanes.close(group, held)
        return 0
      end
    end
    local most, taken = math.min(share, count, free, permits_in(group)), 0
    if most > 0 then taken = group == '' and take_ready(most) or (group ~= '' and take_lane(group, most)) or 0 end
    -- If fewer were taken than wanted, jobs without a record may have been removed.
    local has_left = count > taken and (taken >= most or left_in(group) > 0)
    if has_left and free > taken then
      if weights and turn % ${turnStep} + 1 < (weights[group] or 1) then call('ZADD', TURNS, turn + 1, group)
      else lanes.open(group) end
    end
    started_in(group, taken)
    return taken
  end
  local function go_round(most)
    lanes.open_due()
    if lanes.groupless() > 0 and lanes.room_in('') > 0 and not lanes.has_turn('') then lanes.open('') end
    -- The number of turns that are left of this round.
    local taken, unvisited = 0, 0
    for _ = 1, ${mostVisits} do
      local group, turn = unpack(call('ZRANGE', TURNS, 0, 0, 'WITHSCORES'))
      if taken >= most or not group or is_filled() then break end
      if unvisited == 0 then unvisited = turns_of(most - taken) end
      lanes.leave_turn(group)
      taken = taken + visit(group, turn, math.ceil((most - taken) / unvisited))
      unvisited = unvisited - 1
    end
    return taken
  end
  local groupless = lanes.groupless()
  local has_ready = groupless > 0 or call('EXISTS', LANES) == 1
  if not has_ready and not (alone and call('EXISTS', SUSPECTS) == 1) then
    own.groupless = groupless
    if own.by_queue then gate.rests() end
    return 0
  end
  local most, taken = math.min(alone and 1 or limit, lanes.room(), own.by_queue and (gate.permits()) or math.huge), 0
  if most > 0 then
    local suspect, group
    if alone then
      ${openSuspect}
      suspect, group = open_suspect()
    end
    if suspect then
      take_suspect(suspect, group)
      if group ~= '' then lanes.refresh(group) end
      started_in(group, 1)
      taken = 1
    elseif lanes.are_there() then taken = go_round(most)
    else taken = take_ready(most) end
  end
  own.groupless = lanes.groupless()
  local for_ms = own.by_queue and denied(nil, taken)
  if for_ms and (lanes.groupless() > 0 or call('EXISTS', LANES, SUSPECTS) > 0) then
    own.shut = now + for_ms
    call('HSET', META, 'shutUntil', own.shut, 'seenAt', now)
  end
  return taken
end
`
