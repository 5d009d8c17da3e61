/** The settings of a Redis queue: how its shards are given them, and what they tell of them. */

import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import type { QueueBasis, StoredQueue } from '../../contract/queue-settings.js'
import { boundsOf, limitsFrom, limitsText, runningBounds } from '../../rules/limit-rules.js'
import { type QueueForm, refuseOtherForm } from '../../rules/queue-form.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { shardScript } from '../lua/prelude.js'
import { runOn } from '../lua/script-kinds.js'
import type { RedisQueue, RedisShard } from '../redis-layout.js'

/** The limits that have been said of a queue, and how often they have changed. */
interface SaidLimits {
  readonly limits: QueueLimits
  readonly turn: number
}

/** The answer of the first shard that exists; if the queue is moving, the old ones may be gone. Null if none exists. */
export async function stateOf(client: RedisClient, { shards, next }: RedisQueue): Promise<RedisReply> {
  for (const shard of [shards[0]!, ...next.slice(0, 1)]) {
    const reply = await runOn(client, shard, openScript, ['0'])
    if (reply !== null) return reply
  }
  return null
}

/**
 * Gives all shards these settings. The first that exists decides: if it has later limits, the others are left alone.
 * Returns what it tells. Throws `ConfigConflictError` if it is stored in another form.
 */
export async function giveSettings(
  client: RedisClient,
  { name, layout, shards, next }: RedisQueue,
  settings: QueueBasis,
  said: SaidLimits,
): Promise<RedisReply> {
  // If the queue is moving, the process that moves it creates the next shards.
  const verb = layout.towards === undefined ? '1' : '2'
  const give = (shard: RedisShard) => {
    const count = next.includes(shard) ? next.length : layout.shards
    return runOn(client, shard, openScript, [verb, ...settingArgs(settings, said, count)])
  }
  const rest = [...shards, ...next]
  let reply: RedisReply = null
  while (reply === null && rest.length > 0) reply = await give(rest.shift()!)
  if (reply === null) return null
  // Another process may be first: the creator of the first shard decides the form of all.
  refuseOtherForm(name, formIn(reply), settings)
  if (isSaid(reply, said)) await Promise.all(rest.map(give))
  return reply
}

/**
 * KEYS: those of one shard, plain or ordered: it uses only keys that both have.
 * ARGV: what to do: write (1), write if the shard exists (2), only ask (0), or ask whether it is closed or missing
 * (closed); then kind, order, exclusive, merge ('' as stored, at first all), maxPending, maxCrashes, resultsCount, age
 * and count of the dead, each '' for none; for an ordered queue the bounds of all its shards together; maxRunning and
 * its part for each group; scope and by of the throttle, '' as stored; the limits that have been said, and the number of
 * their change; for a shard of a new generation also the fields and values with which its META begins.
 * Limits are written unless the shard knows a later change, or another one of the same number, which was first.
 * Returns { kind, order, exclusive, paused, draining, limits, their number } as stored, or nil if the shard neither
 * exists nor was created; for closed 1 or 0.
 */
const openLua = `
local function state()
  local values = call('HMGET', META, 'kind', 'order', 'exclusive', 'paused', 'draining', 'limits', 'limitsTurn')
  return { values[1], values[2], values[3] or 'id', values[4] == '1' and 1 or 0, values[5] == '1' and 1 or 0, values[6] or '{}', tonumber(values[7] or 0) }
end
local stored = call('HMGET', META, 'kind', 'order', 'exclusive')
if ARGV[1] == 'closed' then return (not stored[1] or call('HEXISTS', META, 'closed') == 1) and 1 or 0 end
if ARGV[1] == '0' then return stored[1] and state() or false end
if ARGV[1] == '2' and not stored[1] then return false end
if stored[1] and (stored[1] ~= ARGV[2] or stored[2] ~= ARGV[3] or (stored[3] or 'id') ~= ARGV[4]) then return state() end
if not stored[1] then
  call('HSET', META, 'kind', ARGV[2], 'order', ARGV[3], 'seq', 0, 'stamp', 0, 'fence', 0, 'stale', 0, 'processed', 0, 'failed', 0, 'crashed', 0)
  if ARGV[2] == 'ordered' then call('HSET', META, 'exclusive', ARGV[4], 'merge', 'all') end
  for n = 18, #ARGV, 2 do call('HSET', META, ARGV[n], ARGV[n + 1]) end
end
if ARGV[5] ~= '' then call('HSET', META, 'merge', ARGV[5]) end
local known = call('HMGET', META, 'limits', 'limitsTurn')
local turn, last = tonumber(ARGV[17]), tonumber(known[2] or -1)
if turn > last or (turn == last and ARGV[16] == known[1]) then
  for n, field in ipairs({ 'maxPending', 'maxCrashes', 'resultsCount', 'deadAge', 'deadCount', 'bounds', 'maxRunning', 'perGroup' }) do
    local value = ARGV[n + 5]
    if value == '' then call('HDEL', META, field) else call('HSET', META, field, value) end
  end
  call('HSET', META, 'limits', ARGV[16], 'limitsTurn', turn)
end
if (ARGV[14] or '') ~= '' then call('HSET', META, 'scope', ARGV[14], 'by', ARGV[15]) end
if (ARGV[12] or '') .. (ARGV[13] or '') .. (ARGV[14] or '') ~= '' then call('HSET', META, 'limited', 1) end
return state()
`

