/**
 * A server's clock that was set back, in Lua: what a shard keeps until an instant is kept no longer than it was to be. The
 * translation of `memory-set-back`. Beside the prelude.
 *
 * `seenAt` in META is when such an instant was last written down; every script that writes one writes that too, and follows
 * the clock first. Due times are not moved: those that a user gave are on the wall clock.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'

export const setBack = `
-- Nobody knows how long ago that was: everything is to last from now on as long as it was to last from then on.
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

/** Whether the clock was set back since `seen`, a name in Lua of the text of `seenAt`, or false. Said in place: a function costs each call. */
export function isSetBack(seen: string): string {
  return `(${seen} and now < ${seen} - ${toleratedStepMs})`
}
