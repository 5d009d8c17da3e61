/** Jobs whose record is gone, as half a script leaves them: claims pass over them, count them, and go on. */

import { describe, expect, it, vi } from 'vitest'
import type { NewJob } from '#src/stores/contract/new-job.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { queue, RedisScene, settings, sharedRedis } from '../redis-scene.js'

const { server, client } = await sharedRedis()

const by = { worker: 'w', leaseMs: 30_000 }
const throttle = { scope: queue, by: 'queue', rules: [{ limit: 1_000, windowMs: 60_000, moderate: false }] } as const
const kinds: readonly [string, Partial<QueueSettings>][] = [
  ['plain', {}],
  ['throttled plain', { throttle }],
  ['ordered', { kind: 'ordered' }],
  ['throttled ordered', { kind: 'ordered', throttle }],
]

async function keyOf({ namespace }: RedisScene, name: string): Promise<string> {
  const [meta] = (await server.ask('KEYS', `{${namespace}:*:meta`)) as string[]
  return meta!.replace(/meta$/, name)
}

describe.each(kinds)('a %s queue with lost job records', (_, given) => {
  const ids = async (scene: RedisScene, more: object = {}) =>
    (await scene.store.claim([{ queue, limit: 10 }], { ...by, ...more })).claims.map(({ id }) => id)

  async function opened(...jobs: (Partial<NewJob> & { readonly id: string })[]): Promise<RedisScene> {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, ...given }])
    await scene.add(...jobs)
    return scene
  }

  async function lose(scene: RedisScene, ...lost: string[]): Promise<void> {
    expect(await server.ask('HDEL', await keyOf(scene, 'jobs'), ...lost)).toBe(lost.length)
  }

  async function lostCount(scene: RedisScene): Promise<number> {
    return Number(await server.ask('HGET', await keyOf(scene, 'meta'), 'lost'))
  }

  it('skips the first and those in the middle when it is claimed from', async () => {
    const scene = await opened({ id: 'a' }, { id: 'b' }, { id: 'c' }, { id: 'd' })
    await lose(scene, 'a', 'c')
    expect([...(await ids(scene)), ...(await ids(scene))]).toEqual(['b', 'd'])
    expect(await lostCount(scene)).toBe(2)
    expect(await scene.store.claim([{ queue, limit: 10 }], by)).toMatchObject({ claims: [], more: false })
  })

  it('skips those in a lane, and leaves an empty lane no turn', async () => {
    const scene = await opened({ id: 'a', group: 'g' }, { id: 'b', group: 'g' }, { id: 'c', group: 'h' }, { id: 'd' })
    await lose(scene, 'a', 'c')
    expect([...(await ids(scene)), ...(await ids(scene))].sort()).toEqual(['b', 'd'])
    expect(await lostCount(scene)).toBe(2)
    expect(await server.ask('EXISTS', await keyOf(scene, 'turns'))).toBe(0)
    const wrong = (await scene.health.check()).filter(({ level }) => level === 'error').map(({ text }) => text)
    expect(wrong).toEqual([])
  })

  it('skips a due job, and one that should run again', async () => {
    const scene = await opened({ id: 'again' })
    await scene.end((await scene.take())[0]!, { kind: 'retry', delayMs: 1_500, error: 'once' })
    await scene.add({ id: 'due', delayMs: 1_500 }, { id: 'sound' })
    await lose(scene, 'due', 'again')
    expect(await ids(scene)).toEqual(['sound'])
    const scheduled = await keyOf(scene, 'scheduled')
    await vi.waitFor(async () => {
      await scene.take(0)
      expect(await server.ask('ZCARD', scheduled)).toBe(0)
    }, 15_000)
    expect(await lostCount(scene)).toBe(2)
    expect(await server.ask('EXISTS', await keyOf(scene, 'retries'), await keyOf(scene, 'history'))).toBe(0)
    expect(await ids(scene)).toEqual([])
  })

  it('skips a suspect', async () => {
    const scene = await opened({ id: 'lost' }, { id: 'sound' })
    await scene.store.workers.gone(
      (await scene.take(2)).map(({ id, fence }) => ({ queue, id, fence })) as never,
      'worker-1',
    )
    await lose(scene, 'lost')
    expect(await ids(scene, { alone: true })).toEqual(['sound'])
    expect(await lostCount(scene)).toBe(1)
  })

  it.each([
    ['shared', false],
    ['own', true],
  ])('ends a claim whose %s lease has ended, and those of its neighbours as usual', async (_lease, isOwn) => {
    const scene = await opened({ id: 'lost' }, { id: 'sound' })
    const claims = await scene.take(2)
    if (isOwn) await scene.store.extend(claims.map(({ id, fence }) => ({ queue, id, fence, leaseMs: 700_000 })))
    const leases = await keyOf(scene, 'leases')
    const members = (await client.command('ZRANGE', [leases, '0', '-1'])) as Buffer[]
    expect(members).toHaveLength(isOwn ? 2 : 1)
    for (const member of members) await client.command('ZADD', [leases, '1', member])
    await lose(scene, 'lost')
    const crashed: string[] = []
    await vi.waitFor(async () => {
      const found = await scene.store.claim([{ queue, limit: 0 }], { worker: 'f', leaseMs: 1 })
      crashed.push(...found.crashed.map(({ id }) => id))
      expect(crashed).not.toEqual([])
    }, 5_000)
    expect(crashed).toEqual(['sound'])
    expect(await lostCount(scene)).toBe(1)
    expect(await server.ask('EXISTS', await keyOf(scene, 'leases'), await keyOf(scene, 'claims'))).toBe(0)
  })

  it("answers 'gone' for a settle that has something to keep, and ends its neighbours", async () => {
    const scene = await opened({ id: 'lost' }, { id: 'sound' })
    const claims = await scene.take(2)
    await lose(scene, 'lost')
    const items = claims.map(
      ({ id, fence }) => ({ queue, id, fence, kind: 'retry', delayMs: 0, error: 'once' }) as const,
    )
    const answers = await scene.store.settle(items as never)
    expect(claims.map(({ id }, i) => [id, JSON.stringify(answers[i])])).toEqual([
      ['lost', expect.stringContaining('gone')],
      ['sound', expect.stringContaining('ok')],
    ])
    expect(await server.ask('EXISTS', await keyOf(scene, 'leases'), await keyOf(scene, 'claims'))).toBe(0)
  })

  it('is reported by the check until a repair resets the count', async () => {
    const scene = await opened({ id: 'lost' }, { id: 'sound' })
    await lose(scene, 'lost')
    await ids(scene)
    const told = async () => (await scene.health.check()).filter(({ text }) => /record was gone/.test(text))
    expect(await told()).toMatchObject([{ level: 'warning', text: expect.stringContaining('over 1 job whose') }])
    const { mended } = await scene.health.repair!()
    expect(mended).toMatchObject([{ text: expect.stringContaining('1 job without a record') }])
    expect(await told()).toEqual([])
  })
})

