/**
 * The throttle of a scope, in Lua: the starts in it, for each group if it counts by group, and how many more may start.
 * A translation of `rules/throttle/` and of the memory store's throttle; tests compare the two.
 *
 * It needs the prelude, and four keys as locals before it:
 * RULES     hash   `by`, `rules` (their texts, separated by spaces), `eachGroup` (likewise, for each group beside rules
 *                  for all jobs), `version` of the rules, from 1; for each group that
 *                  has rules of its own `rate ` and its name, with their texts; `own`, which sums these up, if there are
 *                  any; for each queue `queue ` and its name; `members`, the version of the members; for the recovery `run`, `recoveries`,
 *                  `recoveredAt`, `shift`, `lastAt`, `quietUntil`
 * STARTS    zset   all scores 0: subject, NUL, instant (6 bytes), starts (4)
 * COUNTERS  hash   subject → starts in the log (4 bytes), instant of the last one (6), `recoveries` (4) and `version`
 *                  (4) at the time of writing; for each rule the place on the grid in µs (7; 0: none) and the credit (3)
 * IDLE      zset   subjects by the instant of their last start
 *
 * A subject is a group, or `''`, as `rules/throttle/throttle-subjects` has it; it contains no NUL. Instants in RULES are on the server's clock. The others are on the
 * clock of the log, on which no grant is in the future: add `shift` to get the server's time. So nothing is rewritten
 * when the server's clock is set back.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import { longestSilenceMs } from '../../rules/throttle/throttle-recovery.js'
import { starts } from './starts-lua.js'

/**
 * A rule also has what follows from it: whether its starts are evenly spread, and their distance in µs. Rules also have
 * the time for which a start counts at most (`longest`), and whether a window is too long for a silence.
 */
const grids = `
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

/** The recovery of a throttle: a translation of `rules/throttle/throttle-recovery`. */
const silence = `
local LONGEST_SILENCE = ${longestSilenceMs}
`

/** Needs `S`, the scope, whose `server` is the current run of the server. */
const recovery = `
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
  local is_set_back = S.last_at and now < S.last_at - ${toleratedStepMs}
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

const counters = `
-- The group of a subject; nil for all jobs together.
local function group_in(subject)
  if S.each then return subject ~= '' and string.sub(subject, 2) or nil end
  return S.by == 'group' and subject or nil
end
-- The rules that a subject has for itself, or nil. As long as none has any, nobody looks.
local function own_of(subject)
  local group = S.own and group_in(subject)
  if not group then return nil end
  local own = S.rates[group]
  if own == nil then
    local text = call('HGET', RULES, 'rate ' .. group)
    own = text and rules_in(text)
    S.rates[group] = own
  end
  return own or nil
end
-- Reads a counter. One without a start in the longest window is treated as absent.
local function read_counter(subject)
  local rules = own_of(subject) or (subject ~= '' and S.each) or S.rules
  local t = { subject = subject, rules = rules, n = 0, charge = 0, slots = {}, credits = {} }
  for i = 1, #rules do t.credits[i] = 0 end
  local text = call('HGET', COUNTERS, subject)
  if not text then return t end
  local n, last, recoveries, version = unpackn('>I4I6I4I4', text)
  local is_older = recoveries ~= S.recoveries
  local charge = is_older and charge_after(rules, last) or 0
  t.is_written, t.is_idle = true, (charge > 0 and S.recovered_at or last) < S.at - rules.longest or (is_older and last < S.recovered_at - rules.longest)
  if t.is_idle then return t end
  t.n, t.last, t.charge, t.recoveries = n + charge, charge > 0 and S.recovered_at or last, charge, recoveries
  for i, rule in ipairs(rules) do
    if version ~= S.version then t.slots[i] = slot_at_rest(rule, last)
    else
      local slot, credit = unpackn('>I7I3', text, 9 + 10 * i)
      t.slots[i], t.credits[i] = slot > 0 and slot or nil, credit
    end
  end
  return t
end
local function counter_of(subject)
  local t = S.counters[subject]
  if not t then
    t = read_counter(subject)
    sides(t)
    S.counters[subject] = t
  end
  return t
end
local function write_counter(t)
  local parts = { pack('>I4I6I4I4', t.n, t.last, S.recoveries, S.version) }
  for i = 1, #t.rules do parts[i + 1] = pack('>I7I3', t.slots[i] or 0, t.credits[i]) end
  call('HSET', COUNTERS, t.subject, table.concat(parts))
  call('ZADD', IDLE, t.last, t.subject)
  t.is_written, t.recoveries = true, S.recoveries
end
local function forget_subjects(subjects)
  for _, subject in ipairs(subjects) do
    call('ZREMRANGEBYLEX', STARTS, first_of(subject), end_of(subject))
    S.counters[subject] = nil
  end
  many('HDEL', COUNTERS, subjects)
  many('ZREM', IDLE, subjects)
end
local function write_anew()
  local counters, starts, idle = call('HGETALL', COUNTERS), {}, {}
  for i, entry in ipairs(call('ZRANGE', STARTS, 0, -1)) do starts[i * 2 - 1], starts[i * 2] = 0, entry end
  local last = call('ZRANGE', IDLE, 0, -1, 'WITHSCORES')
  for i = 1, #last, 2 do idle[i], idle[i + 1] = last[i + 1], last[i] end
  call('DEL', COUNTERS, STARTS, IDLE)
  many('HSET', COUNTERS, counters)
  many('ZADD', STARTS, starts)
  many('ZADD', IDLE, idle)
end
local function permitted(t)
  if t.permits then return t.permits, t.for_ms end
  local least, most_ms = math.huge, 0
  t.opens = {}
  for i, rule in ipairs(t.rules) do
    local hits, opens_at = sight(rule, t.slots[i], t)
    local function catches_up_at() return fewer_from(rule.limit - rule.buffer, rule, t) end
    local permits, for_ms = permits_of(rule, t.slots[i], t.credits[i], hits, opens_at, S.at, catches_up_at)
    t.opens[i], least, most_ms = opens_at, math.min(least, permits), math.max(most_ms, for_ms)
  end
  t.permits, t.for_ms = least, most_ms
  return least, most_ms
end
local function rest(t)
  for i, rule in ipairs(t.rules) do t.slots[i], t.credits[i] = slot_at_rest(rule, t.last), 0 end
end
local function is_at_rest(t)
  for i, rule in ipairs(t.rules) do
    if t.slots[i] ~= slot_at_rest(rule, t.last) or t.credits[i] > 0 then return false end
  end
  return true
end
-- Subjects whose last start is before this instant are idle. A counter that was written before a recovery, and was not
-- idle at the recovery, may have been charged then.
local function idle_edge()
  local is_long = S.longest > LONGEST_SILENCE
  local is_charged = is_long and S.recoveries > 0 and S.recovered_at >= S.at - S.longest
  return (is_charged and S.recovered_at or S.at) - S.longest
end
`

