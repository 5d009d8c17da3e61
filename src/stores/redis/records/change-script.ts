/** The change scripts: one bounded step of administration over selected jobs of a shard. */

import { bySequence } from '../lua/prelude.js'
import { readyJobs } from '../lua/ready-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { selection } from './selection-lua.js'

const plain = `
local function change(j)
  if verb == 'cancel' then
    if not j.claim then
      j.reason = reason
      finish(j, 'x')
      return true
    end
    if is_asked(j) then return false end
    j.reason = reason
    local flags = j.claim.flags + CANCEL
    if not has(flags, HASHISTORY) then flags = flags + HASHISTORY end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', HISTORY, j.id, write_past(j))
  elseif verb == 'delete' then drop(j)
  elseif verb == 'bury' then bury(j, 'buried')
  else
    leave(j)
    if verb == 'revive' then j.attempt, j.crashes, j.reason = 1, 0, nil end
    j.stamp = stamped()
    enter(j, 'r')
  end
  return true
end

local length, selected = call('LLEN', READY_LIST), selected_from(7)
local changed, more, calls = 0, false, false
for _, id in ipairs(selected) do
  local j = job(id)
  if j and find(states, state_of(j), 1, true) and not is_hidden(j) then
    more = changed == most
    if more then break end
    if change(j) then
      changed = changed + 1
      calls = calls or (rings and is_calling(j))
    end
  end
end
-- There may be more stale elements than one step passes over. If a step changed nothing, the next would not either.
local left = call('LLEN', READY_LIST)
local does_anything = changed > 0 or left < length
if ARGV[7] == 'all' and find(states, 'w', 1, true) and does_anything and left > tonumber(call('HGET', META, 'stale')) then more = true end
if calls then ring_unpaused() end
if changed > 0 and verb == 'delete' then call('HSET', META, 'lostAt', now) end
if changed > 0 then tell_ends() end
return { changed, more and 1 or 0, 0 }
`

const ordered = `
local most_payloads, where = tonumber(ARGV[6]), ARGV[7]
-- A job that follows a running one may be run too.
if verb == 'run' then states = states .. 'u' end
local wants_dead = find(states, 'd', 1, true)
states = (string.gsub(states, 'd', ''))
local lives = states ~= '' and selected_from(7) or {}
local deads = wants_dead and (where == 'ids' and selected_from(7) or all_in('d', most + 1)) or {}

local function revive(d)
  local list = list_in(DEAD_PAYLOADS, DEAD_BODIES, d.id, -1)
  drop_dead(d)
  local stamp, j = stamped(), job(d.id)
  add_waiting(d.id, j, list)
  if not j then begin('r', d.id, name_of(d), stamp, d.created, d.error and { error = d.error })
  elseif j.claim then
    local _, created = successor_of(d.id)
    call('HSET', SUCCESSORS, d.id, write_successor(stamp, created or d.created, true))
  else
    leave(j)
    unlist_failed(j)
    j.attempt, j.stamp = 1, stamp
    enter(j, j.suspect and 'x' or 'r')
  end
end
local function change(j)
  if verb == 'cancel' and j.claim then
    drop_successor(j.id)
    j.reason = reason
    local flags = j.claim.flags + CANCEL
    if not has(flags, HASHISTORY) then flags = flags + HASHISTORY end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', HISTORY, j.id, write_past(j))
  elseif verb == 'bury' then bury(j, 'buried')
  elseif verb == 'run' and j.claim then
    local _, created = successor_of(j.id)
    call('HSET', SUCCESSORS, j.id, write_successor(stamped(), created, true))
  elseif verb == 'run' then
    leave(j)
    j.stamp = stamped()
    enter(j, 'r')
  else finish(j) end
end
local changed, payloads, more, calls = 0, 0, false, false
-- Whether the job is left for the next step.
local function is_full_step()
  more = changed >= most or payloads >= most_payloads
  return more
end
for _, id in ipairs(lives) do
  local j = job(id)
  if j and find(states, state_of(j), 1, true) and not is_asked(j) then
    if is_full_step() then break end
    local count = waiting_of(j)
    change(j)
    changed, payloads = changed + 1, payloads + count
    calls = calls or (rings and is_calling_id(id))
  end
end
for _, id in ipairs(deads) do
  local d = dead_job(id)
  if d and not is_hidden(d) and not more then
    if is_full_step() then break end
    local count = count_in(DEAD_PAYLOADS, id)
    if verb == 'revive' then revive(d) else drop_dead(d) end
    changed, payloads = changed + 1, payloads + count
    calls = calls or (rings and is_calling_id(id))
  end
end
if calls then ring_unpaused() end
if changed > 0 then tell_ends() end
return { changed, more and 1 or 0, payloads }
`

/**
 * KEYS: those of one shard; for an ordered queue with `maxRunning` then those of all its shards.
 * ARGV: verb, states, most jobs to change, whether the verb rings (1 or 0), reason ('' or '=' and text), the number of
 * changed payloads at which the step ends (ordered queues only), where (ids, all or failed), ids.
 * verb: cancel · delete · run · bury · revive. states, in the order in which jobs are taken: w ready, s scheduled,
 * u running, c completed, d dead. If states is only d, ids of an ordered queue are looked up in the morgue.
 * Returns { changed, more, payloads }. Refuses `unknown`, and `moved` if the shard is closed.
 */
const text = (change: string) => `
local closed = call('HMGET', META, 'kind', 'closed')
if not closed[1] then return redis.error_reply('MILLRACE unknown') end
if closed[2] then return redis.error_reply('MILLRACE moved') end
know_form()
${selection}${change}`

export const changeScripts = scriptPair(
  'change',
  { plain: text(plain), ordered: text(ordered) },
  { rare: { plain: bySequence + readyJobs, ordered: readyJobs }, whenFull: true },
)
