/**
 * Joins and their members in Lua, for plain shards. The translation of `rules/join-rules`.
 *
 * A join and its members lie in different shards, and a script knows one. So the ends of members are kept beside the
 * members, in *fragments*: one for each shard and set of a join. An end and its report are one step on every kind of
 * server. What a fragment has to tell its join is marked in `join-tasks`, and delivered by the caller of the script, or
 * later by a sweep (`redis-join-reports.ts`). The join has what each fragment has told it.
 *
 * Fields of `joins`. `#`: the last number given to a fragment or death · `n` and the key of a fragment (queue and id of the join,
 * name of the set, its \`base\`, NUL between them) → its number · `h` and the number → its header (`FORM`, key) ·
 * `b`, number, dot, n → 1 bit for each member from 4,096 × n on, the lowest first: whether it is outstanding no more;
 * trailing zero bytes are left out, and '' means that all are · `j` and the id of a join → JSON (`begin`) · `x` and the
 * id of a join that is gone → its sets.
 *
 * Fields of `joined`: the number of a fragment, a dot, and the number of a member → what is kept of its end: the letter of its
 * fate, and its result, or `=` and its error. `r` in the place of `d`: it was revived since; if it has its bit, it has then completed.
 *
 * Members of `join-tasks`. Negative scores, since when: `f` and the number of a fragment that has something to tell · `z` and the id
 * of a join that will run: its fragments are to be frozen · `t` and the id of one that then died: they are no more · `x` and the id of a join that is gone: its fragments are to
 * be dropped. Positive scores: `w` and the id of a join that waits until then · `c` and the id of a dead join whose
 * members are to be cancelled · `r`, number, id, task and reason of the death of a join that is to be reported, NUL between them.
 *
 * The places of a job, behind `rememberMs` in its record: `w` for a join; for each fragment that hears of its end the
 * number of that, a dot, and its number in the set.
 */

import { memberDeadReason, mostJoinBytes, tooLargeError, tooLargeReason } from '../../rules/join-rules.js'
import { asFunction } from './lazy-functions-lua.js'

/**
 * The header of a fragment: letter of `onDead`, keeps results (1 or 0), turn (odd: frozen), members, number behind the
 * last one, completed, dead, cancelled, expired, version, bytes of results; of what was told last the members that are
 * outstanding no more, version, bytes; failing ends so far, those told of, number and fate of the first of the others.
 */
const form = '>I1I1I1I4I4I4I4I4I4I6I6I4I6I6I4I4I4I1'

/** The parts into which the scores of `join-tasks` divide a millisecond: no number of that size has many more. */
const scoreParts = 1_024

/** A fragment also tells whenever its results have grown by this. */
const tellBytes = mostJoinBytes / 16

