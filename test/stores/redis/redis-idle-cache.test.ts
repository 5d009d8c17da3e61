/** Quiet queues of a Redis store: for how long one handle takes its own word for what it has found. */

import { describe, expect, it, onTestFinished } from 'vitest'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { Store } from '#src/stores/contract/store.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisIdleCache } from '#src/stores/redis/redis-idle-cache.js'
import { queueIn } from '#src/stores/redis/redis-layout.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { workerRedis } from '../../worker-redis.js'

const hourMs = 3_600_000
const by = { worker: 'idle', leaseMs: 30_000 }
const from = [{ queue: 'mail', limit: 1 }]
const never = new AbortController().signal
const { url } = await workerRedis()
let namespaces = 0

function opened(): RedisClient {
  const client = openRedisClient(redisAddress(url))
  onTestFinished(() => client.close())
  return client
}

/** A queue with one start an hour that has had it: what one idle handle is told, on a monotonic clock in the hand. */
async function shutQueue() {
  const namespace = `quiet-${++namespaces}`
  let monoMs = 0
  const idle = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace, mono: () => monoMs })
  const other = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace })
  for (const store of [idle, other]) onTestFinished(() => store.close())
  const throttle = { scope: 'mail', by: 'queue', rules: [{ limit: 1, windowMs: hourMs, moderate: false }] } as const
  const settings: QueueSettings = { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle }
  await idle.open([settings])
  await other.open([settings])
  await enqueue(other, 'a', 'b')
  await other.claim(from, { ...by, worker: 'busy' })
  expect((await idle.claim(from, by)).waits).toMatchObject([{ reason: 'throttled' }])
  return {
    idle,
    pass: (ms: number) => (monoMs += ms),
    /** Rules that let the next job through, and a ring that nobody hears: whoever took it has died. */
    async loosen() {
      await other.throttles.set('mail', [{ limit: 9, windowMs: hourMs, moderate: false }])
      await opened().command('ZPOPMIN', [`{${namespace}:mail}:wake`])
    },
  }
}

async function enqueue(store: Store, ...ids: string[]): Promise<void> {
  const jobs = ids.map((id) => ({ id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }))
  await store.enqueue([{ callId: ids.join(), queue: 'mail', jobs }])
}

describe('a shut queue without news', () => {
  it('is answered from memory for less than 5 s, and then asked', async () => {
    const { idle, pass, loosen } = await shutQueue()
    await idle.wait(['mail'], 10, never)
    await loosen()
    pass(4_999)
    expect((await idle.claim(from, by)).claims).toEqual([])
    await idle.wait(['mail'], 10, never)
    pass(1)

    expect((await idle.claim(from, by)).claims.map(({ id }) => id)).toEqual(['b'])
  })

  it('is checked by a wait, even right after an answer from memory', async () => {
    const { idle, pass, loosen } = await shutQueue()
    await idle.wait(['mail'], 10, never)
    await loosen()
    pass(2_000)
    expect((await idle.claim(from, by)).claims).toEqual([])

    expect(await idle.wait(['mail'], 60_000, never)).toEqual(['mail'])
  })
})

it('a removed shard does not hide a job in another', async () => {
  const client = opened()
  const quiet = new RedisIdleCache(client, () => 0)
  const ordered = queueIn(`quiet-${++namespaces}`, 'orders', { kind: 'ordered', shards: 2, generation: 0 })
  const [first, second] = ordered.shards
  await client.command('HSET', [`${first!.tag}:meta`, 'kind', 'ordered'])
  await client.command('HSET', [`${second!.tag}:meta`, 'kind', 'ordered'])
  expect(await quiet.holdAnything(ordered.shards)).toBe(false)
  await client.command('DEL', [`${second!.tag}:meta`])
  await client.command('ZADD', [`${first!.tag}:ready`, '0', 'a'])

  expect(await quiet.holdAnything(ordered.shards)).toBe(true)
})

describe('a queue whose last jobs a claim has taken', () => {
  /** Whether a wait after such a claim asks what the queue holds before it listens. */
  async function looksAfter({ suspect }: { readonly suspect: boolean }): Promise<boolean> {
    const client = opened()
    const store = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace: `quiet-${++namespaces}` })
    onTestFinished(() => store.close())
    await store.open([{ name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
    if (suspect) {
      await enqueue(store, 'crashes')
      const [{ id, fence } = { id: '', fence: 0 }] = (await store.claim(from, { ...by, alone: true })).claims
      await store.workers.gone([{ queue: 'mail', id, fence }], by.worker)
    }
    await enqueue(store, 'a')
    const { claims, waits } = await store.claim([{ queue: 'mail', limit: 2 }], by)
    expect([claims.length, waits.map(({ reason }) => reason)]).toEqual([1, suspect ? ['empty', 'suspect'] : ['empty']])
    await client.command('CONFIG', ['RESETSTAT'])
    await store.wait(['mail'], 10, never)
    return /cmdstat_exists:/.test(String(await client.command('INFO', ['commandstats'])))
  }

  it('is not checked by the next wait, unless suspects are left', async () => {
    expect(await looksAfter({ suspect: false })).toBe(false)
    expect(await looksAfter({ suspect: true })).toBe(true)
  })
})
