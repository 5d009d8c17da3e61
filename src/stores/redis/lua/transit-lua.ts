/** Jobs in transit, in Lua: jobs that left a shard, on their way to another. */

import { toleratedStepMs } from '../../../core/platform/clock.js'

/** Whoever claims or sweeps brings on what has been in transit for this long: a process that moves jobs needs far less. */
export const broughtOnMs = 30_000

/** It needs `withOrderedJobs`. */
export const arrivals = `
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
`

export const stranding = `
-- Whether nobody has brought the jobs in transit on for 30 s. Who is told so does. If the clock was set back, it is
-- unknown for how long they have been in transit.
local function is_stranded()
  local at = call('HGET', TRANSIT, 'at')
  if not at or (now - at < ${broughtOnMs} and now >= at - ${toleratedStepMs}) then return false end
  call('HSET', TRANSIT, 'at', now)
  return true
end
`
