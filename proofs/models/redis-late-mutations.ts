/** The mutations of the starts that may be late, in the throttles of the Redis store. */

import type { Mutation } from './mutants.js'

export const redisLateMutations: readonly Mutation[] = [
  {
    what: 'starts that may be late count from their grant',
    file: 'redis/lua/starts-lua.js',
    from: 'math.max(S.at + late_ms, t.last or 0)',
    to: 'math.max(S.at, t.last or 0)',
    concern: 'waiting for throttles',
  },
  {
    what: 'a start counts from before the one that came before it',
    file: 'redis/lua/starts-lua.js',
    from: 'math.max(S.at + late_ms, t.last or 0)',
    to: 'S.at + late_ms',
    concern: 'waiting for throttles',
  },
  {
    what: 'claims forget how late their jobs may be',
    file: 'redis/claim/redis-claim.js',
    from: 'limits: limitedBy(queue), limit, lateMs }',
    to: 'limits: limitedBy(queue), limit, lateMs: 0 }',
    concern: 'waiting for throttles',
  },
]
