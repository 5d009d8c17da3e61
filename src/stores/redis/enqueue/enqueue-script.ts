/** The enqueue script of plain queues: puts jobs into one shard, call by call. */

import { toleratedStepUs } from '../../rules/sequence.js'
import { refuse } from '../client/redis-script.js'
import { remembering } from './calls-lua.js'

/**
 * KEYS: those of one shard.
 * ARGV, long form: number of calls, followed by `f` if a job has fields, and by `r` if one of the calls may have been sent
 * before. For each call its id and its number of jobs. For each job its id, order (`recordOrder`) and body.
 * ARGV, short form, if no call was sent before and no job has an order or a group: number of calls, followed by `n` if
 * all ids were made for these jobs, otherwise by `s`; '' if each call has one job and its id, otherwise for each call its
 * number of jobs, NUL, its id, NUL; then for each job its id and body.
 * Returns one letter per job: a added, r replaced, d duplicate, x a dead job has the id, f full, g draining; with a comma
 * between calls; then a '!' if joins in other shards are to be told.
 *
 * All jobs of a call are accepted, or none. A remembered call gets the same answer as before. Refuses `unknown`.
 */
const text = (graph: GraphPieces) => String.raw`
local meta = call('HMGET', META, 'kind', 'draining', 'maxPending', 'seq', 'stamp', 'stale', 'paused', 'leadAt', 'limited', 'order', 'expiringAt')
if not meta[1] then ${refuse('unknown')} end
LIFO = meta[10] == 'lifo'
local seq, stamp, stale, lead_at = tonumber(meta[4]), tonumber(meta[5]), tonumber(meta[6]), tonumber(meta[8])
local draining, paused, max_pending = meta[2] == '1', meta[7] == '1', tonumber(meta[3])

-- Looks up all calls and all ids together, each once. Jobs are numbered over all calls.
local ids, orders, bodies, call_ids, counts, firsts = {}, {}, {}, {}, {}, {}
-- Nobody else has an id that was made for its job.
local are_new = sub(ARGV[1], -1) == 'n'
local is_short = are_new or sub(ARGV[1], -1) == 's'
${graph.read}if is_short then
  local n = 0
  for i = 3, #ARGV, 2 do
    n = n + 1
    ids[n] = ARGV[i]
  end
  if ARGV[2] == '' then call_ids = ids end
  local first = 1
  for count, id in string.gmatch(ARGV[2], '(%d+)%z(%Z+)') do
    local c = #call_ids + 1
    call_ids[c], counts[c], firsts[c] = id, tonumber(count), first
    first = first + count
  end
else
  local from = 2
  for c = 1, tonumber(string.match(ARGV[1], '%d+')) do
    local count = tonumber(ARGV[from + 1])
    call_ids[c], counts[c], firsts[c] = ARGV[from], count, #ids + 1
    for i = from + 2, from - 1 + count * 3, 3 do
      local n = #ids + 1
      ids[n], orders[n], bodies[n] = ARGV[i], ARGV[i + 1], ARGV[i + 2]
    end
    from = from + 2 + count * 3
  end
end
-- The fields of jobs that have some, which their orders end with.
local fields = {}
if find(ARGV[1], 'f', 1, true) then
  for n, order in ipairs(orders) do
    local stop = find(order, '\0', 1, true)
    if stop then orders[n], fields[n] = sub(order, 1, stop - 1), sub(order, stop + 1) end
  end
end
local function order_of(n) return orders[n] or '' end
local function body_of(n) return ${graph.body} end
local looks_up = #ids > 0 and not are_new
local records = looks_up and call('HMGET', JOBS, unpack(ids)) or {}
local ended = looks_up and call('EXISTS', ENDED) == 1 and call('HMGET', ENDED, unpack(ids)) or {}
-- The ids that this script has added.
local added = {}

-- The present job if its id may be used again, because it has ended and is no longer kept; otherwise nil.
local function leftover(id, record)
  local j = job_of(id, record, call('HGET', HISTORY, id), call('HGET', CLAIMS, id))
  if j.claim or (j.state ~= 'c' and not is_hidden(j)) then return nil end
  if j.state == 'c' and j.updated + j.remember > now then return nil end
  return j
end
${graph.begin}-- What there is of the id of the nth job: w waiting, p running, x dead, m remembered; nil: it is free.
local function taken_as(id, n)
${graph.taken}  if added[id] then return 'w' end
  if records[n] and not leftover(id, records[n]) then
    local j = job(id)
    if j.claim then return 'p' end
    if j.state == 'c' then return 'm' end
    -- A join, a member, or a job that has reached a step or waits for a signal is as good as running: nothing takes its place.
    return j.state == 'd' and 'x' or ((j.places or j.steps or j.state == 'a') and 'p' or 'w')
  end
  return ended[n] and unpackn('>I6', ended[n], 33) > now and 'm' or nil
end
-- The letter of the answer to an id that is taken, and whether the job takes up room.
local function answer_to_taken(as, n)
  if sub(order_of(n), -1) ~= 'w' or as == 'p' then return as == 'x' and 'x' or 'd', false end
  if as == 'm' then return 'a', true end
  return 'r', as == 'x'
end

local waiting
local function room()
  if not max_pending then return math.huge end
  waiting = waiting or call('LLEN', READY_LIST) - stale + call('ZCARD', READY) + call('ZCARD', LANES) + call('ZCARD', SUSPECTS) + call('ZCARD', SCHEDULED) + call('ZCARD', JOINING)
  return max_pending - waiting
end

local tail = call('LINDEX', READY_LIST, -1)
tail = tail and unpackn('>I7', tail) or -1
local listed, ready, later, incoming, pasts, noted = {}, {}, {}, {}, {}, {}
local laned, grouped, opened, expiring, came = {}, {}, {}, {}, {}
local expiring_at = tonumber(meta[11]) or math.huge
local rings = false
local now_us = now * 1000
-- The nth job has a past: it has fields, for which its end then looks, or was created before it was changed.
local function add_past(n, state, own_stamp)
  pasts[#pasts + 1] = ids[n]
  pasts[#pasts + 1] = write_past({ state = state, updated = now, stamp = own_stamp, attempt = 1, crashes = 0 })
  if not fields[n] then return end
  noted[#noted + 1] = 'f' .. ids[n]
  noted[#noted + 1] = fields[n]
end
-- Adds the nth job. created_at: when the waiting job that it replaces was created.
local function add(n, created_at)
  local id, order, body = ids[n], order_of(n), body_of(n)
  if records[n] and not created_at then drop(job(id)) end
  if ended[n] then forget(id, ended[n]) end
  added[id] = true
  seq = seq + 1
${graph.add}  local group = ''
  if byte(body) % 16 >= 8 then group = select(4, written(body, 1)) end
  if order == '' and not LIFO then
    stamp = next_stamp(stamp)
    if stamp > tail and group == '' and not fields[n] then
      tail = stamp
      rings = true
      local place13 = pack('>I7I6', stamp, seq)
      listed[#listed + 1] = place13 .. id
      incoming[#incoming + 1] = id
      -- If more jobs arrived than there are microseconds, the stamp does not say when the job was created.
      incoming[#incoming + 1] = stamp < now_us + 1000 and 'l' .. place13 .. body or 'L' .. place13 .. pack('>I6', now) .. body
      return
    end
  end
  local priority, due, expires = 0, nil, ''
  local bound
  if order ~= '' then
    local how, ms
    priority, how, ms, expires, bound = string.match(order, '^(-?%d+)([dr]?)(%d*)e?(%d*)b?(%d*)w?$')
    priority = tonumber(priority)
    if how == 'd' then
      due = now + tonumber(ms)
      if bound ~= '' then due = math.min(due, (created_at or now) + tonumber(bound)) end
    elseif how == 'r' then due = tonumber(ms) end
    -- A job whose time is past goes behind the jobs that are ready already, however long ago it was due.
    if due and due <= now then due = nil end
  end
  local own_stamp
  if due then own_stamp = due * 1000
  elseif order == '' and not LIFO then own_stamp = stamp
  else
    stamp = next_stamp(stamp)
    own_stamp = stamp
  end
  local state = due and 's' or 'r'
  if state == 'r' and not due and priority == 0 and not LIFO and own_stamp > tail and group == '' and not created_at and not fields[n] then state = 'l' end
  -- A lane that was full may have room by now, whichever job arrives.
  if group ~= '' and (state == 'r' or #lanes.first_of(group, 1) > 0) then opened[#opened + 1] = group end
  local seq_bytes, stamp7 = pack('>I6', seq), pack('>I7', own_stamp)
  if state == 'l' then
    tail = own_stamp
    listed[#listed + 1] = stamp7 .. seq_bytes .. id
    rings = true
  elseif state == 'r' then
    local place = pack('>I2', 32767 - priority) .. stamp_bytes(own_stamp) .. seq_bytes .. id
    if group == '' then
      ready[#ready + 1] = 0
      ready[#ready + 1] = place
    else
      local count = #laned
      laned[count + 1], laned[count + 2] = 0, group .. '\0' .. place
      grouped[count + 1], grouped[count + 2] = 0, place
    end
    rings = true
  else
    later[#later + 1] = 0
    later[#later + 1] = stamp7 .. seq_bytes .. id
    rings = rings or not (is_led(lead_at) and lead_at <= due)
  end
  if expires ~= '' then
    local expires_at = now + tonumber(expires)
    expiring_at = math.min(expiring_at, expires_at)
    expiring[#expiring + 1] = expires_at
    expiring[#expiring + 1] = seq_bytes .. id
  end
  if created_at or fields[n] then add_past(n, state, own_stamp) end
  local created = ''
  if math.floor(own_stamp / 1000) ~= (created_at or now) then
    state = string.upper(state)
    created = pack('>I6', created_at or now)
  end
  incoming[#incoming + 1] = id
  incoming[#incoming + 1] = state .. stamp7 .. seq_bytes .. created .. body
end

-- Writes the jobs added since the last call.
local function write()
  if #incoming == 0 then return end
${graph.write}  many('RPUSH', READY_LIST, listed)
  many('ZADD', READY, ready)
  many('ZADD', LANES, laned)
  many('ZADD', GROUPED, grouped)
  many('ZADD', SCHEDULED, later)
  many('HSET', JOBS, incoming)
  many('HSET', HISTORY, pasts)
  many('HSET', NOTES, noted)
  if #expiring > 0 then
    many('ZADD', EXPIRING, expiring)
    call('HSET', META, 'expiringAt', expiring_at)
  end
  call('HSET', META, 'seq', seq, 'stamp', stamp)
  local seen = {}
  for _, group in ipairs(opened) do
    if not seen[group] then lanes.refresh(group) end
    seen[group] = true
  end
  if meta[9] then
    for i = 1, #incoming, 2 do came[#came + 1] = incoming[i] end
  end
  listed, ready, later, incoming, pasts, noted, laned, grouped, opened, expiring = {}, {}, {}, {}, {}, {}, {}, {}, {}, {}
end

local function replace(n)
  local id = ids[n]
  -- Counts waiting jobs before the old one is taken out, or it would be missing from the count.
  room()
  -- What came before it in this trip stands in its lane: a lane with another job keeps its turn.
  if added[id] or #opened > 0 then write() end
  local j = job(id)
  local created = is_waiting(j) and j.created or nil
  drop(j)
  records[n] = nil
  add(n, created)
end

-- The answer to a call of this many jobs, the first of which is the nth.
local function answer_to(n, count)
  if draining then return string.rep('g', count) end
  if count == 1${graph.notAlone} then
    local as, letter, grows = taken_as(ids[n], n), 'a', true
    if as then letter, grows = answer_to_taken(as, n) end
    if letter ~= 'a' and letter ~= 'r' then return letter end
    if grows and room() < 1 then return 'f' end
    if letter == 'r' then replace(n) else add(n) end
    if grows and waiting then waiting = waiting + 1 end
    return letter
  end
  local letters, fresh, own = {}, 0, {}
  for i = 1, count do
    local at = n + i - 1
    local id = ids[at]
    local as, grows = own[id] and 'w' or taken_as(id, at), true
    letters[i] = 'a'
    if as then letters[i], grows = answer_to_taken(as, at) end
    if grows then
      own[id] = true
      fresh = fresh + 1
    end
  end
  if fresh > 0 and fresh > room() then return string.rep('f', count) end
${graph.refuse}  for i = 1, count do
    local put_in = letters[i] == 'a' and add or (letters[i] == 'r' and replace)
    if put_in then put_in(n + i - 1) end
  end
  if waiting then waiting = waiting + fresh end
  return table.concat(letters)
end

-- Adds the jobs of all calls in the short form, as most trips allow. If any of them needs more than that, changes
-- nothing and returns nil.
local function answers_at_once()
  local count, first = #ids, next_stamp(stamp)
  if LIFO or draining or first <= tail or first + count > now_us + ${toleratedStepUs} or count > room() then return nil end
${graph.atOnce}  local created = pack('>I6', now)
  for n = 1, count do
    local id, at = ids[n], first + n - 1
    if not are_new then
      if records[n] or ended[n] or added[id] then
        added, listed, incoming = {}, {}, {}
        return nil
      end
      added[id] = true
    end
    local place13 = pack('>I7I6', at, seq + n)
    listed[n], incoming[2 * n - 1] = place13 .. id, id
    incoming[2 * n] = at < now_us + 1000 and 'l' .. place13 .. ${graph.bodyAtOnce} or 'L' .. place13 .. created .. ${graph.bodyAtOnce}
  end
  stamp, seq, rings, new_ids = first + count - 1, seq + count, true, call_ids
  -- If each call has one job, one text has the answers to all.
  if call_ids == ids then new_answers[1] = string.rep('a,', count - 1) .. 'a' end
  for c = 1, #counts do new_answers[c] = string.rep('a', counts[c]) end
  return new_answers
end

${graph.probe}local answers = is_short and answers_at_once() or answered_calls(call_ids, sub(ARGV[1], -1) == 'r', function(c)
  return answer_to(firsts[c] or c, counts[c] or 1)
end)

write()
${graph.end}if rings and meta[9] then
  rings = false
  for _, id in ipairs(came) do rings = rings or is_calling(job(id)) end
end
if rings and not paused then ring() end
remember_calls()
-- A dead member of a join may have been replaced.
local tells = REPORTS and joins().flush()
`

