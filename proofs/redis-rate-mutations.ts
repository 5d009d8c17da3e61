/** The mutations of the rates that single groups have in the throttles of the Redis store. */

import type { Mutation } from './mutants.js'

const concern = 'rates of groups'

export const redisRateMutations: readonly Mutation[] = [
  {
    what: 'a group with a rate of its own goes by the rules of all',
    file: 'redis/throttle/throttle-lua.js',
    from: 'local rules = own_of(subject) or S.rules',
    to: 'local rules = S.rules',
  },
  {
    what: 'the rate of a group that is set leaves its lane shut',
    file: 'redis/shards/queue-state-script.js',
    from: 'if ARGV[2] then lanes.look(ARGV[2])',
    to: 'if ARGV[2] then',
  },
  {
    what: 'the rate of a group opens all lanes',
    file: 'redis/shards/queue-state-script.js',
    from: 'if ARGV[2] then lanes.look(ARGV[2])',
    to: "if ARGV[2] == 'none' then",
  },
  {
    what: 'the grids of a group go on under other rules of its own',
    file: 'redis/throttle/throttle-lua.js',
    from: "pack('>I4', 0) .. string.sub(counter, 19)",
    to: 'string.sub(counter, 15)',
  },
  {
    what: 'a rate that is replaced counts as one more',
    file: 'redis/throttle/throttle-lua.js',
    from: '(has and 1 or 0) - (had and 1 or 0)',
    to: '(has and 1 or 0) - (had and not has and 1 or 0)',
  },
  {
    what: 'a group is forgotten when the windows of all groups are over, though its own goes on',
    file: 'redis/throttle/throttle-lua.js',
    from: "S.own and tonumber(string.match(S.own, '^%d+ (%d+)')) or 0",
    to: '0',
    concern,
  },
  {
    what: 'a group that is silent for longer than the others is not',
    file: 'redis/throttle/throttle-recovery-lua.js',
    from: 'if not silent then return S.quiet_until end',
    to: 'if true then return S.quiet_until end',
    concern,
  },
  {
    what: 'a long window of one group is not charged',
    file: 'redis/throttle/throttle-lua.js',
    from: 'charge_after(rules, last)',
    to: 'charge_after(S.rules, last)',
    concern,
  },
  {
    what: 'the windows of a group are counted by the rules of all',
    file: 'redis/throttle/throttle-lua.js',
    from: 'for i, rule in ipairs(t.rules) do hits[i] = hits_of(rule, t) end',
    to: 'for i, rule in ipairs(S.rules) do hits[i] = hits_of(rule, t) end',
  },
]
