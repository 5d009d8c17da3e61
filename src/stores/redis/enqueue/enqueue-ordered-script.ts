/** The enqueue script of ordered queues: puts payloads into one shard, call by call. */

import { refuse } from '../client/redis-script.js'
import { remembering } from './calls-lua.js'

/**
 * KEYS: those of one shard; for a queue with `maxRunning` then those of all its shards.
 * ARGV: number of calls, followed by `r` if one of them may have been sent before. For each call its id and its number
 * of jobs. For each job its id, order (`recordOrder`), score or '', task (then NUL and its group if it has one), and
 * two digests (22 bytes each) and the body of its payload (redis-payload.ts).
 * Returns one letter per job: a added, m merged, f full, g draining; with a comma between calls.
 *
 * All jobs of a call are accepted, or none. A remembered call gets the same answer as before. Refuses `unknown`, and
 * `moved` if the shard is closed.
 */
const text = String.raw`
know_form()
local meta = call('HMGET', META, 'kind', 'draining', 'maxPending', 'seq', 'stamp', 'leadAt', 'closed', 'limited', 'score', 'many', 'lost')
if not meta[1] then ${refuse('unknown')} end
if meta[7] then ${refuse('moved')} end
local seq, stamp, lead_at = tonumber(meta[4]), tonumber(meta[5]), tonumber(meta[6])
local draining, max_pending = meta[2] == '1', tonumber(meta[3])
-- The last default score, in µs. Default scores grow even if the clock of the server is set back.
local last_score = tonumber(meta[9] or 0)

-- Looks up all calls and all ids together, each once.
local call_ids, starts, counts, ids = {}, {}, {}, {}
local from = 2
for c = 1, tonumber(string.match(ARGV[1], '%d+')) do
  local count = tonumber(ARGV[from + 1])
  call_ids[c], starts[c], counts[c] = ARGV[from], from + 2, count
  for i = from + 2, from - 3 + count * 5, 5 do ids[#ids + 1] = ARGV[i] end
  from = from + 2 + count * 5
end
-- The state of each known id: w waits, u runs, b runs with a successor waiting. own has the records of waiting jobs
-- that contain their only payload.
local there, own, known, recs = {}, {}, {}, {}
local records = #ids > 0 and call('HMGET', JOBS, unpack(ids)) or {}
for i = 1, #ids do
  if records[i] then known[#known + 1], recs[#recs + 1] = ids[i], records[i] end
end
if #known > 0 then
  local claims, successors = call('HMGET', CLAIMS, unpack(known)), call('HMGET', SUCCESSORS, unpack(known))
  for i = 1, #known do
    there[known[i]] = not claims[i] and 'w' or (successors[i] and 'b' or 'u')
    if not claims[i] and own_at(recs[i]) then own[known[i]] = recs[i] end
  end
end

-- Where the digest of a payload begins in its argument.
local digest_from = DISTINCT and 1 or 23
local function digest_of(n) return sub(ARGV[n + 4], digest_from, digest_from + 21) end

-- What is to be written. came_at has, for each field that arrived, the position of its payload in bodies.
local ready, later, incoming, members, bodies, successors, gone = {}, {}, {}, {}, {}, {}, {}
local laned, grouped, opened, written, many_more = {}, {}, {}, {}, 0
local came_at, waits = {}, {}
-- The payload of this digest that waits, or nil.
local function equal_at(field, id)
  if own[id] then
    local from = own_at(own[id])
    return sub(own[id], from, from + 21) == sub(field, #id + 2) and sub(own[id], from + 22) or nil
  end
  local n = came_at[field]
  if n then return bodies[n] end
  if not there[id] or there[id] == 'u' then return nil end
  if waits[field] == nil then waits[field] = call('HGET', BODIES, field) end
  return waits[field]
end

local waiting
local function room()
  waiting = waiting or payload_count(meta[10])
  return max_pending - waiting
end
local function is_growing(id, field)
  if LATEST then return not there[id] or there[id] == 'u' end
  return not equal_at(field, id)
end
local function growth_of(first, count)
  local growing, growth = {}, 0
  for n = first, first + (count - 1) * 5, 5 do
    local id = ARGV[n]
    local field = id .. '\0' .. digest_of(n)
    local what = LATEST and id or field
    if not growing[what] and is_growing(id, field) then
      growing[what] = true
      growth = growth + 1
    end
  end
  return growth
end

local function add(id, digest, value, state)
  local field = id .. '\0' .. digest
  local equal = state and equal_at(field, id)
  if equal and not is_before(value, equal) then return end
  local count = came_at[field]
  if not count then
    if equal then gone[#gone + 1] = member_of(id, digest, equal) end
    count = #bodies + 2
    came_at[field] = count
  end
  members[count - 1], members[count] = 0, member_of(id, digest, value)
  bodies[count - 1], bodies[count] = field, value
end
-- Adds a payload to a job whose record contains its only one. If the two differ, both move to their set.
local function join(id, digest, value)
  local rec = own[id]
  local from = own_at(rec)
  local before, head = sub(rec, from + 22), sub(rec, 1, from - 1)
  local is_equal, is_first = sub(rec, from, from + 21) == digest, is_before(value, before)
  if not LATEST and not is_equal then
    own[id], written[id], many_more = nil, head, many_more + 1
    add(id, sub(rec, from, from + 21), before)
    return add(id, digest, value)
  end
  if is_first == is_equal then
    own[id] = head .. digest .. value
    written[id] = own[id]
  end
end
local came, rings_ready, soonest = false, false, math.huge
local function push(n)
  local id, order, score = ARGV[n], ARGV[n + 1], ARGV[n + 2]
  seq = seq + 1
  stamp = next_stamp(stamp)
  came = true
  local own_stamp, due_state = stamp, 'r'
  if order ~= '' then
    local how, ms = string.match(order, '^%-?%d+(%a?)(%d*)$')
    if how == 'd' then own_stamp = (now + tonumber(ms)) * 1000 elseif how == 'r' then own_stamp = tonumber(ms) * 1000 end
    due_state = state_at(own_stamp)
  end
  local digest, body = digest_of(n), sub(ARGV[n + 4], 45)
  if score == '' then last_score = math.max(stamp, last_score + 1) end
  local value = place_bytes(score == '' and last_score / 1000 or tonumber(score), seq) .. body
  local state = there[id]
  if not state then
    -- Payloads that a half-executed script left behind join the job.
    local is_own = not meta[11] or count_in(PAYLOADS, id) == 0
    local count, rec = #incoming, record_of(due_state, ARGV[n + 3], own_stamp, now)
    incoming[count + 1], incoming[count + 2] = id, rec
    if is_own then
      own[id] = rec .. digest .. value
      incoming[count + 2] = own[id]
    else many_more = many_more + 1 end
    local group = string.match(ARGV[n + 3], '%z(.+)$')
    -- A lane that was full may have room by now, whichever job arrives.
    if group and (due_state == 'r' or #lanes.first_of(group, 1) > 0) then opened[#opened + 1] = group end
    if due_state == 'r' then
      rings_ready = true
      local place = '\127\255' .. (LIFO and stamp_bytes(own_stamp) or pack('>I7', own_stamp)) .. NO_SEQ .. id
      local set = group and grouped or ready
      count = #set
      set[count + 1], set[count + 2] = 0, place
      if group then
        laned[count + 1], laned[count + 2] = 0, group .. '\0' .. place
      end
    else
      if own_stamp < soonest then soonest = own_stamp end
      count = #later
      later[count + 1], later[count + 2] = 0, pack('>I7', own_stamp) .. NO_SEQ .. id
    end
    there[id] = 'w'
    if is_own then return 'a' end
  elseif own[id] then
    join(id, digest, value)
    return 'm'
  elseif state == 'u' then
    successors[#successors + 1] = id
    successors[#successors + 1] = write_successor(own_stamp, now, due_state == 'r')
    there[id] = 'b'
  end

  if LATEST then add_payloads(PAYLOADS, BODIES, id, { digest, value }) else add(id, digest, value, state) end
  return state and 'm' or 'a'
end

local function answer_to(first, count)
  if draining then return string.rep('g', count) end
  local growth = max_pending and growth_of(first, count) or 0
  if growth > 0 then
    if growth > room() then return string.rep('f', count) end
    waiting = waiting + growth
  end
  local letters = {}
  for i = 1, count do letters[i] = push(first + (i - 1) * 5) end
  return table.concat(letters)
end
local answers = answered_calls(call_ids, sub(ARGV[1], -1) == 'r', function(c) return answer_to(starts[c], counts[c]) end)

if came then
  many('ZADD', READY, ready)
  many('ZADD', LANES, laned)
  many('ZADD', GROUPED, grouped)
  many('ZADD', SCHEDULED, later)
  many('HSET', JOBS, incoming)
  local changed = {}
  for id, rec in pairs(written) do
    changed[#changed + 1] = id
    changed[#changed + 1] = rec
  end
  many('HSET', JOBS, changed)
  if many_more > 0 then call('HINCRBY', META, 'many', many_more) end
  many('HSET', SUCCESSORS, successors)
  many('ZREM', PAYLOADS, gone)
  many('ZADD', PAYLOADS, members)
  many('HSET', BODIES, bodies)
  call('HSET', META, 'seq', seq, 'stamp', stamp, 'score', last_score)
  for _, group in ipairs(opened) do lanes.refresh(group) end
  local calls = rings_ready and not is_full()
  if calls and meta[8] then
    calls = false
    for i = 1, #incoming, 2 do calls = calls or is_calling_id(incoming[i]) end
  end
  if soonest < math.huge and not (is_led(lead_at) and lead_at <= math.floor(soonest / 1000)) then calls = true end
  if calls then ring_unpaused() end
end
remember_calls()
`

/** The script without its return, as `enqueueText` for plain queues. */
export const enqueueOrderedText = remembering + text
