/** The registry of workers of a Redis store, with the claims they hold. */

import { hasCode } from '../../../core/error-codes.js'
import type { Buried, Crash } from '../../contract/claim.js'
import { type HeldClaim, storedWorker, type WorkerRegistry } from '../../contract/worker-registry.js'
import { stepLimit } from '../../rules/bounds.js'
import { compareBytes } from '../../rules/byte-order.js'
import { buriedIn, crashIn } from '../claim/redis-claim-call.js'
import type { RedisClient, RedisReply } from '../client/redis-client.js'
import { bytesIn, listIn, numberIn, rowsIn, textIn } from '../client/redis-reply.js'
import { readBeat, readClaim, refuseLongWorker } from '../format/redis-job.js'
import { workersKey } from '../layout/redis-keys.js'
import { liveShards, type RedisShard } from '../layout/redis-layout.js'
import { queueStateScripts } from '../shards/queue-state-script.js'
import { type RedisQueues, unlessUnknown } from '../shards/redis-queues.js'
import { sendByShard } from '../shards/redis-shard-router.js'
import { adoptScript } from './adopt-script.js'
import { goneScripts } from './gone-script.js'
import { heldScripts } from './held-script.js'
import { registryScript } from './registry-script.js'

/** The bytes before a record: when the worker was seen, when it expires, and the letter of its order. */
const headBytes = 13
const orderLetters = { stop: 's', recycle: 'r' } as const

export function redisRegistry(client: RedisClient, queues: RedisQueues, namespace: string): WorkerRegistry {
  const key = workersKey(namespace)

  /** The shards of all queues, or of the named ones. */
  async function allShards(named?: readonly string[]): Promise<RedisShard[]> {
    const names = await queues.names()
    const wanted = named === undefined ? names : names.filter((name) => named.includes(name))
    return (await queues.findNow(wanted)).flatMap(liveShards)
  }

  async function held(worker: string): Promise<HeldClaim[]> {
    const found = await Promise.all((await allShards()).map((shard) => unlessUnusable(heldIn(shard, worker))))
    return found.flatMap((of) => of ?? []).slice(0, stepLimit)
  }

  async function heldIn(shard: RedisShard, worker: string): Promise<HeldClaim[]> {
    const rows = rowsIn(await queues.run(shard, heldScripts, [worker]), 4)
    return rows
      .map(([id, claim, beat, task]) => ({
        id: textIn(id),
        task: textIn(task),
        ...readClaim(bytesIn(claim)),
        beat: bytesIn(beat),
      }))
      .sort((a, b) => a.fence - b.fence || a.seq - b.seq || compareBytes(a.id, b.id))
      .map(({ id, task, fence, alone, beat }) => {
        const { updatedAt: _, ...said } = beat.length === 0 ? {} : readBeat(beat)
        return { queue: shard.queue, id, fence, task, alone, ...said }
      })
  }

  async function remove(id: string): Promise<void> {
    const record = await client.command('HGET', [key, id])
    await client.command('HDEL', [key, id])
    // It leads only queues that it serves. If its record is gone, these are unknown, so all are asked.
    const shards = await allShards(
      record === null ? undefined : storedWorker(textIn(bytesIn(record).subarray(headBytes)))?.queues,
    )
    await Promise.all(shards.map((shard) => unlessUnusable(queues.run(shard, queueStateScripts, ['unlead', id]))))
  }

  return {
    async beat(worker, ttlMs) {
      const { id, ...record } = worker
      const args = ['beat', id, String(Math.ceil(ttlMs)), JSON.stringify(record)]
      const letter = textIn(await client.run(registryScript, [key], args))
      return letter === 's' ? 'stop' : letter === 'r' ? 'recycle' : undefined
    },

    async order(id, order) {
      return (await client.run(registryScript, [key], ['order', id, orderLetters[order]])) === 1
    },

    remove,

    async list() {
      const rows = rowsIn(await client.run(registryScript, [key], ['list']), 4)
      return rows
        .flatMap(([id, seenAt, silentMs, text]) => {
          const record = storedWorker(textIn(text))
          if (record === undefined) return []
          return [{ id: textIn(id), ...record, seenAt: numberIn(seenAt), silentMs: numberIn(silentMs) }]
        })
        .sort((a, b) => (a.id < b.id ? -1 : 1))
    },

    held,

    async gone(claims, worker, error = '') {
      const crashed: (readonly [number, Crash])[] = []
      const buried: (readonly [number, Buried])[] = []
      await sendByShard(queues, claims, async (shard, numbers) => {
        const args = numbers.flatMap((i) => [claims[i]!.id, String(claims[i]!.fence)])
        const [ended, dead] = listIn(await queues.run(shard, goneScripts, [worker, error, ...args]))
        const numberOf = (row: readonly RedisReply[]) => numbers[numberIn(row[0])]!
        crashed.push(...rowsIn(ended, 6).map((row) => [numberOf(row), crashIn(shard.queue, row)] as const))
        buried.push(...rowsIn(dead, 6).map((row) => [numberOf(row), buriedIn(shard.queue, row)] as const))
      })
      if ((await held(worker)).length === 0) await remove(worker)
      return { crashed: inOrder(crashed), buried: inOrder(buried) }
    },

    async adopt(claim, from, to) {
      refuseLongWorker(to)
      let isAdopted = false
      await sendByShard(queues, [claim], async (shard) => {
        const args = [claim.id, String(claim.fence), from, to]
        isAdopted = (await queues.run(shard, adoptScript, args)) === 1
      })
      return isAdopted
    },
  }
}

/** In the order in which the claims were given. */
function inOrder<T>(numbered: readonly (readonly [number, T])[]): T[] {
  return numbered.toSorted(([a], [b]) => a - b).map(([, one]) => one)
}

/** A damaged shard must not hide the claims in other shards. */
function unlessUnusable<T>(asked: Promise<T>): Promise<T | undefined> {
  return unlessUnknown(asked).catch((error: unknown) => {
    if (hasCode(error, 'store-corrupt')) return undefined
    throw error
  })
}
