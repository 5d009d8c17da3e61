/** The settle script: ends claims of one shard. */

import type { QueueKind } from '../../contract/queue-settings.js'
import { longestExpectMs } from '../../rules/bounds.js'
import { beatNotes } from '../lua/beats-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { settleItems } from './settle-items-lua.js'
import { orderedRetention, retention } from './trim-lua.js'

/** The parts in which the two kinds differ. */
const parts: Readonly<
  Record<
    QueueKind,
    {
      /** Defines `trim()`, `know_run(j, run)`, `keep(j, result, for_ms)` and `drop_done(j, count)`. */
      readonly functions: string
      /** Reads what the items need besides their claims. */
      readonly read: string
      /** A further condition for a job to leave without a trace, and one not to do so at once with others. */
      readonly condition: string
      readonly atOnce: string
      /** Keys with an entry for each job that leaves. */
      readonly keys: readonly string[]
    }
  >
> = {
  plain: {
    functions: `${retention}
local function keep(j, result, for_ms)
  stay(j)
  leave(j)
  j.reason = nil
  call('HDEL', NOTES, 'e' .. j.id, 'k' .. j.id)
  enter(j, 'c')
  call('HSET', NOTES, 'r' .. j.id, result)
  if for_ms == '' then return end
  local until_at = now + tonumber(for_ms)
  if tonumber(for_ms) < ${longestExpectMs} then until_at = math.max(until_at, expected_until(j.id)) end
  call('ZADD', EXPIRY, until_at, j.seq .. j.id)
end
local function drop_done() end
`,
    read: '',
    condition: '',
    atOnce: '',
    keys: ['CLAIMS', 'JOBS'],
  },
  // Results and runs are not kept.
  ordered: {
    functions: `${orderedRetention}
local function keep(j) finish(j) end
local function know_run() end
-- The oldest payloads in hand are completed; the others begin with this run. One always stays. A job that has only one
-- has none to drop.
local function drop_done(j, count)
  local packed = call('HGET', CLAIMED_PAYLOADS, j.id)
  local number, from = packed and unpackn('>I4', packed) or 1, 5
  count = math.min(count, number - 1)
  if count == 0 then return end
  for _ = 1, count do from = from + 4 + unpackn('>I4', packed, from) end
  call('HSET', CLAIMED_PAYLOADS, j.id, pack('>I4', number - count) .. sub(packed, from))
  unlist_failed(j)
  j.attempt, j.crashes = 1, 0
  call('HDEL', NOTES, 'e' .. j.id)
end
`,
    read: `
local follows = {}
for i, successor in ipairs(call('HMGET', SUCCESSORS, unpack(ids))) do follows[ids[i]] = successor end`,
    condition: ' and not follows[id]',
    atOnce: ' or follows[id]',
    keys: ['CLAIMS', 'JOBS', 'CLAIMED_PAYLOADS'],
  },
}

/**
 * KEYS: those of one shard; for an ordered queue with `maxRunning` then those of all its shards.
 * ARGV: for several items in a row that complete under one fence and keep nothing: '', fence, their number, and the id
 * of each. For any other item id, fence, kind, and the arguments of the kind:
 * c complete · k complete and keep: result in its stored form, ms or '', run · t retry: ms, last (1 or 0), error,
 * reason, run, done · r release: ms, error, done · b bury: error, reason, run, done · x cancel: reason, run · h hold: queue or
 * group, ms; it stands before the end of the same claim, and is made with that. Error and reason are '' if absent, otherwise they begin with '='. A run is how many ms ago the
 * handler began, host and pid, with NUL between them, or '' if it is not reported.
 * Returns one letter per item, none for a hold: o ok, l lost, g gone; '' if all are ok. Refuses `unknown`, and `moved` if the shard is
 * closed.
 */
