/** Resharding and moving on a Redis store: under producers and workers, and interrupted anywhere. */

import { startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Events } from '#src/core/events.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { redisAddress } from '#src/stores/redis/client/redis-address.js'
import type { RedisClient } from '#src/stores/redis/client/redis-client.js'
import { openRedisClient } from '#src/stores/redis/client/redis-connection.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { sweepOnce } from '#src/workers/join-sweeps.js'
import { changed } from '../../changed.js'

const queue = 'orders'
const settings: QueueSettings = { name: queue, kind: 'ordered', order: 'fifo', maxCrashes: 3, shards: 3, dead: {} }
let namespaces = 0

for (const mode of ['single', 'cluster'] as const) {
  describe(`on ${mode === 'single' ? 'one server' : 'a cluster'}`, () => {
    let url: string
    beforeAll(async () => {
      url = (await startRedis({ mode })).url
    }, 120_000)

    function storeIn(namespace: string, client: RedisClient = openRedisClient(redisAddress(url))): RedisStore {
      const store = new RedisStore({ client, namespace })
      onTestFinished(() => store.close())
      return store
    }

    it('findings of a claim from before it met a moved queue are reported', async () => {
      const namespace = `reshard-${++namespaces}`
      const [store, admin] = [storeIn(namespace), storeIn(namespace)]
      const mail: QueueSettings = { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }
      await store.open([settings, mail])
      await admin.open([settings])
      await store.enqueue([{ callId: 'c', queue: 'mail', jobs: [job('a', 'a')] }])
      // A lease that ends with the call: the next claim finds a crash, and spares none as its lease is no longer.
      await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: 0 })
      while ((await admin.records.reshard(queue, 2)).more);

      const from = [
        { queue: 'mail', limit: 1 },
        { queue, limit: 1 },
      ]
      const { crashed } = await store.claim(from, { worker: 'w', leaseMs: 0 })

      expect(crashed.map(({ id }) => id)).toEqual(['a'])
    })

    it('jobs added before their shard moved are reported as added, even if others in the call are sent again', async () => {
      const namespace = `reshard-${++namespaces}`
      const admin = storeIn(namespace)
      await admin.open([{ ...settings, shards: 1 }])
      const sent: Promise<unknown>[] = []
      const client = openRedisClient(redisAddress(url))
      const late = changed(client, {
        async run(...given: Parameters<RedisClient['run']>) {
          if (given[0].name !== 'enqueue-ordered') return client.run(...given)
          // The second trip sets out when the queue has moved, behind the first.
          if (sent.length === 1) {
            await sent[0]
            while ((await admin.records.reshard(queue, 2)).more);
          }
          const reply = client.run(...given)
          sent.push(reply)
          return reply
        },
      })
      const store = storeIn(namespace, late)
      await store.open([{ ...settings, shards: 1 }])
      const ids = (letter: string) => Array.from({ length: 200 }, (_, i) => job(`${letter}${i}`, '1'))

      // Two of them travel in the first trip.
      const answers = await store.enqueue(['a', 'b', 'c'].map((callId) => ({ callId, queue, jobs: ids(callId) })))

      expect(answers.map((of) => [...new Set(of)])).toEqual([['added'], ['added'], ['added']])
      expect(sent.length).toBeGreaterThan(2)
      expect((await admin.depth([queue])).depths[0]).toMatchObject({ ready: 600 })
    })

    it('a handle that missed a reshard adopts its claims, and ends those of dead workers', async () => {
      const namespace = `reshard-${++namespaces}`
      const [store, other, admin] = [storeIn(namespace), storeIn(namespace), storeIn(namespace)]
      for (const one of [store, other, admin]) await one.open([settings])
      while ((await admin.records.reshard(queue, 2)).more);
      await admin.enqueue([{ callId: 'c', queue, jobs: [job('a', 'a')] }])
      const { claims } = await admin.claim([{ queue, limit: 1 }], { worker: 'dead', leaseMs: 60_000 })

      expect(await store.workers.adopt(claims[0]!, 'dead', 'heir')).toBe(true)
      expect((await other.workers.gone(claims, 'heir')).crashed.map(({ id }) => id)).toEqual(['a'])
    })

    it('a reshard with producers and workers at work loses no payload, gives none twice, and keeps ids apart', async () => {
      const namespace = `reshard-${++namespaces}`
      const [admin, ...others] = Array.from({ length: 5 }, () => storeIn(namespace))
      await admin!.open([settings])
      for (const other of others) await other.open([settings])
      // More jobs than one step moves: who comes now finds the queue half moved.
      const early = Array.from({ length: 1_500 }, (_, i) => job(`early-${i}`, `early-${i}`))
      for (let i = 0; i < early.length; i += 250)
        await admin!.enqueue([{ callId: `early-${i}`, queue, jobs: early.slice(i, i + 250) }])
      expect((await admin!.records.reshard(queue, 7)).more).toBe(true)
      const pushed = early.map(({ payload }) => payload as string)
      const seen: string[] = []
      const running = new Set<string>()
      const stop = new AbortController()
      let isOver = false
      const produce = async (store: RedisStore, producer: number) => {
        for (let i = 0; !stop.signal.aborted; i += 1) {
          const jobs = Array.from({ length: 5 }, (_, n) => job(`id-${(i * 5 + n) % 40}`, `${producer}-${i}-${n}`))
          const [answers] = await store.enqueue([{ callId: `${producer}-${i}`, queue, jobs }])
          expect(answers!.every((answer) => answer === 'added' || answer === 'merged')).toBe(true)
          pushed.push(...jobs.map(({ payload }) => payload as string))
        }
      }
      const work = async (store: RedisStore) => {
        for (;;) {
          const wasOver = isOver
          const { claims } = await store.claim([{ queue, limit: 10, maxPayloads: 20 }], {
            worker: 'w',
            leaseMs: 60_000,
          })
          for (const { id } of claims) {
            expect(running.has(id), `${id} runs twice`).toBe(false)
            running.add(id)
          }
          seen.push(...claims.flatMap(({ payloads }) => payloads!.map(({ payload }) => payload as string)))
          for (const { id } of claims) running.delete(id)
          const answers = await store.settle(claims.map((claim) => ({ ...keyOf(claim), kind: 'complete' as const })))
          expect(answers.every((answer) => answer === 'ok')).toBe(true)
          if (claims.length === 0 && wasOver) return
        }
      }
      const producers = others.slice(0, 2).map(produce)
      const workers = others.slice(2).map(work)
      for (const shards of [7, 2, 7]) {
        while ((await admin!.records.reshard(queue, shards)).more);
        const [stored] = await admin!.records.queues()
        expect(stored!.shards).toBe(shards)
      }
      stop.abort()
      await Promise.all(producers)
      isOver = true
      await Promise.all(workers)

      expect(seen.sort()).toEqual(pushed.sort())
      const { depths } = await admin!.depth([queue])
      expect(depths[0]).toMatchObject({ ready: 0, scheduled: 0, running: 0, payloads: 0 })
      expect(depths[0]!.shardLagsMs).toHaveLength(7)
      expect(await admin!.health.check()).toMatchObject([{ level: 'ok' }])
    }, 120_000)

    // On a cluster a queue gets this limit at its first use or never.
    it.runIf(mode === 'single')(
      'a reshard ends with its new shards although the queue has got a limit in its midst',
      async () => {
        const namespace = `limits-${++namespaces}`
        const store = storeIn(namespace)
        await store.open([settings])
        await store.enqueue([{ callId: 'c', queue, jobs: [job('a', '1')] }])
        const { client, isHalted, goOn } = haltingAt(openRedisClient(redisAddress(url)), 'transfer-turn', 'release')
        const late = reshard(storeIn(namespace, client).records, queue, 4)
        await isHalted
        await store.records.setLimits(queue, { maxRunning: 5 })
        goOn()
        await late

        const [stored] = await store.records.queues()
        expect(stored).toMatchObject({ shards: 4, maxRunning: 5 })
        expect(stored).not.toHaveProperty('resharding')
        expect(await runAll(store, queue)).toEqual(['a 1'])
      },
    )

    it('a reshard that is interrupted at any of its trips can be continued, and nothing is lost or doubled', async () => {
      // Each attempt gets one trip further than the one before, in a queue of its own.
      for (let trips = 1; ; trips += 1) {
        const namespace = `cut-${++namespaces}`
        const store = storeIn(namespace)
        await store.open([{ ...settings, shards: 2 }])
        await fill(store)
        const before = await content(store)
        const cut = cutAfter(openRedisClient(redisAddress(url)), trips)
        const isThrough = await new RedisStore({ client: cut, namespace }).records
          .reshard(queue, 3)
          .then(() => true)
          .catch(() => false)
        await cut.close()

        if (trips % 2 === 0) await claimLater(namespace, store)
        // Whoever looks meanwhile sees how many jobs there are, and may push.
        const [merged] = await store.enqueue([{ callId: 'late', queue, jobs: [job('waiting-1', 'late')] }])
        expect(['added', 'merged']).toContain(merged![0])
        const { ready, scheduled, dead } = (await store.depth([queue])).depths[0]!
        expect(ready + scheduled).toBeGreaterThanOrEqual(4)
        expect(dead).toBeGreaterThanOrEqual(2)
        while ((await store.records.reshard(queue, 3)).more);

        const after = await content(store)
        expect(after.get('waiting-1')).toEqual([...before.get('waiting-1')!, 'late'])
        expect(new Map([...after].filter(([id]) => id !== 'waiting-1'))).toEqual(
          new Map([...before].filter(([id]) => id !== 'waiting-1')),
        )
        expect((await store.depth([queue])).depths[0]).toMatchObject({ processed: 1, failed: 1, dead: 2 })
        expect(await store.health.check(), `cut after ${trips} trips`).toMatchObject([{ level: 'ok' }])
        if (isThrough) break
      }
    }, 240_000)

    it('jobs stranded by a move are brought on by the next claim after 30 s, to where they were going', async () => {
      const namespace = `return-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([
        { ...settings, shards: 1 },
        { ...settings, name: 'other' },
      ])
      await fill(store)
      const before = await content(store)
      const cut = cutAfter(openRedisClient(redisAddress(url)), 5)
      await new RedisStore({ client: cut, namespace }).records.move(queue, 'other').catch(() => {})
      await cut.close()
      expect((await content(store)).size + (await content(store, 'other')).size).toBe(0)

      await claimLater(namespace, store)

      expect((await content(store)).size).toBe(0)
      expect(await content(store, 'other')).toEqual(before)
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
    })

    it('jobs stranded by a move are brought on by a worker of any queue after 30 s, though nobody claims from theirs', async () => {
      const namespace = `swept-${++namespaces}`
      const store = storeIn(namespace)
      const mail: QueueSettings = { name: 'mail', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }
      await store.open([{ ...settings, shards: 1 }, { ...settings, name: 'other' }, mail])
      await fill(store)
      const before = await content(store)
      const cut = cutAfter(openRedisClient(redisAddress(url)), 5)
      await new RedisStore({ client: cut, namespace }).records.move(queue, 'other').catch(() => {})
      await cut.close()
      const sweep = () => sweepOnce(store, 'w', new Events())
      await sweep()
      expect((await content(store)).size + (await content(store, 'other')).size).toBe(0)
      await ageTransit(namespace)

      await sweep()

      expect(await content(store, 'other')).toEqual(before)
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok', 'ok'])
    })

    it.each([
      ['the command is repeated', async () => {}],
      ['nobody repeats it, and a claim on the old queue comes after 30 s', claimLater],
      ['the new queue is resharded before', async (_: string, { records }: RedisStore) => reshard(records, 'other', 5)],
      ['the old queue is resharded before', async (_: string, { records }: RedisStore) => reshard(records, queue, 3)],
    ])(
      'what an interrupted move has brought runs once, though it runs at once: %s',
      async (_, between) => {
        for (let trips = 1; ; trips += 1) {
          const namespace = `once-${++namespaces}`
          const store = storeIn(namespace)
          await store.open([
            { ...settings, shards: 2 },
            { ...settings, name: 'other' },
          ])
          const ids = Array.from({ length: 8 }, (_, i) => `id-${i}`)
          await store.enqueue([{ callId: 'c', queue, jobs: ids.map((id) => job(id, '1')) }])
          const cut = cutAfter(openRedisClient(redisAddress(url)), trips)
          const isThrough = await new RedisStore({ client: cut, namespace }).records
            .move(queue, 'other')
            .then(() => true)
            .catch(() => false)
          await cut.close()

          const ran = await runAll(store, 'other')
          // A new job of an id that has run already, in either queue.
          const again = { callId: 'again', jobs: [job('id-0', '2')] }
          await store.enqueue([{ ...again, queue: trips % 2 === 0 ? queue : 'other' }])
          await between(namespace, store)
          if (between === claimLater) ran.push(...(await runAll(store, 'other')), ...(await runAll(store, queue)))
          while ((await store.records.move(queue, 'other')).more);
          ran.push(...(await runAll(store, 'other')))

          const payloads = [...ids.map((id) => `${id} 1`), 'id-0 2']
          expect(ran.sort(), `cut after ${trips} trips`).toEqual(payloads.sort())
          expect((await store.depth([queue, 'other'])).depths).toMatchObject([
            { ready: 0, payloads: 0 },
            { ready: 0, payloads: 0 },
          ])
          expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
          if (isThrough) break
        }
      },
      240_000,
    )

    it.each([
      ['move', 'other', ({ records }: RedisStore) => records.move(queue, 'other')],
      ['reshard', queue, ({ records }: RedisStore) => records.reshard(queue, 3)],
    ] as const)(
      'a %s that stood still in its midst puts nothing that another has brought since',
      async (_, to, step) => {
        const namespace = `late-${++namespaces}`
        const store = storeIn(namespace)
        await store.open([
          { ...settings, shards: 2 },
          { ...settings, name: 'other' },
        ])
        const ids = Array.from({ length: 8 }, (_, i) => `id-${i}`)
        await store.enqueue([{ callId: 'c', queue, jobs: ids.map((id) => job(id, '1')) }])
        const { client, isHalted, goOn } = haltingAt(openRedisClient(redisAddress(url)), 'transfer-put')
        const late = step(storeIn(namespace, client))
        await isHalted
        while ((await step(store)).more);
        const ran = await runAll(store, to)
        goOn()
        await late

        expect([...ran, ...(await runAll(store, to))].sort()).toEqual(ids.map((id) => `${id} 1`))
        expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
      },
    )

    it('a move into a queue of which a reshard has closed shards is refused, and loses nothing', async () => {
      const namespace = `closed-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([settings, { ...settings, name: 'other' }])
      await store.enqueue([{ callId: 'c', queue, jobs: Array.from({ length: 20 }, (_, i) => job(`id-${i}`, '1')) }])
      const { client, isHalted, goOn } = haltingAt(openRedisClient(redisAddress(url)), 'transfer-turn', 'release')
      const late = reshard(storeIn(namespace, client).records, 'other', 4)
      await isHalted

      const refused = await store.records.move(queue, 'other').catch((error: unknown) => error)
      goOn()
      await late
      while ((await store.records.move(queue, 'other')).more);

      expect((await store.depth([queue, 'other'])).depths).toMatchObject([{ ready: 0 }, { ready: 20 }])
      expect(String(refused)).toMatch(/millrace queues reshard other 4` to its end first/)
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
    })

    it('a worker that knows the old queue as empty brings on what a move has stranded', async () => {
      const namespace = `idle-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([
        { ...settings, shards: 1 },
        { ...settings, name: 'other' },
      ])
      await fill(store)
      const before = await content(store)
      const cut = cutAfter(openRedisClient(redisAddress(url)), 5)
      await new RedisStore({ client: cut, namespace }).records.move(queue, 'other').catch(() => {})
      await cut.close()
      const by = { worker: 'w', leaseMs: 60_000 }
      // The first claim hears of the ring for the jobs that have left; the wait after the next one ends without a ring.
      for (let claims = 0; claims < 3; claims += 1) {
        await store.claim([{ queue, limit: 1 }], by)
        await store.wait([queue], 1, AbortSignal.timeout(5_000))
      }
      expect((await content(store, 'other')).size).toBe(0)
      await ageTransit(namespace)

      await store.claim([{ queue, limit: 1 }], by)

      expect(await content(store, 'other')).toEqual(before)
    })

    it('fsck reports jobs that have been in transit for longer than a claim lets them', async () => {
      const namespace = `stranded-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([
        { ...settings, shards: 1 },
        { ...settings, name: 'other' },
      ])
      await fill(store)
      const cut = cutAfter(openRedisClient(redisAddress(url)), 5)
      await new RedisStore({ client: cut, namespace }).records.move(queue, 'other').catch(() => {})
      await cut.close()
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
      await ageTransit(namespace)

      expect(await store.health.check()).toEqual([
        expect.objectContaining({
          level: 'warning',
          what: `queue ${queue}`,
          text: expect.stringMatching(/left for other shards.* start the command again/),
        }),
        expect.objectContaining({ level: 'ok' }),
      ])
    })

    /** A claim on the old queue, as if the jobs in transit had left long ago. */
    async function claimLater(namespace: string, store: RedisStore): Promise<void> {
      await ageTransit(namespace)
      await store.claim([{ queue, limit: 0 }], { worker: 'w', leaseMs: 60_000 })
    }

    async function ageTransit(namespace: string): Promise<void> {
      const eyes = openRedisClient(redisAddress(url))
      for (const shard of [0, 1]) {
        const key = `{${namespace}:${queue}:0.${shard}}:transit`
        if ((await eyes.command('EXISTS', [key])) === 1) await eyes.command('HSET', [key, 'at', '0'])
      }
      await eyes.close()
    }

    it('pause and drain outlast a reshard or a move, from any process and at any time', async () => {
      const namespace = `switches-${++namespaces}`
      const [admin, other] = [storeIn(namespace), storeIn(namespace)]
      await admin.open([settings])
      await other.open([settings])
      const jobs = Array.from({ length: 1_500 }, (_, i) => job(`id-${i}`, '1'))
      for (let i = 0; i < jobs.length; i += 250)
        await admin.enqueue([{ callId: `fill-${i}`, queue, jobs: jobs.slice(i, i + 250) }])
      expect((await admin.records.reshard(queue, 4)).more).toBe(true)
      // This one learns that shards are closed, and then speaks to the new ones.
      await other.enqueue([{ callId: 'learn', queue, jobs: jobs.slice(0, 50) }])
      await other.records.pause(queue)
      await other.records.drain(queue)
      while ((await admin.records.reshard(queue, 4)).more);

      expect((await admin.records.queues())[0]).toMatchObject({ shards: 4, paused: true, draining: true })
      expect((await admin.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 60_000 })).claims).toEqual([])
    })

    it.each([
      ['pause', 'pause', ({ records }: RedisStore) => records.pause(queue), { paused: true }],
      ['drain', 'drain', ({ records }: RedisStore) => records.drain(queue), { draining: true }],
      ['pause of a group', 'pause-group', ({ throttles }: RedisStore) => throttles.pause!(queue, 'g'), {}],
    ] as const)(
      'a %s holds for new shards too, though a reshard has read before what it takes over',
      async (_, verb, say, state) => {
        const namespace = `late-switch-${++namespaces}`
        const store = storeIn(namespace)
        await store.open([settings])
        await store.enqueue([{ callId: 'c', queue, jobs: [{ ...job('a', '1'), group: 'g' }] }])
        // It has looked which shards there are.
        const saying = haltingAt(openRedisClient(redisAddress(url)), 'queue-state-ordered', verb)
        const said = say(storeIn(namespace, saying.client))
        await saying.isHalted
        const moving = haltingAt(openRedisClient(redisAddress(url)), 'transfer-turn', 'inherit')
        const moved = reshard(storeIn(namespace, moving.client).records, queue, 2)
        await moving.isHalted
        saying.goOn()
        await said
        moving.goOn()
        await moved

        expect((await store.records.queues())[0]).toMatchObject({ shards: 2, ...state })
        const { claims } = await store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 60_000 })
        expect(claims).toHaveLength(verb === 'drain' ? 1 : 0)
        expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok'])
      },
    )

    it('a resume holds for new shards too, though a reshard has read before that the queue is paused', async () => {
      const namespace = `late-resume-${++namespaces}`
      const store = storeIn(namespace)
      await store.open([settings])
      await store.enqueue([{ callId: 'c', queue, jobs: [job('a', '1')] }])
      await store.records.pause(queue)
      await store.records.drain(queue)
      const moving = haltingAt(openRedisClient(redisAddress(url)), 'transfer-turn', 'inherit')
      const moved = reshard(storeIn(namespace, moving.client).records, queue, 2)
      await moving.isHalted
      await store.records.resume(queue)
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok'])
      moving.goOn()
      await moved

      expect((await store.records.queues())[0]).toMatchObject({ shards: 2, paused: false, draining: false })
      expect((await store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 60_000 })).claims).toHaveLength(1)
      expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok'])
    })

    it('a move that is interrupted at any of its trips can be continued, and a repeat changes nothing', async () => {
      for (let trips = 1; ; trips += 1) {
        const namespace = `move-${++namespaces}`
        const store = storeIn(namespace)
        await store.open([
          { ...settings, shards: 2 },
          { ...settings, name: 'other' },
        ])
        await fill(store)
        const before = await content(store)
        const cut = cutAfter(openRedisClient(redisAddress(url)), trips)
        const isThrough = await new RedisStore({ client: cut, namespace }).records
          .move(queue, 'other')
          .then(() => true)
          .catch(() => false)
        await cut.close()
        while ((await store.records.move(queue, 'other')).more);

        expect(await content(store, 'other')).toEqual(before)
        expect((await content(store)).size).toBe(0)
        expect(await store.records.move(queue, 'other')).toEqual({ changed: 0, more: false })
        if (isThrough) break
      }
    }, 240_000)
  })
}

/** Jobs of every kind but running ones: two that wait, one for later, one that failed, two in the morgue. */
async function fill(store: RedisStore): Promise<void> {
  const by = { worker: 'w', leaseMs: 60_000 }
  const push = (...jobs: NewJob[]) => store.enqueue([{ callId: jobs.map(({ id }) => id).join(), queue, jobs }])
  const takeAll = async () => (await store.claim([{ queue, limit: 10 }], by)).claims
  await push(job('done', '1'), job('dead-1', '1'), job('dead-1', '2'), job('dead-2', '1'), job('failed', '1'))
  const ends = { done: 'complete', 'dead-1': 'bury', 'dead-2': 'bury', failed: 'retry' } as const
  const claims = await takeAll()
  await store.settle(
    claims.map((claim) => ({
      ...keyOf(claim),
      kind: ends[claim.id as keyof typeof ends],
      delayMs: 60_000,
      error: 'no',
    })),
  )
  await push(job('waiting-1', '1'), job('waiting-1', '2'), job('waiting-2', '1'))
  await push({ ...job('later', '1'), delayMs: 60_000 })
}

/** Claims and completes until nothing is left to claim. Returns the ids and payloads. */
async function runAll(store: RedisStore, name: string): Promise<string[]> {
  const ran: string[] = []
  for (;;) {
    const { claims } = await store.claim([{ queue: name, limit: 100 }], { worker: 'w', leaseMs: 60_000 })
    if (claims.length === 0) return ran
    for (const { id, payloads } of claims) ran.push(...payloads!.map(({ payload }) => `${id} ${payload}`))
    await store.settle(claims.map((claim) => ({ ...keyOf(claim), kind: 'complete' as const })))
  }
}

async function reshard(records: RedisStore['records'], name: string, shards: number): Promise<void> {
  while ((await records.reshard(name, shards)).more);
}

/** By id and state: the payloads of each job. */
async function content(store: RedisStore, name = queue): Promise<Map<string, string[]>> {
  const { jobs } = await store.records.list(name, { by: 'id', limit: 200 })
  return new Map(jobs.map(({ id, payloads }) => [id, payloads!.map(({ payload }) => payload as string)]))
}

/** A client whose calls of this script, with this first argument, wait until it may go on. */
function haltingAt(reaching: RedisClient, script: string, verb?: string) {
  const told = { isHalted: () => {}, goOn: () => {} }
  const isHalted = new Promise<void>((resolve) => {
    told.isHalted = resolve
  })
  const isOn = new Promise<void>((resolve) => {
    told.goOn = resolve
  })
  const client = changed(reaching, {
    async run(...given: Parameters<RedisClient['run']>) {
      if (given[0].name === script && (verb === undefined || given[2][0] === verb)) {
        told.isHalted()
        await isOn
      }
      return reaching.run(...given)
    },
  })
  return { client, isHalted, goOn: told.goOn }
}

/** A client that reaches the server so many times, and never again. */
function cutAfter(client: RedisClient, trips: number): RedisClient {
  let left = trips
  const reach = () => {
    left -= 1
    if (left < 0) throw new Error('cut')
  }
  return changed(client, {
    async run(...given) {
      reach()
      return client.run(...given)
    },
    async command(...given) {
      reach()
      return client.command(...given)
    },
  })
}

function job(id: string, payload: string): NewJob {
  return { id, task: 'sync', payload, priority: 0, rememberMs: 0 }
}

function keyOf({ queue, id, fence }: Claim) {
  return { queue, id, fence }
}
