/** The ready list of a Redis store: what is taken from its middle stays as a stale element, which nobody is ever given or kept waiting by. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { workerRedis } from '../../worker-redis.js'

const queue = 'mail'
const { url } = await workerRedis()
let namespaces = 0

async function opened(jobs: number): Promise<RedisStore> {
  const store = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace: `line-${++namespaces}` })
  onTestFinished(() => store.close())
  await store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  for (let from = 0; from < jobs; from += 250)
    await store.enqueue([
      {
        callId: `call-${from}`,
        queue,
        jobs: Array.from({ length: Math.min(250, jobs - from) }, (_, i) => ({
          id: idOf(from + i),
          task: 'send',
          payload: '{}',
          priority: 0,
          rememberMs: 0,
        })),
      },
    ])
  return store
}

const idOf = (i: number) => `job-${String(i).padStart(6, '0')}`
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => idOf(from + i))
const by = { worker: 'w1', leaseMs: 30_000 }

async function cancel(store: RedisStore, ids: readonly string[]): Promise<void> {
  for (let i = 0; i < ids.length; i += 1_000) await store.records.cancel(queue, { ids: ids.slice(i, i + 1_000) })
}

async function claimAll(store: RedisStore): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const { claims, more } = await store.claim([{ queue, limit: 100 }], by)
    ids.push(...claims.map(({ id }) => id))
    if (claims.length === 0 && !more) return ids
  }
}

describe('the ready list', () => {
  it('returns the rest in order, even if thousands before and between were cancelled', async () => {
    const store = await opened(6_000)
    await cancel(store, [...range(1, 4_500).reverse(), ...range(4_501, 6_000).filter((_, i) => i % 3 === 0)])
    const left = (await store.depth([queue])).depths[0]!.ready

    const given = await claimAll(store)

    expect(given).toEqual([...given].sort())
    expect(given).toHaveLength(left)
    expect(given.slice(0, 2)).toEqual([idOf(0), idOf(4_500)])
  })

  it('is cleared completely, however many stale elements precede the rest', async () => {
    const store = await opened(15_000)
    await cancel(store, range(0, 14_900).reverse())
    let changed = 0
    for (let more = true; more; ) {
      const step = await store.records.clear(queue)
      changed += step.changed
      more = step.more
    }

    expect(changed).toBe(100)
    expect((await store.depth([queue])).depths[0]).toMatchObject({ ready: 0 })
  })

  it('lists the rest, page by page', async () => {
    const store = await opened(3_000)
    await cancel(store, range(10, 2_900).reverse())
    const listed: string[] = []
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const page = await store.records.list(queue, { by: 'time', limit: 50, ...(cursor ? { cursor } : {}) })
      listed.push(...page.jobs.map(({ id }) => id))
      cursor = page.cursor
    }

    expect(listed).toEqual([...range(0, 10), ...range(2_900, 3_000)])
  })
})
