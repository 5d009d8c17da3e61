/** A claim request to one Redis server: shards of one kind asked by one script, and its reply. */

import type { Buried, Claimed, Claimer, Crash, Wait } from '../../contract/claim.js'
import type { RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import type { RedisShard } from '../layout/redis-layout.js'
import type { RedisQueues } from '../shards/redis-queues.js'
import { claimOrderedGatedScript, claimOrderedScript } from './claim-ordered-script.js'
import { claimGatedScript, claimScript } from './claim-script.js'
import { claimsIn } from './redis-claim-reply.js'
import { orderedClaimsIn } from './redis-ordered-claim-reply.js'

export interface ShardRequest {
  readonly shard: RedisShard
  readonly limit: number
  readonly leaseMs: number
  /** Of an ordered queue; Infinity: all. */
  readonly maxPayloads?: number
}

/** What limits all that a trip asks, of one queue: what the script is told of it, and the keys that it is given behind the others. */
export interface ThrottleGate {
  readonly text: string
  readonly keys: readonly string[]
  readonly isThrottled: boolean
}

/** Of queues that nothing limits together. */
export const noGate: ThrottleGate = { text: '', keys: [], isThrottled: false }

/** What one trip brought. */
export interface ClaimReply extends Omit<Claimed, 'queue' | 'heads'> {
  readonly heads: readonly (number | undefined)[]
  /** Nothing more may be granted by the same call. */
  readonly isOver: boolean
  /** Of an ordered queue: what this call has granted by now weighs so much. */
  readonly bytes?: number
}

/** What the trips before this one were granted. */
export interface GrantedBefore {
  readonly jobs: number
  readonly bytes: number
}

/** The script stops at the first that grants. */
export async function claimPlain(
  queues: RedisQueues,
  asks: readonly ShardRequest[],
  by: Claimer,
  mostBytes: number,
  gate: ThrottleGate = noGate,
): Promise<ClaimReply> {
  const args = [by.worker, by.alone ? '1' : '0', by.heads ? '1' : '0', String(mostBytes), gate.text]
  for (const { limit, leaseMs } of asks) args.push(String(limit), String(Math.ceil(leaseMs)))
  const shards = asks.map(({ shard }) => shard)
  const script = gate.isThrottled ? claimGatedScript : claimScript
  const reply = await queues.runOver(shards, script, args, undefined, gate.keys)
  const [now, granted, fence, jobs, pasts, errors, ...rest] = listIn(reply)
  const claims =
    granted === -1
      ? []
      : claimsIn(
          shards[numberIn(granted)]!.queue,
          numberIn(fence),
          bytesIn(jobs),
          listIn(pasts),
          listIn(errors),
          rest[5],
        )
  return { now: numberIn(now), claims, ...restIn(shards, rest), isOver: false }
}

/** The script fills the first queue that grants from as many of its shards as it takes. `granted`: what the first of the queues gave before. */
export async function claimOrdered(
  queues: RedisQueues,
  asks: readonly ShardRequest[],
  { jobs, bytes }: GrantedBefore,
  by: Claimer,
  mostBytes: number,
  gate: ThrottleGate = noGate,
): Promise<ClaimReply> {
  const flags = [by.alone ? '1' : '0', by.heads ? '1' : '0']
  const args = [by.worker, ...flags, String(mostBytes), gate.text, String(jobs), String(bytes)]
  const numbers = new Map<string, string>()
  for (const { shard, limit, leaseMs, maxPayloads = Number.POSITIVE_INFINITY } of asks) {
    const number = numbers.get(shard.queue) ?? String(numbers.size + 1)
    numbers.set(shard.queue, number)
    const most = Number.isFinite(maxPayloads) ? String(Math.max(1, maxPayloads)) : '0'
    args.push(number, String(limit), String(Math.ceil(leaseMs)), most)
  }
  const shards = asks.map(({ shard }) => shard)
  const script = gate.isThrottled ? claimOrderedGatedScript : claimOrderedScript
  const [now, grants, isOver, ...rest] = listIn(await queues.runOver(shards, script, args, undefined, gate.keys))
  const claims = rowsIn(grants, 5).flatMap(([index, fence, jobs, pasts, errors]) =>
    orderedClaimsIn(shards[numberIn(index)]!.queue, numberIn(fence), bytesIn(jobs), listIn(pasts), listIn(errors)),
  )
  return { now: numberIn(now), claims, ...restIn(shards, rest), isOver: isOver === 1, bytes: numberIn(rest[5]) }
}

/** What the answers of both kinds end with. */
function restIn(
  shards: readonly RedisShard[],
  [waits, crashed, buried, heads, more]: readonly RedisReply[],
): Omit<ClaimReply, 'now' | 'claims' | 'isOver'> {
  const queueAt = (index: RedisReply | undefined) => shards[numberIn(index)]!.queue
  return {
    waits: rowsIn(waits, 4).map((row) => waitIn(shards, row)),
    crashed: rowsIn(crashed, 6).map((row) => crashIn(queueAt(row[0]), row)),
    buried: rowsIn(buried, 4).map((row) => buriedIn(queueAt(row[0]), row)),
    heads: listIn(heads).map((ageMs) => (ageMs === -1 ? undefined : numberIn(ageMs))),
    more: more === 1,
  }
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

export function buriedIn(queue: string, [, id, task, reason]: readonly RedisReply[]): Buried {
  return { queue, id: textIn(id), task: textIn(task), reason: textIn(reason) }
}
