/** The documentation of the Redis store, against real servers. */

import { defineTask, millrace } from 'millrace'
import { startRedis } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { Document } from './document.js'

describe('the rights that the page of the Redis store lists', () => {
  const [line, ofCluster] = new Document('docs/stores/redis.md').blocks.filter(({ text }) => /^(ACL|\+)/.test(text))
  const words = line!.text.split(/\s+/)
  const lastLine = line!.text.split('\n').at(-1)!
  const rights = {
    single: words,
    cluster: [...words.slice(0, -lastLine.split(' ').length), ...ofCluster!.text.split(' ')],
  }
  const greet = defineTask({ name: 'greet', queue: 'it', run: async (name) => `Hello, ${name}!` })

  it.each(['single', 'cluster'] as const)('are enough: %s', { timeout: 60_000 }, async (mode) => {
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

  it('are needed: without the one to run scripts the store is refused', async () => {
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
