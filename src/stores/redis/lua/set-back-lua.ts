/**
 * A server clock that was set back, in Lua: what a shard keeps until an instant must not be kept for longer because of
 * it. The translation of `SetBackClock`. It needs the prelude.
 *
 * `seenAt` in META is when such an instant was last written. Every script that writes such an instant also writes
 * `seenAt`, and first follows the clock. Due times are not moved: a user's due times are on the wall clock.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'

export const setBack = `
-- How much time has really passed is unknown: each duration begins anew with the length that it had left at seen.
local function turn_back(seen)
  local by, fields = seen - now, { 'heldUntil', 'shutUntil', 'leadAt', 'suspectLeadAt', 'sparesUntil' }
  for i, value in ipairs(call('HMGET', META, unpack(fields))) do
    if value then call('HSET', META, fields[i], value - by) end
  end
  for _, key in ipairs({ LEASES, SHUT, HOLDS }) do
    local all, args = call('ZRANGE', key, 0, -1, 'WITHSCORES'), {}
    for i = 1, #all, 2 do args[i], args[i + 1] = all[i + 1] - by, all[i] end
    many('ZADD', key, args)
  end
  local calls, moved = call('HGETALL', CALLS), {}
  for i = 1, #calls, 2 do
    local at = unpackn('>I6', calls[i + 1])
    moved[i], moved[i + 1] = calls[i], pack('>I6', math.max(0, at - by)) .. sub(calls[i + 1], 7)
  end
  many('HSET', CALLS, moved)
  call('HSET', META, 'seenAt', now)
end
`

/**
 * Lua for whether the clock was set back since `seen`, the name of a variable with the text of `seenAt`, or false. It
 * is written in place because a function costs time at each call.
 */
export function isSetBack(seen: string): string {
  return `(${seen} and now < ${seen} - ${toleratedStepMs})`
}
