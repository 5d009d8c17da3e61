/**
 * The limits of a shard and its ready jobs, in Lua: whether any may be claimed now, and when the shard opens. The
 * translation of parts of `memory-queue`.
 */

import { leadLapseMs } from '../../rules/wake-lead.js'

export const limits = `
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
