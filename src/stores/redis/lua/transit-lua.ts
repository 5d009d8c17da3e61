/** Jobs in transit, in Lua: jobs that left a shard, on their way to another. It needs `withOrderedJobs`. */

import { toleratedStepMs } from '../../../core/platform/clock.js'

/** Jobs are in transit for at most this long. A process that moves them needs far less, unless it has died. */
const broughtOnMs = 30_000

export const transit = `
-- Puts in a job with its times and counts. If its id is already here, only its payloads are added. In a shard that is
-- being filled the older header counts: payloads that were pushed here meanwhile are later.
local function join_live(id, state, name, stamp, created, updated, attempt, crashes, error, fields, list)
  local j = job(id)
  add_waiting(id, j, list)
  if j and j.claim then return call('HSETNX', SUCCESSORS, id, write_successor(stamp, created, state ~= 's')) end
  if j and not (created < j.created and call('HGET', META, 'resharding') == 'new') then return end
  if j then remove(j) end
  if state == 's' then state = state_at(stamp) end
  begin(state, id, name, stamp, created, { updated = updated, attempt = attempt, crashes = crashes, error = error, fields = fields })
end
-- Puts in an entry of the morgue. The header of the one that died last counts.
local function join_dead(id, header, list)
  local d, here = read_header(id, header), dead_job(id)
  if here and is_hidden(here) then
    drop_dead(here)
    here = nil
  end
  if here and here.updated > d.updated then add_payloads(DEAD_PAYLOADS, DEAD_BODIES, id, list)
  else to_morgue(d, list, d.reason, d.error, d.updated) end
end
-- If nobody has brought the jobs on for 30 s, puts them back where they were.
local function return_transit()
  local left = call('HMGET', TRANSIT, 'at', 'batch')
  if not left[1] then return end
  -- The clock was set back: it is unknown for how long they have been in transit.
  if now < left[1] - ${toleratedStepMs} then return call('HSET', TRANSIT, 'at', now) end
  if now - left[1] < ${broughtOnMs} then return end
  call('DEL', TRANSIT)
  for _, one in ipairs(cmsgpack.unpack(left[2])) do
    local kind, id, own = one[1], one[2], one[#one]
    local list = {}
    for i = 1, #own, 2 do list[i], list[i + 1] = sub(own[i], #id + 20), own[i + 1] end
    if kind == 'l' then
      join_live(id, one[3], one[4], one[5], one[6], one[7], one[8], one[9], one[10] ~= '' and sub(one[10], 2) or nil, one[11] ~= '' and one[11] or nil, list)
    elseif kind == 'd' then join_dead(id, one[3], list) end
  end
end
`
