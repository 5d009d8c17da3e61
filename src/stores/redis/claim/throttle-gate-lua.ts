/**
 * The gate of a throttled queue in Lua: the throttle of its scope, and whether the scope has more jobs to start. It
 * needs the lanes.
 */

import { refuse } from '../client/redis-script.js'
import { isSetBack } from '../lua/set-back-lua.js'
import { throttle } from '../lua/throttle-lua.js'

/**
 * Finds the keys that come after those of the shards that a claim asks. The fifth ARGV describes them: '' for none, or
 * the scope ('' for none), how many shards the queue has (0 unless all are given), how many shards the queues of the
 * scope have, the version of its members, and by how many ms the jobs may begin after the spread.
 * KEYS after those of the shards asked: those of `keyNames` for all shards of the queue; with a scope the four of its
 * throttle, and meta, listed, ready and lanes of each shard in it.
 */
const behind = `
local SCOPE, ASKED = false, #KEYS / SIZE
local peers_from, peers, members, late_ms = 0, 0, nil, 0
SIBLINGS = 0
if ARGV[5] ~= '' then
  local scope, siblings, count, version, late = string.match(ARGV[5], '^(%S*) (%d+) (%d+) (%d+) (%d+)$')
  SIBLINGS, peers, members, late_ms = tonumber(siblings), tonumber(count), version, tonumber(late)
  if scope ~= '' then SCOPE = scope end
  ASKED = (#KEYS - (SCOPE and 4 + peers * 4 or 0)) / SIZE - SIBLINGS
  SIBLINGS_FROM = ASKED
  peers_from = (ASKED + SIBLINGS) * SIZE + 4
end
`

const gated = String.raw`
local gate = (function()
local gate = {}
local RULES, STARTS, COUNTERS, IDLE
${throttle}
-- may_grant: whether the claim may take a job that needs a permit.
function gate.open(may_grant)
  RULES, STARTS, COUNTERS, IDLE = unpack(KEYS, peers_from - 3, peers_from)
  local known = may_grant and throttle_open() or throttle_read()
  if known ~= members then ${refuse('limited')} end
end
-- Whether any job of this group in the scope could start, or of all groups if it is nil.
local function has_more(group)
  for p = peers_from + 1, peers_from + peers * 4, 4 do
    local meta, listed, ready, lanes = unpack(KEYS, p, p + 3)
    local form = call('HMGET', meta, 'paused', 'resharding', 'stale')
    if form[3] and form[1] ~= '1' and not form[2] then
      if (not group or group == '') and call('LLEN', listed) - form[3] + call('ZCARD', ready) > 0 then return true end
      if not group and call('EXISTS', lanes) == 1 then return true end
      if group and group ~= '' and #call('ZRANGE', lanes, '[' .. group .. '\0', '(' .. group .. '\1', 'BYLEX', 'LIMIT', 0, 1) > 0 then return true end
    end
  end
  return false
end
-- Without a group the functions are for all jobs together.
local function subject_of(group) return group and throttle_subject(group) or '' end
function gate.recover() throttle_recover() end
function gate.permits(group) return throttle_permits(subject_of(group)) end
function gate.started(group, count) throttle_started(subject_of(group), count, has_more(group), late_ms) end
function gate.rests()
  if not has_more() then throttle_rests('') end
end
function gate.trim() throttle_trim(100) end
return gate
end)()
`

/** A queue without a throttle has an empty gate. */
const ungated = `
local gate = {}
`

/**
 * Follows either gate, and runs before the first write. Checks that all shards asked exist and that the call has all
 * keys that they need. Reads `fields` of each shard's meta in the same trip; in a form they come after three others.
 */
const begin = (fields: readonly string[]) => `
function gate.read_form() return call('HMGET', META, 'kind', 'limited', 'seenAt', ${fields.map((field) => `'${field}'`).join(', ')}) end
gate.forms = {}
-- The form of the current shard, read after turn_back if its clock was set back. What the check read stays valid until
-- the shard's turn, because only its turn writes to its meta. A shard with a second turn is read again.
function gate.form()
  local form = gate.forms[META] or gate.read_form()
  gate.forms[META] = nil
  if ${isSetBack('form[3]')} then
    turn_back(form[3])
    if SCOPE then gate.recover() end
    form = gate.read_form()
  end
  return form
end
do
local may_grant = false
for n = 0, ASKED - 1 do
  at(n)
  local form = gate.read_form()
  gate.forms[META] = form
  if not form[1] then ${refuse('unknown')} end
  if form[2] then
    local by = call('HMGET', META, 'scope', 'maxRunning', 'heldUntil', 'shutUntil')
    -- A throttle must learn that the clock was set back, even if everything is shut.
    may_grant = may_grant or math.max(by[3] or 0, by[4] or 0) <= now or ${isSetBack('form[3]')}
    if (by[1] and by[1] ~= SCOPE) or (by[2] and form[1] == 'ordered' and SIBLINGS == 0) then ${refuse('limited')} end
  end
end
if SCOPE then
  local refused = gate.open(may_grant)
  if refused then return refused end
end
end
`

export const gate = (isGated: boolean, fields: readonly string[]) =>
  behind + (isGated ? gated : ungated) + begin(fields)

/** The end of a claim. */
export const heads = `
if SCOPE then gate.trim() end
if wants_heads then
  for n = 0, ASKED - 1 do
    at(n)
    know_form()
    local oldest = oldest_ready(unpack(call('HMGET', META, 'stale', 'waited')))
    heads[n + 1] = oldest and age_of(oldest) or -1
  end
end
`
