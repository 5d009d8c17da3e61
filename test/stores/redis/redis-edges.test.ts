/** Edges of a Redis store: a server that is full, records that are large, ages beyond 1970, queues that are half made. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { queuesKey } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { changed } from '../../changed.js'
import { besideScripts, connect, queue, RedisScene, settings } from './redis-scene.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 120_000)

async function opened(more: Partial<QueueSettings> = {}): Promise<RedisScene> {
  const scene = new RedisScene(connect(server))
  onTestFinished(() => scene.store.close())
  await scene.store.open([{ ...settings, ...more }])
  return scene
}

const numbered = (count: number, more: object = {}) =>
  Array.from({ length: count }, (_, i) => ({ id: `job-${i}`, ...more }))

async function full(client: RedisClient): Promise<void> {
  await client.command('CONFIG', ['SET', 'maxmemory', '1'])
  onTestFinished(async () => {
    await client.command('CONFIG', ['SET', 'maxmemory', '0'])
  })
}

/** A port whose scripts set out as `before` lets them. */
function heldBack(client: RedisClient, before: (keys: readonly string[], args: readonly unknown[]) => Promise<void>) {
  return changed(client, {
    async run(script, keys, args) {
      await before(keys, args)
      return client.run(script, keys, args)
    },
  })
}

describe('a server that is out of memory', () => {
  it('can be opened by starting workers, so that they can drain it', async () => {
    const scene = await opened()
    await scene.add({ id: 'a' })
    await full(scene.client)

    const late = new RedisStore({ client: connect(server), namespace: scene.namespace })
    onTestFinished(() => late.close())
    await late.open([{ ...settings, maxPending: 5 }])

    expect((await late.claim([{ queue, limit: 1 }], { worker: 'w2', leaseMs: 1_000 })).claims).toHaveLength(1)
  })

  it('answers every read, and can be waited on', async () => {
    const scene = await opened()
    await scene.add({ id: 'a' }, { id: 'b' })
    const [claim] = await scene.take()
    await full(scene.client)
    const { records, workers } = scene.store
    const soon = AbortSignal.timeout(5_000)

    expect((await scene.store.depth([queue])).depths[0]).toMatchObject({ ready: 1, running: 1 })
    expect(await scene.store.wait([queue], 1_000, soon)).toEqual([queue])
    expect((await records.list(queue, { by: 'time', limit: 5 })).jobs).toHaveLength(2)
    expect(await records.get(queue, 'b')).toMatchObject({ state: 'ready' })
    expect(await records.watch([{ queue, id: 'never' }], 0, soon)).toEqual([{ queue, id: 'never' }])
    expect(await records.queues()).toHaveLength(1)
    expect(await workers.held('worker-1')).toMatchObject([{ id: claim!.id }])
    const heads = await scene.store.claim([{ queue, limit: 1 }], { worker: 'w2', leaseMs: 1_000, heads: true })
    expect(heads.claims).toHaveLength(1)
  })
})

describe('administration', () => {
  it('reaches every failed job, thousands of them, even if the earlier ones are finished', async () => {
    const count = 2_500
    const scene = await opened()
    for (let i = 0; i < count; i += 250) await scene.add(...numbered(count).slice(i, i + 250))
    for (let i = 0; i < count; i += 250) {
      const claims = await scene.take(250)
      await scene.store.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'retry', delayMs: 600_000 })))
    }

    const steps: number[] = []
    for (let isMore = true; isMore; ) {
      const { changed, more } = await scene.store.records.runNow(queue, 'failed')
      steps.push(changed)
      isMore = more
    }

    expect(steps).toEqual([1_000, 1_000, 500])
    expect((await scene.store.depth([queue])).depths[0]).toMatchObject({ ready: count, scheduled: 0 })
  })
})

describe('a damaged ready list', () => {
  it('does not make a clear loop for ever', async () => {
    const scene = await opened()
    await scene.add({ id: 'a' }, { id: 'b' })
    await scene.raw('HDEL', 'jobs', 'a')

    const steps = []
    do steps.push(await scene.store.records.clear(queue))
    while (steps.at(-1)!.more && steps.length < 5)

    expect(steps[0]).toMatchObject({ changed: 1 })
    expect(steps.at(-1)).toEqual({ changed: 0, more: false })
  })
})

describe('a listing by id', () => {
  it('skips any number of expired results', async () => {
    const scene = await opened()
    const count = 60
    await scene.add(...numbered(count))
    for (const claim of await scene.take(count))
      await scene.end(claim, { kind: 'complete', result: { payload: '1', keepMs: 1_000 } })
    await scene.add({ id: 'waits' })
    // As if they had been kept for a second already.
    for (const member of await scene.all('expiry')) await scene.raw('ZADD', 'expiry', '1', member)

    const { jobs, cursor } = await scene.store.records.list(queue, { by: 'id', limit: 5 })

    expect([jobs.map(({ id }) => id), cursor]).toEqual([['waits'], undefined])
  })
})