const completionText = String.raw`
local FORM = '${form}'
local FAIL, GO_ON, HOLD = 102, 103, 104
local M = {}
-- puts: ends that are only to be written: nobody asks for them before.
local function told()
  REPORTS = REPORTS or { of = {}, ends = {}, puts = {}, failing = 0 }
  return REPORTS
end
local function fragment_with(serial, key, on_dead, keeps, turn, count, high, c, d, x, e, version, bytes, told_done, told_version, told_bytes, fails, told_fails, fail_number, fail_fate)
  local f = { serial = serial, key = key, was = version, chunks = {}, on_dead = on_dead, keeps = keeps, turn = turn, frozen = turn % 2, count = count, high = high, c = c, d = d, x = x, e = e, version = version, bytes = bytes, told_done = told_done, told_version = told_version, told_bytes = told_bytes, fails = fails, told_fails = told_fails, fail_number = fail_number, fail_fate = fail_fate }
  told().of[serial] = f
  return f
end
-- The fragment of this number; false if there is none.
function M.fragment(serial)
  local of = told().of
  if of[serial] ~= nil then return of[serial] end
  local header = call('HGET', JOINS, 'h' .. serial)
  of[serial] = false
  if not header then return false end
  return fragment_with(serial, sub(header, struct.size(FORM) + 1), unpackn(FORM, header))
end
-- The members that are outstanding no more.
function M.done(f) return f.on_dead == GO_ON and f.c + f.d + f.x + f.e or f.c end
-- The chunk of a member: the number of its first one, its bits as they are stored, and the values of the bytes that have
-- changed. It is made anew once, by flush.
local function chunk_of(f, number)
  local c = math.floor(number / 4096)
  local chunk = f.chunks[c]
  if not chunk then
    local bits = call('HGET', JOINS, 'b' .. f.serial .. '.' .. c)
    chunk = { from = c * 4096, bits = bits == '' and string.rep('\255', 512) or bits or '', bytes = {} }
    f.chunks[c] = chunk
  end
  return chunk
end
local function changed_bits(chunk)
  local bits, places, pieces, last = chunk.bits, {}, {}, 0
  for at in pairs(chunk.bytes) do places[#places + 1] = at end
  table.sort(places)
  bits = bits .. string.rep('\0', places[#places] - #bits)
  for i, at in ipairs(places) do
    pieces[i] = sub(bits, last + 1, at - 1) .. char(chunk.bytes[at])
    last = at
  end
  bits = table.concat(pieces) .. sub(bits, last + 1)
  return #bits == 512 and not find(bits, '[^\255]') and '' or bits
end
local function keep_result(f, field, left)
  if f.keeps == 0 or not left or left == '' then return end
  local puts = REPORTS.puts
  puts[#puts + 1] = field
  puts[#puts + 1] = 'c' .. left
  f.bytes = f.bytes + #left - find(left, '\0', 1, true)
end
-- Members have completed, each in the place of a fragment, both numbers as texts. results: perhaps the result of each.
function M.report_completed(serials, numbers, results)
  local i, serial = 1, serials[1]
  while serial do
    local f, count, from, bits, bytes = M.fragment(serial), 0, -4096, nil, nil
    local is_simple = f and f.d == 0 and f.frozen == 0 and f.on_dead ~= HOLD
    repeat
      local number, left = tonumber(numbers[i]), results and results[i]
      if not is_simple then late.joins().report_at(f, number, serial .. '.' .. numbers[i], 'c', left)
      else
        if number < from or number >= from + 4096 then
          local chunk = chunk_of(f, number)
          from, bits, bytes = chunk.from, chunk.bits, chunk.bytes
        end
        local nth = number % 8
        local at, bit = (number - from - nth) / 8 + 1, 2 ^ nth
        local value = bytes[at] or byte(bits, at) or 0
        if value % (bit * 2) < bit then
          bytes[at], count = value + bit, count + 1
          if left then keep_result(f, serial .. '.' .. numbers[i], left) end
        end
      end
      i = i + 1
    until serials[i] ~= serial
    if count > 0 then f.c, f.version = f.c + count, f.version + count end
    serial = serials[i]
  end
end
local function has_to_tell(f)
  local done = M.done(f)
  return (done == f.count or done < f.told_done or f.fails > f.told_fails or f.bytes - f.told_bytes >= ${tellBytes}) and f.frozen == 0
end
-- Writes what has changed. Call it once behind the functions that change something, before the script turns to another
-- shard. Returns whether something is to be told to other shards.
function M.flush()
  local tells, puts = REPORTS.tells or false, REPORTS.puts
  for field, kept in pairs(REPORTS.ends) do
    puts[#puts + 1] = field
    puts[#puts + 1] = kept
  end
  many('HSET', JOINED, puts)
  local headers = {}
  for serial, f in pairs(REPORTS.of) do
    if f and (f.version ~= f.was or f.is_touched) then
      headers[#headers + 1] = 'h' .. serial
      headers[#headers + 1] = pack(FORM, f.on_dead, f.keeps, f.turn, f.count, f.high, f.c, f.d, f.x, f.e, f.version, f.bytes, f.told_done, f.told_version, f.told_bytes, f.fails, f.told_fails, f.fail_number, f.fail_fate) .. f.key
      for c, chunk in pairs(f.chunks) do
        if next(chunk.bytes) then
          headers[#headers + 1] = 'b' .. serial .. '.' .. c
          headers[#headers + 1] = changed_bits(chunk)
        end
      end
      if f.version ~= f.was and has_to_tell(f) then
        -- Of those that fail in one instant the first is told first: a join dies of that.
        local before = f.failed_as and 1 - math.min(f.failed_as, ${scoreParts}) / ${scoreParts} or 0
        call('ZADD', JOIN_TASKS, 'NX', before - now, 'f' .. serial)
        tells = true
      end
    end
  end
  many('HSET', JOINS, headers)
  REPORTS = false
  return tells
end
`

