/** The mutations of throttles of the Redis store by all and by group at once, and of the rates of single groups. */

import type { Mutation } from './mutants.js'

const concern = 'rates of groups'

export const redisRateMutations: readonly Mutation[] = [
  {
    what: 'a group with a rate of its own goes by the rules of all',
    file: 'redis/lua/throttle-lua.js',
    from: "local rules = own_of(subject) or (subject ~= '' and S.each) or S.rules",
    to: "local rules = (subject ~= '' and S.each) or S.rules",
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
    file: 'redis/lua/throttle-lua.js',
    from: "pack('>I4', 0) .. string.sub(counter, 19)",
    to: 'string.sub(counter, 15)',
  },
  {
    what: 'a rate that is replaced counts as one more',
    file: 'redis/lua/throttle-lua.js',
    from: '(has and 1 or 0) - (had and 1 or 0)',
    to: '(has and 1 or 0) - (had and not has and 1 or 0)',
  },
  {
    what: 'a group is forgotten when the windows of all groups are over, though its own goes on',
    file: 'redis/lua/throttle-lua.js',
    from: "S.own and tonumber(string.match(S.own, '^%d+ (%d+)')) or 0",
    to: '0',
    concern,
  },
  {
    what: 'a group that is silent for longer than the others is not',
    file: 'redis/lua/throttle-lua.js',
    from: 'if not silent then return S.quiet_until end',
    to: 'if true then return S.quiet_until end',
    concern,
  },
  {
    what: 'a long window of one group is not charged',
    file: 'redis/lua/throttle-lua.js',
    from: 'and charge_after(rules, last)',
    to: 'and charge_after(S.rules, last)',
    concern,
  },
  {
    what: 'the windows of a group are counted by the rules of all',
    file: 'redis/lua/throttle-lua.js',
    from: 'for i, rule in ipairs(t.rules) do hits[i] = hits_of(rule, t) end',
    to: 'for i, rule in ipairs(S.rules) do hits[i] = hits_of(rule, t) end',
  },
  {
    what: 'rules for each group beside those for all do not count',
    file: 'redis/lua/lanes-lua.js',
    from: "values[6] and values[6] ~= 'queue'",
    to: "values[6] == 'group'",
  },
  {
    what: 'rules for all beside those for each group do not count',
    file: 'redis/lua/lanes-lua.js',
    from: "values[6] and values[6] ~= 'group'",
    to: "values[6] == 'queue'",
  },
  {
    what: 'a group goes by the rules for all',
    file: 'redis/lua/throttle-lua.js',
    from: "(subject ~= '' and S.each) or S.rules",
    to: 'S.rules',
  },
  {
    what: 'the count of all is one of a group',
    file: 'redis/lua/throttle-lua.js',
    from: ' and tonumber(all) >= idle_edge() and 1 or 0)',
    to: ' and 0 or 0)',
  },
  {
    what: 'the silence for each group is not longer than that for all',
    file: 'redis/lua/throttle-lua.js',
    from: 'if of_each then silent',
    to: 'if false then silent',
  },
]