/** The lines of the script that are for joins and members. */
interface GraphPieces {
  /** Before the arguments are read: a way to read them, followed by `else`. */
  readonly read: string
  /** Once the arguments are read. */
  readonly begin: string
  /** First in `taken_as`, which returns p for a job that is as good as running. */
  readonly taken: string
  /** In `add`: ends that of a join, whose fields it adds. Otherwise puts the places of a member into its body. */
  readonly add: string
  /** First in `write`, if there is anything to write. */
  readonly write: string
  /** In `answers_at_once`, once nothing else is against it: returns nil if something is. */
  readonly atOnce: string
  /** The body of the nth job, as it was sent; and in `answers_at_once`, as it is stored. */
  readonly body: string
  readonly bodyAtOnce: string
  /** In the answer to a call, once its `letters` are known, before anything is added. */
  readonly refuse: string
  /** Before anything is added: ends a script that only asks. */
  readonly probe: string
  /** A condition for the short way of a call with one job. */
  readonly notAlone: string
  /** Behind the last `write`. */
  readonly end: string
}

const noGraph: GraphPieces = {
  ...{ read: '', begin: '', taken: '', add: '', write: '', atOnce: '', refuse: '', probe: '', notAlone: '', end: '' },
  ...{ body: 'bodies[n] or ARGV[2 + 2 * n]', bodyAtOnce: 'ARGV[2 + 2 * n]' },
}

/** The script without its return. `answers` has the answer to each call; `tells`: joins elsewhere are to be told. */
export const enqueueText = remembering + text(noGraph)

/** The same for calls in which some jobs are joins or members. */
export const enqueueGraphText = (graph: GraphPieces): string => remembering + text(graph)
