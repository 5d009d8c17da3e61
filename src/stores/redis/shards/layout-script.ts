/** The layout script: changes the layout of a queue, unless it has changed since the caller read it. */

import { redisScript } from '../client/redis-script.js'

/**
 * KEYS: the queues of the namespace.
 * ARGV: queue, its layout as the caller read it, its new layout.
 * Returns 1, or 0 if the stored layout is another by now.
 */
const text = `
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1
`

export const layoutScript = redisScript('layout', text, { whenFull: true })
