/** The hold script: how long a shard is held back. */

import { readerPair } from '../lua/script-kinds.js'
import { isSetBack } from '../lua/set-back-lua.js'

/**
 * KEYS: those of one shard. ARGV: whether a group is asked for (1 or 0), the group.
 * Returns the ms for which a hold of the queue, or of the group, lets no job start; 0 if none does.
 */
const text = `
local until_at, seen = limits().held, call('HGET', META, 'seenAt')
if ARGV[1] == '1' then until_at = math.max(until_at, lanes.held_until(ARGV[2])) end
-- What the next script that writes does first.
if ${isSetBack('seen')} then until_at = until_at - seen + now end
return math.max(0, until_at - now)
`

export const holdScripts = readerPair('hold', text)