describe('retention', () => {
  it('keeps dead jobs if their age limit reaches back beyond 1970', async () => {
    const scene = await opened({ dead: { ageMs: 100 * 365 * 86_400_000 } })
    await scene.add({ id: 'a' }, { id: 'b' })
    const [a, b] = await scene.take(2)

    await scene.end(a!, { kind: 'bury' })
    await scene.end(b!, { kind: 'complete' })

    expect((await scene.store.depth([queue])).depths[0]).toMatchObject({ dead: 1 })
  })
})

describe('large payloads', () => {
  it('are not all read for a claim that gets one of them, even with stale elements in the ready list', async () => {
    const scene = await opened()
    const payload = 'x'.repeat(1_000_000)
    for (const job of numbered(100, { payload })) await scene.add(job)
    await scene.store.records.delete(queue, { ids: ['job-50'] })

    // In the second claim: the first takes what the server's Lua held before.
    await scene.take(250)
    await scene.take(250)

    const info = String(await scene.client.command('INFO', ['memory']))
    const [, held] = /used_memory_vm_eval:(\d+)/.exec(info)!
    expect(Number(held)).toBeLessThan(32_000_000)
  })
})

describe('a queue that is registered but not stored', () => {
  it('hides no other queue, and does not stop anyone from ending claims of dead workers', async () => {
    const scene = await opened()
    await scene.add({ id: 'a' })
    const [claim] = await scene.take()
    await scene.client.command('HSET', [queuesKey(scene.namespace), 'ghost', '2'])
    const { records, workers } = scene.store

    expect((await records.queues()).map(({ name }) => name)).toEqual([queue])
    expect(await workers.held('worker-1')).toHaveLength(1)
    expect((await workers.gone([claim!], 'worker-1')).crashed).toMatchObject([{ id: 'a' }])
    await workers.remove('worker-1')
    await expect(records.list('ghost', { by: 'time', limit: 1 })).rejects.toThrow(/'ghost'/)
  })
})

describe('two processes that open a queue at once with different orders', () => {
  it('leave all shards in the order of one, and refuse the other', async () => {
    const base = new RedisScene(connect(server))
    onTestFinished(() => base.store.close())
    const shards = 4
    /** What `isFirst` picks sets out at once, the rest when the others have gone. */
    const late = (isFirst: (key: string) => boolean) =>
      heldBack(connect(server), async ([key], [isWritten]) => {
        if (isWritten === '1' && !isFirst(key!)) await new Promise((resolve) => setTimeout(resolve, 100))
      })
    const openers = [late((key) => key.includes(':0}')), late((key) => !key.includes(':0}'))].map((client) => {
      const store = new RedisStore({ client, namespace: base.namespace })
      onTestFinished(() => store.close())
      return store
    })
    const orders = ['fifo', 'lifo'] as const

    const ended = await Promise.allSettled(
      openers.map((store, i) => store.open([{ ...settings, order: orders[i]!, shards }])),
    )

    const stored = await Promise.all(
      Array.from({ length: shards }, (_, n) =>
        base.client.command('HGET', [`{${base.namespace}:${queue}:${n}}:meta`, 'order']),
      ),
    )
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
    expect(stored.map(String)).toEqual(Array(shards).fill('fifo'))
  })
})

describe('a wait', () => {
  it('whose connection is lost shortly before its end ends normally', async () => {
    const [client, operator] = [connect(server), connect(server)]
    onTestFinished(async () => {
      await Promise.all([client.close(), operator.close()])
    })
    const never = new AbortController().signal
    await operator.command('ZADD', ['bell', '0', '0'])
    expect(await client.pop(['bell'], 5_000, never)).toBe('bell')

    for (let round = 0; round < 20; round++) {
      const popping = client.pop(['bell'], 30.5, never).catch((error: unknown) => error)
      await operator.command('CLIENT', ['KILL', 'TYPE', 'normal', 'SKIPME', 'yes'])
      const ended = await popping
      if (ended !== undefined) expect(ended).toBeInstanceOf(StoreUnavailableError)
    }
  })
})

describe('a watch of many jobs', () => {
  it('asks for 1,000 of a shard at a time, and resolves with all that have ended', async () => {
    const { store, client, namespace } = await opened()
    const ids = numbered(2_500).map(({ id }) => id)
    for (let from = 0; from < ids.length; from += 250) {
      const jobs = ids
        .slice(from, from + 250)
        .map((id) => ({ id, task: 'send', payload: '', priority: 0, rememberMs: 0 }))
      await store.enqueue([{ callId: `call-${from}`, queue, jobs }])
    }
    const [first, last] = [ids[7]!, ids.at(-1)!]
    await store.records.delete(queue, { ids: [first, last] })
    const asked: number[] = []
    let underWay = 0
    const slow = besideScripts(client, {
      before(script, args) {
        if (script !== 'ended') return
        underWay += 1
        expect(underWay).toBe(1)
        asked.push(args.length)
      },
      after(script) {
        if (script === 'ended') underWay -= 1
      },
    })
    const watcher = new RedisStore({ client: slow, namespace })

    const ended = await watcher.records.watch(
      ids.map((id) => ({ queue, id })),
      600_000,
      new AbortController().signal,
    )

    expect(ended.map(({ id }) => id)).toEqual([first, last])
    expect(asked).toEqual([1_000, 1_000, 500])
  })
})