const text = (kind: QueueKind) => `
${parts[kind].functions}
${settleItems}
local form = call('HMGET', META, 'kind', 'closed', 'limited', 'seenAt')
if not form[1] then return redis.error_reply('MILLRACE unknown') end
if form[2] then return redis.error_reply('MILLRACE moved') end
if ${isSetBack('form[4]')} then turn_back(form[4]) end
limits(form[3])
local claims = call('HMGET', CLAIMS, unpack(ids))${parts[kind].read}
local processed, settled = 0, {}
local function settle(n, id, kind, hold)
  local a, b, c, d, e = ARGV[n + 3], ARGV[n + 4], ARGV[n + 5], ARGV[n + 6], ARGV[n + 7]
  local j = job(id)
  if not j then
    local claim = call('HGET', CLAIMS, id)
    pass_over(id, read_claim(claim).seq, claim)
    return 'g'
  end
  settled[#settled + 1] = id
  if kind == 't' or kind == 'r' or kind == 'b' then drop_done(j, tonumber(ARGV[n + 2 + extras[kind]])) end
  if kind == 'c' then
    processed = processed + 1
    j.reason = nil
    finish(j, 'c')
  elseif kind == 'k' then
    processed = processed + 1
    know_run(j, c)
    keep(j, a, b)
  elseif kind == 't' then
    if b == '1' then know_run(j, e) end
    fail_claim(j, tonumber(a), b == '1', given(c), given(d))
  elseif kind == 'r' then
    if b ~= '' then call('HSET', NOTES, 'e' .. id, given(b)) end
    if has(j.claim.flags, CANCEL) then finish(j, 'x')
    elseif tonumber(a) == 0 then put_back(j, j.suspect)
    else schedule(j, tonumber(a)) end
  elseif kind == 'b' then
    know_run(j, c)
    bury(j, given(b), given(a))
  else
    if not (j.reason and has(j.claim.flags, CANCEL)) then j.reason = given(a) end
    know_run(j, b)
    finish(j, 'x')
  end
  if hold then lanes.hold_back(ARGV[hold + 3] == 'group' and j.group ~= '' and j.group or nil, now + tonumber(ARGV[hold + 4])) end
end

-- Most jobs complete without a trace, and are removed together. Jobs of a group are not, because the group may be full.
local answers, traceless, renewed, shared = {}, {}, {}, {}
local left, all_ok = {}, true
know_form()
-- Whether the whole run leaves without a trace, from the lease that its claims share.
local function leaves_at_once()
  local bytes, seen = fence_bytes(ARGV[2]), {}
  for i, id in ipairs(ids) do
    local claim = claims[i]
    if not claim or sub(claim, 1, 7) ~= bytes or byte(claim, 14) - 64 >= HASHISTORY or seen[id]${parts[kind].atOnce} then return false end
    seen[id] = true
  end
  traceless, shared[bytes] = ids, #ids
  return true
end
local function settle_each()
  local current, hold = {}, nil
  for i, id in ipairs(ids) do current[id] = claims[i] end
  for i, id in ipairs(ids) do
    local claim, bytes = current[id], item_fences[i]
    if kinds[i] == 'h' then answers[i] = ''
    elseif not claim or sub(claim, 1, 7) ~= bytes then
      answers[i] = (claim or (not left[id] and call('HEXISTS', JOBS, id) == 1)) and 'l' or 'g'
      all_ok = false
    else
      current[id] = nil
      answers[i] = 'o'
      local flags = byte(claim, 14) - 64
      if kinds[i] == 'c' and not hold and flags % OWNLEASE < HASHISTORY and flags < HASGROUP${parts[kind].condition} then
        left[id] = true
        traceless[#traceless + 1] = id
        if flags >= OWNLEASE then renewed[#renewed + 1] = id else
          shared[bytes] = (shared[bytes] or 0) + 1
        end
      else
        answers[i] = settle(items[i], id, kinds[i], hold) or 'o'
        all_ok = all_ok and answers[i] == 'o'
      end
    end
    hold = kinds[i] == 'h' and items[i] or nil
  end
end
if not (is_run and leaves_at_once()) then
  if is_run then read_items() end
  settle_each()
end
many('ZREM', LEASES, renewed)
for bytes, count in pairs(shared) do leave_lease(bytes, count) end
${parts[kind].keys.map((key) => `many('HDEL', ${key}, traceless)`).join('\n')}
processed = processed + #traceless
if processed > 0 then call('HINCRBY', META, 'processed', processed) end
if #traceless + #settled > 0 then
  trim()
  -- Also looks for room for suspects, because nobody was told of them.
  local calls = (EXCLUSIVE or limits().limited) and lanes.has_freed()
  for _, id in ipairs(settled) do
    if calls then break end
    calls = is_calling_id(id)
  end
  if calls then ring_unpaused() end
  tell_ends()
end
return all_ok and '' or table.concat(answers)
`

export const settleScripts = scriptPair(
  'settle',
  { plain: text('plain'), ordered: text('ordered') },
  { rare: { plain: beatNotes + setBack, ordered: setBack }, whenFull: true },
)
