/** The scripts with which the shards of plain queues tell each other of joins and of the ends of their members. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { ScriptFlags, ShardScript } from '../client/redis-script.js'
import { shardScript, withJobs } from '../lua/prelude.js'
import { guard } from '../lua/script-kinds.js'

/** KEYS: those of one shard. Refuses `unknown`. */
export function joinScript(name: string, text: string, flags: ScriptFlags = { whenFull: true }): ShardScript {
  return shardScript(name, 'plain', () => withJobs(guard + text, fragmentParts), flags)
}

const fragmentParts = `
-- What a fragment tells.
local function parts_of(f)
  return { f.version, f.count, f.high, f.c, f.d, f.x, f.e, f.bytes, f.fails, f.fail_number, f.fail_fate, f.on_dead }
end
`

/**
 * ARGV: for how many ms something must have been waiting, the most to return.
 * Returns what is to be told to other shards, oldest first, each as a list: 'f', number of the fragment, its key, its
 * parts (`parts_of`) · 'z', 't' or 'x', id of a join, its sets as JSON.
 */
export const reportsScript = joinScript(
  'join-reports',
  `
local rows, edge = {}, string.format('%.0f', tonumber(ARGV[1]) - now)
local tasks = call('ZRANGE', JOIN_TASKS, '(0', edge, 'BYSCORE', 'REV', 'LIMIT', 0, ARGV[2])
-- Those of before the clock was set back.
if not tasks[1] then tasks = call('ZRANGE', JOIN_TASKS, '-inf', string.format('(%.0f', -now - ${toleratedStepMs}), 'BYSCORE', 'LIMIT', 0, ARGV[2]) end
for _, task in ipairs(tasks) do
  local kind, name = sub(task, 1, 1), sub(task, 2)
  local f = kind == 'f' and joins().fragment(name)
  local record = kind ~= 'f' and call('HGET', JOINS, (kind == 'x' and 'x' or 'j') .. name)
  if f then
    local row = { kind, name, f.key }
    for _, part in ipairs(parts_of(f)) do row[#row + 1] = part end
    rows[#rows + 1] = row
  elseif record then rows[#rows + 1] = { kind, name, record }
  else call('ZREM', JOIN_TASKS, task) end
end
return rows
`,
)

/**
 * ARGV: id of a join, name of a set, its `base`, tag of the shard of a fragment, its parts.
 * The join takes notice of them, unless it knows later ones; it may become ready, or dead.
 * Returns { whether it is there (1 or 0), whether this shard has something to tell now (1 or 0), the version that it knows if it
 * did not take notice of these parts, otherwise -1 }.
 */
export const hearScript = joinScript(
  'join-hear',
  `
local f = {}
for i, name in ipairs({ 'version', 'count', 'high', 'c', 'd', 'x', 'e', 'bytes', 'fails', 'fail_number', 'fail_fate' }) do f[name] = tonumber(ARGV[4 + i]) end
local is_there, known = joins().hear(ARGV[1], ARGV[2], ARGV[3], ARGV[4], f)
return { is_there and 1 or 0, REPORTS and joins().flush() and 1 or 0, known or -1 }
`,
)

/**
 * ARGV: number of a fragment; of its parts the version, those done, bytes and failing ends.
 * The fragment has told these, and tells no more unless it has changed since.
 */
export const toldScript = joinScript(
  'join-told',
  `
local f, version = joins().fragment(ARGV[1]), tonumber(ARGV[2])
if not f or f.version == version then call('ZREM', JOIN_TASKS, 'f' .. ARGV[1]) end
if f and version > f.told_version then
  f.told_version, f.told_done, f.told_bytes, f.told_fails = version, tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
  f.is_touched = true
  joins().flush()
end
`,
)

/**
 * ARGV: number of a fragment, a version that its join did not take notice of, the one that it knows.
 * If the fragment still has that version, its shard has lost ends by a failover, which the join had heard, and has others since: it
 * gets a version behind both, and tells them again.
 */
export const outrunScript = joinScript(
  'join-outrun',
  `
local f, version = joins().fragment(ARGV[1]), tonumber(ARGV[2])
if f and f.version == version then
  f.version = ARGV[3] + 1
  joins().flush()
end
`,
)

/**
 * ARGV: key of a fragment, a turn of its join, a number of a member.
 * Odd, freeze: later ends change nothing, and of up to 1,000 members from this number on those that were revived since are
 * dead again for the join. Even, thaw: ends change something again. If the fragment has had a later turn, a slow process
 * comes with this one, and nothing changes. Returns the number to go on with, or -1.
 */
export const freezeScript = joinScript(
  'join-freeze',
  `
local f, turn, from, more = joins().fragment_of(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), false
local ahead = f and (turn - f.turn) % 256
if not f or ahead >= 128 then return -1 end
local frozen = turn % 2
if ahead > 0 then
  call('ZREM', JOIN_TASKS, 'f' .. f.serial)
  f.turn, f.frozen, f.is_touched = turn, frozen, true
end
local behind = math.min(from + 1000, f.high)
if frozen == 1 and f.on_dead == joins().GO_ON and joins().done(f) < f.count then
  for number = from, behind - 1 do joins().stay_dead(f, number) end
  more = behind < f.high
end
joins().flush()
return more and behind or -1
`,
)

/**
 * ARGV: key of a fragment. Later ends change nothing. Removes the ends of its last 1,000 members, and behind those of the
 * first one the fragment. Returns whether something is left (1 or 0).
 */
export const dropScript = joinScript(
  'join-drop',
  `
local f = joins().fragment_of(ARGV[1])
if not f then return 0 end
call('ZREM', JOIN_TASKS, 'f' .. f.serial)
local first, ends, rest = math.max(0, f.high - 1000), {}, {}
for number = first, f.high - 1 do ends[#ends + 1] = f.serial .. '.' .. string.format('%d', number) end
many('HDEL', JOINED, ends)
for c = math.ceil(first / 4096), math.floor(f.high / 4096) do rest[#rest + 1] = 'b' .. f.serial .. '.' .. c end
if first > 0 then
  -- The next call goes on from here.
  f.high, f.turn, f.frozen, f.is_touched = first, 1, 1, true
  joins().flush()
else
  rest[#rest + 1] = 'n' .. f.key
  rest[#rest + 1] = 'h' .. f.serial
end
many('HDEL', JOINS, rest)
return first > 0 and 1 or 0
`,
)

/** ARGV: a member of \`join-tasks\`, perhaps a turn of its join. It is done, unless the join has had a later turn. */
export const doneScript = joinScript(
  'join-done',
  `
local join = ARGV[2] and joins().join(sub(ARGV[1], 2))
if join and joins().turn_of(join) ~= tonumber(ARGV[2]) then return end
call('ZREM', JOIN_TASKS, ARGV[1])
if sub(ARGV[1], 1, 1) == 'x' then call('HDEL', JOINS, ARGV[1]) end
`,
)

/** ARGV: numbers of fragments. Returns for each its key, keeps results (1 or 0) and the letter of \`onDead\` as a byte; nil for none. */
export const fragmentNamesScript = joinScript(
  'join-fragment-names',
  `
local found = {}
for i, serial in ipairs(ARGV) do
  local f = joins().fragment(serial)
  found[i] = f and { f.key, f.keeps, f.on_dead } or false
end
return found
`,
  { readOnly: true },
)
