/** The memory of enqueue calls in a shard: one entry for the calls of a trip. */

import { type RedisServer, startRedis } from 'millrace/store-testing'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import type { EnqueueCall } from '#src/stores/contract/new-job.js'
import { connect, queue, RedisScene, settings } from './redis-scene.js'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
}, 120_000)

async function opened(): Promise<RedisScene> {
  const scene = new RedisScene(connect(server))
  onTestFinished(() => scene.store.close())
  await scene.store.open([settings])
  return scene
}

/** Of one job each, which has the id of its call. */
const calls = (...ids: string[]): EnqueueCall[] =>
  ids.map((id) => ({
    callId: id,
    queue,
    jobs: [{ id, task: 'send', payload: '', priority: 0, rememberMs: 0 }],
  }))
const again = (...ids: string[]) => calls(...ids).map((call) => ({ ...call, isResent: true }))

/** Takes and completes all that waits, so that only the memory of calls knows of it. */
async function workOff({ store }: RedisScene): Promise<number> {
  const { claims } = await store.claim([{ queue, limit: 250 }], { worker: 'w', leaseMs: 60_000 })
  await store.settle(claims.map(({ id, fence }) => ({ queue, id, fence, kind: 'complete' })))
  return claims.length
}

describe('the enqueue calls of a trip', () => {
  it('are remembered as one entry, and each gets its first answer again if it is repeated in another trip', async () => {
    const scene = await opened()
    await scene.store.enqueue(calls('a', 'b', 'c'))
    await scene.store.enqueue(calls('d'))
    expect(await workOff(scene)).toBe(4)
    expect([await scene.raw('HLEN', 'calls'), await scene.raw('LLEN', 'call-order')]).toEqual([2, 2])

    expect(await scene.store.enqueue(again('c', 'd'))).toEqual([['added'], ['added']])
    expect(await scene.store.enqueue(again('b', 'e', 'a'))).toEqual([['added'], ['added'], ['added']])
    const { claims } = await scene.store.claim([{ queue, limit: 250 }], { worker: 'w', leaseMs: 60_000 })
    expect(claims.map(({ id }) => id)).toEqual(['e'])
  })

  it('do not look up new ids', async () => {
    const scene = await opened()
    const many = (...ids: string[]): EnqueueCall => ({
      ...calls('')[0]!,
      jobs: calls(...ids).flatMap(({ jobs }) => jobs),
    })
    const looks = async (call: EnqueueCall) => {
      await scene.client.command('CONFIG', ['RESETSTAT'])
      expect(await scene.store.enqueue([call])).toEqual([['added', 'added']])
      return Number(/cmdstat_hmget:calls=(\d+)/.exec(String(await scene.client.command('INFO', ['commandstats'])))![1])
    }
    const known = await looks({ ...many('a', 'b'), callId: 'first' })
    expect(await looks({ ...many('c', 'd'), callId: 'second', hasNewIds: true })).toBe(known - 1)
  })

  it('are looked up only if one may have been sent before', async () => {
    const scene = await opened()
    await scene.store.enqueue(calls('a'))
    await scene.client.command('CONFIG', ['RESETSTAT'])
    await scene.store.enqueue(calls('b', 'c'))
    const looks = async () =>
      /cmdstat_hgetall:calls=(\d+)/.exec(String(await scene.client.command('INFO', ['commandstats'])))
    expect(await looks()).toBeNull()
    await scene.store.enqueue(again('c'))
    expect((await looks())?.[1]).toBe('1')
  })
})

describe('damaged records of earlier calls', () => {
  it.each([
    ['an entry that is too short', (scene: RedisScene) => scene.raw('HSET', 'calls', 'a', 'x')],
    ['an entry that is gone', (scene: RedisScene) => scene.raw('HDEL', 'calls', 'a')],
    ['a count that is far too large', (scene: RedisScene) => scene.raw('HSET', 'meta', 'calls', '1000000')],
    ['a count that is far too small', (scene: RedisScene) => scene.raw('HSET', 'meta', 'calls', '-1000000')],
  ])('make no enqueue fail, and are repaired by later ones: %s', async (_, damage) => {
    const scene = await opened()
    await scene.store.enqueue(calls('a', 'b'))
    await damage(scene)
    for (const id of ['c', 'd', 'e']) expect(await scene.store.enqueue(calls(id))).toEqual([['added']])
    await workOff(scene)

    expect(await scene.store.enqueue(again('e'))).toEqual([['added']])
    expect(await workOff(scene)).toBe(0)
    const order = (await scene.raw('LRANGE', 'call-order', '0', '-1')) as Buffer[]
    const kept = (await scene.raw('HKEYS', 'calls')) as Buffer[]
    expect(kept.map(String).sort()).toEqual(order.map(String).sort())
  })
})
