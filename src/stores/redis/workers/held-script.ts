/** The held script: the claims of a worker in a shard. */

import { readerPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. ARGV: worker.
 * Returns for each of its claims id, claim, the note of its beats or '', and task.
 */
const text = `
local claims, found = call('HGETALL', CLAIMS), {}
for i = 1, #claims, 2 do
  if read_claim(claims[i + 1]).worker == ARGV[1] then
    for _, part in ipairs({ claims[i], claims[i + 1], call('HGET', NOTES, 'b' .. claims[i]) or '', (written(call('HGET', JOBS, claims[i]))) }) do
      found[#found + 1] = part
    end
  end
end
return found
`

export const heldScripts = readerPair('held', text)
