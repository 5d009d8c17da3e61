/** The scope script: changes and reads what a throttle stores, apart from its gate. */

import { redisScript } from '../client/redis-script.js'
import { throttle } from './throttle-lua.js'

/**
 * KEYS: those of one scope.
 * ARGV: verb, and its arguments:
 * join: by, rules, queue, and the rules of each group if there are some besides. Makes the queue a member, and stores the
 * throttle if there is none. Returns { by, rules, rules of each group } as stored.
 * moved: a member has moved to other shards. Returns 1.
 * set: field, rules. Gives the throttle these rules in that field. Returns 1, or 0 if it has no such field.
 * rate: group, rules. Gives the group these rules; '' for none of its own. Returns 1, or 0 if there is no throttle, or
 * one that does not count by group.
 * state: whether a group is given (1 or 0), group. Returns { by, rules, hits, forMs, quietForMs, groups or -1, the rules
 * that the group has for itself or false, the hits of the group if there are hits of all }, or nothing if there is no
 * throttle. Without anything to count hits are empty, and forMs is the wait of all groups.
 */
const text = `
local verb = ARGV[1]
if verb == 'join' then
  if call('HEXISTS', RULES, 'rules') == 0 then call('HSET', RULES, 'by', ARGV[2], 'rules', ARGV[3], 'version', 1, unpack(ARGV[5] and { 'eachGroup', ARGV[5] } or {})) end
  if call('HSETNX', RULES, 'queue ' .. ARGV[4], 1) == 1 then call('HINCRBY', RULES, 'members', 1) end
  return call('HMGET', RULES, 'by', 'rules', 'eachGroup')
end
if verb == 'moved' then return call('HINCRBY', RULES, 'members', 1) and 1 end
if call('HEXISTS', RULES, 'rules') == 0 then return verb ~= 'state' and 0 or false end
if verb == 'set' then
  if call('HEXISTS', RULES, ARGV[2]) == 0 then return 0 end
  throttle_set(ARGV[2], ARGV[3])
  return 1
end
if verb == 'rate' then
  if call('HGET', RULES, 'by') ~= 'group' and call('HEXISTS', RULES, 'eachGroup') == 0 then return 0 end
  throttle_rate(ARGV[2], ARGV[3])
  return 1
end
throttle_read()
local known = call('HMGET', RULES, 'by', 'rules')
local group = BY_GROUP and ARGV[2] == '1' and ARGV[3]
local subject = group and throttle_subject(group)
local quiet = throttle_quiet(subject)
local hits, group_hits, for_ms = {}, {}, quiet
if known[1] == 'queue' then hits, for_ms = throttle_hits(''), math.max(for_ms, throttle_wait('')) end
if subject then group_hits, for_ms = throttle_hits(subject), math.max(for_ms, throttle_wait(subject)) end
if known[1] == 'group' then hits, group_hits = group_hits, {} end
return { known[1], known[2], hits, for_ms, quiet, BY_GROUP and throttle_groups() or -1, group and throttle_rate_of(group), group_hits }
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
