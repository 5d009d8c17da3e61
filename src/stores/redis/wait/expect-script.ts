/** The expect script: keeps the results of jobs for somebody who waits for them. */

import { longestExpectMs } from '../../rules/bounds.js'
import { guard, scriptPair } from '../lua/script-kinds.js'

/** The number of entries of others that each call looks at, to remove those whose time is over. */
const swept = 8

/**
 * KEYS: those of one shard. ARGV: who waits (8 characters), for how many ms (0: no longer), ids.
 * Returns nothing. Refuses `unknown`.
 */
const plain = `
local by, for_ms = ARGV[1], tonumber(ARGV[2])
local until_at = now + for_ms
-- The entries of those who still wait, without mine.
local function others(entries)
  local kept = ''
  for at = 1, #entries, 14 do
    local left = unpackn('>I6', entries, at + 8) - now
    -- Longer than anybody may wait: the clock was set back.
    local waits = left > 0 and left <= ${longestExpectMs}
    if waits and sub(entries, at, at + 7) ~= by then kept = kept .. sub(entries, at, at + 13) end
  end
  return kept
end
local function write(id, entries)
  if entries == '' then call('HDEL', ENDS, id) else call('HSET', ENDS, id, entries) end
end
local known = call('EXISTS', ENDS) == 1
for i = 3, #ARGV do
  local id = ARGV[i]
  local entries = known and others(call('HGET', ENDS, id) or '') or ''
  if for_ms > 0 then
    local is_there = call('HEXISTS', JOBS, id) == 1
    local past = is_there and call('HGET', HISTORY, id)
    -- Most jobs have not ended, and need not be read.
    local j = past and sub(past, 1, 1) == 'c' and job(id)
    if is_there and not (j and is_hidden(j)) then
      entries = entries .. by .. pack('>I6', until_at)
      local expires = j and not j.claim and call('ZSCORE', EXPIRY, j.seq .. id)
      if expires and tonumber(expires) < until_at then call('ZADD', EXPIRY, until_at, j.seq .. id) end
    end
  end
  if known or entries ~= '' then write(id, entries) end
end
if for_ms > 0 then call('PEXPIRE', ENDS, math.max(for_ms, call('PTTL', ENDS))) end
-- Who died left entries behind. A few of them go with each call, all of them when nobody calls any more.
local some = known and call('HRANDFIELD', ENDS, ${swept}, 'WITHVALUES') or {}
by = ''
for i = 1, #some, 2 do
  local entries = others(some[i + 1])
  if #entries < #some[i + 1] then write(some[i], entries) end
end
return ''
`

export const expectScripts = scriptPair('expect', { plain: guard + plain, ordered: "return ''" })
