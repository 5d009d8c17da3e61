/** The settle script of ordered queues: claims of one shard end. */

import { orderedJobs } from '../lua/ordered-lua.js'
import { shardScript } from '../lua/prelude.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { settleItems } from './settle-items-lua.js'
import { orderedRetention } from './trim-lua.js'

/**
 * KEYS: those of one shard; of a queue with `maxRunning` then those of all its shards.
 * ARGV: as those of the settle script of plain queues; what is completed is kept in none, and no run.
 * Returns one letter per item: o ok, l lost, g gone. Refuses `unknown`, and `moved` where the shard is closed.
 */
const text = `
local closed = call('HMGET', META, 'kind', 'closed', 'limited', 'seenAt')
if not closed[1] then return redis.error_reply('MILLRACE unknown') end
if closed[2] then return redis.error_reply('MILLRACE moved') end
if ${isSetBack('closed[4]')} then turn_back(closed[4]) end
limits(closed[3])
local claims, besides = call('HMGET', CLAIMS, unpack(ids)), call('HMGET', BESIDE, unpack(ids))
local current, has_beside = {}, {}
for i, id in ipairs(ids) do current[id], has_beside[id] = claims[i], besides[i] end
local processed, settled = 0, {}
local function settle(n, id, kind)
  local a, b, c, d = ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6]
  local j = job(id)
  if not j then
    local claim = call('HGET', CLAIMS, id)
    pass_over(id, read_claim(claim).seq, claim)
    return 'g'
  end
  settled[#settled + 1] = id
  if kind == 'c' or kind == 'k' then
    processed = processed + 1
    finish(j)
  elseif kind == 't' then fail_claim(j, tonumber(a), b == '1', given(c), given(d))
  elseif kind == 'r' then
    if has(j.claim.flags, CANCEL) then finish(j)
    else
      if d ~= '' then call('HSET', NOTES, 'e' .. id, given(d)) end
      if tonumber(a) == 0 then put_back(j, j.suspect) else schedule(j, tonumber(a)) end
    end
    if b ~= '' then lanes.hold_back(b == 'group' and j.group ~= '' and j.group or nil, now + tonumber(c)) end
  elseif kind == 'b' then bury(j, given(b), given(a))
  else finish(j) end
end

-- Most jobs complete without a trace, and nothing has come in meanwhile: they leave all together.
local answers, traceless, renewed, shared = {}, {}, {}, {}
local left = {}
know_form()
for i, id in ipairs(ids) do
  local n, claim = items[i], current[id]
  if not claim or sub(claim, 1, 7) ~= fence_bytes(ARGV[n + 1]) then
    answers[i] = (claim or (not left[id] and call('HEXISTS', JOBS, id) == 1)) and 'l' or 'g'
  else
    current[id] = nil
    answers[i] = 'o'
    local flags = byte(claim, 14) - 64
    if ARGV[n + 2] == 'c' and flags % OWNLEASE < HASPAST and flags < HASGROUP and not has_beside[id] then
      left[id] = true
      traceless[#traceless + 1] = id
      if flags >= OWNLEASE then renewed[#renewed + 1] = id else
        local bytes = fence_bytes(ARGV[n + 1])
        shared[bytes] = (shared[bytes] or 0) + 1
      end
    else answers[i] = settle(n, id, ARGV[n + 2]) or 'o' end
  end
end
many('ZREM', LEASES, renewed)
for bytes, count in pairs(shared) do leave_lease(bytes, count) end
many('HDEL', CLAIMS, traceless)
many('HDEL', JOBS, traceless)
many('HDEL', INHAND, traceless)
processed = processed + #traceless
if processed > 0 then call('HINCRBY', META, 'processed', processed) end
if #traceless + #settled > 0 then
  trim()
  -- Room for suspects too, of which nobody was told.
  local calls = (EXCLUSIVE or limits().limited) and lanes.has_freed()
  for _, id in ipairs(settled) do
    if calls then break end
    calls = is_calling_id(id)
  end
  if calls then ring_unpaused() end
  tell_ends()
end
return table.concat(answers)
`

export const settleOrderedScript = shardScript(
  'settle-ordered',
  'ordered',
  orderedJobs + orderedRetention + setBack + settleItems + text,
  {
    whenFull: true,
  },
)
