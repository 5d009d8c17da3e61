/** Listings of a Redis store beside changes: ids come from one script and their jobs from another, and jobs move between the two. */

import { describe, expect, it } from 'vitest'
import { pagesOf } from '#src/core/values/pages.js'
import type { ListQuery } from '#src/stores/contract/job-records.js'
import { listIn } from '#src/stores/redis/client/redis-reply.js'
import { type ShardKey, shardTag } from '#src/stores/redis/redis-keys.js'
import { shardOf } from '#src/stores/rules/payloads.js'
import { queue, RedisScene, settings, sharedRedis } from './redis-scene.js'

const { client } = await sharedRedis()
const six = ['a', 'b', 'c', 'd', 'e', 'f']

async function opened(): Promise<RedisScene> {
  const scene = new RedisScene(client)
  await scene.store.open([settings])
  return scene
}

/** The ids of all pages, if this is done when the first ids were found, and their jobs were not. */
async function listed(
  scene: RedisScene,
  query: Omit<ListQuery, 'cursor'>,
  meanwhile: () => Promise<unknown>,
): Promise<string[]> {
  let isDone = false
  const { records } = scene.beside({
    async before(script) {
      if (script !== 'view' || isDone) return
      isDone = true
      await meanwhile()
    },
  })
  const ids: string[] = []
  for await (const { jobs } of pagesOf((from) => records.list(queue, { ...query, ...from })))
    ids.push(...jobs.map(({ id }) => id))
  expect(isDone).toBe(true)
  return ids
}

describe('a listing by time goes on where it found the last job of a page', () => {
  it('if that dead job is revived meanwhile', async () => {
    const scene = await opened()
    const { bury, morgue } = scene.store.records
    await scene.add(...six.map((id) => ({ id })))
    await bury(queue, 'all')

    const ids = await listed(scene, { by: 'time', state: 'dead', limit: 2 }, () => morgue.revive(queue, { ids: ['d'] }))

    expect(ids).toEqual(['f', 'e', 'c', 'b', 'a'])
  })

  it.each([
    ['ready job', {}],
    ['ready job of a group', { group: 'g' }],
  ])('if that %s is put off meanwhile', async (_, group) => {
    const scene = await opened()
    await scene.add(...six.map((id) => ({ id, ...group })))

    const ids = await listed(scene, { by: 'time', state: 'ready', limit: 2, ...group }, () =>
      scene.store.records.reschedule(queue, ['c'], { delayMs: 60_000 }),
    )

    expect(ids).toEqual(['a', 'b', 'd', 'e', 'f'])
  })

  it('if it runs and fails meanwhile', async () => {
    const scene = await opened()
    await scene.add(...six.map((id) => ({ id })))

    const ids = await listed(scene, { by: 'time', state: 'ready', limit: 2 }, async () => {
      for (const claim of await scene.take(3))
        await scene.end(claim, claim.id === 'c' ? { kind: 'retry', delayMs: 60_000 } : { kind: 'release', delayMs: 0 })
    })

    expect(ids).toEqual(expect.arrayContaining(['d', 'e', 'f']))
    expect(ids).not.toContain('c')
  })

  it('if all jobs of the page are gone meanwhile', async () => {
    const scene = await opened()
    await scene.add(...six.map((id) => ({ id })))

    const ids = await listed(scene, { by: 'time', limit: 2 }, () =>
      scene.store.records.delete(queue, { ids: ['a', 'b', 'c'] }),
    )

    expect(ids).toEqual(['d', 'e', 'f'])
  })
})

describe('a listing by time has each job once', () => {
  const lowest = ['a', 'b', 'c', 'd', 'e', 'f', 'g'].map((letter) => `${letter}-1`)
  const inShard = (shard: number, from: readonly string[]) => from.find((id) => shardOf(id, 2) === shard)!
  const highest = lowest.map((id) => `z-${id}`)

  it.each([
    ['dead', 0],
    ['dead', 1],
    ['completed', 0],
    ['completed', 1],
  ] as const)('if jobs of two shards are %s at one moment, and shard %i has the first id', async (state, first) => {
    const scene = new RedisScene(client)
    await scene.store.open([{ ...settings, shards: 2 }])
    const ids = [inShard(first, lowest), inShard(1 - first, highest)]
    await scene.add(...ids.map((id) => ({ id })))
    for (const claim of await scene.take(2))
      await scene.end(
        claim,
        state === 'dead'
          ? { kind: 'bury', error: 'broken', reason: 'unrecoverable' }
          : { kind: 'complete', result: { payload: '1', keepMs: 600_000 } },
      )
    // Each shard counts its own ends, so that those of two may have the same moment and number.
    const place = Buffer.from('019000000000000000000007', 'hex')
    for (const shard of [0, 1]) {
      const key = `${shardTag(scene.namespace, queue, shard, 2)}:${state satisfies ShardKey}`
      const [member] = listIn(await client.command('ZRANGE', [key, '0', '-1'])) as [Buffer]
      await client.command('ZREM', [key, member])
      await client.command('ZADD', [key, '0', Buffer.concat([place, member.subarray(12)])])
    }

    const listed: string[] = []
    for await (const { jobs } of pagesOf((from) =>
      scene.store.records.list(queue, { by: 'time', state, limit: 1, ...from }),
    ))
      listed.push(...jobs.map(({ id }) => id))

    expect(listed).toEqual(ids.toReversed())
  })
})

describe('a listing by id has the first ids', () => {
  const idOf = (n: number) => String(10_000 - n).padStart(5, '0')
  const first = (of: number) => Array.from({ length: 5 }, (_, i) => idOf(of - 1 - i))

  async function many(count: number): Promise<RedisScene> {
    const scene = await opened()
    for (let from = 0; from < count; from += 250)
      await scene.add(...Array.from({ length: Math.min(250, count - from) }, (_, i) => ({ id: idOf(from + i) })))
    return scene
  }

  it('if the job where a step of its walk ended is gone', async () => {
    const scene = await many(5_020)
    // As a half-executed script leaves it: the ready list has its place, and there is no record.
    await scene.raw('HDEL', 'jobs', idOf(4_999))

    const { jobs } = await scene.store.records.list(queue, { by: 'id', limit: 5 })

    expect(jobs.map(({ id }) => id)).toEqual(first(5_020))
  })

  it('of jobs of which more run than one step has', async () => {
    const scene = await many(5_020)
    for (let claims = await scene.take(500); claims.length > 0; ) claims = await scene.take(500)

    const { jobs } = await scene.store.records.list(queue, { by: 'id', state: 'running', limit: 5 })

    expect(jobs.map(({ id }) => id)).toEqual(first(5_020))
  })
})
