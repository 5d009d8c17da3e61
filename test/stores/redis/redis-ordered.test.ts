/** Ordered queues of a Redis store where they are large, the server is full, or something is broken. */

import { describe, expect, it, onTestFinished } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import type { SettleItem } from '#src/stores/contract/settle.js'
import { keyIn, type ShardKey } from '#src/stores/redis/redis-keys.js'
import { layoutIn, queueIn } from '#src/stores/redis/redis-layout.js'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { connect, sharedRedis } from './redis-scene.js'

const queue = 'orders'
const settings: QueueSettings = { name: queue, kind: 'ordered', order: 'fifo', maxCrashes: 3, dead: {} }
const by = { worker: 'worker-1', leaseMs: 600_000 }

const { server, client } = await sharedRedis()

let made = 0

class OrderedScene {
  readonly namespace = `ordered-${process.pid}-${++made}`
  readonly store = new RedisStore({ client: connect(server), namespace: this.namespace })
  #calls = 0

  static async opened(more: Partial<QueueSettings> = {}): Promise<OrderedScene> {
    const scene = new OrderedScene()
    onTestFinished(() => scene.store.close())
    await scene.store.open([{ ...settings, ...more }])
    return scene
  }

  async push(...jobs: (Partial<NewJob> & { readonly id: string })[]) {
    const given = jobs.map((job) => ({ task: 'sync', payload: '{}', priority: 0, rememberMs: 0, ...job }))
    const [answers] = await this.store.enqueue([{ callId: `call-${++this.#calls}`, queue, jobs: given }])
    return answers!
  }

  async take(limit = 1, maxPayloads = Number.POSITIVE_INFINITY): Promise<readonly Claim[]> {
    return (await this.store.claim([{ queue, limit, maxPayloads }], by)).claims
  }

  async end({ id, fence }: Claim, how: object) {
    const [answer] = await this.store.settle([{ queue, id, fence, ...how } as SettleItem])
    return answer
  }

  /** One command on a key of the only shard. */
  raw(command: string, name: ShardKey, ...args: string[]) {
    const [shard] = queueIn(this.namespace, queue, layoutIn('1 ordered 0')!).shards
    return client.command(command, [keyIn(shard!.keys, name), ...args])
  }
}

describe('an id with 10,000 payloads', () => {
  // `npm run bench -- ordered` measures what it costs with 100,000.
  it('is claimed a thousand at a time, in order', async () => {
    const scene = await OrderedScene.opened()
    for (let i = 0; i < 10_000; i += 250)
      await scene.push(...Array.from({ length: 250 }, (_, n) => ({ id: 'hot', payload: `${i + n}` })))

    for (let n = 0; n < 3; n += 1) {
      const [claim] = await scene.take(10, 1_000)
      expect(claim!.payloads!.map(({ payload }) => Number(payload))).toEqual(
        Array.from({ length: 1_000 }, (_, i) => n * 1_000 + i),
      )
      expect(claim!.hasMore).toBe(true)
      await scene.end(claim!, { kind: 'complete' })
    }
    expect((await scene.store.depth([queue])).depths[0]!.payloads).toBe(7_000)
  })

  it('returns at most 1 MiB of large payloads, and at least one', async () => {
    const scene = await OrderedScene.opened()
    const large = 'x'.repeat(400_000)
    for (let i = 0; i < 5; i += 1) await scene.push({ id: 'large', payload: `${i}${large}` })

    const counts: number[] = []
    for (;;) {
      const [claim] = await scene.take(5, 1_000)
      if (claim === undefined) break
      counts.push(claim.payloads!.length)
      await scene.end(claim, { kind: 'complete' })
    }

    expect(counts).toEqual([2, 2, 1])
  })

  it('stops taking ids at 1 MiB', async () => {
    const scene = await OrderedScene.opened()
    const large = 'x'.repeat(400_000)
    for (let i = 0; i < 5; i += 1) await scene.push({ id: `id-${i}`, payload: large })

    expect(await scene.take(5)).toHaveLength(3)
    expect(await scene.take(5)).toHaveLength(2)
  })
})

