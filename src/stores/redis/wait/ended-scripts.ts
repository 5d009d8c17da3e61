/** The ended scripts: which of some jobs have ended. */

import { readerPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns the ids whose jobs have ended or do not exist.
 */
const plain = `
local gone = {}
for _, id in ipairs(ARGV) do
  local is_there = call('HEXISTS', JOBS, id) == 1
  local past = is_there and call('HEXISTS', CLAIMS, id) == 0 and call('HGET', HISTORY, id)
  local state = past and sub(past, 1, 1)
  if not is_there or state == 'c' or state == 'd' then gone[#gone + 1] = id end
end
return gone
`

/**
 * KEYS: those of one shard. ARGV: ids.
 * Returns the ids without a job. Returns none while jobs are in transit, because they may have any id.
 */
const ordered = `
local gone = {}
if call('EXISTS', TRANSIT) == 1 then return gone end
for _, id in ipairs(ARGV) do
  if call('HEXISTS', JOBS, id) == 0 then gone[#gone + 1] = id end
end
return gone
`

export const endedScripts = readerPair('ended', { plain, ordered })
