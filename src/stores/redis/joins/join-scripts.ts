/** The scripts of joins and of their fragments for those who look at them, seal them or sweep: each on one shard of a plain queue. */

import { joinDeadReason } from '../../rules/join-rules.js'
import { joinScript } from '../shards/join-report-scripts.js'

/** ARGV: id of a join. Returns { state, join as JSON }, or nil if there is none; u: it runs. */
export const readJoinScript = joinScript(
  'join-read',
  `
local record = call('HGET', JOINS, 'j' .. ARGV[1])
local j = record and job(ARGV[1])
if not j then return false end
return { j.claim and 'u' or j.state, record }
`,
  { readOnly: true },
)

/**
 * ARGV: key of a fragment. Returns { parts }, then its bits, 512 bytes for each 4,096 members, as far as they are; nil
 * if there is none.
 */
export const fragmentScript = joinScript(
  'join-fragment',
  `
local f = joins().fragment_of(ARGV[1])
if not f then return false end
local found, fields = { parts_of(f) }, {}
for c = 0, math.floor(math.max(0, f.high - 1) / 4096) do fields[#fields + 1] = 'b' .. f.serial .. '.' .. c end
for i, bits in ipairs(call('HMGET', JOINS, unpack(fields))) do found[i + 1] = bits == '' and string.rep('\\255', 512) or bits or '' end
return found
`,
  { readOnly: true },
)

/**
 * ARGV: key of a fragment, from which number on, and below which; the most bytes.
 * Returns { number to go on with }, then for each end its number and what is kept of it, c for a completed member that
 * left nothing.
 */
export const endsScript = joinScript(
  'join-ends',
  `
local f, from, behind, most = joins().fragment_of(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local found, bytes = { behind }, 0
if not f then return found end
for first = from, math.min(behind, f.high) - 1, 50 do
  if bytes >= most then
    found[1] = first
    break
  end
  local fields, last = {}, math.min(first + 50, behind, f.high) - 1
  for number = first, last do fields[#fields + 1] = f.serial .. '.' .. string.format('%d', number) end
  for i, kept in ipairs(call('HMGET', JOINED, unpack(fields))) do
    local number = first + i - 1
    if not kept or byte(kept) == 114 then kept = joins().has_bit(f, number) and 'c' end
    if kept then
      found[#found + 1], found[#found + 2] = number, kept
      bytes = bytes + #kept
    end
  end
end
return found
`,
  { readOnly: true },
)

/**
 * ARGV: id of a join; the sizes of its open sets by their names, as JSON.
 * Returns 'sealed', 'told' (sealed, and this shard has something to tell), 'dead' or 'gone' as `Joins.seal`, or '-' and the
 * name of a set that is not there or has another size.
 */
export const sealScript = joinScript(
  'join-seal',
  `
local join, j = joins().join(ARGV[1])
if not j or j.claim or (j.state ~= 'w' and j.state ~= 'd') then return 'gone' end
local sizes, by_name = cjson.decode(ARGV[2]), {}
for _, set in ipairs(join.sets) do by_name[set.name] = set end
for name, size in pairs(sizes) do
  local set = by_name[name]
  if not set or (set.size >= 0 and set.size ~= size) then return '-' .. name end
end
for name, size in pairs(sizes) do by_name[name].size = size end
join.open = 0
if j.state == 'w' then joins().set_deadline(j.id, join) end
joins().write(j.id, join)
joins().check(j, join)
if j.state == 'd' then return 'dead' end
return REPORTS and joins().flush() and 'told' or 'sealed'
`,
)

/**
 * ARGV: id of a call; ids of jobs. Removes those that wait, without a trace, and forgets the answer to the call: what is
 * undone can be sent again. Returns whether to tell (1 or 0).
 */
