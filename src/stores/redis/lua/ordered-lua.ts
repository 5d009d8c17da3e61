/** The changes of an ordered job: how its claims end, and what administration does to it. It needs `payloads`. */

import { withLazy } from './lazy-functions-lua.js'
import { payloadChanges, payloadReads } from './payloads-lua.js'
import { beginning, byteOrder, goingBack, jobStates, passOver } from './prelude.js'

/** A lost record loses the payloads in it. Payloads in sets wait until the id is enqueued again. */
const leaveInHand = `
    local list = hand_of(id)
    if list then
      call('HDEL', CLAIMED_PAYLOADS, id)
      call('HDEL', SUCCESSORS, id)
      add_payloads(PAYLOADS, BODIES, id, list)
    end
`.slice(1)
const leaveWaiting = `
  elseif count_in(PAYLOADS, id) > 0 then call('HINCRBY', META, 'many', -1)
`.slice(1)

/** Functions that most calls need: the form of the queue, the order of otherwise equal jobs, and records. */
const form = String.raw`
local NO_SEQ = '\0\0\0\0\0\0'
local function know_form()
  local form = call('HMGET', META, 'order', 'exclusive', 'merge', 'paused', 'resharding')
  LIFO, EXCLUSIVE, LATEST, DISTINCT = form[1] == 'lifo', form[2] == 'shard', form[3] == 'latest', form[3] == 'distinct'
  STOPPED = form[4] == '1' or form[5] ~= false
end
${byteOrder}local function tied(a, b) return comes_before(a.id, b.id) end
-- The record of a job, as for a plain one. If the job has only one payload, its digest and value come after this.
local function record_of(state, name, stamp, created)
  local body = (find(name, '\0', 1, true) and 'H' or '@') .. name .. '\0'
  if math.floor(stamp / 1000) == created then return state .. pack('>I7', stamp) .. NO_SEQ .. body end
  return string.upper(state) .. pack('>I7', stamp) .. NO_SEQ .. pack('>I6', created) .. body
end
`