const reportText = `
function M.fragment_of(key)
  local serial = call('HGET', JOINS, 'n' .. key)
  return serial and M.fragment(serial)
end
function M.new_fragment(key, on_dead, keeps)
  local serial = string.format('%d', call('HINCRBY', JOINS, '#', 1))
  local f = fragment_with(serial, key, on_dead, keeps, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
  f.was = -1
  call('HSET', JOINS, 'n' .. key, serial)
  return f
end
-- Of a member its chunk, its byte in that, the value of the byte, and that of its bit.
local function place_of(f, number)
  local chunk, nth = chunk_of(f, number), number % 8
  local at = (number - chunk.from - nth) / 8 + 1
  return chunk, at, chunk.bytes[at] or byte(chunk.bits, at) or 0, 2 ^ nth
end
function M.has_bit(f, number)
  local _, _, value, bit = place_of(f, number)
  return value % (bit * 2) >= bit
end
local function set_bit(f, number)
  local chunk, at, value, bit = place_of(f, number)
  if value % (bit * 2) < bit then chunk.bytes[at] = value + bit end
end
local function clear_bit(f, number)
  local chunk, at, value, bit = place_of(f, number)
  if value % (bit * 2) >= bit then chunk.bytes[at] = value - bit end
end
-- What is kept of an end, or nil.
local function end_at(field)
  local kept = told().ends[field]
  if kept == nil then kept = call('HGET', JOINED, field) end
  return kept or nil
end
local function is_dead(f, field) return f.d > 0 and sub(end_at(field) or '', 1, 1) == 'd' end
-- Whether a join is to run: its fragments are frozen on odd turns. A turn is known by its number, which begins anew behind 255.
function M.turn_of(join)
  local turn = join.turn or 0
  return turn % 2 == (join.ran or 0) and turn or turn + 1
end
local function turn_to(join, ran)
  local turn = M.turn_of(join)
  join.ran, join.turn = ran, (turn % 2 == ran and turn or turn + 1) % 256
end
-- A join that was to run has died: until it is revived, ends of its members count again.
local function thaw(j)
  local record = call('HGET', JOINS, 'j' .. j.id)
  local join = record and cjson.decode(record)
  if not join or join.ran ~= 1 then return end
  turn_to(join, 0)
  call('HSET', JOINS, 'j' .. j.id, cjson.encode(join))
  call('ZREM', JOIN_TASKS, 'z' .. j.id)
  call('ZADD', JOIN_TASKS, 'NX', -now, 't' .. j.id)
  told().tells = true
end
-- The member in this place of a fragment has ended so: c completed, d dead, x cancelled, e expired. left: its result in
-- the stored form, or its error. field: number of the fragment, dot, number of the member.
-- Of ends that were reported before, only one changes: a dead member may go for good.
function M.report_at(f, number, field, fate, left)
  if not f or f.frozen == 1 then return end
  local has_bit = M.has_bit(f, number)
  local was_dead = (has_bit or f.on_dead == HOLD) and is_dead(f, field)
  if has_bit or was_dead then
    if not was_dead or fate ~= 'x' or f.on_dead == GO_ON then return end
    f.d = f.d - 1
  end
  f[fate], f.version = f[fate] + 1, f.version + 1
  local is_held = f.on_dead == HOLD and fate == 'd'
  if not is_held then set_bit(f, number) end
  if fate == 'c' then return keep_result(f, field, left) end
  REPORTS.ends[field] = f.keeps == 1 and left and left ~= '' and fate .. (fate == 'd' and '=' or '') .. left or fate
  if f.on_dead ~= GO_ON and not is_held then
    if f.fails == f.told_fails then f.fail_number, f.fail_fate = number, byte(fate) end
    f.fails, REPORTS.failing = f.fails + 1, REPORTS.failing + 1
    f.failed_as = f.failed_as or REPORTS.failing
  end
end
function M.report(j, fate, left)
  if fate == 'd' and byte(j.places) == 119 then thaw(j) end
  for serial, place in string.gmatch(j.places, '(%d+)%.(%d+)') do
    M.report_at(M.fragment(serial), tonumber(place), serial .. '.' .. place, fate, left)
  end
end
`