export const undoScript = joinScript(
  'join-undo',
  `
local told = call('HGET', CALLS, ARGV[1])
if told and #told >= 8 then call('HSET', CALLS, ARGV[1], pack('>I6', 0) .. sub(told, 7)) end
for i = 2, #ARGV do
  local j = job(ARGV[i])
  if j and is_waiting(j) then drop(j) end
end
return REPORTS and joins().flush() and 1 or 0
`,
)

/**
 * ARGV: the most to return.
 * Returns whether the shard has joins, members of some, or waits for signals whose time will be over (1 or 0), then what a sweep is to do about joins, each as a
 * list: 'w', id of a join that has waited for too long, the join as JSON · 'c', id of a dead join whose members are to be
 * cancelled, the join as JSON, since when · 'r', id, task and reason of a join that has died: this is said once.
 */
export const dueScript = joinScript(
  'join-due',
  `
local rows = { call('HLEN', JOINS) - call('HEXISTS', JOINS, '#') + call('EXISTS', SIGNAL_WAITS, JOIN_TASKS) > 0 and 1 or 0 }
local tasks = call('ZRANGE', JOIN_TASKS, '(0', now, 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
for i = 1, #tasks, 2 do
  local task = tasks[i]
  local kind, id = sub(task, 1, 1), sub(task, 2)
  local j = kind ~= 'r' and job(id)
  local join = j and call('HGET', JOINS, 'j' .. id)
  if kind == 'r' then
    rows[#rows + 1] = { kind, string.match(id, '^%d+%z(%Z+)%z(%Z*)%z(%Z*)$') }
    call('ZREM', JOIN_TASKS, task)
  elseif join and not j.claim and j.state == (kind == 'w' and 'w' or 'd') then rows[#rows + 1] = { kind, id, join, tasks[i + 1] }
  else call('ZREM', JOIN_TASKS, task) end
end
return rows
`,
)

/**
 * ARGV: id of a join, reason and error if it is late, reason and error if a set is still open after its time. It is dead
 * if it still waits and its time is over. Returns whether to tell (1 or 0).
 */
export const lateScript = joinScript(
  'join-late',
  `
local join, j = joins().join(ARGV[1])
if not j or j.claim or j.state ~= 'w' or join.until_at < 0 or join.until_at > now then return 0 end
local is_open = joins().is_unsealed(join) and join.seal_by <= now
joins().fail(j, join, ARGV[is_open and 4 or 2], ARGV[is_open and 5 or 3])
return REPORTS and joins().flush() and 1 or 0
`,
)

/**
 * ARGV: key of a fragment; the ids of its members: what comes before the dot and the number, and whether these follow (1
 * or 0); a number.
 * Cancels those of up to 1,000 members from this number on that wait or run. Returns { number to go on with or -1,
 * whether to tell (1 or 0) }.
 */
export const cancelMembersScript = joinScript(
  'join-cancel-members',
  `
local f, from = joins().fragment_of(ARGV[1]), tonumber(ARGV[4])
if not f then return { -1, 0 } end
local behind, ends = math.min(from + 1000, f.high), false
for number = from, behind - 1 do
  local own = string.format('%d', number)
  local j = not joins().has_bit(f, number) and job(ARGV[3] == '1' and ARGV[2] .. '.' .. own or ARGV[2])
  local is_member = j and j.places and find(' ' .. j.places .. ' ', ' ' .. f.serial .. '.' .. own .. ' ', 1, true)
  if is_member and j.claim and not has(j.claim.flags, CANCEL) then
    j.reason = '${joinDeadReason}'
    local flags = j.claim.flags + CANCEL
    if not has(flags, HASHISTORY) then flags = flags + HASHISTORY end
    call('HSET', CLAIMS, j.id, with_flags(j.claim.text, flags))
    call('HSET', HISTORY, j.id, write_past(j))
  elseif is_member and is_waiting(j) then
    j.reason, ends = '${joinDeadReason}', true
    finish(j, 'x')
  end
end
if ends then tell_ends() end
return { behind < f.high and behind or -1, REPORTS and joins().flush() and 1 or 0 }
`,
)
