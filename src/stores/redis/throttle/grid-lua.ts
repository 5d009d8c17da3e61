/**
 * The rules of a throttle and their grids, in Lua: a translation of `rules/throttle/grid`. Places on the grid are on
 * the clock of the log.
 */

/**
 * A rule also has what follows from it: whether its starts are evenly spread, and their distance in µs. Rules also have
 * the time for which a start counts at most (`longest`), and whether a window is too long for a silence.
 */
export const grids = `
local function rules_in(text)
  local rules = { longest = 0, is_long = false }
  for part in string.gmatch(text, '%S+') do
    local limit, window, spread, moderate, buffer = string.match(part, '^(%d+)/(%d+)%+?(%d*)(m?)e?(%d*)$')
    -- A start counts for the window and the spread. What happens after a restart depends on the window alone.
    local rule = { limit = tonumber(limit), window = tonumber(window) + (tonumber(spread) or 0), spread = tonumber(spread), buffer = tonumber(buffer) }
    rule.is_long = tonumber(window) > LONGEST_SILENCE
    rule.is_even = moderate == 'm' and rule.limit > 1
    rule.spacing = math.max(1, math.floor(rule.window * 1000 / rule.limit))
    rules[#rules + 1] = rule
    rules.longest = math.max(rules.longest, rule.window)
    rules.is_long = rules.is_long or rule.is_long
  end
  return rules
end
-- How many may start at an instant and, if none, after how many ms one may. catches_up_at returns the instant from
-- which more starts than the buffer are unused.
local function permits_of(rule, slot, credit, hits, opens_at, at, catches_up_at)
  local room = rule.limit - hits
  if not rule.is_even then
    if room > 0 then return room, 0 end
    return 0, opens_at - at
  end
  local may_catch_up = rule.buffer and credit >= rule.limit
  if may_catch_up and room > rule.buffer then return room - rule.buffer, 0 end
  local left = slot and slot + rule.spacing - at * 1000 or 0
  if room > 0 and left <= 0 then return 1, 0 end
  local evenly = math.ceil(left / 1000)
  if opens_at then evenly = math.max(evenly, opens_at - at) end
  return 0, may_catch_up and math.min(evenly, catches_up_at() - at) or evenly
end
-- The place of the last start and the credit after count more starts. opens_at is the instant from before these starts.
local function grid_after(rule, slot, credit, opens_at, count, at)
  if not rule.is_even then return nil, 0 end
  local before, now_us = credit, at * 1000
  credit = math.min(rule.limit, credit + count)
  -- Before this start there was nothing to start: it is not late, and the grid begins with it.
  if not slot or before == 0 then return now_us, credit end
  local due = slot + rule.spacing
  if opens_at then due = math.max(due, opens_at * 1000) end
  -- The start catches up: the grid does not move.
  if now_us < due then return slot, credit end
  return due + math.floor((now_us - due) / rule.spacing) * rule.spacing, credit
end
local function slot_at_rest(rule, last)
  return rule.is_even and last * 1000 or nil
end
`
