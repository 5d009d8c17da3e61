/** The ready list of a Redis store: what is taken from its middle stays as a stale element, which nobody is ever given or kept waiting by. */

import { describe, expect, it, onTestFinished } from 'vitest'
import { pagesOf } from '#src/core/values/pages.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisArgument } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { workerRedis } from '../../worker-redis.js'
import { besideScripts } from './redis-scene.js'

const queue = 'mail'
const { url } = await workerRedis()
let namespaces = 0

interface Opening {
  /** What a job has besides its id. */
  readonly having?: (i: number) => Partial<NewJob>
  /** Done before each script. */
  readonly before?: (script: string, args: readonly RedisArgument[]) => void
}

async function opened(jobs: number, { having, before = () => {} }: Opening = {}): Promise<RedisStore> {
  const client = besideScripts(openRedisClient(redisAddress(url)), { before })
  const store = new RedisStore({ client, namespace: `line-${++namespaces}` })
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
          ...having?.(from + i),
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

async function listAll(store: RedisStore): Promise<string[]> {
  const ids: string[] = []
  for await (const { jobs } of pagesOf((from) => store.records.list(queue, { by: 'time', limit: 50, ...from })))
    ids.push(...jobs.map(({ id }) => id))
  return ids
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

    expect(await listAll(store)).toEqual([...range(0, 10), ...range(2_900, 3_000)])
  })

  it('lists the rest in one order with the jobs beside it, even if stale elements are between them', async () => {
    const places: Record<number, Partial<NewJob>> = { 25: { priority: -1 }, 50: { group: 'g' }, 75: { priority: 1 } }
    const store = await opened(3_000, { having: (i) => places[i % 100] ?? {} })
    const all = range(0, 3_000)
    const at = (i: number) => all.filter((_, n) => n % 100 === i)
    const beside = [...at(25), ...at(50), ...at(75)]
    const left = [...range(0, 10), ...range(2_900, 3_000), ...at(50)].filter(
      (id) => !at(25).includes(id) && !at(75).includes(id),
    )
    await cancel(
      store,
      range(10, 2_900)
        .filter((id) => !beside.includes(id))
        .reverse(),
    )

    expect(await listAll(store)).toEqual([...at(75), ...[...new Set(left)].sort(), ...at(25)])
  })

  it('is read by a listing in calls that each look at 1,000 elements at most, if some are stale', async () => {
    let calls = 0
    const store = await opened(5_000, {
      before(script, [section]) {
        if (script === 'section' && section === 'ready') calls += 1
      },
    })
    await cancel(store, range(10, 4_990).reverse())

    const { jobs } = await store.records.list(queue, { by: 'time', state: 'ready', limit: 50 })

    expect(jobs.map(({ id }) => id)).toEqual([...range(0, 10), ...range(4_990, 5_000)])
    expect(calls).toBe(5)
  })
})
