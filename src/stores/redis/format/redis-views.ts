/** Views: jobs of a Redis store, read by id. */

import { slicesOf } from '../../../core/values/pages.js'
import { payloadsInPage, payloadsInRecord } from '../../contract/job-records.js'
import type { MemberOf } from '../../contract/new-join.js'
import type { RedisReply } from '../client/redis-client.js'
import { listIn, numberIn, textIn } from '../client/redis-reply.js'
import { readerPair } from '../lua/script-kinds.js'
import type { RedisShard } from '../redis-layout.js'
import { fragmentNamesScript } from '../shards/join-report-scripts.js'
import { onDeadOf } from '../shards/redis-join-reports.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { type JobView, viewIn } from './redis-job.js'
import { orderedViewIn } from './redis-ordered-job.js'

/** The most jobs of one call. Records are large, and more would hold up the server. */
const mostAtOnce = 50

interface LookAt {
  /** For an ordered queue, the live job or the entry in the morgue. A plain queue has its dead jobs among the live. */
  readonly kind: 'live' | 'dead'
  /** A job that is read alone also has its checkpoint and log, and more of its payloads. */
  readonly as: 'listed' | 'alone'
}

/** The views, in the order of the ids. */
export async function viewJobs(
  queues: RedisQueues,
  shard: RedisShard,
  ids: readonly string[],
  { kind, as }: LookAt,
): Promise<JobView[]> {
  const isAlone = as === 'alone'
  const how =
    shard.kind === 'plain' ? [isAlone ? '1' : '0'] : [kind, String(isAlone ? payloadsInRecord : payloadsInPage)]
  const views: JobView[] = []
  for (const some of slicesOf(ids, mostAtOnce)) {
    const [now, deadAgeMs, found] = listIn(await queues.run(shard, viewScripts, [...how, ...some]))
    const hiddenUntil = textIn(deadAgeMs) === '' ? Number.NEGATIVE_INFINITY : numberIn(now) - numberIn(deadAgeMs)
    for (const [n, reply] of listIn(found).entries()) {
      const id = some[n]!
      views.push(
        shard.kind === 'plain'
          ? viewIn(shard.queue, id, reply, numberIn(now), hiddenUntil)
          : orderedViewIn(kind, shard.queue, id, reply, hiddenUntil),
      )
    }
  }
  return views.some(({ places }) => places !== undefined) ? withJoins(queues, shard, views) : views
}

/** Adds the joins of members, as far as they are not gone. */
async function withJoins(queues: RedisQueues, shard: RedisShard, views: readonly JobView[]): Promise<JobView[]> {
  const placesIn = ({ places = '' }: JobView) =>
    places.split(' ').flatMap((place) => (place.includes('.') ? [place.split('.') as [string, string]] : []))
  const serials = [...new Set(views.flatMap((view) => placesIn(view).map(([serial]) => serial)))]
  const names = listIn(await queues.run(shard, fragmentNamesScript, serials))
  const found = new Map(serials.map((serial, i) => [serial, names[i]]))
  return views.map((view) => {
    const memberOf = placesIn(view).flatMap(([serial, number]): MemberOf[] => {
      const name = found.get(serial)
      return name === undefined || name === null ? [] : [{ ...placeIn(listIn(name)), number: Number(number) }]
    })
    return memberOf.length === 0 ? view : { ...view, job: view.job && { ...view.job, memberOf } }
  })
}

function placeIn([key, keeps, onDead]: readonly RedisReply[]): Omit<MemberOf, 'number'> {
  const [queue, id, set] = textIn(key).split('\0') as [string, string, string]
  return { join: { queue, id }, set, onDead: onDeadOf(numberIn(onDead)), keepsResults: keeps === 1 }
}

/**
 * KEYS: those of one shard. ARGV: whether the jobs are read alone (1 or 0), ids.
 * Returns { now, maximal age of the dead or '', views }. A view is { record, past, claim, error, beat, result, worker,
 * expiry, ended, checkpoint, log, when it expires, fields, record that remains, what it waits for }, with nil for absent
 * parts, and for checkpoint and log unless the jobs are read alone.
 */
