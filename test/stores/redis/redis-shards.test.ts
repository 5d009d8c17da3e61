/** Shards: a queue spread over several tags of a Redis store is one queue to whoever uses it. */

import { startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { shardTag } from '#src/stores/redis/redis-keys.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { shardOf } from '#src/stores/rules/payloads.js'

const settings: QueueSettings = { name: 'wide', kind: 'plain', order: 'fifo', maxCrashes: 3, shards: 8, dead: {} }
const worker = { worker: 'w1', leaseMs: 30_000 }
let namespaces = 0

for (const mode of ['single', 'cluster'] as const) {
  describe(`a queue of 8 shards on ${mode === 'single' ? 'one server' : 'a cluster'}`, () => {
    let url: string
    beforeAll(async () => {
      url = (await startRedis({ mode })).url
    }, 120_000)

    function storeIn(namespace: string): RedisStore {
      const store = new RedisStore({ client: openRedisClient(redisAddress(url)), namespace })
      onTestFinished(() => store.close())
      return store
    }

    async function opened(more: Partial<QueueSettings> = {}): Promise<RedisStore> {
      const store = storeIn(`shards-${++namespaces}`)
      await store.open([{ ...settings, ...more }])
      return store
    }

    it('grants every job exactly once, whatever the limit of the claims', async () => {
      const store = await opened()
      await enqueue(store, 500)
      const ids = new Set<string>()
      for (const limit of [1, 3, 8, 100]) {
        const { claims } = await store.claim([{ queue: 'wide', limit }], worker)
        expect(claims.length).toBeLessThanOrEqual(limit)
        for (const { id } of claims) ids.add(id)
      }
      const rest = await claimAll(store)
      for (const { id } of rest) ids.add(id)

      expect(ids.size).toBe(500)
      expect((await store.depth(['wide'])).depths[0]).toMatchObject({ ready: 0, running: 500, fresh: 0 })
    })

    it('grants one claim at most its share of 1 MiB from each shard, plus one job', async () => {
      const store = await opened()
      const jobs = Array.from({ length: 64 }, (_, i) => ({
        id: idOf(i),
        task: 't',
        payload: 'x'.repeat(100_000),
        priority: 0,
        rememberMs: 0,
      }))
      for (let i = 0; i < 64; i += 8)
        await store.enqueue([{ callId: `large-${i}`, queue: 'wide', jobs: jobs.slice(i, i + 8) }])
      const claim = async () => (await store.claim([{ queue: 'wide', limit: 250 }], worker)).claims.length

      // Of each shard two jobs, which are more than an eighth of 1 MiB.
      const counts = [await claim()]
      while (counts.at(-1)! > 0) counts.push(await claim())

      expect(Math.max(...counts)).toBeLessThanOrEqual(16)
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(64)
    })

    it('grants its only job to the first claim, in any shard', async () => {
      const store = await opened()
      for (let i = 0; i < 20; i += 1) {
        await enqueue(store, 1, i)
        const { claims, waits } = await store.claim([{ queue: 'wide', limit: 1 }], worker)
        expect(claims.map(({ id }) => id)).toEqual([idOf(i)])
        expect(waits).toEqual([])
      }
    })

    it('grants its only suspect to the first claim, and reports its crash', async () => {
      const store = await opened()
      await enqueue(store, 1)
      await store.claim([{ queue: 'wide', limit: 1 }], { worker: 'w1', leaseMs: 1 })
      const crashed: string[] = []
      const claims: Claim[] = []
      // An ended lease is found by the claim after its end, and left alone for the lease of that where the server has just started.
      while (claims.length === 0) {
        const answer = await store.claim([{ queue: 'wide', limit: 1 }], { ...worker, leaseMs: 1, alone: true })
        crashed.push(...answer.crashed.map(({ id }) => id))
        claims.push(...answer.claims)
        expect(crashed.length).toBe(claims.length)
        if (claims.length > 0) expect(answer.waits).toEqual([])
      }
      expect(crashed).toEqual([idOf(0)])
    })

    it('settles and extends each claim in its own shard', async () => {
      const store = await opened()
      await enqueue(store, 40)
      const claims = await claimAll(store)
      expect(await store.extend(claims.map((claim) => ({ ...keyOf(claim), leaseMs: 60_000 })))).toEqual(
        claims.map(() => 'ok'),
      )
      expect(await store.settle(claims.map((claim) => ({ ...keyOf(claim), kind: 'complete' })))).toEqual(
        claims.map(() => 'ok'),
      )
      expect((await store.depth(['wide'])).depths[0]).toMatchObject({ running: 0, processed: 40 })
    })

    it('keeps its number of shards, whatever is opened later', async () => {
      const namespace = `shards-${++namespaces}`
      const [first, second] = [storeIn(namespace), storeIn(namespace)]
      await first.open([settings])
      await enqueue(first, 100)
      await second.open([{ ...settings, shards: 2 }])

      expect(await claimAll(second)).toHaveLength(100)
    })

    it('is listed as a whole, page by page, in each order', async () => {
      const store = await opened()
      await enqueue(store, 60)
      const all = Array.from({ length: 60 }, (_, i) => idOf(i))
      for (const by of ['id', 'time'] as const) {
        const listed: string[] = []
        let cursor: string | undefined
        do {
          const page = await store.records.list('wide', { by, limit: 7, ...(cursor === undefined ? {} : { cursor }) })
          listed.push(...page.jobs.map(({ id }) => id))
          cursor = page.cursor
        } while (cursor !== undefined)

        expect(listed.sort()).toEqual(all)
      }
    })

    it('ends no claim while a shard cannot be held, and the repeated release holds all of them', async () => {
      const namespace = `shards-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([settings])
      await enqueue(store, 40)
      const [claim, ...others] = await claimAll(store)
      await store.settle(others.map((one) => ({ ...keyOf(one), kind: 'release', delayMs: 0 })))
      const client = openRedisClient(redisAddress(url))
      onTestFinished(() => client.close())
      const metaOf = (shard: number) => `${shardTag(namespace, 'wide', shard, 8)}:meta`
      const broken = shardOf(claim!.id, 8) === 0 ? 1 : 0
      const release = [{ ...keyOf(claim!), kind: 'release', delayMs: 0, hold: { of: 'queue', forMs: 60_000 } }] as const
      await client.command('RENAME', [metaOf(broken), `${metaOf(broken)}-away`])
      await client.command('SET', [metaOf(broken), 'of another type'])
      await expect(store.settle(release)).rejects.toThrow()
      await client.command('RENAME', [`${metaOf(broken)}-away`, metaOf(broken)])

      expect(await store.settle(release)).toEqual(['ok'])
      const held = await Promise.all(
        Array.from({ length: 8 }, (_, shard) => client.command('HEXISTS', [metaOf(shard), 'heldUntil'])),
      )
      expect(held).toEqual(held.map(() => 1))
      expect(await claimAll(store)).toEqual([])
    })

    it('wakes its waiters, in whichever shard a job arrives', async () => {
      const store = await opened()
      for (let i = 0; i < 10; i += 1) {
        const rung = store.wait(['wide'], 5_000, new AbortController().signal)
        await enqueue(store, 1, i)
        expect(await rung).toEqual(['wide'])
        expect(await claimAll(store)).toHaveLength(1)
      }
    })

    it('is cancelled, paused and cleared as a whole', async () => {
      const store = await opened()
      await enqueue(store, 50)
      expect(await store.records.cancel('wide', { ids: [idOf(0), idOf(1), idOf(2)] })).toEqual({
        changed: 3,
        more: false,
      })
      await store.records.pause('wide')
      const paused = await store.claim([{ queue: 'wide', limit: 50 }], worker)
      expect(paused.claims).toEqual([])
      expect(paused.waits).toEqual([{ queue: 'wide', reason: 'paused' }])
      await store.records.resume('wide')
      expect(await store.records.clear('wide')).toEqual({ changed: 47, more: false })
    })

    it('divides maxPending among its shards', async () => {
      const store = await opened({ maxPending: 8 })
      const answers = (await enqueue(store, 200)).flat()

      expect(answers).toContain('full')
      expect((await store.depth(['wide'])).depths[0]!.ready).toBeLessThanOrEqual(8)
    })
  })
}

function idOf(i: number): string {
  return `job-${String(i).padStart(4, '0')}`
}

function keyOf({ queue, id, fence }: Claim) {
  return { queue, id, fence }
}

let calls = 0

/** One call for each job, as `mill.enqueue` makes them. */
function enqueue(store: RedisStore, count: number, from = 0) {
  return store.enqueue(
    Array.from({ length: count }, (_, i) => {
      const job: NewJob = { id: idOf(from + i), task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
      return { callId: `call-${++calls}`, queue: 'wide', jobs: [job] }
    }),
  )
}

async function claimAll(store: RedisStore): Promise<Claim[]> {
  const all: Claim[] = []
  for (;;) {
    const { claims, more } = await store.claim([{ queue: 'wide', limit: 250 }], worker)
    all.push(...claims)
    if (claims.length === 0 && !more) return all
  }
}
