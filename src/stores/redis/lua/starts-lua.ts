/**
 * The log of starts, in Lua: a translation of `rules/throttle/start-log` over a set that is never read whole. Scripts
 * read it from its oldest side as far as starts have left the longest window, and from its newest side as far as the
 * limit of a shorter window.
 */

/** Needs `S`, the scope. A counter has a `subject`, its `rules`, `n` starts, and a `charge` that is not in the set yet. */
export const starts = String.raw`
local function entry_of(subject, at, count) return subject .. '\0' .. pack('>I6I4', at, count) end
local function first_of(subject) return '[' .. subject .. '\0' end
local function end_of(subject) return '(' .. subject .. '\1' end
-- Forgets what was read of the set.
local function sides(t)
  t.oldest, t.newest, t.gone, t.permits = { step = 4 }, { step = 4, is_newest = true }, nil, nil
  if t.charge > 0 then t.newest[1] = { at = S.recovered_at, count = t.charge } end
end
local function read_on(t, side, most)
  local count = math.min(side.step, most)
  local from, to = side.beyond or first_of(t.subject), end_of(t.subject)
  local members
  if side.is_newest then
    from, to = side.beyond or to, first_of(t.subject)
    members = call('ZRANGE', STARTS, from, to, 'BYLEX', 'REV', 'LIMIT', 0, count)
  else
    members = call('ZRANGE', STARTS, from, to, 'BYLEX', 'LIMIT', 0, count)
  end
  for i = 1, #members do
    local at, starts = unpackn('>I6I4', members[i], #t.subject + 2)
    side[#side + 1] = { at = at, count = starts }
  end
  side.is_done = #members < count
  side.beyond = #members > 0 and '(' .. members[#members]
  side.step = math.min(side.step * 4, 1000)
  if side.is_done and not side.is_newest and t.charge > 0 then side[#side + 1] = { at = S.recovered_at, count = t.charge } end
end
-- The ith entry of a side, counted from 1. The counter must have a start. most: how many entries are enough from here.
local function entry(t, side, i, most)
  while i > #side and not side.is_done do read_on(t, side, most or 1000) end
  return side[i]
end
-- The number of starts that have left all windows.
local function gone(t)
  if t.gone then return t.gone end
  local count, i, edge = 0, 1, S.at - t.rules.longest
  local e = t.n > 0 and entry(t, t.oldest, 1)
  while e and e.at < edge do
    count, i = count + e.count, i + 1
    e = entry(t, t.oldest, i)
  end
  t.gone = count
  return count
end
-- As sight, but read from the newest side, until the limit is reached or older starts make no difference to the grid.
local function sight_back(rule, slot, t)
  local edge, hits, later, i = S.at - rule.window, 0, 0, 1
  local e = entry(t, t.newest, 1, rule.limit)
  while e do
    local opens_at = e.at + rule.window + 1
    if e.at >= edge then hits = hits + e.count
    elseif t.n < rule.limit or not rule.is_even or not slot or opens_at * 1000 <= slot + rule.spacing then return hits end
    later = later + e.count
    if later >= rule.limit then return hits, opens_at end
    i = i + 1
    e = entry(t, t.newest, i, rule.limit - later)
  end
  return hits
end
-- The starts in the window of a rule, exact if they are fewer than the limit, otherwise the limit or more. Then the
-- instant from which the starts of the log are fewer than the limit; nil if they always were, or if it makes no
-- difference.
local function sight(rule, slot, t)
  if t.n == 0 then return 0 end
  if rule.window < t.rules.longest or t.n >= 2 * rule.limit then return sight_back(rule, slot, t) end
  local hits = t.n - gone(t)
  if t.n < rule.limit then return hits end
  local later, i = t.n, 1
  local e = entry(t, t.oldest, 1, later - rule.limit + 1)
  while later - e.count >= rule.limit do
    later, i = later - e.count, i + 1
    e = entry(t, t.oldest, i, later - rule.limit + 1)
  end
  return hits, e.at + rule.window + 1
end
-- The instant from which fewer than most starts of the log are in the window. Nil if the log has fewer.
local function fewer_from(most, rule, t)
  local later, i = 0, 1
  local e = entry(t, t.newest, 1, most)
  while e do
    later = later + e.count
    if later >= most then return e.at + rule.window + 1 end
    i = i + 1
    e = entry(t, t.newest, i, most - later)
  end
end
-- The exact number of starts in the window of a rule.
local function hits_of(rule, t)
  if t.n == 0 then return 0 end
  if rule.window == t.rules.longest then return t.n - gone(t) end
  local edge, hits, i = S.at - rule.window, 0, 1
  local e = entry(t, t.newest, 1)
  while e and e.at >= edge do
    hits, i = hits + e.count, i + 1
    e = entry(t, t.newest, i)
  end
  return hits
end
-- Removes the entry of an instant and returns its number of starts.
local function take_entry(subject, at)
  local from = subject .. '\0'
  local member = call('ZRANGE', STARTS, '[' .. from .. pack('>I6', at), '(' .. from .. pack('>I6', at + 1), 'BYLEX')[1]
  call('ZREM', STARTS, member)
  return (unpackn('>I4', member, #from + 7))
end
-- Logs the charge and count more starts, which may be late, and removes starts that have left all windows.
local function log_starts(t, count, late_ms)
  local subject, args = t.subject, {}
  local start_at = math.max(S.at + late_ms, t.last or 0)
  if t.is_idle then call('ZREMRANGEBYLEX', STARTS, first_of(subject), end_of(subject))
  elseif count > 0 and gone(t) > 0 then
    call('ZREMRANGEBYLEX', STARTS, first_of(subject), '(' .. subject .. '\0' .. pack('>I6', S.at - t.rules.longest))
    t.n = t.n - t.gone
  end
  t.n = t.n + count
  -- Each instant has one entry.
  if count > 0 and t.last == start_at then count = count + (t.charge > 0 and t.charge or take_entry(subject, start_at))
  elseif t.charge > 0 then args = { 0, entry_of(subject, S.recovered_at, t.charge) } end
  if count > 0 then
    args[#args + 1], args[#args + 2] = 0, entry_of(subject, start_at, count)
    t.last = start_at
  end
  if #args > 0 then call('ZADD', STARTS, unpack(args)) end
  t.charge, t.is_idle = 0, false
  sides(t)
end
`
