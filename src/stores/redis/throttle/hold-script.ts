/** The hold scripts: how long a shard is held back, and what holds it and its groups. */

import { readerPair } from '../lua/script-kinds.js'
import { isSetBack } from '../lua/set-back-lua.js'

/** The instant from which holds are counted: what the next script that writes does first. */
const countedFrom = `
local seen, from = call('HGET', META, 'seenAt'), now
if ${isSetBack('seen')} then from = tonumber(seen) end
`

/**
 * KEYS: those of one shard. ARGV: whether a group is asked for (1 or 0), the group.
 * Returns the ms for which a hold of the queue, or of the group, lets no job start; 0 if none does.
 */
const text = `${countedFrom}
local until_at = limits().held
if ARGV[1] == '1' then until_at = math.max(until_at, lanes.held_until(ARGV[2])) end
return math.max(0, until_at - from)
`

/**
 * KEYS: those of one shard. ARGV: the most groups of each kind to return, or 'of' and the groups that are asked for.
 * Returns { ms for which the shard is held, or 0; how many groups are paused; how many are held; some of the paused
 * ones; some of the held ones, each with its ms }.
 */
const list = `${countedFrom}
local whole, paused, held = math.max(0, limits().held - from), {}, {}
if ARGV[1] == 'of' then
  for i = 2, #ARGV do
    local left = lanes.held_until(ARGV[i]) - from
    if call('ZSCORE', HOLDS, '\\0' .. ARGV[i]) then paused[#paused + 1] = ARGV[i] end
    if left > 0 then
      held[#held + 1] = ARGV[i]
      held[#held + 1] = left
    end
  end
  return { whole, #paused, #held / 2, paused, held }
end
for _, member in ipairs(call('ZRANGE', HOLDS, '+inf', '+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1])) do paused[#paused + 1] = sub(member, 2) end
local found = call('ZRANGE', HOLDS, '(' .. from, '(+inf', 'BYSCORE', 'LIMIT', 0, ARGV[1], 'WITHSCORES')
for i = 1, #found, 2 do
  held[i] = found[i]
  held[i + 1] = found[i + 1] - from
end
return { whole, call('ZCOUNT', HOLDS, '+inf', '+inf'), call('ZCOUNT', HOLDS, '(' .. from, '(+inf'), paused, held }
`

export const holdScripts = readerPair('hold', text)
export const holdListScripts = readerPair('hold-list', list)
