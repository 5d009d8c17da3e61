/**
 * The lanes of a shard in Lua: the turns of groups that have ready jobs, the groups whose lanes are shut, and the
 * limits of claims on the shard. The translation of `memory-lanes` and `memory-limits`. It needs the prelude.
 */

import { upkeepLimit } from '../../rules/bounds.js'
import { turnStep } from '../../rules/fair-share.js'
import { leadLapseMs } from '../../rules/wake-lead.js'
import { keyNames } from '../redis-keys.js'
import { byNumber } from './lazy-functions-lua.js'

/**
 * A group is in TURNS or SHUT if its lane has a job and it is neither full nor paused; otherwise it is in neither. Jobs without
 * a group have no lane in LANES: each claim that goes round checks whether '' needs a turn.
 */
const functions = String.raw`
function lanes.opens_at() return math.max(limits().held, limits().shut) end
-- How many more jobs may run.
function lanes.room()
  local most = limits().max
  if not most then return math.huge end
  if SIBLINGS < 1 then return most - call('HLEN', CLAIMS) end
  for n = SIBLINGS_FROM, SIBLINGS_FROM + SIBLINGS - 1 do most = most - call('HLEN', KEYS[n * SIZE + ${keyNames('plain').indexOf('claims') + 1}]) end
  return most
end
-- How many more jobs of the group may run: none while it is paused.
local function room_in(group)
  local most = limits().per
  if own.paused and group ~= '' and call('ZSCORE', HOLDS, '\0' .. group) then return 0 end
  if not most then return math.huge end
  if group ~= '' then return most - (call('HGET', RUNNING_BY_GROUP, group) or 0) end
  local busy = call('HGETALL', RUNNING_BY_GROUP)
  for i = 2, #busy, 2 do most = most + busy[i] end
  return most - call('HLEN', CLAIMS)
end
lanes.room_in = room_in
-- At most count first members of a group's lane.
local function first_of(group, count) return call('ZRANGE', LANES, '[' .. group .. '\0', '(' .. group .. '\1', 'BYLEX', 'LIMIT', 0, count) end
lanes.first_of = first_of
function lanes.count(group) return call('ZLEXCOUNT', LANES, '[' .. group .. '\0', '(' .. group .. '\1') end
function lanes.leave_turn(group)
  call('ZREM', TURNS, group)
  call('ZREM', SHUT, group)
end
-- Opens the lane of a group. Its turn comes last.
function lanes.open(group)
  call('ZREM', SHUT, group)
  call('ZADD', TURNS, call('HINCRBY', META, 'turn', ${turnStep}), group)
end
-- Opens the lanes whose time has come, in the order of these times.
function lanes.open_due()
  for _, group in ipairs(call('ZRANGE', SHUT, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${upkeepLimit})) do lanes.open(group) end
end
function lanes.close(group, until_at)
  call('ZREM', TURNS, group)
  call('ZADD', SHUT, until_at, group)
  call('HSET', META, 'seenAt', now)
end
function lanes.has_turn(group) return call('ZSCORE', TURNS, group) or call('ZSCORE', SHUT, group) end
-- A lane has a turn while it has a job and its group has room.
function lanes.refresh(group)
  local is_open = room_in(group) > 0 and #first_of(group, 1) > 0
  if not is_open then lanes.leave_turn(group)
  elseif not lanes.has_turn(group) then lanes.open(group) end
end
function lanes.enter(group, place)
  call('ZADD', LANES, 0, group .. '\0' .. place)
  call('ZADD', GROUPED, 0, place)
end
function lanes.leave(group, places)
  local members = {}
  for i = 1, #places do members[i] = group .. '\0' .. places[i] end
  many('ZREM', LANES, members)
  many('ZREM', GROUPED, places)
end
function lanes.held_until(group) return tonumber(call('ZSCORE', HOLDS, group) or 0) end
-- Grants no job of the group, or of the shard if group is nil, until this instant.
function lanes.hold_back(group, until_at)
  call('HSET', META, 'limited', 1, 'seenAt', now)
  if not group then
    if until_at > limits().held then call('HSET', META, 'heldUntil', until_at) end
  else
    for _, over in ipairs(call('ZRANGE', HOLDS, '-inf', now, 'BYSCORE', 'LIMIT', 0, ${upkeepLimit})) do call('ZREM', HOLDS, over) end
    call('ZADD', HOLDS, 'GT', until_at, group)
    if lanes.has_turn(group) then lanes.close(group, math.max(until_at, tonumber(call('ZSCORE', SHUT, group) or 0))) end
  end
  own = {}
end
-- Opens all lanes that are shut, in the order of their times.
function lanes.open_all()
  while call('EXISTS', SHUT) == 1 do
    for _, group in ipairs(call('ZRANGE', SHUT, 0, 99)) do lanes.open(group) end
  end
end
-- Looks at a shut lane anew.
function lanes.look(group)
  if call('ZSCORE', SHUT, group) then lanes.open(group) end
end
-- Ends the hold of the group, or all holds of the shard if group is nil. Returns how many it ended.
function lanes.release(group)
  local ended
  if group then
    ended = lanes.held_until(group) > now and 1 or 0
    call('ZREM', HOLDS, group)
    lanes.look(group)
  else
    ended = (limits().held > now and 1 or 0) + call('ZCOUNT', HOLDS, '(' .. now, '(+inf')
    call('HDEL', META, 'heldUntil')
    call('ZREMRANGEBYSCORE', HOLDS, '-inf', '(+inf')
    lanes.open_all()
  end
  own = {}
  return ended
end
-- Pauses the group, or ends that.
function lanes.pause(group, is_paused)
  if is_paused then
    call('HSET', META, 'limited', 1, 'pausedGroups', 1)
    call('ZADD', HOLDS, '+inf', '\0' .. group)
  else
    call('ZREM', HOLDS, '\0' .. group)
    if call('ZCOUNT', HOLDS, '+inf', '+inf') == 0 then call('HDEL', META, 'pausedGroups') end
  end
  own = {}
  lanes.refresh(group)
end
`

