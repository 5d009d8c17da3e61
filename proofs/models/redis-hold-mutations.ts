/** The mutations of the Redis store's shut lanes, releases of holds and pauses of groups. */

import type { Mutation } from './mutants.js'

export const redisHoldMutations: readonly Mutation[] = [
  {
    what: 'a paused group has room',
    file: 'redis/lua/lanes-lua.js',
    from: 'then return 0 end\n  if not most',
    to: 'then most = nil end\n  if not most',
  },
  {
    what: 'a hold that is released leaves its lane shut',
    file: 'redis/lua/lanes-lua.js',
    from: "if call('ZSCORE', SHUT, group) then lanes.open(group) end",
    to: '',
  },
  {
    what: 'a release of all holds ends pauses too',
    file: 'redis/lua/lanes-lua.js',
    from: "call('ZREMRANGEBYSCORE', HOLDS, '-inf', '(+inf')",
    to: "call('ZREMRANGEBYSCORE', HOLDS, '-inf', '+inf')",
  },
  {
    what: 'a completion holds nothing',
    file: 'redis/claim/settle-script.js',
    from: "if kinds[i] == 'c' and not hold and",
    to: "if kinds[i] == 'c' and",
  },
  {
    what: 'a shut lane opens for a new job',
    file: 'redis/lua/lanes-lua.js',
    from: "return call('ZSCORE', TURNS, group) or call('ZSCORE', SHUT, group)",
    to: "return call('ZSCORE', TURNS, group)",
  },
]
