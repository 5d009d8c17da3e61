/** The settle script: ends claims of one shard, and removes what is no longer kept. */

import type { QueueKind } from '../../contract/queue-settings.js'
import { longestExpectMs } from '../../rules/bounds.js'
import { refuse } from '../client/redis-script.js'
import { memberEnds } from '../lua/joins-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { isSetBack, setBack } from '../lua/set-back-lua.js'
import { orderedRetention, retention } from './retention-lua.js'

/** The items of a settle call, read from ARGV. */
const settleItems = `
local extras = { c = 0, j = 1, k = 3, t = 6, r = 3, b = 4, w = 2, x = 2, h = 2 }
-- For each item its position in ARGV, its id, its fence in bytes and its kind.
local items, ids, item_fences, kinds = {}, {}, {}, {}
local fences = {}
local function fence_bytes(text)
  local bytes = fences[text]
  if not bytes then
    bytes = pack('>I7', tonumber(text))
    fences[text] = bytes
  end
  return bytes
end
local function read_items()
  local from = 1
  while from <= #ARGV do
    local n = #kinds
    if ARGV[from] == '' then
      local bytes, count, kind, width = fence_bytes(ARGV[from + 1]), tonumber(ARGV[from + 2]), 'c', 1
      if count < 0 then count, kind, width = -count, 'j', 2 end
      for i = 1, count do
        local at = from + 3 + (i - 1) * width
        -- Its arguments are read from the third behind an item on.
        items[n + i], ids[n + i], item_fences[n + i], kinds[n + i] = at - 2, ARGV[at], bytes, kind
      end
      from = from + 3 + count * width
    else
      items[n + 1], ids[n + 1], item_fences[n + 1], kinds[n + 1] = from, ARGV[from], fence_bytes(ARGV[from + 1]), ARGV[from + 2]
      from = from + 3 + extras[ARGV[from + 2]]
    end
  end
end
-- Most calls are one run of completions under one fence. They need only the ids, and perhaps the results behind these.
local width = ARGV[1] == '' and (byte(ARGV[3]) == 45 and 2 or 1)
local is_run = width and #ARGV == 3 + width * math.abs(ARGV[3])
if not is_run then read_items()
elseif width == 1 then ids = { unpack(ARGV, 4) }
else
  for at = 4, #ARGV, 2 do ids[#ids + 1] = ARGV[at] end
end
local function given(text)
  if text == '' then return nil end
  return sub(text, 2)
end
`

/** The note with a job's beats, in Lua: how to read it, and what the end of a run adds to it. */
export const beatNotes = String.raw`
-- Splits the note of a job's beats: start, host, pid, progress, instant of the last beat, boot, pidns and ticks; '' for
-- an absent part.
local function read_beat(text)
  return { string.match(text, '^(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)%z?(%Z*)') }
end
-- The instant this many ms ago.
local function started_at(ms) return string.format('%.0f', now - tonumber(ms)) end
-- Adds to the note when and where the job ran, as far as no beat has reported it.
local function know_run(j, run)
  if run == '' then return end
  local said = read_beat(run)
  said[1] = started_at(said[1])
  local before = read_beat(has(j.claim.flags, BEATEN) and call('HGET', NOTES, 'b' .. j.id) or '')
  for i = 1, 8 do
    if before[i] ~= '' then said[i] = before[i] end
  end
  call('HSET', NOTES, 'b' .. j.id, table.concat(said, '\0'))
end
`

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
      /** A branch for the item `i` if its job seems to be a member of a join and to leave nothing else. */
      readonly member: string
      /** A way to end a whole run of such members, and its definition. */
      readonly memberRun: string
      readonly orMemberRun: string
      /** A branch for a job that is to wait for a signal. */
      readonly wait: string
      /** A branch for a job of which only the result is kept, and where it ran; and what the branch calls. */
      readonly orKeptTogether: string
      readonly keptTogether: string
      /** Ends the jobs of both branches, after all others. */
      readonly endTogether: string
      /** Writes what joins are to know, and says whether some are to be told. */
      readonly flush: string
    }
  >
