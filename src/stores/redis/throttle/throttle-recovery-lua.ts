/** The recovery of a throttle, in Lua: a translation of `rules/throttle/throttle-recovery`. */

import { longestSilenceMs } from '../../rules/throttle/throttle-recovery.js'

export const silence = `
local LONGEST_SILENCE = ${longestSilenceMs}
`

/** Needs `S`, the scope, whose `server` is the current run of the server. */
export const recovery = `
-- Sets the current instant on the clock of the log. While the server's clock is set back a little, it does not move.
local function set_instant() S.at, S.counters = math.max(now, S.last_at or now) - S.shift, {} end
local function write_recovery()
  call('HSET', RULES, 'run', S.run, 'recoveries', S.recoveries, 'recoveredAt', now, 'shift', S.shift)
  if S.last_at then call('HSET', RULES, 'lastAt', S.last_at) end
  if S.quiet_until then call('HSET', RULES, 'quietUntil', S.quiet_until) else call('HDEL', RULES, 'quietUntil') end
  S.recovered_at = now - S.shift
  set_instant()
end
-- How long nothing starts by these rules after a recovery; nil if all windows are long.
local function silence_of(rules)
  local silent
  for _, rule in ipairs(rules) do
    if not rule.is_long then silent = math.max(silent or 0, rule.window) end
  end
  return silent
end
local function quiet_after(step)
  local silent, of_each = silence_of(S.rules), S.each and silence_of(S.each)
  if of_each then silent = math.max(silent or 0, of_each) end
  local still = S.quiet_until and S.quiet_until + step
  if not silent then return still end
  return math.max(now + silent + 1, still or now)
end
-- Called before permits: the server may have lost starts, or its clock was set back.
local function recover()
  local is_set_back = S.last_at and now < S.last_at - 1000
  if S.server == S.run and not is_set_back then return end
  if S.run then S.recoveries = S.recoveries + 1 end
  S.run = S.server
  -- No job ever started, so none can be forgotten.
  if not S.last_at then S.recoveries, S.shift = 0, 0 else
    local step = math.min(0, now - S.last_at)
    S.quiet_until = quiet_after(step)
    -- The starts that long windows are charged with count as started now.
    S.shift, S.last_at = S.shift + step, now
  end
  write_recovery()
end
-- Until when nothing of a subject starts; nil if it is not silent. own: the rules that it has for itself, or nil.
local function quiet_until(own)
  local silent = own and S.recoveries > 0 and silence_of(own)
  if not silent then return S.quiet_until end
  return math.max(S.recovered_at + S.shift + silent + 1, S.quiet_until or 0)
end
-- The most starts that long windows may have lost between the last start and the recovery.
local function charge_after(rules, last)
  local charge, gap = 0, S.recovered_at - last
  for _, rule in ipairs(rules) do
    if rule.is_long then charge = math.max(charge, math.min(rule.limit, math.ceil(rule.limit * gap / rule.window))) end
  end
  return charge
end
`