describe('a full server', () => {
  it('refuses payloads, and allows every settle', async () => {
    const scene = await OrderedScene.opened()
    const ids = ['done', 'again', 'back', 'buried', 'last', 'cancelled']
    await scene.push(...ids.map((id) => ({ id, payload: '1' })), ...ids.map((id) => ({ id, payload: '2' })))
    const claims = await scene.take(10, 1)
    await client.command('CONFIG', ['SET', 'maxmemory', '1'])
    onTestFinished(async () => {
      await client.command('CONFIG', ['SET', 'maxmemory', '0'])
    })

    await expect(scene.push({ id: 'more' })).rejects.toMatchObject({ code: 'store-full' })
    const ends: Record<string, object> = {
      done: { kind: 'complete' },
      again: { kind: 'retry', delayMs: 60_000, error: 'broken' },
      back: { kind: 'release', delayMs: 0 },
      buried: { kind: 'bury', reason: 'no' },
      last: { kind: 'retry', delayMs: 0, last: true },
      cancelled: { kind: 'cancel' },
    }
    for (const claim of claims) expect(await scene.end(claim, ends[claim.id]!), claim.id).toBe('ok')

    expect((await scene.store.depth([queue])).depths[0]).toMatchObject({ running: 0, dead: 2, payloads: 8 })
    expect(await scene.store.health.check(queue)).toMatchObject([{ level: 'ok' }])
  })
})

describe('a restart without data', () => {
  it('lets a handle that knew the queue create it again', async () => {
    const scene = await OrderedScene.opened({ shards: 4 })
    await scene.push({ id: 'a' })
    expect(await scene.store.records.reshard(queue, 2)).toEqual({ changed: 1, more: false })
    await scene.push({ id: 'b' })
    await client.command('FLUSHALL', ['SYNC'])

    expect(await scene.push({ id: 'c' })).toEqual(['added'])
    expect((await scene.take()).map(({ id }) => id)).toEqual(['c'])
    expect((await scene.store.records.queues())[0]).toMatchObject({ name: queue, shards: 4 })
  })
})

describe('the check of an ordered queue', () => {
  async function busy(): Promise<OrderedScene> {
    const scene = await OrderedScene.opened()
    await scene.push({ id: 'dead', payload: '1' })
    await scene.end((await scene.take())[0]!, { kind: 'bury', reason: 'no' })
    await scene.push({ id: 'failed' })
    await scene.end((await scene.take())[0]!, { kind: 'retry', delayMs: 0, error: 'once' })
    await scene.push({ id: 'dead', payload: '2' }, { id: 'running', payload: '1' }, { id: 'running', payload: '2' })
    await scene.take(10, 1)
    await scene.push({ id: 'waiting' }, { id: 'later', delayMs: 3_600_000 }, { id: 'dead', payload: '3' })
    return scene
  }

  it('finds no fault in a busy queue', async () => {
    const scene = await busy()
    for (const key of ['bodies', 'claimed-payloads', 'successors', 'morgue', 'dead-bodies'] as const)
      expect(await scene.raw('HLEN', key), key).toBeGreaterThan(0)

    expect(await scene.store.health.check()).toEqual([
      { level: 'ok', what: `queue ${queue}`, text: '5 jobs, everything in its place' },
    ])
  })

  const damages: readonly (readonly [string, (scene: OrderedScene) => Promise<unknown>, RegExp])[] = [
    [
      'a payload without a body',
      (scene) => scene.raw('DEL', 'bodies'),
      /payloads in 'payloads' whose bodies are missing/,
    ],
    [
      'a body that stands nowhere',
      (scene) => scene.raw('DEL', 'payloads'),
      /payloads of them are missing from 'payloads'/,
    ],
    [
      'a claim without payloads',
      (scene) => scene.raw('HDEL', 'claimed-payloads', 'running'),
      /no payloads in 'claimed-payloads': running/,
    ],
    [
      'waiting payloads without a claim',
      (scene) => scene.raw('HDEL', 'claims', 'running'),
      /'successors' without a job: running/,
    ],
    ['a header of the dead that is not listed', (scene) => scene.raw('DEL', 'dead'), /missing from 'dead': dead/],
    ['dead without a header', (scene) => scene.raw('DEL', 'morgue'), /stand in 'dead-payloads' without a job: dead/],
    ['dead without payloads', (scene) => scene.raw('DEL', 'dead-payloads'), /no payloads in 'dead-payloads': dead/],
  ]
  for (const [what, damage, expected] of damages)
    it(`finds ${what}`, async () => {
      const scene = await busy()
      await damage(scene)

      const texts = (await scene.store.health.check()).map(({ level, text }) => `${level}: ${text}`)
      expect(
        texts.some((text) => expected.test(text)),
        texts.join('\n'),
      ).toBe(true)
      expect(texts.some((text) => text.startsWith('error'))).toBe(true)
    })
})
