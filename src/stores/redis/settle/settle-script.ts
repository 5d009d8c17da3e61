/** The settle script: claims of one shard end. */

import { beatNotes } from '../lua/beats-lua.js'
import { besideJobs, shardScript } from '../lua/prelude.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { settleItems } from './settle-items-lua.js'
import { retention } from './trim-lua.js'

/**
 * KEYS: those of one shard.
 * ARGV: of each item id, fence, kind, and by kind:
 * c complete · k complete and keep: result as it is stored, ms or '', run · t retry: ms, last (1 or 0), error, reason, run ·
 * r release: ms, hold of (queue, group, or '' for none), ms, error · b bury: error, reason, run · x cancel: reason. Of error and
 * reason '' is none, else '=' stands before it. A run is how many ms ago the handler began, host and pid, with NUL between
 * them, or '' where it is not told.
 * Returns one letter per item: o ok, l lost, g gone. Refuses `unknown`.
 */
const text = `
local form = call('HMGET', META, 'kind', 'limited', 'seenAt')
if not form[1] then return redis.error_reply('MILLRACE unknown') end
if ${isSetBack('form[3]')} then turn_back(form[3]) end
limits(form[2])
local claims = call('HMGET', CLAIMS, unpack(ids))
local current = {}
for i, id in ipairs(ids) do current[id] = claims[i] end
local processed, settled = 0, {}
local function settle(n, id, kind)
  local a, b, c, d, e = ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6], ARGV[n + 7]
  local j = job(id)
  if not j then
    local claim = call('HGET', CLAIMS, id)
    pass_over(id, read_claim(claim).seq, claim)
    return 'g'
  end
  settled[#settled + 1] = id
  if kind == 'c' then
    processed = processed + 1
    j.reason = nil
    finish(j, 'c')
  elseif kind == 'k' then
    processed = processed + 1
    know_run(j, c)
    leave(j)
    j.reason = nil
    call('HDEL', NOTES, 'e' .. id, 'k' .. id)
    enter(j, 'c')
    call('HSET', NOTES, 'r' .. id, a)
    if b ~= '' then call('ZADD', EXPIRY, now + tonumber(b), j.seq .. id) end
  elseif kind == 't' then
    if b == '1' then know_run(j, e) end
    fail_claim(j, tonumber(a), b == '1', given(c), given(d))
  elseif kind == 'r' then
    if has(j.claim.flags, CANCEL) then finish(j, 'x')
    else
      if d ~= '' then call('HSET', NOTES, 'e' .. id, given(d)) end
      if tonumber(a) == 0 then put_back(j, j.suspect) else schedule(j, tonumber(a)) end
    end
    if b ~= '' then lanes.hold_back(b == 'group' and j.group ~= '' and j.group or nil, now + tonumber(c)) end
  elseif kind == 'b' then
    know_run(j, c)
    bury(j, given(b), given(a))
  else
    if not (j.reason and has(j.claim.flags, CANCEL)) then j.reason = given(a) end
    finish(j, 'x')
  end
end

-- Most jobs complete without a trace: they leave all together. Those of a group do not, as it may be full.
local answers, traceless, renewed, shared = {}, {}, {}, {}
local left = {}
know_order()
for i, id in ipairs(ids) do
  local n, claim = items[i], current[id]
  if not claim or sub(claim, 1, 7) ~= fence_bytes(ARGV[n + 1]) then
    answers[i] = (claim or (not left[id] and call('HEXISTS', JOBS, id) == 1)) and 'l' or 'g'
  else
    current[id] = nil
    answers[i] = 'o'
    local flags = byte(claim, 14) - 64
    if ARGV[n + 2] == 'c' and flags % OWNLEASE < HASPAST and flags < HASGROUP then
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
processed = processed + #traceless
if processed > 0 then call('HINCRBY', META, 'processed', processed) end
if #traceless + #settled > 0 then
  trim()
  if limits().limited then STOPPED = call('HGET', META, 'paused') == '1' end
  local calls = own.limited and lanes.has_freed()
  for _, id in ipairs(settled) do
    local j = not calls and job(id)
    calls = calls or (j and is_calling(j))
  end
  if calls then ring_unpaused() end
  tell_ends()
end
return table.concat(answers)
`

export const settleScript = shardScript(
  'settle',
  'plain',
  besideJobs(retention + settleItems + text, beatNotes + setBack),
  {
    whenFull: true,
  },
)
