/** A claim request to one Redis server: one script call for shards of one kind, and its reply. */

import type { Buried, Claim, Claimed, Claimer, ClaimFrom, Crash, Expired, Wait } from '../../contract/claim.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { readPayload } from '../format/redis-payload.js'
import { crashes } from '../lua/leads-lua.js'
import { scriptPair } from '../lua/script-kinds.js'
import { setBack } from '../lua/set-back-lua.js'
import type { RedisShard } from '../redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { claimLoop } from './claim-loop-lua.js'
import { orderedClaim } from './claim-ordered-lua.js'
import { plainClaim } from './claim-plain-lua.js'
import { claimsIn, orderedClaimsIn } from './redis-claim-reply.js'

export interface ShardRequest {
  readonly shard: RedisShard
  readonly limit: number
  readonly leaseMs: number
  /** Ordered queues only. Infinity: all. */
  readonly maxPayloads?: number
  /** How many turns groups have. */
  readonly weights?: ClaimFrom['weights'] | undefined
}

/** The limits that the shards of a trip, all of one queue, share: their text for the script, and the keys to add. */
export interface ThrottleGate {
  readonly text: string
  readonly keys: readonly string[]
  readonly isThrottled: boolean
}

/** The gate of queues without shared limits. */
export const noGate: ThrottleGate = { text: '', keys: [], isThrottled: false }

/** The result of one trip. */
export interface ClaimReply extends Omit<Claimed, 'queue' | 'heads'> {
  readonly expired: readonly Expired[]
  readonly heads: readonly (number | undefined)[]
  /** Nothing more may be granted by the same call. */
  readonly isOver: boolean
  /**
   * The weight of all jobs that this call has granted so far. For plain queues 0, because no other trip of the same
   * call is granted jobs.
   */
  readonly bytes: number
}

/** The jobs that earlier trips of this claim were granted, all from the first queue that this trip asks. */
export interface GrantedBefore {
  readonly jobs: number
  readonly bytes: number
}

export const nothingBefore: GrantedBefore = { jobs: 0, bytes: 0 }

/**
 * Claims from shards of one kind. The script fills the claim from the first queue that grants, over its shards. `telling` gets
 * those that have ended members of joins: when the claim is over, the joins are to be told. Of an ordered queue it gets
 * those with jobs in transit that nobody brings on: this claimer is to do that.
 */
export async function claimShards(
  queues: RedisQueues,
  asks: readonly ShardRequest[],
  granted: GrantedBefore,
  by: Claimer,
  mostBytes: number,
  telling: Set<RedisShard>,
  gate: ThrottleGate = noGate,
): Promise<ClaimReply> {
  const shards = asks.map(({ shard }) => shard)
  const scripts = gate.isThrottled ? claimGatedScripts : claimScripts
  const args = claimArgs(asks, granted, by, mostBytes, gate)
  const reply = await queues.runOver(shards, scripts, args, undefined, gate.keys)
  for (const shard of tellingIn(shards, reply)) telling.add(shard)
  return claimReplyIn(shards, reply)
}

/** The arguments of the claim script. */
export function claimArgs(
  asks: readonly ShardRequest[],
  { jobs, bytes }: GrantedBefore,
  by: Claimer,
  mostBytes: number,
  gate: ThrottleGate = noGate,
): string[] {
  const flags = [by.alone ? '1' : '0', by.heads ? '1' : '0']
  const args = [by.worker, ...flags, String(mostBytes), gate.text, String(jobs), String(bytes)]
  const numbers = new Map<string, string>()
  for (const [i, { weights, ...ask }] of asks.entries()) {
    const { shard, limit, leaseMs, maxPayloads = Number.POSITIVE_INFINITY } = ask
    // Shards of an ordered queue that come in a row are one queue. A plain queue that is named twice is asked twice.
    const name = shard.kind === 'plain' ? String(i) : shard.queue
    const number = numbers.get(name) ?? String(numbers.size + 1)
    numbers.set(name, number)
    const most = Number.isFinite(maxPayloads) ? String(Math.max(1, maxPayloads)) : '0'
    args.push(number, String(limit), String(Math.ceil(leaseMs)), most)
    args.push(weights === undefined ? '' : JSON.stringify(weights))
  }
  return args
}

/** The reply of the claim script, asked about these shards. */
export function claimReplyIn(shards: readonly RedisShard[], reply: RedisReply): ClaimReply {
  const [now, grants, isOver, waits, crashed, buried, heads, more, weight, expired] = listIn(reply)
  const queueAt = (index: RedisReply | undefined) => shards[numberIn(index)]!.queue
  return {
    now: numberIn(now),
    claims: rowsIn(grants, 7).flatMap((row) => grantIn(shards[numberIn(row[0])]!, row)),
    waits: rowsIn(waits, 4).map((row) => waitIn(shards, row)),
    crashed: rowsIn(crashed, 6).map((row) => crashIn(queueAt(row[0]), row)),
    buried: rowsIn(buried, 6).map((row) => buriedIn(queueAt(row[0]), row)),
    expired: rowsIn(expired, 3).map(([index, id, task]) => ({
      queue: queueAt(index),
      id: textIn(id),
      task: textIn(task),
    })),
    heads: listIn(heads).map((ageMs) => (ageMs === -1 ? undefined : numberIn(ageMs))),
    more: more === 1,
    isOver: isOver === 1,
    bytes: numberIn(weight),
  }
}