const viewLua = `
local ids, alone = { unpack(ARGV, 2) }, ARGV[1] == '1'
local records, pasts, claims, ended = call('HMGET', JOBS, unpack(ids)), call('HMGET', HISTORY, unpack(ids)), call('HMGET', CLAIMS, unpack(ids)), call('HMGET', ENDED, unpack(ids))
local views, names, members = {}, {}, {}
for i, id in ipairs(ids) do
  for _, note in ipairs({ 'e', 'b', 'r', 'w', 'f', 'x', 'p' }) do names[#names + 1] = note .. id end
  members[i] = records[i] and sub(records[i], 9, 14) .. id or ''
end
local notes, kept_until = call('HMGET', NOTES, unpack(names)), call('ZMSCORE', EXPIRY, unpack(members))
local expires = call('EXISTS', EXPIRING) == 1 and call('ZMSCORE', EXPIRING, unpack(members)) or {}
for i, id in ipairs(ids) do
  local past, n = pasts[i], 7 * i - 6
  views[i] = {
    records[i], past, claims[i], notes[n], notes[n + 1], notes[n + 2], notes[n + 3], kept_until[i], ended[i],
    alone and call('HGET', NOTES, 'k' .. id), alone and call('HGET', NOTES, 'l' .. id),
    notes[n + 5] or expires[i] or false, notes[n + 4], notes[n + 6],
    past and find(past, '^[aA]') and call('HGET', STEPS, id .. '\\0w') or false }
end
return { now, call('HGET', META, 'deadAge') or '', views }
`

/**
 * KEYS: those of one shard. ARGV: live or dead, most payloads of each, ids.
 * Returns { now, maximal age of the dead or '', views }, with nil for absent parts. The view of a live job is { record,
 * past, claim, error, beat, payloads, their number, number that wait while it runs, fields }, that of an entry in the
 * morgue { header, payloads, their number }.
 */
const viewOrderedLua = `
local views, most = {}, tonumber(ARGV[2])
local function values_in(set, bodies, id) return values_of(bodies, fields_of(id, members_in(set, id, most))) end
local function first_in_hand(packed)
  local values, from = {}, 5
  while from <= #packed and #values < most do
    local stop = from + 3 + unpackn('>I4', packed, from)
    values[#values + 1] = sub(packed, from + 26, stop)
    from = stop + 1
  end
  return values, (unpackn('>I4', packed))
end
for i = 3, #ARGV do
  local id = ARGV[i]
  if ARGV[1] == 'dead' then
    local header = call('HGET', MORGUE, id)
    views[i - 2] = { header, header and values_in(DEAD_PAYLOADS, DEAD_BODIES, id) or {}, header and count_in(DEAD_PAYLOADS, id) or 0 }
  else
    local rec, claim = call('HGET', JOBS, id), call('HGET', CLAIMS, id)
    local notes = call('HMGET', NOTES, 'e' .. id, 'b' .. id, 'f' .. id)
    local values, count, beside = {}, 0, false
    local own = rec and own_at(rec)
    if own then values, count = { sub(rec, own + 22) }, 1 end
    if claim then
      if not own then values, count = first_in_hand(call('HGET', CLAIMED_PAYLOADS, id)) end
      beside = call('HEXISTS', SUCCESSORS, id) == 1 and count_in(PAYLOADS, id)
    elseif rec and not own then values, count = values_in(PAYLOADS, BODIES, id), count_in(PAYLOADS, id) end
    views[i - 2] = { rec, call('HGET', HISTORY, id), claim, notes[1], notes[2], values, count, beside, notes[3] }
  end
end
return { now, call('HGET', META, 'deadAge') or '', views }
`

/** The view scripts: jobs as records, read by id. */
const viewScripts = readerPair('view', { plain: viewLua, ordered: viewOrderedLua })
