/** The repair of a Redis store after half a script was applied: what it mends, and what it leaves. */

import { describe, expect, it } from 'vitest'
import { queue, RedisScene, settings, sharedRedis } from '../redis-scene.js'

const { server, client } = await sharedRedis()

const by = { worker: 'w', leaseMs: 30_000 }

/** With jobs of these ids claimed in one call. */
async function running(kind: 'plain' | 'ordered', ...ids: string[]): Promise<RedisScene> {
  const scene = new RedisScene(client)
  await scene.store.open([{ ...settings, kind }])
  for (const id of ids) await scene.add({ id })
  expect((await scene.store.claim([{ queue, limit: 10 }], by)).claims).toHaveLength(ids.length)
  return scene
}

function keyOf(scene: RedisScene, kind: 'plain' | 'ordered', name: string): string {
  return kind === 'plain' ? scene.key(name as never) : `{${scene.namespace}:${queue}:0.0}:${name}`
}

describe.each(['plain', 'ordered'] as const)('the repair of a %s queue', (kind) => {
  it('finds nothing to repair in a sound store', async () => {
    const scene = await running(kind, 'a', 'b')
    const { mended, left } = await scene.health.repair!()
    expect([mended, left.filter(({ level }) => level !== 'ok')]).toEqual([[], []])
    expect(await scene.store.workers.held('w')).toHaveLength(2)
  })

  it('gives running jobs without a lease one that their worker can renew, and nobody else gets them before it ends', async () => {
    const scene = await running(kind, 'a', 'b')
    await server.ask('DEL', keyOf(scene, kind, 'leases'))
    expect((await scene.health.check()).filter(({ level }) => level === 'error')).not.toEqual([])
    const { mended, left } = await scene.health.repair!(queue)
    expect(mended).toContainEqual({
      what: `queue ${queue}`,
      text: expect.stringMatching(/^gave 2 running jobs that had no lease one of 30 s: (?:a, b|b, a)$/),
    })
    expect(left.filter(({ level }) => level === 'error')).toEqual([])
    expect((await scene.store.claim([{ queue, limit: 10 }], by)).crashed).toEqual([])
    const held = await scene.store.workers.held('w')
    const items = held.map(({ id, fence }) => ({ queue, id, fence, leaseMs: 0 }))
    expect(await scene.store.extend(items)).toEqual(['ok', 'ok'])
    const ended = await scene.store.workers.gone(held, 'w')
    expect(ended.crashed.map(({ id }) => id).sort()).toEqual(['a', 'b'])
    expect((await scene.health.check()).filter(({ level }) => level !== 'ok')).toEqual([])
  })

  it('removes leases without a job', async () => {
    const scene = await running(kind, 'a')
    await server.ask('ZADD', keyOf(scene, kind, 'leases'), 1, 'nobody')
    const { mended, left } = await scene.health.repair!()
    expect(mended).toEqual([{ what: `queue ${queue}`, text: expect.stringMatching(/1 leases .*: nobody$/) }])
    expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
    expect((await scene.store.claim([{ queue, limit: 10 }], by)).damaged).toBeUndefined()
  })

  it('recounts the running jobs of a group, and restores the turn of a group with room', async () => {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, kind, maxRunning: { perGroup: 2 } }])
    await scene.add(...['a', 'b', 'c'].map((id) => ({ id, group: 'g' })), { id: 'd', group: 'h' })
    await scene.take(1)
    const [busy] = (await server.ask('KEYS', `{${scene.namespace}:*:running-by-group`)) as [string]
    expect(await server.ask('HSET', busy, 'g', 2, 'gone', 1)).toBe(1)
    expect((await scene.take(10)).map(({ group }) => group)).toEqual(['h'])
    expect(await server.ask('HDEL', busy, 'h')).toBe(1)
    const { mended, left } = await scene.health.repair!()
    expect(mended).toEqual([{ what: `queue ${queue}`, text: 'counted anew how many jobs run of 3 groups' }])
    expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
    expect((await scene.take(10)).map(({ group }) => group)).toEqual(['g'])
  })

  it('gives leases on the present clock, after it was set back', async () => {
    const scene = await running(kind, 'a')
    const [seconds] = (await server.ask('TIME')) as [string]
    const ahead = (Number(seconds) + 3_600) * 1_000
    await server.ask('DEL', keyOf(scene, kind, 'leases'))
    await server.ask('HSET', keyOf(scene, kind, 'meta'), 'seenAt', ahead)
    await scene.health.repair!()
    // On the clock of the hour that has not come, the claim would have set it back by that hour.
    const [, endsAt] = (await server.ask('ZRANGE', keyOf(scene, kind, 'leases'), '0', '-1', 'WITHSCORES')) as string[]
    expect(Number(endsAt)).toBeGreaterThan(Number(seconds) * 1_000)
    expect(Number(await server.ask('HGET', keyOf(scene, kind, 'meta'), 'seenAt'))).toBeLessThan(ahead - 3_000_000)
  })
})

it('the stale elements of a ready list are recounted', async () => {
  const scene = new RedisScene(client)
  await scene.store.open([settings])
  for (const id of ['a', 'b', 'c', 'd']) await scene.add({ id })
  await scene.store.records.delete(queue, { ids: ['b', 'c'] })
  await server.ask('HINCRBY', scene.key('meta'), 'stale', 1)
  const { mended, left } = await scene.health.repair!()
  expect(mended).toEqual([
    { what: `queue ${queue}`, text: "counted the stale elements of 'ready-list' anew, which were 1 too many" },
  ])
  expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
  expect((await scene.store.claim([{ queue, limit: 10 }], by)).claims.map(({ id }) => id)).toEqual(['a', 'd'])
})

it('what needs a person is left alone and reported', async () => {
  const scene = await running('plain', 'a')
  await server.ask('HDEL', scene.key('jobs'), 'a')
  const { left } = await scene.health.repair!()
  expect(left.filter(({ level }) => level === 'error' || level === 'warning')).not.toEqual([])
  await expect(scene.health.repair!('absent')).rejects.toMatchObject({ code: 'queue-unknown' })
})
