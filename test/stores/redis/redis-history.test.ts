import { describe, expect, it } from 'vitest'
import type { HistoryEntry } from '#src/stores/contract/history.js'
import { listIn, numberIn, textIn } from '#src/stores/redis/client/redis-reply.js'
import { queue, RedisScene, sharedRedis } from './redis-scene.js'

const { client } = await sharedRedis()

const minuteMs = 60_000
const dayMs = 86_400_000

/** As a queue counts that runs some 100,000 jobs an hour. */
function busy(agoMs: number): HistoryEntry {
  const ends = { completed: 1_690, failed: 14, dead: 1, crashed: 0, cancelled: 3, runMs: 412_345 }
  const counts = { enqueued: 1_710, started: 1_705, ...ends, runTimes: [300, 900, 480, 22, 2, 0, 0] }
  return { queue, agoMs, counts, gauges: { lagMs: 350, waiting: 1_234, running: 50 } }
}

async function keysOf({ namespace }: RedisScene): Promise<string[]> {
  return listIn(await client.command('KEYS', [`{${namespace}:*`]))
    .map(textIn)
    .sort()
}

describe('the history of a Redis store', () => {
  it('has one key for each hour of minutes and each day of hours, which expire by themselves', async () => {
    const scene = new RedisScene(client)
    await scene.store.history.add([busy(0), busy(0), busy(3 * dayMs)])
    const keys = await keysOf(scene)
    expect(keys.filter((key) => key.includes('}:minutes:'))).toHaveLength(2)
    expect(keys.filter((key) => key.includes('}:hours:'))).toHaveLength(2)
    expect(keys).toHaveLength(4)
    for (const key of keys) {
      const days = numberIn(await client.command('TTL', [key])) / 86_400
      const kept = key.includes(':minutes:') ? [3.9, 7.1] : [362.9, 367]
      expect(days, key).toBeGreaterThan(kept[0]!)
      expect(days, key).toBeLessThan(kept[1]!)
    }
  })

  it('takes less than half a megabyte for a week of a busy queue', async () => {
    const scene = new RedisScene(client)
    const count = 7 * 24 * 60 - 2
    // In the middle of a minute, whatever the time is when they are added.
    const latestAt = Math.floor(Date.now() / minuteMs - 0.5) * minuteMs + minuteMs / 2
    for (let i = 0; i < count; i += 500) {
      const newestMs = Date.now() - latestAt
      const minutes = Array.from({ length: Math.min(500, count - i) }, (_, k) => busy(newestMs + (i + k) * minuteMs))
      await scene.store.history.add(minutes)
    }
    let bytes = 0
    for (const key of await keysOf(scene)) {
      bytes += numberIn(await client.command('MEMORY', ['USAGE', key, 'SAMPLES', '0']))
      expect(textIn(await client.command('OBJECT', ['ENCODING', key]))).toBe('listpack')
    }
    expect(bytes).toBeLessThan(500_000)
    const now = Date.now()
    const [points] = await scene.store.history.read([queue], { step: 'minute', fromAt: now - 8 * dayMs, toAt: now })
    expect(points).toHaveLength(count)
  })

  it('is known to fsck, even for a removed queue, and invisible to other namespaces', async () => {
    const scene = await RedisScene.busy(client)
    await scene.store.history.add([busy(0), { ...busy(0), queue: 'gone' }])
    const found = await scene.health.check()
    expect(found.filter(({ level }) => level !== 'ok')).toEqual([])
    const now = Date.now()
    const span = { step: 'hour', fromAt: now - dayMs, toAt: now + dayMs } as const
    expect(await new RedisScene(client).store.history.read([queue, 'gone'], span)).toEqual([[], []])
  })
})
