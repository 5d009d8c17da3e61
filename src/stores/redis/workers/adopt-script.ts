/** The adopt script: passes a running claim from one worker to another. */

import { shardScript } from '../lua/prelude.js'

/**
 * KEYS: those of one shard.
 * ARGV: id, fence, worker that holds the claim, worker that gets it.
 * Returns 1, or 0 if the claim is not the current one, or not that worker's. Refuses `unknown`.
 */
const text = `
if call('EXISTS', META) == 0 then return redis.error_reply('MILLRACE unknown') end
local id, from, to = ARGV[1], ARGV[3], ARGV[4]
local claim = call('HGET', CLAIMS, id)
if not claim or sub(claim, 1, 7) ~= pack('>I7', tonumber(ARGV[2])) then return 0 end
local stop = 15 + byte(claim, 15)
if sub(claim, 16, stop) ~= from then return 0 end
call('HSET', CLAIMS, id, sub(claim, 1, 14) .. char(#to) .. to .. sub(claim, stop + 1))
return 1
`

export const adoptScript = shardScript('adopt', 'plain', text, { whenFull: true })
