/** The shard of an ordered queue for the fsck scripts: payloads, those in hand, and the morgue. */

/** To be inserted before the sums: counts that must be equal. */
export const orderedSums = `
local ORDERED = true
if call('ZCARD', PAYLOADS) ~= call('HLEN', BODIES) then say('uneven', 'payloads', '') end
if call('ZCARD', DEAD_PAYLOADS) ~= call('HLEN', DEAD_BODIES) then say('uneven', 'dead-payloads', '') end
local many = count_many()
if many and many ~= tonumber(call('HGET', META, 'many') or 0) then say('uncounted', 'payloads', '') end
if call('ZCARD', DEAD) ~= call('HLEN', MORGUE) then say('uneven', 'dead', '') end
`

/** To be inserted between the checks for all queues and their steps. */
export const orderedChecks = String.raw`
sets.payloads, sets['dead-payloads'] = true, true
local is_claimed = function(id) return call('HEXISTS', CLAIMS, id) == 1 end
local function id_in(text) return string.match(text, '^%Z+') or '' end
local function check_listed(bodies, owner)
  return function(member, score)
    local id = id_in(member)
    if #member ~= #id + 41 then return say('unreadable', name, id) end
    if score ~= '0' then say('scored', name, id) end
    local digest = sub(member, #id + 20)
    local value = call('HGET', bodies, id .. '\0' .. digest)
    if not value then return say('bodiless', name, id) end
    if member_of(id, digest, value) ~= member then say('misplaced', name, id) end
    if call('HEXISTS', owner, id) == 0 then say('jobless', name, id)
    elseif owner == JOBS and is_claimed(id) and call('HEXISTS', SUCCESSORS, id) == 0 then say('jobless', name, id) end
  end
end
local function check_body(set, other)
  return function(field, value)
    local id = id_in(field)
    if #field ~= #id + 23 or #value < 15 then return say('unreadable', name, id) end
    if not call('ZSCORE', set, member_of(id, sub(field, #id + 2), value)) then say('unlisted', other, id) end
  end
end
for name, check in pairs({
  payloads = check_listed(BODIES, JOBS),
  ['dead-payloads'] = check_listed(DEAD_BODIES, MORGUE),
  bodies = check_body(PAYLOADS, 'payloads'),
  ['dead-bodies'] = check_body(DEAD_PAYLOADS, 'dead-payloads'),
  transit = function() end,
  ['claimed-payloads'] = function(id, packed)
    if #packed < 30 then say('unreadable', name, id) elseif not is_claimed(id) then say('jobless', name, id) end
  end,
  successors = function(id)
    if not is_claimed(id) or count_in(PAYLOADS, id) == 0 then say('jobless', name, id) end
  end,
  morgue = function(id, header)
    if #header < 30 or not string.match(header, '^%Z*%z%Z*%z', 25) then return say('unreadable', name, id) end
    if not call('ZSCORE', DEAD, end_place(read_header(id, header))) then say('placeless', 'dead', id) end
    if count_in(DEAD_PAYLOADS, id) == 0 then say('payloadless', 'dead-payloads', id) end
  end,
  dead = function(member, score)
    local id = sub(member, 13)
    if score ~= '0' then say('scored', name, id) end
    local header = call('HGET', MORGUE, id)
    if not header then say('jobless', name, id)
    elseif #header >= 30 and end_place(read_header(id, header)) ~= member then say('misplaced', name, id) end
  end,
  jobs = function(id)
    check_job(id)
    local rec = call('HGET', JOBS, id)
    if #rec >= 16 and own_at(rec) then
      if call('HEXISTS', CLAIMED_PAYLOADS, id) == 1 then say('misplaced', 'claimed-payloads', id) end
      if not is_claimed(id) and count_in(PAYLOADS, id) > 0 then say('misplaced', 'payloads', id) end
    elseif is_claimed(id) then
      if call('HEXISTS', CLAIMED_PAYLOADS, id) == 0 then say('payloadless', 'claimed-payloads', id) end
    elseif count_in(PAYLOADS, id) == 0 then say('payloadless', 'payloads', id) end
  end,
}) do own_checks[name] = check end
sets.dead = true
`