const ends = String.raw`
local function list_failed(j)
  if j.attempt > 1 then call('ZADD', RETRIES, 0, retry_place(j)) end
end
local function unlist_failed(j)
  if j.attempt > 1 then call('ZREM', RETRIES, retry_place(j)) end
end
local function state_at(stamp) return math.floor(stamp / 1000) > now and 's' or 'r' end
-- The name of a job: its task, then NUL and its group if it has one.
local function name_of(j) return j.group == '' and j.task or j.task .. '\0' .. j.group end
-- Puts in a job with the payloads that wait for its id. state: r ready, x suspect or s scheduled. given: attempt,
-- crashes, updated, error and fields, unless the job is new.
local function begin(state, id, name, stamp, created, given)
  local rec = record_of(state == 's' and 's' or 'r', name, stamp, created)
  call('HSET', JOBS, id, rec)
  call('HINCRBY', META, 'many', 1)
  local j = job_of(id, rec)
  j.updated = now
  for name, value in pairs(given or {}) do j[name] = value end
  j.state = state
  if given or state == 'x' or created ~= now then call('HSET', HISTORY, id, write_past(j)) end
  if j.error then call('HSET', NOTES, 'e' .. id, j.error) end
  if j.fields then call('HSET', NOTES, 'f' .. id, j.fields) end
  list_failed(j)
  if state == 's' then call('ZADD', SCHEDULED, 0, pack('>I7', stamp) .. NO_SEQ .. id)
  elseif state == 'x' then call('ZADD', SUSPECTS, 0, place(j))
  elseif j.group == '' then call('ZADD', READY, 0, place(j))
  else lanes.enter(j.group, place(j)) end
  if j.group ~= '' then lanes.refresh(j.group) end
  if LATEST then keep_last(PAYLOADS, BODIES, id) end
end
-- Removes everything of the live job except waiting payloads.
local function remove(j)
  leave(j)
  if j.claim then call('HDEL', CLAIMED_PAYLOADS, j.id) elseif not own_list(j.id) then call('HINCRBY', META, 'many', -1) end
  call('HDEL', JOBS, j.id)
  if j.group ~= '' then lanes.refresh(j.group) end
  if j.fresh and not (j.claim and has(j.claim.flags, BEATEN)) then return end
  call('HDEL', HISTORY, j.id)
  call('HDEL', NOTES, 'e' .. j.id, 'b' .. j.id, 'f' .. j.id)
  unlist_failed(j)
end
-- The times of the job that follows: stamp 7, created 6, and 'r' if it only waits for the claim to end. With 'r' it is
-- ready then, even if the clock has changed meanwhile.
local function write_successor(stamp, created, is_ready) return pack('>I7I6', stamp, created) .. (is_ready and 'r' or '') end
local function successor_of(id)
  local successor = call('HGET', SUCCESSORS, id)
  if not successor then return nil end
  local stamp, created = unpackn('>I7I6', successor)
  return stamp, created, sub(successor, 14) == 'r'
end
local function drop_successor(id)
  if call('HDEL', SUCCESSORS, id) == 1 then drop_payloads(PAYLOADS, BODIES, id) end
end
-- Removes the job. If it has a successor, that becomes a new job.
local function finish(j)
  local stamp, created, is_ready = successor_of(j.id)
  remove(j)
  if not stamp then
    if not j.claim then drop_payloads(PAYLOADS, BODIES, j.id) end
    return
  end
  call('HDEL', SUCCESSORS, j.id)
  begin(is_ready and 'r' or state_at(stamp), j.id, name_of(j), stamp, created)
end
-- Merges the payloads in hand with those that have arrived for the job since.
local function give_back(j, list)
  if call('HDEL', SUCCESSORS, j.id) == 0 and call('HDEL', CLAIMED_PAYLOADS, j.id) == 0 then return end
  call('HDEL', CLAIMED_PAYLOADS, j.id)
  local _, rec = own_list(j.id)
  if rec then call('HSET', JOBS, j.id, rec) end
  call('HINCRBY', META, 'many', 1)
  add_payloads(PAYLOADS, BODIES, j.id, list)
end
${passOver(leaveInHand, leaveWaiting)}${goingBack('  give_back(j, hand_of(j.id))\n')}
-- The header of an entry in the morgue: finishedAt 6, stamp 7, attempt 3, crashes 2, createdAt 6; task and group, each
-- with NUL behind it; the reason, with its length in 4 bytes before it; the error. Reason and error are '' if absent,
-- otherwise they begin with '='.
local function write_header(d)
  local reason = d.reason and '=' .. d.reason or ''
  return pack('>I6I7I3I2I6', d.updated, d.stamp, d.attempt, d.crashes, d.created) .. d.task .. '\0' .. d.group .. '\0'
    .. pack('>I4', #reason) .. reason .. (d.error and '=' .. d.error or '')
end
local function read_header(id, header)
  local updated, stamp, attempt, crashes, created = unpackn('>I6I7I3I2I6', header)
  local task_stop = find(header, '\0', 25, true)
  local stop = find(header, '\0', task_stop + 1, true)
  local upto = stop + 4 + unpackn('>I4', header, stop + 1)
  local d = { id = id, seq = NO_SEQ, state = 'd', updated = updated, stamp = stamp, attempt = attempt, crashes = crashes, created = created, task = sub(header, 25, task_stop - 1), group = sub(header, task_stop + 1, stop - 1) }
  if upto > stop + 4 then d.reason = sub(header, stop + 6, upto) end
  if #header > upto then d.error = sub(header, upto + 2) end
  return d
end
local function dead_job(id)
  local header = call('HGET', MORGUE, id)
  return header and read_header(id, header) or nil
end
-- Whether the entry is kept beyond its time and not yet trimmed.
local function is_hidden(d)
  if d.state ~= 'd' then return false end
  local age = call('HGET', META, 'deadAge')
  return age and d.updated + tonumber(age) <= now
end
local function drop_header(d)
  call('ZREM', DEAD, end_place(d))
  call('HDEL', MORGUE, d.id)
end
local function drop_dead(d)
  drop_header(d)
  drop_payloads(DEAD_PAYLOADS, DEAD_BODIES, d.id)
end
-- Adds payloads to the entry of their id in the morgue, and gives it the header of this job. Of an existing
-- header only the creation time stays.
local function to_morgue(j, list, reason, error, at)
  local before = dead_job(j.id)
  local created = j.created
  if before and is_hidden(before) then drop_dead(before)
  elseif before then
    created = before.created
    drop_header(before)
  end
  local d = { id = j.id, seq = NO_SEQ, updated = at, stamp = j.stamp, attempt = j.attempt, crashes = j.crashes, created = created, task = j.task, group = j.group, reason = reason, error = error }
  call('HSET', MORGUE, j.id, write_header(d))
  call('ZADD', DEAD, 0, end_place(d))
  add_payloads(DEAD_PAYLOADS, DEAD_BODIES, j.id, list)
end
local function last_error(j) return call('HGET', NOTES, 'e' .. j.id) or nil end
local function bury(j, reason, error)
  local list = j.claim and hand_of(j.id) or own_list(j.id) or list_in(PAYLOADS, BODIES, j.id, -1)
  to_morgue(j, list, reason, error or last_error(j), now)
  finish(j)
end
-- After the last failure, or one crash too many. Buries only the oldest payload, and returns it; the job begins anew
-- with the others.
local function exhaust(j, reason)
  local list = hand_of(j.id)
  local digest, oldest = table.remove(list, 1), table.remove(list, 1)
  to_morgue(j, { digest, oldest }, reason, last_error(j), now)
  if #list == 0 then
    finish(j)
    return oldest
  end
  give_back(j, list)
  leave(j)
  unlist_failed(j)
  call('HDEL', NOTES, 'e' .. j.id)
  j.attempt, j.crashes, j.reason, j.stamp = 1, 0, nil, stamped()
  enter(j, 'r')
  return oldest
end
-- Counts a failure of a running job. The error before it is forgotten.
local function fail_claim(j, delay_ms, last, error, reason)
  call('HINCRBY', META, 'failed', 1)
  -- A successor continues by itself: payloads of a cancelled job must not be merged into it.
  if has(j.claim.flags, CANCEL) then return finish(j) end
  unlist_failed(j)
  j.attempt = j.attempt + 1
  list_failed(j)
  j.fresh = false
  if error then call('HSET', NOTES, 'e' .. j.id, error) else call('HDEL', NOTES, 'e' .. j.id) end
  if last then return exhaust(j, reason) end
  schedule(j, delay_ms)
end
`

/** Begins a script of ordered queues. Functions that change jobs, and `others`, are made when one is first called. */
export const withOrderedJobs = (script: string, others = '') =>
  beginning + payloadReads + form + withLazy(jobStates + payloadChanges + ends + others, script, 'ordered')