const joinText = `
-- A join, and its job, or nil.
function M.join(id)
  local record = call('HGET', JOINS, 'j' .. id)
  return record and cjson.decode(record) or nil, record and job(id) or nil
end
function M.write(id, join) call('HSET', JOINS, 'j' .. id, cjson.encode(join)) end
-- A dead job was revived: as a member it is outstanding again.
local function report_revived(j)
  for serial, place in string.gmatch(j.places, '(%d+)%.(%d+)') do
    local f, number, field = M.fragment(serial), tonumber(place), serial .. '.' .. place
    if f and f.frozen == 0 and is_dead(f, field) then
      clear_bit(f, number)
      f.d, f.version = f.d - 1, f.version + 1
      REPORTS.ends[field] = 'r' .. sub(end_at(field), 2)
    end
  end
end
-- The join had been decided before this member was revived: for the join it stays dead.
function M.stay_dead(f, number)
  local field = f.serial .. '.' .. string.format('%d', number)
  local kept = not M.has_bit(f, number) and end_at(field)
  if not kept or byte(kept) ~= 114 then return end
  set_bit(f, number)
  f.d, f.is_touched = f.d + 1, true
  f.told_done = M.done(f)
  REPORTS.ends[field] = 'd' .. sub(kept, 2)
end
local function tell_later(task)
  told().tells = true
  call('ZADD', JOIN_TASKS, 'NX', -now, task)
end
-- Of a set: how many are outstanding no more, and the counts that its fragments have told.
function M.counts(set)
  local sum = { count = 0, c = 0, d = 0, x = 0, e = 0, bytes = 0, on_dead = set.on_dead }
  for _, heard in pairs(set.heard) do
    for name in pairs(heard) do
      if sum[name] then sum[name] = sum[name] + heard[name] end
    end
  end
  return M.done(sum), sum
end
function M.is_unsealed(join)
  if join.open == 1 then return true end
  for _, set in ipairs(join.sets) do
    if set.size < 0 then return true end
  end
  return false
end
local function is_complete(join)
  if M.is_unsealed(join) then return false end
  for _, set in ipairs(join.sets) do
    if M.counts(set) ~= set.size then return false end
  end
  return true
end
-- Sets the instant at which a waiting join dies, or that there is none.
function M.set_deadline(id, join)
  local at = join.late
  if M.is_unsealed(join) and (at < 0 or join.seal_by < at) then at = join.seal_by end
  join.until_at = at
  if at < 0 then call('ZREM', JOIN_TASKS, 'w' .. id) else call('ZADD', JOIN_TASKS, at, 'w' .. id) end
end
-- A waiting join will run: it takes the place of its enqueue, or waits for its time, which counts from now.
local function release(j, join)
  local how, ms, expires, bound = string.match(join.order, '^%-?%d+([dr]?)(%d*)e?(%d*)b?(%d*)w?$')
  local due
  if how == 'd' then due = now + math.min(tonumber(ms), tonumber(bound) or math.huge)
  elseif how == 'r' then due = tonumber(ms) end
  call('ZREM', JOIN_TASKS, 'w' .. j.id)
  turn_to(join, 1)
  M.write(j.id, join)
  tell_later('z' .. j.id)
  leave(j)
  end_wait(j)
  if due and due > now then
    j.stamp = due * 1000
    enter(j, 's')
  else enter(j, 'r') end
  if expires and expires ~= '' then
    local expires_at, first_at = now + tonumber(expires), tonumber(call('HGET', META, 'expiringAt'))
    call('ZADD', EXPIRING, expires_at, j.seq .. j.id)
    if not first_at or expires_at < first_at then call('HSET', META, 'expiringAt', expires_at) end
  end
  if is_calling(j) and not call('HGET', META, 'paused') then ring() end
end
-- A join that waits, and misses nobody any more, will run.
function M.check(j, join)
  if j.state == 'w' and is_complete(join) then release(j, join) end
end
-- A waiting join cannot become ready any more.
function M.fail(j, join, reason, error)
  bury(j, reason, error)
  call('ZREM', JOIN_TASKS, 'w' .. j.id)
  call('ZADD', JOIN_TASKS, now, table.concat({ 'r' .. string.format('%d', call('HINCRBY', JOINS, '#', 1)), j.id, j.task, reason }, '\0'))
  if reason == '${memberDeadReason}' and join.rest == 1 then call('ZADD', JOIN_TASKS, now, 'c' .. j.id) end
  tell_ends()
end
local function wait(id, join)
  join.late, join.seal_by = join.within < 0 and -1 or now + join.within, now + join.seal
  M.set_deadline(id, join)
end
-- A new join. open: it waits in any case until it is sealed.
function M.begin(id, spec, order, open)
  local join = cjson.decode(spec)
  join.order, join.open = order, open and 1 or 0
  for _, set in ipairs(join.sets) do set.heard = {} end
  wait(id, join)
  M.write(id, join)
  M.check(job(id), join)
end
-- The error of a join that a member made dead. The translation of memberDeadError.
local function error_of(set, number, fate)
  local id = set.many == 1 and set.ids .. '.' .. string.format('%d', number) or set.ids
  local how = fate == 100 and 'is dead' or (fate == 101 and 'has expired' or 'was cancelled')
  return "member '" .. id .. "' of set '" .. set.name .. "' in queue '" .. set.queue .. "' " .. how
end
-- A fragment in another shard, or this one, is in this state. Returns whether it belongs to a join that is there, and
-- the version that this knows if it had heard another state of that version, or a later one.
function M.hear(id, name, base, tag, f)
  local join, j = M.join(id)
  if not j then return false end
  local set, bytes = nil, 0
  for _, one in ipairs(join.sets) do
    if one.name == name and one.base == base then set = one end
  end
  if not set then return false end
  local before = set.heard[tag] or { version = -1, fails = 0 }
  -- One that is decided knows what it goes by.
  if j.claim or (j.state ~= 'w' and j.state ~= 'd') then return true end
  local heard = { version = f.version, count = f.count, c = f.c, d = f.d, x = f.x, e = f.e, bytes = f.bytes, fails = f.fails }
  if f.version <= before.version then
    for part, value in pairs(heard) do
      if before[part] ~= value then return true, before.version end
    end
    return true
  end
  set.heard[tag] = heard
  M.write(id, join)
  if j.state ~= 'w' then return true end
  for _, one in ipairs(join.sets) do
    local _, sum = M.counts(one)
    bytes = bytes + sum.bytes
  end
  if bytes > ${mostJoinBytes} then M.fail(j, join, '${tooLargeReason}', '${tooLargeError}')
  elseif f.fails > before.fails then M.fail(j, join, '${memberDeadReason}', error_of(set, f.fail_number, f.fail_fate))
  else M.check(j, join) end
  return true
end
-- Revives a dead join or member, and returns its new state: r ready, w waiting; false if a join can do neither.
function M.revive(j)
  local join, becomes = nil, 'r'
  if byte(j.places) == 119 then join = M.join(j.id) end
  if join and not is_complete(join) then
    becomes = 'w'
    for _, set in ipairs(join.sets) do
      local _, sum = M.counts(set)
      if set.on_dead ~= GO_ON and sum.x + sum.e > 0 then return false end
    end
    call('ZREM', JOIN_TASKS, 'c' .. j.id)
    wait(j.id, join)
    M.write(j.id, join)
  elseif join then
    turn_to(join, 1)
    M.write(j.id, join)
    call('ZREM', JOIN_TASKS, 't' .. j.id)
    tell_later('z' .. j.id)
  end
  report_revived(j)
  return becomes
end
-- A join has ended or is gone: nobody needs its fragments any more.
local function forget(j)
  local record = byte(j.places) == 119 and call('HGET', JOINS, 'j' .. j.id)
  if not record then return end
  call('HDEL', JOINS, 'j' .. j.id)
  call('HSET', JOINS, 'x' .. j.id, record)
  call('ZREM', JOIN_TASKS, 'w' .. j.id, 'z' .. j.id, 't' .. j.id, 'c' .. j.id)
  tell_later('x' .. j.id)
end
-- The job is dropped: unless it has ended before, it is as good as cancelled.
function M.gone(j)
  M.report(j, 'x')
  forget(j)
end
function M.kept(j, result)
  M.report(j, 'c', result)
  forget(j)
end
M.GO_ON, M.HOLD, M.has_to_tell, M.is_complete = GO_ON, HOLD, has_to_tell, is_complete
`

/** A lazy function whose first call makes the others: most scripts that change jobs need none of them. */
export const joinFunctions = asFunction('joins', 'late.joins', completionText + reportText + joinText)

/** The same for members that complete, for a script of which most calls would make no other function. */
export const memberEnds = asFunction('member_ends', 'member_ends', completionText)