describe('several payloads of an id whose record is lost', () => {
  async function opened(): Promise<RedisScene> {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, kind: 'ordered' }])
    for (const payload of ['1', '2']) await scene.add({ id: 'a', payload })
    return scene
  }
  const payloads = async ({ store }: RedisScene) => (await store.depth([queue])).depths[0]!.payloads
  async function isHandedOverWhole(scene: RedisScene): Promise<void> {
    expect(await payloads(scene)).toBe(2)
    await scene.add({ id: 'a', payload: '3' })
    const [claim] = await scene.take()
    expect(claim!.payloads!.map(({ payload }) => payload)).toEqual(['1', '2', '3'])
    expect(await payloads(scene)).toBe(0)
    await scene.health.repair!()
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  }

  it('wait until the id is enqueued again', async () => {
    const scene = await opened()
    await server.ask('HDEL', await keyOf(scene, 'jobs'), 'a')
    expect(await scene.take()).toEqual([])
    await isHandedOverWhole(scene)
  })

  it('wait in the same way if they were claimed', async () => {
    const scene = await opened()
    expect(await scene.take()).toHaveLength(1)
    const leases = await keyOf(scene, 'leases')
    const [lease] = (await client.command('ZRANGE', [leases, '0', '-1'])) as Buffer[]
    await client.command('ZADD', [leases, '1', lease!])
    await server.ask('HDEL', await keyOf(scene, 'jobs'), 'a')
    await vi.waitFor(async () => {
      await scene.store.claim([{ queue, limit: 0 }], { worker: 'f', leaseMs: 1 })
      expect(await server.ask('EXISTS', leases)).toBe(0)
    }, 5_000)
    await isHandedOverWhole(scene)
  })
})

describe('a ready list from whose middle jobs were removed', () => {
  it('grants no dead job, even behind a job without a record', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([settings])
    await scene.add({ id: 'a' }, { id: 'lost' }, { id: 'b' }, { id: 'dead' }, { id: 'c' })
    await scene.store.records.bury(queue, { ids: ['dead'] })
    await server.ask('HDEL', scene.key('jobs'), 'lost')
    const given: string[] = []
    for (let n = 0; n < 4; n++) given.push(...(await scene.take()).map(({ id }) => id))
    expect(given).toEqual(['a', 'b', 'c'])
    expect(await server.ask('LLEN', scene.key('ready-list'))).toBe(0)
    expect((await scene.health.check()).filter(({ level }) => level === 'error')).toEqual([])
    const { left } = await scene.health.repair!()
    expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
    expect(await server.ask('HGET', scene.key('meta'), 'lost')).toBeNull()
  })
})

it('a claim whose shared lease is lost is renewed with a lease of its own', async () => {
  const scene = new RedisScene(client)
  await scene.store.open([settings])
  await scene.add({ id: 'a' }, { id: 'b' })
  const claims = await scene.take(2)
  await server.ask('DEL', scene.key('leases'))
  const items = claims.map(({ id, fence }) => ({ queue, id, fence, leaseMs: 60_000 }))
  expect(await scene.store.extend(items)).toEqual(['ok', 'ok'])
  expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
})
