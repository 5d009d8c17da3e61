/**
 * The jobs that a step of administration changes, in the order in which it takes them. Needs `tied` and the ready jobs.
 */
export const selection = String.raw`
local verb, states, most, rings = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local reason = ARGV[5] ~= '' and sub(ARGV[5], 2) or nil

local function state_of(j)
  if j.claim then return 'u' end
  if j.state == 'l' or j.state == 'r' or j.state == 'x' then return 'w' end
  return j.state
end
local function by_claim()
  local claims = call('HGETALL', CLAIMS)
  local running = {}
  for i = 1, #claims, 2 do
    local claim = read_claim(claims[i + 1])
    running[#running + 1] = { id = claims[i], fence = claim.fence, seq = claim.seq }
  end
  table.sort(running, function(a, b)
    if a.fence ~= b.fence then return a.fence < b.fence end
    return tied(a, b)
  end)
  return running
end
local function all_in(state, count)
  local ids = {}
  if state == 'w' then
    sweep_list(10)
    for _, one in ipairs(first_ready(count, stale_at_least(unpack(call('HMGET', META, 'stale', 'lost'))))) do ids[#ids + 1] = one.id end
    if #ids < count then
      for _, member in ipairs(call('ZRANGE', LANES, 0, count - #ids - 1)) do ids[#ids + 1] = sub(member, find(member, '\0', 1, true) + 16) end
    end
    if #ids < count then
      for _, member in ipairs(call('ZRANGE', SUSPECTS, 0, count - #ids - 1)) do ids[#ids + 1] = sub(member, 16) end
    end
  elseif state == 's' then
    for _, member in ipairs(call('ZRANGE', SCHEDULED, 0, count - 1)) do ids[#ids + 1] = sub(member, 14) end
  elseif state == 'd' then
    for _, member in ipairs(call('ZRANGE', DEAD, 0, count - 1, 'REV')) do ids[#ids + 1] = sub(member, 13) end
  elseif state == 'u' then
    for _, one in ipairs(by_claim()) do ids[#ids + 1] = one.id end
  end
  return ids
end
-- Whether the job runs and needs no change: it is being cancelled already, or has no successor to run early.
local function is_asked(j)
  if not j.claim then return false end
  if verb == 'cancel' then return has(j.claim.flags, CANCEL) end
  if verb ~= 'run' then return false end
  local stamp, _, is_ready = successor_of(j.id)
  return not stamp or is_ready or math.floor(stamp / 1000) <= now
end
local function parts_of(j)
  local state = find(states, state_of(j), 1, true)
  if j.claim then return { state, j.claim.fence } end
  if state_of(j) == 's' then return { state, j.stamp } end
  return { state, j.suspect and 1 or 0, -j.priority, LIFO and -j.stamp or j.stamp }
end
-- At least count failed jobs in the wanted states, if there are as many. The first ones may all be in other states.
local function failed_in(count)
  local found, seen = {}, 0
  repeat
    local members = call('ZRANGE', RETRIES, seen, seen + 999)
    for _, member in ipairs(members) do
      local j = job(sub(member, 10))
      if find(states, state_of(j), 1, true) and not is_asked(j) then
        found[#found + 1] = { id = j.id, seq = j.seq, parts = parts_of(j) }
      end
    end
    seen = seen + #members
  until #found >= count or #members == 0
  table.sort(found, function(a, b)
    for i = 1, math.min(#a.parts, #b.parts) do
      if a.parts[i] ~= b.parts[i] then return a.parts[i] < b.parts[i] end
    end
    return tied(a, b)
  end)
  local ids = {}
  for i, one in ipairs(found) do ids[i] = one.id end
  return ids
end
-- The jobs that ARGV names from this position on: ids, each once, or all, or failed.
local function selected_from(from)
  local selected = {}
  if ARGV[from] == 'ids' then
    local seen = {}
    for i = from + 1, #ARGV do
      if not seen[ARGV[i]] then
        seen[ARGV[i]] = true
        selected[#selected + 1] = ARGV[i]
      end
    end
  elseif ARGV[from] == 'failed' then selected = failed_in(2000)
  else
    for i = 1, #states do
      for _, id in ipairs(all_in(sub(states, i, i), most + 1)) do selected[#selected + 1] = id end
      if #selected > most then break end
    end
  end
  return selected
end
`
