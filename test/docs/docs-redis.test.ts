/** The documentation of the Redis store, against real servers. */

import { defineOrderedTask, defineTask, many, millrace } from 'millrace'
import { startRedis } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { Document } from './document.js'

describe('the Redis rights that the documentation lists', () => {
  const [line, ofCluster] = new Document('docs/stores/redis.md').blocks.filter(({ text }) => /^(ACL|\+)/.test(text))
  const words = line!.text.split(/\s+/)
  const lastLine = line!.text.split('\n').at(-1)!
  const rights = {
    single: words,
    cluster: [...words.slice(0, -lastLine.split(' ').length), ...ofCluster!.text.split(' ')],
  }
  const row = defineTask({ name: 'row', queue: 'rows', run: async (n: number) => n })
  const sum = defineTask({
    name: 'sum',
    joins: { rows: many(row) },
    async run(_: string, ctx) {
      let total = 0
      for await (const n of ctx.joined.rows) total += n
      return total
    },
  })
  const breaking = defineTask({
    name: 'breaking',
    queue: 'broken',
    retry: { max: 0 },
    run: async (_: string) => Promise.reject(new Error('no')),
  })
  const hopeless = defineTask({
    name: 'hopeless',
    joins: { rows: many(breaking, { cancelRest: true }) },
    run: async (_: string) => 'never',
  })
  const greet = defineTask({ name: 'greet', queue: 'it', run: async (name) => `Hello, ${name}!` })

  it.each(['single', 'cluster'] as const)('are sufficient: %s', { timeout: 60_000 }, async (mode) => {
    const redis = await startRedis({ mode })
    try {
      for (const server of redis.servers) await server.ask(...rights[mode])
      const mill = millrace({ store: redis.url.replace('://', '://millrace:PASSWORD@'), tasks: [greet] })
      await mill.enqueue(greet, 'Bob', { id: 'later', delay: '1h', priority: 1 })
      const worker = mill.worker()
      await worker.start()
      const result = (await mill.enqueue(greet, 'Ada')).result({ timeout: '10s' })
      const queue = mill.queue('it')

      expect(await result).toBe('Hello, Ada!')
      expect((await queue.jobs.list({ by: 'id' })).jobs.length).toBe(2)
      expect(await queue.jobs.bury(['later'])).toBe(1)
      expect(await queue.morgue.revive('all')).toBe(1)
      await queue.pause()
      await worker.stop()
      await mill.close()
    } finally {
      await redis.stop()
    }
  })

  it.each(['single', 'cluster'] as const)(
    'are sufficient for ordered queues: %s',
    { timeout: 60_000 },
    async (mode) => {
      const redis = await startRedis({ mode })
      try {
        for (const server of redis.servers) await server.ask(...rights[mode])
        const [sync, other] = ['sync', 'other'].map((name) =>
          defineOrderedTask({
            name,
            maxPayloads: 2,
            retry: { max: 0 },
            run: async () => Promise.reject(new Error('no')),
          }),
        )
        const mill = millrace({
          store: redis.url.replace('://', '://millrace:PASSWORD@'),
          tasks: [sync!, other!],
          queues: { sync: { maxPending: 1_000 } },
        })
        const queue = mill.queue('sync')
        await mill.enqueueMany(sync!, [1, 2, 3, 3], (score, i) => ({
          id: 'A-1',
          score: Number(score),
          delay: i === 0 ? '1h' : 0,
        }))
        await mill.enqueue(sync!, 'fails', { id: 'B-7' })
        const worker = mill.worker({ queues: ['sync'] })
        await worker.start()
        await expect(mill.job(sync!, 'B-7').result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-dead' })
        await worker.stop()

        expect((await queue.depth()).payloads).toBe(3)
        expect(await queue.jobs.get('A-1')).toMatchObject({ state: 'scheduled', payloadCount: 3 })
        expect(await queue.jobs.runNow(['A-1'])).toBe(1)
        expect(await queue.jobs.bury(['A-1'])).toBe(1)
        expect((await queue.morgue.list({ by: 'id' })).jobs.length).toBe(2)
        expect(await queue.morgue.revive('all')).toBe(2)
        expect(await queue.reshard(3)).toBe(2)
        expect(await queue.move('other')).toBe(2)
        expect(await mill.queue('other').jobs.cancel('all')).toBe(2)
        await mill.close()
      } finally {
        await redis.stop()
      }
    },
  )

  it.each(['single', 'cluster'] as const)('are sufficient for joins: %s', { timeout: 60_000 }, async (mode) => {
    const redis = await startRedis({ mode })
    try {
      for (const server of redis.servers) await server.ask(...rights[mode])
      const mill = millrace({
        store: redis.url.replace('://', '://millrace:PASSWORD@'),
        tasks: [row, sum, breaking, hopeless],
        queues: { rows: { shards: 2 } },
      })
      const failed = new Promise<{ readonly reason: string }>((resolve) => mill.on('join.failed', resolve))
      const worker = mill.worker()
      await worker.start()

      const total = await mill.enqueue(sum, 'all', { after: { rows: Array.from({ length: 1_100 }, (_, n) => n) } })
      expect(await total.result({ timeout: '30s' })).toBe((1_099 * 1_100) / 2)
      const dead = await mill.enqueue(hopeless, 'x', { id: 'dead', after: { rows: ['1', '2'] } })
      await expect(dead.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-dead' })
      expect((await failed).reason).toBe('join-member-dead')
      expect((await mill.queue('default').jobs.get('dead'))?.state).toBe('dead')
      await worker.stop()
      await mill.close()
    } finally {
      await redis.stop()
    }
  })

  it('are necessary: without the right to run scripts the store is refused', async () => {
    const redis = await startRedis()
    try {
      await redis.ask(...rights.single.filter((word) => word !== '+evalsha'))
      const mill = millrace({ store: redis.url.replace('://', '://millrace:PASSWORD@'), tasks: [greet] })

      await expect(mill.enqueue(greet, 'Ada')).rejects.toMatchObject({ code: 'store-refused' })
      await mill.close()
    } finally {
      await redis.stop()
    }
  })
})
