/** The lanes of a shard for the fsck scripts: the turns of groups, and the number of running jobs of each group. */

/** To be inserted before the sums: counts that must be equal. */
export const laneSums = `
if call('ZCARD', LANES) ~= call('ZCARD', GROUPED) then say('uneven', 'lanes', '') end
local claimed = call('HLEN', CLAIMS)
-- More claims would take too long to check.
if claimed <= 10000 then
  local busy, counted, claims = 0, call('HGETALL', RUNNING_BY_GROUP), call('HGETALL', CLAIMS)
  for i = 2, #counted, 2 do busy = busy + (tonumber(counted[i]) or 0) end
  for i = 2, #claims, 2 do
    if #claims[i] > 14 and has(byte(claims[i], 14) - 64, HASGROUP) then busy = busy - 1 end
  end
  if busy ~= 0 then say('uneven', 'running-by-group', '') end
end
`

/** To be inserted between the checks for all queues and their steps. */
export const laneChecks = String.raw`
local function check_turn(group)
  if group ~= '' and #lanes.first_of(group, 1) == 0 then say('jobless', name, group) end
  if call('ZSCORE', TURNS, group) and call('ZSCORE', SHUT, group) then say('misplaced', name, group) end
end
own_checks.turns, own_checks.shut = check_turn, check_turn
own_checks.holds = function() end
own_checks['running-by-group'] = function(group, count)
  if group == '' or not (tonumber(count) and tonumber(count) > 0) then say('unreadable', name, group) end
end
own_checks.lanes = function(member, score)
  local stop = find(member, '\0', 1, true)
  if not stop or #member < stop + 16 then return say('unreadable', name, member) end
  local group, id = sub(member, 1, stop - 1), sub(member, stop + 16)
  if score ~= '0' then say('scored', name, id) end
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and (j.claim or j.state ~= 'r' or member ~= j.group .. '\0' .. place(j)) then say('misplaced', name, id) end
  -- A full group has no turn until one of its claims ends, and a paused one none until it is resumed.
  if not lanes.has_turn(group) and call('HEXISTS', RUNNING_BY_GROUP, group) == 0 and not call('ZSCORE', HOLDS, '\0' .. group) then say('turnless', name, group) end
end
own_checks.grouped = function(member, score)
  local id = sub(member, 16)
  if score ~= '0' then say('scored', name, id) end
  local j = look(id)
  if j == nil then say('jobless', name, id)
  elseif j and (j.claim or j.state ~= 'r' or j.group == '' or member ~= place(j)) then say('misplaced', name, id) end
end
for _, set in ipairs({ 'turns', 'shut', 'holds', 'lanes', 'grouped' }) do sets[set] = true end
`
