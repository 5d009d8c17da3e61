/** The scripts of schedules: they write, move and remove them, find due ones, and choose the worker that leads. */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { redisScript, refuse } from '../client/redis-script.js'
import { shardScript } from '../lua/prelude.js'
import type { ScriptPair } from '../lua/script-kinds.js'
import { scheduleRecords } from './redis-schedule-record.js'

/**
 * Writes the record of a schedule.
 * KEYS: those of a shard, then those of its schedules.
 * ARGV: verb, name, and the arguments of the verb.
 * put: revision; next tick or -1; paused (1 or 0); definition; whether the present record counts (1 or 0); the revision
 * that it must have ('' for none) and its next tick. Returns 1, also if the revision is already written, or 0. The
 * counts of the present record stay if it counts.
 * adopt: a record from another shard; its revision, next tick and `updatedAt`. Has no effect if the shard has a record
 * of that revision or a later one.
 * Refuses `unknown` and `moved`.
 */
const write = `
if call('EXISTS', META) == 0 then ${refuse('unknown')} end
if call('HEXISTS', META, 'closed') == 1 then ${refuse('moved')} end
${scheduleRecords}
local verb, name = ARGV[1], ARGV[2]
local here = read_schedule(name)
if verb == 'adopt' then
  if here and (here.revision == ARGV[4] or tonumber(string.match(here.rest, '%S+$')) > tonumber(ARGV[6])) then return 1 end
  call('HSET', SCHEDULES, name, ARGV[3])
  if ARGV[5] == '-1' then call('ZREM', SCHEDULE_DUE, name) else call('ZADD', SCHEDULE_DUE, ARGV[5], name) end
  return 1
end
if here and here.revision == ARGV[3] then return 1 end
if (here and here.revision or '') ~= ARGV[8] or (here and here.next or '-1') ~= ARGV[9] then return 0 end
if ARGV[7] == '0' then here = nil end
local s = here or { name = name, last = '-1', ticked = '0', skipped = '0', missed = '0', last_id = '', rest = '0 ' .. now .. ' 0' }
local created = string.match(s.rest, '^%S+ (%S+)')
s.revision, s.next, s.definition, s.rest = ARGV[3], ARGV[4], ARGV[6], ARGV[5] .. ' ' .. created .. ' ' .. now
write_schedule(s)
return 1
`

export const writeScheduleScripts: ScriptPair = {
  plain: shardScript('write-schedule', 'plain', () => write),
  ordered: shardScript('write-schedule-ordered', 'ordered', () => write),
}

/**
 * Ends a schedule in a shard.
 * KEYS: those of the schedules of a shard, which may be closed.
 * ARGV: verb, name, the revision that it must have; for `retire` also its next tick and the revision that replaces it.
 * retire: the schedule ticks no more, and its new revision keeps others from taking it for the old one. The same
 * `retire` may be repeated.
 * remove: removes the record.
 * Returns the record as it was, or nil.
 */
export const endScheduleScript = redisScript(
  'end-schedule',
  `${scheduleRecords}
local name = ARGV[2]
local here = read_schedule(name)
if not here then return false end
local text = redis.call('HGET', SCHEDULES, name)
if ARGV[5] and here.revision == ARGV[5] and here.next == '-1' then return text end
if here.revision ~= ARGV[3] or (ARGV[4] and here.next ~= ARGV[4]) then return false end
if ARGV[1] == 'remove' then
  redis.call('HDEL', SCHEDULES, name)
  redis.call('ZREM', SCHEDULE_DUE, name)
else
  here.next, here.revision = '-1', ARGV[5]
  write_schedule(here)
end
return text
`,
  { whenFull: true },
)

/**
 * Finds the due schedules of a shard.
 * KEYS: those of the schedules of a shard.
 * ARGV: the most schedules to return.
 * Returns now, the earliest tick that is not yet due or -1, and { name, record, … } of the due schedules.
 */
export const dueSchedulesScript = redisScript(
  'due-schedules',
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local names = redis.call('ZRANGE', KEYS[2], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
local later = redis.call('ZRANGE', KEYS[2], '(' .. now, '+inf', 'BYSCORE', 'LIMIT', 0, 1, 'WITHSCORES')
local due = {}
for _, name in ipairs(names) do
  due[#due + 1] = name
  due[#due + 1] = redis.call('HGET', KEYS[1], name) or ''
end
return { now, later[2] or '-1', due }
`,
  { readOnly: true },
)

/**
 * Makes a worker the one that ticks schedules, unless another leads.
 * KEYS: the hash that says who leads, the places that may have schedules.
 * ARGV: the worker, for how many ms it leads.
 * Returns now, the worker that leads, for how many ms it still does, the places, and the origin, which the first to ask
 * names.
 */
export const scheduleLeadScript = redisScript(
  'schedule-lead',
  `local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local lead = redis.call('HMGET', KEYS[1], 'worker', 'seen', 'until')
local worker, seen, until_at = lead[1], tonumber(lead[2]), tonumber(lead[3])
-- The clock was set back: the lead keeps the length that it had left when it was last seen.
if worker and seen > now + ${toleratedStepMs} then
  until_at, seen = until_at - seen + now, now
  redis.call('HSET', KEYS[1], 'seen', seen, 'until', until_at)
end
if not worker or worker == ARGV[1] or until_at <= now then
  worker, until_at = ARGV[1], now + ARGV[2]
  redis.call('HSET', KEYS[1], 'worker', worker, 'seen', now, 'until', until_at)
end
redis.call('HSETNX', KEYS[1], 'origin', now .. ' ' .. ARGV[1])
return { now, worker, until_at - now, redis.call('HKEYS', KEYS[2]), redis.call('HGET', KEYS[1], 'origin') }
`,
  { whenFull: true },
)

/**
 * Removes a field if it has this value, or sets it if a new value is given.
 * KEYS: a hash. ARGV: field, value, and the new value if there is one.
 */
export const compareAndSetScript = redisScript(
  'compare-and-set',
  `if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
if ARGV[3] then redis.call('HSET', KEYS[1], ARGV[1], ARGV[3]) else redis.call('HDEL', KEYS[1], ARGV[1]) end
return 1
`,
  { whenFull: true },
)