describe('a watch of jobs in several shards', () => {
  it('stops listening to all of them if it cannot listen to one', async () => {
    const client = connect(server)
    const namespace = `watch-${process.pid}`
    let stopped = 0
    let listened = 0
    const partial = changed(client, {
      async listen(channel, heard) {
        if (channel.includes(':1}')) throw new Error('out of reach')
        const stop = await client.listen(channel, heard)
        listened += 1
        return () => {
          stopped += 1
          stop()
        }
      },
    })
    const store = new RedisStore({ client: partial, namespace })
    onTestFinished(() => store.close())
    await store.open([{ ...settings, shards: 2 }])
    const jobs = Array.from({ length: 20 }, (_, i) => ({
      id: `job-${i}`,
      task: 'send',
      payload: '',
      priority: 0,
      rememberMs: 0,
    }))
    await store.enqueue([{ callId: 'call', queue, jobs }])

    const watch = store.records.watch(
      jobs.map(({ id }) => ({ queue, id })),
      600_000,
      new AbortController().signal,
    )

    await expect(watch).rejects.toThrow('out of reach')
    await expect.poll(() => [listened, stopped]).toEqual([1, 1])
  })
})

describe('a call to Redis', () => {
  it('ends the leads of a leaving worker only in the queues that it served', async () => {
    const touched = new Set<string>()
    const client = heldBack(connect(server), async (keys) => void touched.add(keys[0]!.split(':')[1]!))
    const scene = new RedisScene(client)
    onTestFinished(() => scene.store.close())
    await scene.store.open([settings, { ...settings, name: 'sms' }])
    const process = { host: 'h', boot: 'b', pidns: 'n', pid: 1, ticks: 1, concurrency: 1, running: 0, startedAt: 0 }
    await scene.store.workers.beat({ ...process, id: 'w1', queues: [queue] }, 60_000)
    await scene.add({ id: 'a', delayMs: 60_000 })
    const by = { worker: 'w1', leaseMs: 1_000 }
    expect((await scene.store.claim([{ queue, limit: 1 }], by)).waits[0]?.lead).toBe(true)
    touched.clear()

    await scene.store.workers.remove('w1')

    expect([...touched]).toEqual([`${queue}}`])
    expect((await scene.store.claim([{ queue, limit: 1 }], { ...by, worker: 'w2' })).waits[0]?.lead).toBe(true)
  })

  it('reports ends only in the queue whose lease has ended', async () => {
    const scene = await opened()
    await scene.store.open([{ ...settings, name: 'sms' }])
    const told: string[] = []
    const here = scene.key('ends')
    const there = here.replace(`${queue}}`, 'sms}')
    const marked = new Promise<void>((resolve) => {
      for (const channel of [here, there])
        void scene.client.listen(channel, (message) => (message === 'mark' ? resolve() : told.push(channel)))
    })
    await scene.add({ id: 'a' })
    const from = [queue, 'sms'].map((name) => ({ queue: name, limit: 0 }))
    // Whoever is subscribed at last is told of all that comes behind.
    await expect.poll(async () => scene.client.command('PUBLISH', [there, 'x'])).toBe(1)
    await expect.poll(async () => scene.client.command('PUBLISH', [here, 'x'])).toBe(1)
    await expect.poll(() => told.length).toBeGreaterThanOrEqual(2)
    await scene.take(1, 1)
    told.length = 0
    while ((await scene.store.claim(from, { worker: 'finder', leaseMs: 1 })).crashed.length === 0);
    await scene.client.command('PUBLISH', [there, 'mark'])
    await marked

    expect(told).toEqual([here])
  })
})

it('a server that loses its data while a queue is opened gets a new queue', async () => {
  const scene = new RedisScene(connect(server))
  onTestFinished(() => scene.store.close())
  const client = connect(server)
  const forgetful = changed(client, {
    async command(command, args) {
      const reply = await client.command(command, args)
      // Once, behind the registration.
      if (command === 'HSETNX' && losses++ === 0) await client.command('DEL', [scene.queues])
      return reply
    },
  })
  let losses = 0
  const store = new RedisStore({ client: forgetful, namespace: scene.namespace })
  onTestFinished(() => store.close())

  expect(await store.open([settings])).toMatchObject([{ name: queue, kind: 'plain' }])
  expect(losses).toBe(2)
})
