/** The scope script: changes and reads what a throttle stores, apart from its gate. */

import { redisScript } from '../client/redis-script.js'
import { throttle } from './throttle-lua.js'

/**
 * KEYS: those of one scope.
 * ARGV: verb, and its arguments:
 * join: by, rules, queue. Makes the queue a member, and stores the throttle if there is none. Returns { by, rules } as
 * stored.
 * moved: a member has moved to other shards. Returns 1.
 * set: rules. Gives the throttle these rules. Returns 1, or 0 if there is no throttle.
 * rate: group, rules. Gives the group these rules; '' for none of its own. Returns 1, or 0 if there is no throttle, or
 * one that does not count by group.
 * state: whether a subject is given (1 or 0), subject. Returns { by, rules, hits, forMs, quietForMs, groups, the rules of
 * its own or false }, or nothing if there is no throttle. A throttle by group without a subject has empty hits, and forMs is the wait of all
 * groups.
 */
const text = `
local verb = ARGV[1]
if verb == 'join' then
  if call('HEXISTS', RULES, 'rules') == 0 then call('HSET', RULES, 'by', ARGV[2], 'rules', ARGV[3], 'version', 1) end
  if call('HSETNX', RULES, 'queue ' .. ARGV[4], 1) == 1 then call('HINCRBY', RULES, 'members', 1) end
  return call('HMGET', RULES, 'by', 'rules')
end
if verb == 'moved' then return call('HINCRBY', RULES, 'members', 1) and 1 end
if call('HEXISTS', RULES, 'rules') == 0 then return verb ~= 'state' and 0 or false end
if verb == 'set' then
  throttle_set(ARGV[2])
  return 1
end
if verb == 'rate' then
  if call('HGET', RULES, 'by') ~= 'group' then return 0 end
  throttle_rate(ARGV[2], ARGV[3])
  return 1
end
throttle_read()
local group = BY_GROUP and ARGV[2] == '1' and ARGV[3]
local hits, for_ms, quiet = {}, throttle_quiet(group), throttle_quiet(group)
local subject = (not BY_GROUP and '') or group
if subject then hits, for_ms = throttle_hits(subject), throttle_wait(subject) end
local known = call('HMGET', RULES, 'by', 'rules')
return { known[1], known[2], hits, for_ms, quiet, BY_GROUP and throttle_subjects() or -1, group and throttle_rate_of(group) }
`

const start = `
local call, pack, unpackn = redis.call, struct.pack, struct.unpack
local RULES, STARTS, COUNTERS, IDLE = unpack(KEYS)
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function many(command, key, args)
  for i = 1, #args, 1000 do call(command, key, unpack(args, i, math.min(i + 999, #args))) end
end
`

export const scopeScript = redisScript('scope', start + throttle + text, { whenFull: true })
