/** The groups script: the groups of running jobs. */

import { readerPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. ARGV: for each claim its id and fence.
 * Returns for each the group of its job, '' for none, or nil if the claim is not the current one.
 */
const text = `
local groups = {}
for n = 1, #ARGV, 2 do
  local claim, group = call('HGET', CLAIMS, ARGV[n]), false
  if claim and sub(claim, 1, 7) == pack('>I7', tonumber(ARGV[n + 1])) then group = select(4, written(call('HGET', JOBS, ARGV[n]))) end
  groups[#groups + 1] = group
end
return groups
`

export const groupsScripts = readerPair('groups', text)
