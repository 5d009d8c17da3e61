/** The scripts of a queue's history: one adds counts to a minute and its hour, one reads points. */

import { countsLength } from '../../rules/history-slots.js'
import { redisScript } from '../client/redis-script.js'

const clock = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`

/**
 * KEYS: the minutes of one hour, the hours of its day.
 * ARGV: that hour, counted since 1970; ms since the counts were taken; for minutes and for hours, how many ms they are
 * kept; counts, and gauges or none.
 * Returns nil, or the hour in which the counts were taken if that is another: call again with its keys. A field is a
 * minute or an hour within its key. Its value is counts and gauges in msgpack, one after the other. A key expires when
 * the last of its slots is too old.
 */
const add = `${clock}
local at = math.floor((now - ARGV[2]) / 60000)
local hour = math.floor(at / 60)
if hour ~= tonumber(ARGV[1]) then return hour end
local function add(key, field, span, from, kept)
  local left = math.ceil((from * span + kept - now) / 1000)
  if left <= 0 then return end
  local before = redis.call('HGET', key, field)
  local sums = before and { cmsgpack.unpack(before) } or {}
  for i = 5, #ARGV do
    local n = i - 4
    sums[n] = (n <= ${countsLength} and sums[n] or 0) + ARGV[i]
  end
  redis.call('HSET', key, field, cmsgpack.pack(unpack(sums)))
  redis.call('EXPIRE', key, left)
end
add(KEYS[1], at % 60, 60000, (hour + 1) * 60, tonumber(ARGV[3]))
add(KEYS[2], hour % 24, 3600000, (math.floor(hour / 24) + 1) * 24, tonumber(ARGV[4]))
return false
`

/**
 * KEYS: hashes of one queue, as above. Returns the instant in ms, and for each hash its fields, each followed by a list
 * of its numbers.
 */
const read = `${clock}
local found = { now }
for i = 1, #KEYS do
  local slots = redis.call('HGETALL', KEYS[i])
  for n = 2, #slots, 2 do slots[n] = { cmsgpack.unpack(slots[n]) } end
  found[i + 1] = slots
end
return found
`

// Counts take hardly any memory, and calls that free memory are counted too.
export const addHistoryScript = redisScript('add-history', add, { whenFull: true })
export const readHistoryScript = redisScript('read-history', read, { readOnly: true })
