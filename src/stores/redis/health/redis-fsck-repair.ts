/** The repair of a Redis store: makes the keys of its queues consistent again as far as no job is lost by it. */

import { UnknownQueueError } from '../../../core/errors.js'
import type { Finding, Mended, Repair } from '../../contract/store-health.js'
import type { RedisClient } from '../client/redis-client.js'
import { listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { queuesKey } from '../layout/redis-keys.js'
import { layoutIn, liveShards, queueIn, type RedisShard } from '../layout/redis-layout.js'
import { runOn } from '../lua/script-kinds.js'
import { checkRedis } from './redis-fsck.js'
import { repairScripts } from './repair-scripts.js'

/** The elements of a step. */
const stepCount = 100
/**
 * The length of a new lease. A live worker that runs the job renews it before it ends, and nobody runs the job a second
 * time meanwhile. If the worker is dead, a later claim recovers the job.
 */
const leaseMs = 30_000
const shownIds = 3

/** Throws `UnknownQueueError` for a queue that is not stored. */
export async function repairRedis(client: RedisClient, namespace: string, queue?: string): Promise<Repair> {
  const rows = rowsIn(await client.command('HGETALL', [queuesKey(namespace)]), 2)
  const stored = new Map(rows.map(([name, shards]) => [textIn(name), textIn(shards)]))
  const names = [...stored.keys()].sort()
  if (queue !== undefined && !stored.has(queue)) throw new UnknownQueueError(queue, names)
  // If a queue's layout is unreadable, a check reports what is wrong, and a person must say what it was.
  const places = (queue === undefined ? names : [queue]).flatMap((name) => placesOf(namespace, name, stored.get(name)!))
  const mended: Mended[] = []
  for (const { what, shard } of places) {
    mended.push(...(await mendLeases(client, shard, what).catch(unlessUnusable)))
    mended.push(...(await countGroups(client, shard, what).catch(unlessUnusable)))
    mended.push(...(await countPayloads(client, shard, what).catch(unlessUnusable)))
  }
  const found = await checkRedis(client, namespace, queue)
  const counted: Mended[] = []
  for (const place of places) counted.push(...(await countStale(client, place, found)))
  // Last, because until then claims do not trust the count of stale elements.
  for (const place of places) counted.push(...(await forgetLost(client, place).catch(unlessUnusable)))
  return {
    mended: [...mended, ...counted],
    left: counted.length === 0 ? found : await checkRedis(client, namespace, queue),
  }
}

interface RepairedShard {
  readonly what: string
  readonly shard: RedisShard
}

function placesOf(namespace: string, name: string, stored: string): RepairedShard[] {
  const layout = layoutIn(stored)
  if (layout === undefined) return []
  const shards = liveShards(queueIn(namespace, name, layout))
  return shards.map((shard) => ({
    what: shards.length === 1 ? `queue ${name}` : `queue ${name}, shard ${shard.shard}`,
    shard,
  }))
}

async function mendLeases(client: RedisClient, shard: RedisShard, what: string): Promise<Mended[]> {
  // Leases first: then claims whose lease is removed, because it had no valid claim, are found without one.
  const leases = await walked(client, shard, 'leases')
  const claims = await walked(client, shard, 'claims')
  const seconds = leaseMs / 1_000
  return [
    ...(leases.length === 0
      ? []
      : [
          {
            what,
            text: `took out, or counted anew, ${leases.length} leases that were not of what runs${listed(leases)}`,
          },
        ]),
    ...(claims.length === 0
      ? []
      : [{ what, text: `gave ${claims.length} running jobs that had no lease one of ${seconds} s${listed(claims)}` }]),
  ]
}

async function countGroups(client: RedisClient, shard: RedisShard, what: string): Promise<Mended[]> {
  const groups = numberIn(await runOn(client, shard, repairScripts.groups))
  if (groups === 0) return []
  return [{ what, text: `counted anew how many jobs run of ${groups === 1 ? '1 group' : `${groups} groups`}` }]
}

async function countPayloads(client: RedisClient, shard: RedisShard, what: string): Promise<Mended[]> {
  if (shard.kind === 'plain' || numberIn(await runOn(client, shard, repairScripts.many)) === 0) return []
  return [{ what, text: 'counted anew how many payloads wait' }]
}

async function walked(client: RedisClient, shard: RedisShard, name: string): Promise<string[]> {
  const ids: string[] = []
  let cursor = '0'
  do {
    const args = [name, cursor, String(stepCount), String(leaseMs)]
    const [next, some] = listIn(await runOn(client, shard, repairScripts.walk, args))
    cursor = textIn(next)
    ids.push(...listIn(some).map(textIn))
  } while (cursor !== '0')
  return ids
}

/** Counts stale elements again only if nothing else is wrong: other errors would be counted as stale elements. */
async function countStale(
  client: RedisClient,
  { what, shard }: RepairedShard,
  found: readonly Finding[],
): Promise<Mended[]> {
  const faults = found.filter((one) => one.what === what && one.level !== 'ok' && !isOfLost(one))
  if (shard.kind !== 'plain' || faults.length !== 1 || !isOfStale(faults[0]!)) return []
  const by = numberIn(await runOn(client, shard, repairScripts.stale))
  if (by === 0) return []
  const text = `counted the stale elements of 'ready-list' anew, which were ${Math.abs(by)} too ${by < 0 ? 'many' : 'few'}`
  return [{ what, text }]
}

function isOfStale({ text }: Finding): boolean {
  return text.startsWith('the number of stale elements')
}

function isOfLost({ text }: Finding): boolean {
  return text.startsWith('claims have passed over')
}

async function forgetLost(client: RedisClient, { what, shard }: RepairedShard): Promise<Mended[]> {
  const lost = numberIn(await runOn(client, shard, repairScripts.lost))
  if (lost === 0) return []
  const jobs = lost === 1 ? '1 job' : `${lost} jobs`
  return [{ what, text: `told of ${jobs} without a record that claims have passed over, and begins to count anew` }]
}

/** The check reports why. */
function unlessUnusable(): Mended[] {
  return []
}

function listed(ids: readonly string[]): string {
  const named = [...new Set(ids)].filter((id) => id !== '')
  return named.length === 0 ? '' : `: ${named.slice(0, shownIds).join(', ')}${named.length > shownIds ? ', …' : ''}`
}