> = {
  plain: {
    functions: `${retention}
local function kept_until(id, for_ms)
  local until_at = now + tonumber(for_ms)
  return tonumber(for_ms) < ${longestExpectMs} and math.max(until_at, expected_until(id)) or until_at
end
local function keep(j, result, for_ms)
  stay(j)
  leave(j)
  j.reason = nil
  call('HDEL', NOTES, 'e' .. j.id, 'k' .. j.id)
  if j.steps then entries().drop(j) end
  enter(j, 'c')
  call('HSET', NOTES, 'r' .. j.id, result)
  if j.places then joins().kept(j, result) end
  if for_ms ~= '' then call('ZADD', EXPIRY, kept_until(j.id, for_ms), j.seq .. j.id) end
end
local function drop_done() end
`,
    read: '',
    condition: '',
    atOnce: '',
    keys: ['CLAIMS', 'JOBS'],
    member: `
      elseif leaves and leaves >= REMEMBERED and leaves < REMEMBERED + HASHISTORY and (kinds[i] == 'c' or kinds[i] == 'j') and place_in(claim, id) then
        local count = #serials + 1
        serials[count], numbers[count] = place_in(claim, id)
        results[count] = kinds[i] == 'j' and ARGV[items[i] + 3]
        left[id] = true
        leave_at_once(id, flags, bytes)`,
    memberRun: `
-- Of a member that leaves something to one join alone, as its claim has it: the number of the fragment that hears of it, and
-- its own. nil: it is no such member.
local function place_in(claim, id) return string.match(claim, '^(%d+)%.(%d+)$', 29 + byte(claim, 15) + #id) end
-- The same as leaves_at_once, if all are such members.
local function report_at_once()
  local bytes, seen, serials, numbers, results = fence_bytes(ARGV[2]), {}, {}, {}, width == 2 and {}
  for i, id in ipairs(ids) do
    local claim = claims[i]
    if not claim or sub(claim, 1, 7) ~= bytes or seen[id] then return false end
    local flags = byte(claim, 14) - 64
    if flags < REMEMBERED or flags >= REMEMBERED + HASHISTORY then return false end
    serials[i], numbers[i] = place_in(claim, id)
    if not serials[i] then return false end
    if results then results[i] = ARGV[3 + 2 * i] end
    seen[id] = true
  end
  member_ends().report_completed(serials, numbers, results)
  traceless, shared[bytes] = ids, #ids
  return true
end
`,
    orMemberRun: ' or report_at_once()',
    wait: `
  elseif kind == 'w' then
    if has(j.claim.flags, CANCEL) then finish(j, 'x') else j.crashes = 0 entries().wait(j, a, b) end`,
    keptTogether: `
  local pasts, notes, ends, expiries = {}, {}, {}, {}
  local ended_at, first_attempt = pack('>I6', now), pack('>I3I2', 1, 0)
  local function add(list, one, other) list[#list + 1], list[#list + 2] = one, other end
  -- Whether its record is there and no join is to hear of the job, which a claim with REMEMBERED does not say.
  local function is_simple(id, claim, flags)
    if not has(flags, REMEMBERED) then return call('HEXISTS', JOBS, id) == 1 end
    local rec = not place_in(claim, id) and call('HGET', JOBS, id)
    return rec and not select(5, written(rec))
  end
  local function keep_later(id, claim, result, for_ms, run)
    local stop = 15 + byte(claim, 15)
    local element = sub(claim, stop + 8, stop + 13) .. id
    kept[#kept + 1] = id
    -- As write_past has it. The stamp is in the claim.
    add(pasts, id, 'c' .. ended_at .. sub(claim, stop + 1, stop + 7) .. first_attempt)
    add(notes, 'r' .. id, result)
    add(notes, 'w' .. id, sub(claim, 16, stop))
    if run ~= '' then
      local ms, place = string.match(run, '^(%Z*)(.*)$')
      add(notes, 'b' .. id, started_at(ms) .. place .. string.rep('\\0', 5))
    end
    add(ends, 0, ended_at .. element)
    if for_ms ~= '' then add(expiries, kept_until(id, for_ms), element) end
  end`,
    orKeptTogether: `
      elseif leaves and leaves < BEATEN and not has(leaves, HASHISTORY) and kinds[i] == 'k' and is_simple(id, claim, flags) then
        local at = items[i]
        keep_later(id, claim, ARGV[at + 3], ARGV[at + 4], ARGV[at + 5])
        end_lease(id, flags, bytes)`,
    endTogether: `
  if serials[1] then member_ends().report_completed(serials, numbers, results) end
  many('HDEL', CLAIMS, kept)
  many('HSET', HISTORY, pasts)
  many('HSET', NOTES, notes)
  many('ZADD', COMPLETED, ends)
  many('ZADD', EXPIRY, expiries)`,
    flush: 'member_ends().flush()',
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
    member: '',
    memberRun: '',
    orMemberRun: '',
    wait: '',
    keptTogether: '',
    orKeptTogether: '',
    endTogether: '',
    flush: 'false',
  },
}