/** The open script: creates a shard, or gives it its settings. */
export const openScript = shardScript('open', 'plain', () => openLua, { whenFull: true })

/** The arguments of the open script for one of `shards` shards. */
function settingArgs(settings: QueueBasis, { limits, turn }: SaidLimits, shards: number): string[] {
  const { kind, order, exclusive = 'id', merge, throttle } = settings
  const { maxPending, maxCrashes, resultsCount, dead, maxRunning } = boundsOf(limits)
  const { total, perGroup } = runningBounds(maxRunning)
  const share = (bound: number | undefined) => (bound === undefined ? '' : String(Math.ceil(bound / shards)))
  const isOrdered = kind === 'ordered'
  return [
    kind,
    order,
    exclusive,
    merge ?? '',
    share(maxPending),
    String(maxCrashes),
    share(resultsCount),
    dead.ageMs === undefined ? '' : String(Math.ceil(dead.ageMs)),
    share(dead.count),
    isOrdered ? [maxPending, resultsCount, dead.count].map((bound) => bound ?? '').join(',') : '',
    String(total ?? ''),
    String(perGroup ?? ''),
    throttle?.scope ?? '',
    throttle?.eachGroup === undefined ? (throttle?.by ?? '') : 'both',
    limitsText(limits),
    String(turn),
  ]
}

/** Without its throttle, because the scope has the throttle's rules. */
export function storedIn({ name, layout }: RedisQueue, reply: RedisReply): StoredQueue {
  const [, , , paused, draining] = listIn(reply)
  const shards = layout.kind === 'plain' ? 1 : layout.shards
  const { limits } = saidIn(reply)
  const { maxRunning } = boundsOf(limits)
  return {
    ...{ name, ...formIn(reply), shards, paused: paused === 1, draining: draining === 1, limits },
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(layout.towards === undefined ? {} : { resharding: layout.towards }),
  }
}

/** The limits that have been said. */
export function saidIn(reply: RedisReply): SaidLimits {
  const [, , , , , limits, turn] = listIn(reply)
  return { limits: limitsFrom(textIn(limits)), turn: numberIn(turn) }
}

/** The limits after a change of those in the shard's `state`, which is null if there is no shard. */
export function nextSaid(state: RedisReply, decide: (said?: QueueLimits) => QueueLimits): SaidLimits {
  if (state === null) return { limits: decide(), turn: 0 }
  const { limits: before, turn } = saidIn(state)
  const limits = decide(before)
  return { limits, turn: limitsText(limits) === limitsText(before) ? turn : turn + 1 }
}

/** Whether a shard has these limits, and no later ones. */
export function isSaid(reply: RedisReply, { limits, turn }: SaidLimits): boolean {
  const stored = saidIn(reply)
  return stored.turn === turn && limitsText(stored.limits) === limitsText(limits)
}

/** The settings that are fixed at first use. */
export function formIn(reply: RedisReply): Required<QueueForm> {
  const [kind, order, exclusive] = listIn(reply)
  return {
    kind: textIn(kind) as QueueForm['kind'],
    order: textIn(order) as QueueForm['order'],
    exclusive: textIn(exclusive) as Required<QueueForm>['exclusive'],
  }
}