/** The most starts that are written anew to make their table small. */
const mostWrittenAnew = 10_000

const calls = `
-- Reads the stored scope. Returns the version of its members, or nil if nothing is stored. To change to the keys of
-- another scope and back costs nothing.
function throttle_read()
  S = scopes[RULES]
  if not S then
    local known = call('HMGET', RULES, 'by', 'rules', 'version', 'run', 'recoveries', 'recoveredAt', 'shift', 'lastAt', 'quietUntil', 'members', 'own', 'eachGroup')
    if not known[2] then return nil end
    local function number(i) return known[i] and tonumber(known[i]) end
    S = { by = known[1], version = number(3) or 0, run = known[4], recoveries = number(5) or 0, shift = number(7) or 0,
      last_at = number(8), quiet_until = number(9), members = known[10], own = known[11], rates = {} }
    S.rules, S.each = rules_in(known[2]), known[12] and rules_in(known[12])
    -- How long any start counts.
    S.longest = math.max(S.rules.longest, S.each and S.each.longest or 0, S.own and tonumber(string.match(S.own, '^%d+ (%d+)')) or 0)
    S.recovered_at = (number(6) or now) - S.shift
    set_instant()
    scopes[RULES] = S
  end
  BY_GROUP = S.by == 'group' or S.each
  return S.members
end
-- As throttle_read, and asks for the run of the server. This comes before the first write, because the user may lack
-- the right. The first call for permits writes what follows: a claim that has nothing to take need not notice a
-- restart.
function throttle_open()
  local members = throttle_read()
  if S then S.server = S.server or string.match(call('INFO', 'server'), 'run_id:(%x+)') end
  return members
end
-- Follows a restart of the server, which may have lost starts, or a clock that was set back, and writes the result.
function throttle_recover() recover() end
-- How many may start and, if none, after how many ms one may.
function throttle_permits(subject)
  recover()
  local permits, for_ms = permitted(counter_of(subject))
  local at = S.at + S.shift
  local quiet = math.max(0, (quiet_until(own_of(subject)) or at) - at)
  if quiet > 0 then return 0, math.max(quiet, for_ms) + at - now end
  if permits > 0 then return permits, 0 end
  return 0, for_ms + at - now
end
-- Counts jobs as started, at least one, which may begin late_ms after the spread. has_more: whether any job is left that
-- could start.
function throttle_started(subject, count, has_more, late_ms)
  local t = counter_of(subject)
  if has_more then
    permitted(t)
    for i, rule in ipairs(t.rules) do
      t.slots[i], t.credits[i] = grid_after(rule, t.slots[i], t.credits[i], t.opens[i], count, S.at)
    end
  end
  log_starts(t, count, late_ms)
  if not has_more then rest(t) end
  write_counter(t)
  local at = S.at + S.shift
  if S.last_at ~= at then call('HSET', RULES, 'lastAt', at) end
  S.last_at = at
end
-- Records that no job is left that could start.
function throttle_rests(subject)
  local t = counter_of(subject)
  if not t.is_written then return end
  if t.is_idle then return forget_subjects({ subject }) end
  if t.recoveries == S.recoveries and is_at_rest(t) then return end
  log_starts(t, 0, 0)
  rest(t)
  write_counter(t)
end
-- Forgets at most this many idle subjects. Redis shrinks a table only while members are removed: if few of many are
-- left, they are written anew.
function throttle_trim(most)
  local idle = call('ZRANGE', IDLE, '-inf', idle_edge() - 1, 'BYSCORE', 'LIMIT', 0, most)
  if #idle == 0 then return end
  forget_subjects(idle)
  local left = call('ZCARD', IDLE)
  if left > 0 and left < #idle and #idle >= 50 and call('ZCARD', STARTS) <= ${mostWrittenAnew} then write_anew() end
end
-- The starts in the window of each rule that ends now.
function throttle_hits(subject)
  local t, hits = counter_of(subject), {}
  for i, rule in ipairs(t.rules) do hits[i] = hits_of(rule, t) end
  return hits
end
-- The number of subjects with a start in some window.
function throttle_subjects() return call('ZCOUNT', IDLE, idle_edge(), '+inf') end
-- The number of groups among them.
function throttle_groups()
  local all = S.each and call('ZSCORE', IDLE, '')
  return throttle_subjects() - (all and tonumber(all) >= idle_edge() and 1 or 0)
end
function throttle_subject(group) return S.each and '=' .. group or group end
-- The text of the rules that a group has for itself, or false.
function throttle_rate_of(group) return S.own and call('HGET', RULES, 'rate ' .. group) end
-- subject: given if it is that of a group.
function throttle_quiet(subject)
  return math.max(0, (quiet_until(subject and own_of(subject)) or now) - now)
end
-- After how many ms one more may start. Does not ask whether the server has restarted.
function throttle_wait(subject)
  local permits, for_ms = permitted(counter_of(subject))
  return math.max(throttle_quiet(subject), permits > 0 and 0 or for_ms + S.at + S.shift - now)
end
-- Sets other rules in this field, rules or eachGroup. The starts stay; the grids begin anew.
function throttle_set(field, rules_text)
  call('HINCRBY', RULES, 'version', 1)
  call('HSET', RULES, field, rules_text)
end
-- Sets the rules of one group; '': those of all groups.
function throttle_rate(group, rules_text)
  local field = 'rate ' .. group
  local had, has = call('HEXISTS', RULES, field) == 1, rules_text ~= ''
  local groups, longest, least = string.match(call('HGET', RULES, 'own') or '0 0', '^(%d+) (%d+) ?(%d*)$')
  groups, longest, least = groups + (has and 1 or 0) - (had and 1 or 0), tonumber(longest), tonumber(least)
  if has then
    local rules = rules_in(rules_text)
    longest = math.max(longest, rules.longest)
    for _, rule in ipairs(rules) do least = math.min(least or math.huge, rule.spread or math.huge) end
    call('HSET', RULES, field, rules_text)
  else call('HDEL', RULES, field) end
  if groups > 0 then call('HSET', RULES, 'own', groups .. ' ' .. longest .. (least and least < math.huge and ' ' .. least or ''))
  else call('HDEL', RULES, 'own') end
  -- No rules have the version 0.
  local subject = call('HEXISTS', RULES, 'eachGroup') == 1 and '=' .. group or group
  local counter = call('HGET', COUNTERS, subject)
  if counter then call('HSET', COUNTERS, subject, string.sub(counter, 1, 14) .. pack('>I4', 0) .. string.sub(counter, 19)) end
end
`

/**
 * Call `throttle_read` or `throttle_open` first, and again after the keys become those of another scope. Afterwards
 * `BY_GROUP` says whether the scope has a count for each group, alone or beside its count of all. `throttle_permits` and
 * `throttle_recover` need `throttle_open`. Only these two, `throttle_started`, `throttle_rests`, `throttle_trim`,
 * `throttle_set` and `throttle_rate` write.
 * After the last two, nothing that was read counts.
 */
export const throttle = `
local BY_GROUP, throttle_read, throttle_open, throttle_recover, throttle_permits, throttle_started, throttle_rests, throttle_trim
local throttle_hits, throttle_subjects, throttle_quiet, throttle_wait, throttle_set, throttle_rate, throttle_rate_of
local throttle_subject, throttle_groups
do
local S
local scopes = {}
${silence}${grids}${recovery}${starts}${counters}${calls}
end
`