/** Whether any ready job may be claimed now, and when the shard opens. The translation of parts of `memory-queue`. */
const bounds = `
-- The number of ready jobs without a group. A claim that takes no more from the shard has already counted them.
local function groupless()
  return own.groupless or call('LLEN', READY_LIST) - tonumber(call('HGET', META, 'stale')) + call('ZCARD', READY)
end
lanes.groupless = groupless
-- Whether nothing is granted, whichever jobs are ready.
local function is_closed() return STOPPED or lanes.opens_at() > now or is_full() end
lanes.is_closed = is_closed
-- Whether claims go round the lanes.
function lanes.are_there() return limits().per or limits().by_group or call('EXISTS', LANES) == 1 end
-- Whether a claim that does not run alone may take a ready job now.
local function is_claimable()
  if is_closed() then return false end
  local has_groupless = groupless() > 0
  if not lanes.are_there() then return has_groupless end
  for _, group in ipairs(call('ZRANGE', TURNS, 0, 1)) do
    if group ~= '' or has_groupless then return true end
  end
  return has_groupless and not call('ZSCORE', SHUT, '') and room_in('') > 0
end
lanes.is_claimable = is_claimable
-- Whether a claim that runs alone may take a suspect.
local function is_open_for_suspects() return not is_closed() and call('EXISTS', SUSPECTS) == 1 end
lanes.is_open_for_suspects = is_open_for_suspects
-- Whether the end of a claim has made room for other jobs, here or in other shards of the queue.
function lanes.has_freed()
  local max, per = limits().max, limits().per
  if not EXCLUSIVE and not max and not per then return false end
  if is_claimable() or is_open_for_suspects() then return true end
  local found, was_stopped = false, STOPPED
  for n = SIBLINGS_FROM, SIBLINGS_FROM + (max and SIBLINGS or 0) - 1 do
    at(n)
    local form = call('HMGET', META, 'paused', 'resharding')
    STOPPED = form[1] == '1' or form[2] ~= false
    found = found or is_claimable() or is_open_for_suspects()
  end
  at(0)
  STOPPED = was_stopped
  return found
end
-- When the first shut lane with jobs opens, or nil.
local function next_lane()
  local shut, has_groupless = call('ZRANGE', SHUT, 0, 1, 'WITHSCORES'), groupless() > 0
  if shut[1] and (shut[1] ~= '' or has_groupless) then return tonumber(shut[2]) end
  return shut[4] and tonumber(shut[4])
end
-- When ready jobs that are shut open, or nil.
function lanes.next_opening()
  if call('EXISTS', LANES, SUSPECTS) == 0 and groupless() <= 0 then return nil end
  if lanes.opens_at() > now then return lanes.opens_at() end
  return lanes.are_there() and next_lane() or nil
end
-- Why claims get none of the jobs that are left.
function lanes.reason_of(alone)
  if is_full() then return 'full' end
  local has_ready = groupless() > 0 or call('EXISTS', LANES) == 1
  if (has_ready or (alone and call('EXISTS', SUSPECTS) == 1)) and lanes.opens_at() > now then return 'throttled' end
  if has_ready then return next_lane() and 'throttled' or 'full' end
  return call('EXISTS', SCHEDULED) == 1 and 'scheduled' or 'empty'
end
-- Whether a lead is expected to ask by this instant.
local function is_led_by(instant)
  local lead_at = tonumber(call('HGET', META, 'leadAt'))
  return lead_at and now <= lead_at + ${leadLapseMs} and lead_at <= instant
end
function lanes.is_calling(j)
  if j.state == 's' then return not is_led_by(math.floor(j.stamp / 1000)) end
  if is_full() then return false end
  local opens = lanes.opens_at()
  if not j.suspect and lanes.are_there() then
    if room_in(j.group) <= 0 then return false end
    opens = math.max(opens, tonumber(call('ZSCORE', SHUT, j.group) or 0))
  end
  return opens <= now or not is_led_by(opens)
end
`

