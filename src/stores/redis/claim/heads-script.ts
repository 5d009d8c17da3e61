/** The heads script: the age of the oldest ready job of a shard. */

import { readerPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard. No ARGV.
 * Returns the age in ms of the oldest ready job that every claim may take, or -1.
 */
const text = `
local oldest = oldest_ready(tonumber(call('HGET', META, 'stale')))
return oldest and age_of(oldest) or -1
`

export const headsScripts = readerPair('heads', text)
