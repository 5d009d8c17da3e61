/** The look scripts: whether shards need a claim. */

import { leads } from '../lua/leads-lua.js'
import { readyJobs } from '../lua/ready-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { isSetBack } from '../lua/set-back-lua.js'

/**
 * KEYS: those of each shard asked, one after the other. No ARGV.
 * Returns for each 1 if a claim would find work and no lead is expected to claim it, otherwise 0.
 */
const plain = `
SIBLINGS = 0
local needs = {}
for n = 0, #KEYS / SIZE - 1 do
  at(n)
  needs[n + 1] = 0
  if call('EXISTS', READY_LIST, READY, LANES, SUSPECTS, SCHEDULED, LEASES) > 0 then
    local meta = call('HMGET', META, 'paused', 'leadAt', 'limited', 'stale', 'sparesUntil', 'seenAt')
    STOPPED = meta[1] == '1'
    limits(meta[3])
    if not STOPPED then
      local can = own.limited and lanes.is_claimable() or (not own.limited and ready_count(tonumber(meta[4])) > 0)
      -- A claim must follow a clock that was set back.
      if can or ${isSetBack('meta[6]')} then needs[n + 1] = 1 else
        local lead_at = tonumber(meta[2])
        local change = first_change(tonumber(meta[5]))
        if change and change <= now and not (is_led(lead_at) and lead_at <= now + 1000) then needs[n + 1] = 1 end
      end
    end
  end
end
return needs
`

/**
 * KEYS: those of each shard asked, one after the other; for a queue with `maxRunning` then those of all its shards.
 * ARGV: the number of the latter shards.
 * Returns for each 1 if a claim would find work and no lead is expected to claim it, otherwise 0.
 */
const ordered = `
SIBLINGS = tonumber(ARGV[1])
SIBLINGS_FROM = #KEYS / SIZE - SIBLINGS
local needs = {}
for n = 0, SIBLINGS_FROM - 1 do
  at(n)
  needs[n + 1] = 0
  if call('EXISTS', READY, LANES, SUSPECTS, SCHEDULED, LEASES) > 0 then
    know_form()
    if not STOPPED then
      local can = limits().limited and lanes.is_claimable() or (not own.limited and call('EXISTS', READY, LANES) > 0 and not is_full())
      local meta = call('HMGET', META, 'leadAt', 'sparesUntil', 'seenAt')
      -- A claim must follow a clock that was set back.
      if can or ${isSetBack('meta[3]')} then needs[n + 1] = 1 else
        local lead_at, change = tonumber(meta[1]), first_change(tonumber(meta[2]))
        if change and change <= now and not (is_led(lead_at) and lead_at <= now + 1000) then needs[n + 1] = 1 end
      end
    end
  end
end
return needs
`

export const lookScripts = scriptPair(
  'look',
  { plain: leads + plain, ordered: leads + ordered },
  { rare: readyJobs, readOnly: true },
)
