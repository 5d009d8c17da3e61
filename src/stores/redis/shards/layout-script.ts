/** The layout script: where a queue lies is written down anew, by whoever saw it last. */

import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: the queues of the namespace.
 * ARGV: queue, its layout as it was seen, its layout from now on.
 * Returns 1, or 0 where another is written down by now.
 */
const text = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`

export const layoutScript = redisScript('layout', text, { whenFull: true })
