/** The enqueue script of plain queues for calls in which some jobs are joins or members of joins. */

import { enqueueGraphText } from '../enqueue/enqueue-script.js'
import { shardScript, withJobs } from '../lua/prelude.js'

const graphText = enqueueGraphText({
  read: `
local graph = cjson.decode(ARGV[#ARGV])
local run, numbers = graph.run, {}
local known_joins, fragments = joins(), {}
-- The fragment of this number in the call; false if there is none yet.
local function known_fragment(i)
  if fragments[i] == nil then fragments[i] = known_joins.fragment_of(graph.fragments[i][1]) or false end
  return fragments[i]
end
-- Whether the member of this number was added to the fragment before.
local function has_member(i, number)
  local f = known_fragment(i)
  return f and number < f.high
end
-- Ids that were made for a join are no news to another producer of the same join, which may have added them.
are_new = are_new and not (run and has_member(1, run.from))
if run then
  call_ids[1], counts[1], firsts[1] = ARGV[2], #ARGV - 4, 1
  for n = 1, counts[1] do
    numbers[n] = run.from + n - 1 .. ''
    ids[n] = run.ids .. numbers[n]
  end
else`.slice(1),
  begin: String.raw`
local joining, begun = {}, {}
local function join_of(n) return not run and graph.joins[n] ~= 0 and graph.joins[n] or nil end
-- The places of a member, each the number of a fragment in the call and that of the member; nil if it is none.
local function places_of(n)
  if run then return { { 1, run.from + n - 1 } } end
  return graph.places[n] ~= 0 and graph.places[n] or nil
end
for n = 1, graph.probe and 0 or #ids do
  if join_of(n) then
    local j = records[n] and call('HEXISTS', JOINS, 'j' .. ids[n]) == 1 and leftover(ids[n], records[n])
    if j then
      drop(j)
      known_joins.flush()
      return '?'
    end
    if call('HEXISTS', JOINS, 'x' .. ids[n]) == 1 then return '?' end
  end
end
-- Whether the nth job is a member that was added before.
local function is_in(n)
  for _, one in ipairs(places_of(n) or {}) do
    if has_member(one[1], one[2]) then return true end
  end
  return false
end
-- The fragment of this number in the call, which now gets the members with count numbers from this one on.
local function filled_fragment(i, from, count)
  local f = known_fragment(i) or known_joins.new_fragment(unpack(graph.fragments[i]))
  fragments[i] = f
  f.count, f.high, f.version = f.count + count, math.max(f.high, from + count), f.version + 1
  return f
end
-- The body of a member with its places.
local function body_with_places(own, body)
  local places = {}
  for i, one in ipairs(own) do
    places[i] = ' ' .. filled_fragment(one[1], one[2], 1).serial .. '.' .. string.format('%d', one[2])
  end
  local stop = find(body, '\0', find(body, '\0', 2, true) + 1, true)
  return sub(body, 1, stop - 1) .. table.concat(places) .. sub(body, stop)
end
`.slice(1),
  taken: `
  if not are_new and is_in(n) then return 'p' end
`.slice(1),
  add: `
  local own = places_of(n)
  if own then body = body_with_places(own, body) end
  if join_of(n) then
    stamp = next_stamp(stamp)
    local place13, at = pack('>I7I6', stamp, seq), created_at or now
    joining[#joining + 1] = 0
    joining[#joining + 1] = place13 .. id
    incoming[#incoming + 1] = id
    incoming[#incoming + 1] = math.floor(stamp / 1000) == at and 'w' .. place13 .. body or 'W' .. place13 .. pack('>I6', at) .. body
    begun[#begun + 1] = n
    if fields[n] then add_past(n, 'w', stamp) end
    return
  end
`.slice(1),
  write: `
  many('ZADD', JOINING, joining)
  joining = {}
`.slice(1),
  atOnce: `
  if has_member(1, run.from) then return nil end
  for n = 1, are_new and 0 or count do
    if records[n] or ended[n] then return nil end
  end
  local before = ARGV[3] .. ' ' .. filled_fragment(1, run.from, count).serial .. '.'
`.slice(1),
  body: 'run and ARGV[3] .. ARGV[3 + n] or bodies[n]',
  bodyAtOnce: 'before .. numbers[n] .. ARGV[3 + n]',
  refuse: `
  if graph.probe then return table.concat(letters) end
  for i = 1, graph.whole and count or 0 do
    -- Whoever has added a member goes on with this graph, and both may.
    if letters[i] == 'd' and is_in(n + i - 1) then letters[i] = 'i' end
    if not find('ari', letters[i], 1, true) then return table.concat(letters) end
  end
`.slice(1),
  probe: `
if graph.probe then
  if sub(ARGV[1], -1) == 'r' and remembered_calls(call_ids)[call_ids[1]] then return 'm' end
  if graph.new then return '-' .. (draining and 'g' or (graph.new > room() and 'f' or 'a')) end
  return (taken_as(ids[1], 1) and 'd' or '-') .. answer_to(1, #ids)
end
`.slice(1),
  notAlone: ' and not graph.whole',
  end: `
-- A refusal is no answer to remember: the jobs that are in the way may be those of this call, sent before.
if graph.whole and find(answers[1], '[^ari]') then new_ids, new_answers = {}, {} end
for _, n in ipairs(begun) do known_joins.begin(ids[n], graph.joins[n], order_of(n), graph.whole) end
`.slice(1),
})

/**
 * KEYS: those of one shard.
 * ARGV: those of the enqueue script in the long form, then JSON: `fragments`, for each the key, the letter of `onDead` as
 * a byte, keeps results (1 or 0); `joins`, for each job the join (`begin` of `joins-lua.ts`) as a text, or 0; `places`,
 * for each job 0 or a list of the number of a fragment, from 1, and the number of the member; `whole`: of each call all
 * jobs are accepted or none, and its joins wait until they are sealed; `probe`: nothing is added; `new`: how many jobs with
 * new ids a probe is about, which has none of them.
 * ARGV of one call, if its jobs are members of one set with numbers in a row, without orders or groups, and their bodies
 * begin alike, up to where their places are put: `1n` if all ids were made for these jobs, `1r` if it may have been sent
 * before, otherwise `1s`; its id; how the bodies begin; for each job the rest of its body; JSON as above, with `run`
 * in the place of `joins` and `places`: `ids`, what the ids have before their numbers, and `from`, the first number.
 * Returns as the enqueue script; with `whole` also i for a member that was added before, which is not refused; with `probe` m if the one call is remembered, otherwise d if the id of its first job is
 * taken, or -, and the letters; or '?' if a join of an id in the call ended a moment ago and its fragments are still to
 * be dropped: then nothing was added. Refuses `unknown`.
 */
export const enqueueGraphScript = shardScript('enqueue-graph', 'plain', () =>
  withJobs(`${graphText}return table.concat(answers, ',') .. (tells and '!' or '')`),
)