/**
 * Limits and lanes as every script has them. For queues without groups and limits, scripts never index `lanes`, so its
 * functions are not even made. It comes first in a script: the later a function is made that uses early locals, the
 * longer that takes.
 */
export const lanes = `
-- The position of the first sibling shard in KEYS and the number of siblings. Siblings are all shards of the queue;
-- most scripts do not get them. Keys that are no whole shard are none.
local SIBLINGS_FROM, SIBLINGS = 1, (#KEYS - #KEYS % SIZE) / SIZE - 1
local EXCLUSIVE, STOPPED = false, false
-- The limits of claims on the current shard. held and shut: nothing is granted until then; max: the most running jobs;
-- per: the most running jobs of each group; paused: whether a group is paused; scope: that of its
-- throttle; by_queue and by_group: whether this counts all jobs together, and those of each group.
local own = {}
-- is_limited: whether META says that the shard is limited, if the caller knows.
local function limits(is_limited)
  if own.of == META then return own end
  own = { of = META, held = 0, shut = 0 }
  if is_limited == nil then is_limited = call('HGET', META, 'limited') end
  if not is_limited then return own end
  local values = call('HMGET', META, 'heldUntil', 'shutUntil', 'maxRunning', 'perGroup', 'scope', 'by', 'pausedGroups')
  own.limited, own.held, own.shut = true, tonumber(values[1] or 0), tonumber(values[2] or 0)
  own.max, own.per, own.scope, own.paused = tonumber(values[3]), tonumber(values[4]), values[5], values[7]
  own.by_queue, own.by_group = values[6] and values[6] ~= 'group', values[6] and values[6] ~= 'queue'
  return own
end
local lanes = {}
-- Whether nothing can be granted before a claim ends.
local function is_full()
  if EXCLUSIVE and call('EXISTS', CLAIMS) == 1 then return true end
  return limits().max and lanes.room() <= 0
end
setmetatable(lanes, { __index = function(_, name)
setmetatable(lanes, nil)
${byNumber(functions + bounds, 'plain')}
return lanes[name]
end })
-- Whether the new state of the job is a reason to ring: it is ready and not shut, or will be before the lead asks.
local function is_calling(j)
  if j.claim then return false end
  if j.state ~= 's' and j.state ~= 'l' and j.state ~= 'r' and j.state ~= 'x' then return false end
  if j.state ~= 's' and not EXCLUSIVE and not limits().limited then return true end
  return lanes.is_calling(j)
end
`
