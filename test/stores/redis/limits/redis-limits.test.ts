/** Limits on a Redis store: what they cost, who knows of them, and where what they count lies. */

import { compareStores, modelOf, startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { ConfigConflictError } from '#src/core/errors.js'
import type { Throttle } from '#src/core/queue/throttle.js'
import { redisHarness } from '#src/store-testing/harness/redis-harness.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { queuesKey } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'

const plain = (name: string, more: Partial<QueueSettings> = {}): QueueSettings => {
  return { name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, ...more }
}
const ordered = (name: string, more: Partial<QueueSettings> = {}): QueueSettings => {
  return { ...plain(name, more), kind: 'ordered', shards: 2 }
}
const hourly = (scope: string, limit: number, by: Throttle['by'] = 'queue'): Throttle => {
  return { scope, by, rules: [{ limit, windowMs: 3_600_000, moderate: false }] }
}
const worker = { worker: 'w1', leaseMs: 600_000 }
let namespaces = 0
let calls = 0

for (const mode of ['single', 'cluster'] as const) {
  describe(`limits on ${mode === 'single' ? 'one server' : 'a cluster'}`, () => {
    let url: string
    beforeAll(async () => {
      url = (await startRedis({ mode })).url
    }, 120_000)

    it.each([1, 2, 3, 4])('are kept step by step like those of the memory store, in seed %i', async (seed) => {
      const subject = await redisHarness(url)()
      const model = await modelOf(subject)
      onTestFinished(async () => {
        await model.close()
        await subject.close()
      })
      await compareStores(model, subject, { kind: 'limited', seed, steps: 60 })
    })

    function port(): RedisClient {
      const opened = openRedisClient(redisAddress(url))
      onTestFinished(() => opened.close())
      return opened
    }

    function storeIn(namespace: string, on = port()): RedisStore {
      return new RedisStore({ client: on, namespace })
    }

    async function enqueue(store: RedisStore, queue: string, ids: readonly string[], group?: string): Promise<void> {
      const jobs = ids.map((id) => ({
        id,
        task: 't',
        payload: '1',
        priority: 0,
        rememberMs: 0,
        ...(group && { group }),
      }))
      await store.enqueue([{ callId: `call-${++calls}`, queue, jobs }])
    }

    async function take(store: RedisStore, queue: string, limit = 10): Promise<readonly Claim[]> {
      return (await store.claim([{ queue, limit }], worker)).claims
    }

    it('are known to a handle that has known the queue since before', async () => {
      const namespace = `limits-${++namespaces}`
      const [before, after] = [storeIn(namespace), storeIn(namespace)]
      await before.open([plain('mail')])
      await enqueue(before, 'mail', ['a', 'b', 'c'])
      expect(await take(before, 'mail', 1)).toHaveLength(1)

      await after.open([plain('mail', { throttle: hourly('mail', 1) })])

      expect(await take(before, 'mail')).toHaveLength(1)
      expect(await take(before, 'mail')).toEqual([])
      expect((await before.throttles.state('mail'))?.hits).toEqual([1])
    })

    it('are shared with a queue that joins the scope after others have claimed', async () => {
      const namespace = `limits-${++namespaces}`
      const store = storeIn(namespace)
      const throttle = hourly('api', 3)
      await store.open([plain('mail', { throttle })])
      await enqueue(store, 'mail', ['a', 'b', 'c'])
      expect(await take(store, 'mail', 1)).toHaveLength(1)

      const other = storeIn(namespace)
      await other.open([plain('sms', { throttle })])
      await enqueue(other, 'sms', ['d', 'e', 'f'])

      expect(await take(store, 'mail', 1)).toHaveLength(1)
      expect(await take(other, 'sms')).toHaveLength(1)
      expect(await take(store, 'mail')).toEqual([])
      expect((await store.throttles.state('sms'))?.queues).toEqual(['mail', 'sms'])
    })

    it('count running jobs in all shards of an ordered queue, also for a handle that knew it without a limit', async () => {
      const namespace = `limits-${++namespaces}`
      const [before, after] = [storeIn(namespace), storeIn(namespace)]
      if (mode === 'cluster') await before.open([ordered('orders', { maxRunning: 100 })])
      else await before.open([ordered('orders')])
      const ids = Array.from({ length: 20 }, (_, i) => `id-${i}`)
      await enqueue(before, 'orders', ids)
      await take(before, 'orders', 1)
      await after.records.setLimits('orders', { maxRunning: 3 })

      const claims = await take(before, 'orders')
      expect(claims).toHaveLength(2)
      expect(await take(after, 'orders')).toEqual([])
      const { id, fence } = claims[0]!
      await before.settle([{ queue: 'orders', id, fence, kind: 'complete' }])
      expect(await take(after, 'orders')).toHaveLength(1)
    })

    it('hold a group back in every shard of its queue, even after a reshard', async () => {
      const store = storeIn(`limits-${++namespaces}`)
      await store.open([ordered('orders')])
      const ids = Array.from({ length: 12 }, (_, i) => `id-${i}`)
      await enqueue(store, 'orders', ids, 'x')
      const [{ id, fence }] = (await take(store, 'orders', 1)) as [Claim]
      const hold = { of: 'group', forMs: 3_600_000 } as const
      await store.settle([{ queue: 'orders', id, fence, kind: 'release', delayMs: 0, hold }])
      expect(await take(store, 'orders')).toEqual([])

      while ((await store.records.reshard('orders', 3)).more);
      await enqueue(store, 'orders', ['y-1'], 'y')

      expect((await take(store, 'orders')).map((claim) => claim.id)).toEqual(['y-1'])
      expect((await store.depth(['orders'])).depths[0]).toMatchObject({ ready: 12, running: 1 })
      expect((await store.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
    })

    it('wake no worker for new jobs while they deny them', async () => {
      const store = storeIn(`limits-${++namespaces}`)
      await store.open([ordered('orders', { maxRunning: 1 }), plain('mail', { throttle: hourly('mail', 1) })])
      for (const queue of ['orders', 'mail']) {
        await enqueue(store, queue, ['a', 'b', 'c', 'd'])
        expect(await take(store, queue)).toHaveLength(1)
        expect(await take(store, queue)).toEqual([])
        await enqueue(store, queue, ['e', 'f', 'g', 'h'], 'x')
      }

      expect(await store.wait(['orders', 'mail'], 30, new AbortController().signal)).toEqual([])
    })

    it('cost an idle worker nothing while they deny its jobs', async () => {
      const asked: string[] = []
      const counted = port()
      const { run, command } = counted
      counted.run = (script, ...rest) => {
        asked.push(script.name)
        return run.call(counted, script, ...rest)
      }
      counted.command = (name, ...rest) => {
        asked.push(name)
        return command.call(counted, name, ...rest)
      }
      const store = storeIn(`limits-${++namespaces}`, counted)
      await store.open([plain('mail', { throttle: hourly('mail', 1) })])
      await enqueue(store, 'mail', ['a', 'b'])
      await take(store, 'mail')
      const [told] = (await store.claim([{ queue: 'mail', limit: 1 }], worker)).waits
      expect(told).toMatchObject({ reason: 'throttled', lead: true })
      await store.wait(['mail'], 20, new AbortController().signal)

      asked.splice(0)
      const { claims, waits } = await store.claim([{ queue: 'mail', limit: 1 }], worker)
      const others = (await store.claim([{ queue: 'mail', limit: 1 }], { ...worker, worker: 'w2' })).waits

      expect(claims).toEqual([])
      expect(waits).toEqual([{ ...told, forMs: expect.any(Number) }])
      expect(waits[0]!.forMs).toBeLessThanOrEqual(told!.forMs!)
      expect(others).toMatchObject([{ reason: 'throttled' }])
      expect(asked).toEqual(['claim-gated'])
    })

    it('take effect at once when they are changed: waiters are woken, and jobs start', async () => {
      const namespace = `limits-${++namespaces}`
      const [store, other] = [storeIn(namespace), storeIn(namespace)]
      await store.open([plain('mail', { throttle: hourly('mail', 1) })])
      await enqueue(store, 'mail', ['a', 'b', 'c'])
      await take(store, 'mail', 1)
      expect(await take(store, 'mail')).toEqual([])
      const waiting = store.wait(['mail'], 10_000, new AbortController().signal)

      await other.open([])
      await other.throttles.set('mail', hourly('mail', 2).rules)

      expect(await waiting).toEqual(['mail'])
      expect(await take(store, 'mail')).toHaveLength(1)
    })

    it('are stored in one place with all their counters, and refused if that is impossible', async () => {
      const namespace = `limits-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([
        ordered('wide'),
        plain('mail'),
        ordered('orders', { throttle: hourly('api', 9), maxRunning: 2 }),
      ])
      const reply = await port().command('HGET', [queuesKey(namespace), 'orders'])
      expect(String(reply)).toBe('2 ordered 0 at api in api bounded')
      await enqueue(store, 'orders', ['a'], 'x')
      await take(store, 'orders')
      expect((await store.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])

      const bounded = () => store.open([ordered('wide', { maxRunning: 2 })])
      const throttled = () => store.open([plain('mail', { throttle: hourly('api', 9) })])

      if (mode === 'cluster') {
        await expect(bounded()).rejects.toThrow(ConfigConflictError)
        await expect(throttled()).rejects.toThrow(/place "mail" and cannot be opened with "api".*drain this one/)
      } else {
        expect(await bounded()).toMatchObject([{ maxRunning: 2 }])
        expect(await throttled()).toMatchObject([{ throttle: { scope: 'api' } }])
      }
    })
  })
}