/**
 * KEYS: those of one shard; for an ordered queue with `maxRunning` then those of all its shards.
 * ARGV: for several items in a row that complete under one fence and keep nothing: '', fence, their number, and the id
 * of each; for several with results for their joins the negated number, and of each its id and its result in the stored
 * form. For any other item id, fence, kind, and the arguments of the kind: c complete · j complete, with a result for its
 * joins in its stored form · k complete and keep: result in its stored form, ms or '', run · t retry: ms, last (1 or 0),
 * error, reason, run, done · r release: ms, error, done · b bury: error, reason, run, done · w wait: name of the signal, ms
 * or '' · x cancel: reason, run · h hold: queue or group, ms; it stands before the end of the same claim, and is made with
 * that. Error and reason are '' if absent, otherwise they begin with '='. A run is how many ms ago the handler began, host
 * and pid, with NUL between them, or '' if it is not reported.
 * Returns one letter per item, none for a hold: o ok, l lost, g gone; '' if all are ok. Then a '!' if joins in other
 * shards are to be told. Refuses `unknown`, and `moved` if the shard is
 * closed.
 */
const text = (kind: QueueKind) => `
${kind === 'plain' ? memberEnds : ''}${parts[kind].functions}
${settleItems}
local form = call('HMGET', META, 'kind', 'closed', 'limited', 'seenAt')
if not form[1] then ${refuse('unknown')} end
if form[2] then ${refuse('moved')} end
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
  if kind == 'c' or kind == 'j' then
    processed = processed + 1
    j.reason = nil
    finish(j, 'c', kind == 'j' and a or nil)
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
    else j.crashes = 0 schedule(j, tonumber(a)) end
  elseif kind == 'b' then
    know_run(j, c)
    bury(j, given(b), given(a))${parts[kind].wait}
  else
    if not (j.reason and has(j.claim.flags, CANCEL)) then j.reason = given(a) end
    know_run(j, b)
    finish(j, 'x')
  end
  if hold then lanes.hold_back(ARGV[hold + 3] == 'group' and j.group ~= '' and j.group or nil, now + tonumber(ARGV[hold + 4])) end
end

-- Most jobs complete without a trace, and are removed together. Jobs of a group are not, because the group may be full.
local answers, traceless, kept, renewed, shared = {}, {}, {}, {}, {}
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
${parts[kind].memberRun}local function settle_each()
  local current, hold, serials, numbers, results = {}, nil, {}, {}, {}
  local function end_lease(id, flags, bytes)
    if flags >= OWNLEASE then renewed[#renewed + 1] = id else shared[bytes] = (shared[bytes] or 0) + 1 end
  end
  local function leave_at_once(id, flags, bytes)
    traceless[#traceless + 1] = id
    end_lease(id, flags, bytes)
  end${parts[kind].keptTogether}
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
      local leaves = not hold and flags < HASGROUP${parts[kind].condition} and flags % OWNLEASE
      if leaves and leaves < HASHISTORY and kinds[i] == 'c' then
        left[id] = true
        leave_at_once(id, flags, bytes)${parts[kind].member}${parts[kind].orKeptTogether}
      else
        answers[i] = settle(items[i], id, kinds[i], hold) or 'o'
        all_ok = all_ok and answers[i] == 'o'
      end
    end
    hold = kinds[i] == 'h' and items[i] or nil
  end${parts[kind].endTogether}
end
if not (is_run and (leaves_at_once()${parts[kind].orMemberRun})) then
  if is_run then read_items() end
  settle_each()
end
many('ZREM', LEASES, renewed)
for bytes, count in pairs(shared) do leave_lease(bytes, count) end
${parts[kind].keys.map((key) => `many('HDEL', ${key}, traceless)`).join('\n')}
processed = processed + #traceless + #kept
if processed > 0 then call('HINCRBY', META, 'processed', processed) end
if #traceless + #kept + #settled > 0 then
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
-- Joins in other shards are to be told of these ends.
if REPORTS and ${parts[kind].flush} then return (all_ok and '' or table.concat(answers)) .. '!' end
return all_ok and '' or table.concat(answers)
`

export const settleScripts = scriptPair(
  'settle',
  { plain: text('plain'), ordered: text('ordered') },
  { rare: { plain: beatNotes + setBack, ordered: setBack }, whenFull: true },
)
