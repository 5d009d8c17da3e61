/** The gone script: ends claims of a worker that is known to be dead as crashes. */

import { crashes } from '../lua/crash-lua.js'
import { guard, scriptPair } from '../lua/script-kinds.js'

/**
 * KEYS: those of one shard.
 * ARGV: worker; how it died, or ''; then for each claim its id and fence.
 * Returns { crashed, buried }, see `crash`; the index is the number of the claim, from 0. Refuses `unknown`.
 */
const text = `
local max_crashes = tonumber(call('HGET', META, 'maxCrashes'))
local crashed, buried = {}, {}
for n = 3, #ARGV, 2 do
  local j = job(ARGV[n])
  if j and j.claim and j.claim.fence == tonumber(ARGV[n + 1]) and j.claim.worker == ARGV[1] then
    crash(j, max_crashes, (n - 3) / 2, crashed, buried, ARGV[2] ~= '' and ARGV[2] or nil)
  end
end
-- A worker must claim to learn that there are suspects.
if #crashed > 0 then
  ring_unpaused()
  tell_ends()
end
return { crashed, buried }
`

export const goneScripts = scriptPair('gone', crashes + guard + text, { whenFull: true })