/** The shards that have something to tell elsewhere: see `claimShards`. */
export function tellingIn(shards: readonly RedisShard[], reply: RedisReply): RedisShard[] {
  const tells = listIn(reply)[10]
  return tells === undefined ? [] : listIn(tells).map((index) => shards[numberIn(index)]!)
}

function grantIn({ queue, kind }: RedisShard, row: readonly RedisReply[]): Claim[] {
  const [, fence, jobs, pasts, errors, checkpoints, expiries] = row
  const parts = [queue, numberIn(fence), bytesIn(jobs), listIn(pasts), listIn(errors)] as const
  if (kind === 'ordered') return orderedClaimsIn(...parts)
  return claimsIn(...parts, listIn(checkpoints), listIn(expiries))
}

function waitIn(shards: readonly RedisShard[], [index, reason, forMs, lead]: readonly RedisReply[]): Wait {
  const { queue, kind, shard } = shards[numberIn(index)]!
  return {
    queue,
    ...(kind === 'plain' ? {} : { shard }),
    reason: textIn(reason) as Wait['reason'],
    ...(forMs === -1 ? {} : { forMs: numberIn(forMs) }),
    ...(lead === 1 ? { lead: true } : {}),
  }
}

export function crashIn(queue: string, [, id, task, worker, charged, crashes]: readonly RedisReply[]): Crash {
  return {
    queue,
    id: textIn(id),
    task: textIn(task),
    worker: textIn(worker),
    charged: charged === 1,
    crashes: numberIn(crashes),
  }
}

export function buriedIn(queue: string, [, id, task, reason, fence, packed]: readonly RedisReply[]): Buried {
  const payload = bytesIn(packed)
  return {
    ...{ queue, id: textIn(id), task: textIn(task), reason: textIn(reason), fence: numberIn(fence) },
    ...(payload.length > 0 && { payload: readPayload(payload) }),
  }
}

/**
 * KEYS: those of each shard asked, one after the other, then those that `throttle-gate-lua.ts` names.
 * ARGV: worker; alone (1 or 0); heads (1 or 0); most bytes; gate (`throttle-gate-lua.ts`); the number and the weight of
 * the jobs that the first queue has granted before; then for each shard the number of its queue (in the order in which
 * they are asked), its limit, its lease in ms, the most payloads of an id (0: all; unused for a plain queue), and
 * the turns of its groups as JSON, or ''.
 *
 * Returns { now, grants, whether nothing more may be granted (1 or 0), waits, crashed, buried, heads, more, weight of
 * all jobs granted, expired }, then the indexes of shards that have something to tell elsewhere, if any do.
 * grants: index of the shard, fence, jobs, pasts, errors, checkpoints, expiries; a shard may have several in a row.
 * jobs is one text. Plain: the ids, the lengths of the records and the records, as `grant` of `claim-plain-lua.ts`
 * writes them. Ordered: for each job its id and NUL, the length of its record in 3 bytes, the record, the length of its
 * payloads in 4 bytes, the payloads (as in `claimed-payloads`; none if the only one is in the record), and `m` if some
 * payloads were left behind, otherwise `.`.
 * pasts and errors: empty, or for each job its past, and its error after a `=`, or ''.
 * checkpoints, expiries: for each job that has one, its number among the jobs, from 0, and the checkpoint, or when it
 * expires.
 * waits: index, reason, forMs or -1, lead (1 or 0) · crashed, buried: see `crash` · expired: index, id, task ·
 * heads: per shard the age in ms, or -1.
 *
 * The script fills the claim from the first queue that grants. It takes jobs from the queue's shards up to the limit of
 * each, less the jobs granted before, until the claim has enough bytes. With `exclusive: 'shard'` it takes from one
 * shard only. Refuses `unknown`, and `limited` if the limits of a shard are not those that the caller assumed.
 */
const claimPair = (name: string, isGated: boolean) =>
  scriptPair(
    name,
    { plain: claimLoop(plainClaim, isGated), ordered: claimLoop(orderedClaim, isGated) },
    {
      rare: { plain: plainClaim.rare + crashes + setBack, ordered: orderedClaim.rare + crashes + setBack },
      whenFull: true,
    },
  )

/** The claim scripts: one atomic step recovers, promotes and takes jobs. */
export const claimScripts = claimPair('claim', false)
/** The claim scripts for queues with a throttle. */
const claimGatedScripts = claimPair('claim-gated', true)
