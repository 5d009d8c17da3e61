/** Deaths in Redis: over several shards, beside what is damaged, and as `fsck` sees them. */

import { beforeEach, expect, it } from 'vitest'
import { shardOf } from '#src/stores/rules/payloads.js'
import { queue, RedisScene, settings, sharedRedis } from './redis-scene.js'

const { client } = await sharedRedis()
const reporting = { reportsDeath: true } as const

let scene: RedisScene
beforeEach(async () => {
  scene = new RedisScene(client)
  await scene.store.open([settings])
})

const faults = async () => (await scene.health.check()).filter(({ level }) => level !== 'ok')
const unreportedIds = async (name = queue) => {
  const deaths = await scene.store.deaths.unreported([name], ['send'], 100)
  return deaths.map(({ id }) => id).sort()
}

it('fsck finds nothing in jobs whose deaths are to be reported, whatever their states, or in their deaths', async () => {
  const ids = ['ready', 'running', 'failed', 'kept', 'dead', 'revived', 'later']
  await scene.add(
    ...ids.map((id) => ({ id, ...reporting, ...(id === 'later' ? { delayMs: 60_000, priority: 3 } : {}) })),
  )
  const claims = new Map((await scene.take(10)).map((claim) => [claim.id, claim]))
  await scene.end(claims.get('ready')!, { kind: 'release', delayMs: 0 })
  await scene.end(claims.get('failed')!, { kind: 'retry', delayMs: 60_000, error: 'once' })
  await scene.end(claims.get('kept')!, { kind: 'complete', result: { payload: '1' } })
  for (const id of ['dead', 'revived']) await scene.end(claims.get(id)!, { kind: 'bury', error: 'ü', reason: 'no' })
  await scene.store.records.morgue.revive(queue, { ids: ['revived'] })

  expect(await faults()).toEqual([])
  expect(await unreportedIds()).toEqual(['dead', 'revived'])
})

it('a death that is damaged is named, and the others are still reported', async () => {
  await scene.add({ id: 'a', ...reporting }, { id: 'b', ...reporting })
  await scene.store.records.bury(queue, 'all')
  await scene.raw('ZADD', 'deaths', '0', 'send\0\0torn')
  expect(await unreportedIds()).toEqual(['a', 'b'])
  const [first] = await scene.store.deaths.unreported([queue], ['send'], 1)
  expect(await scene.store.deaths.backlog([queue], 10)).toEqual([
    { queue, task: 'send', count: 3, since: first!.diedAt },
  ])

  const [fault, ...others] = await faults()
  expect(others).toEqual([])
  expect(fault!.text).toMatch(/what 'deaths' holds of them cannot be read: send/)
})

it('the deaths of all shards of a queue are reported, each from its own', async () => {
  await scene.store.open([{ ...settings, name: 'wide', shards: 4 }])
  const ids = Array.from({ length: 20 }, (_, i) => `job-${i}`)
  const jobs = ids.map((id) => ({ id, task: 'send', payload: id, priority: 0, rememberMs: 0, ...reporting }))
  await scene.store.enqueue([{ callId: 'wide', queue: 'wide', jobs }])
  await scene.store.records.bury('wide', 'all')
  expect(await unreportedIds('wide')).toEqual([...ids].sort())
  const [first] = await scene.store.deaths.unreported(['wide'], ['send'], 1)
  const backlog = { queue: 'wide', task: 'send', count: 20, since: first!.diedAt }
  expect(await scene.store.deaths.backlog(['wide', queue], 100)).toEqual([backlog])
  expect(await scene.store.deaths.backlog(['wide', queue], 7)).toEqual([{ ...backlog, count: 7 }])

  const some = await scene.store.deaths.unreported(['wide', queue], ['send'], 7)
  expect(some).toHaveLength(7)
  const others = await scene.store.deaths.unreported(['wide'], ['send'], 100, some)
  expect([...some, ...others].map(({ id }) => id).sort()).toEqual([...ids].sort())
  await scene.add({ id: 'beside', ...reporting })
  await scene.store.records.bury(queue, 'all')
  const beside = await scene.store.deaths.unreported(['wide', queue], ['send'], 100, [...some, ...others])
  expect(beside.map(({ id }) => id)).toEqual(['beside'])
  await scene.store.deaths.reported('wide', some)
  expect(await unreportedIds('wide')).toHaveLength(13)
})

it('tasks whose names begin alike are apart', async () => {
  for (const task of ['send', 'send-mail', 'sen']) await scene.add({ id: task, task, ...reporting })
  await scene.store.records.bury(queue, 'all')
  expect(await unreportedIds()).toEqual(['send'])
})

it('a look reads no more deaths than it was asked for, however many tasks and shards have some', async () => {
  await scene.store.open([{ ...settings, name: 'wide', shards: 3 }])
  const tasks = ['copy', 'move', 'send']
  for (let round = 0; round < 6; round += 1) {
    const jobs = tasks.map((task) => ({
      ...{ id: `${task}-${round}`, task, payload: 'a large input', priority: 0, rememberMs: 0, ...reporting },
    }))
    await scene.store.enqueue([{ callId: `round-${round}`, queue: 'wide', jobs }])
    await scene.store.records.bury('wide', 'all')
  }
  const all = await scene.store.deaths.unreported(['wide', queue], tasks, 100)
  expect(all).toHaveLength(18)
  expect(all.map(({ diedAt }) => diedAt)).toEqual(all.map(({ diedAt }) => diedAt).sort((a, b) => a - b))
  let read = 0
  const beside = scene.beside({
    after(_, reply) {
      read += [reply].flat(3).filter((part) => Buffer.isBuffer(part) && part.includes('a large input')).length
    },
  })

  const some = await beside.deaths.unreported(['wide', queue], tasks, 7)

  expect(read).toBe(7)
  expect(some).toEqual(all.slice(0, 7))
  expect(await beside.deaths.unreported(['wide', queue], tasks, 7, some)).toEqual(all.slice(7, 14))
})

it('a look passes over a death that is damaged, and has as many others as it was asked for', async () => {
  await scene.add({ id: 'a', ...reporting }, { id: 'b', ...reporting })
  await scene.store.records.bury(queue, 'all')
  await scene.raw('ZADD', 'deaths', '0', 'send\0\0\0\0')
  const deaths = await scene.store.deaths.unreported([queue], ['send'], 2)
  expect(deaths.map(({ id }) => id)).toEqual(['a', 'b'])
})

it('of a queue whose shards name different tasks, the backlog names the first hundred, with all their deaths', async () => {
  await scene.store.open([{ ...settings, name: 'wide', shards: 2 }])
  // In one shard these come before the tasks of both.
  const own = Array.from({ length: 60 }, (_, i) => `a-${i}`)
  const both = Array.from({ length: 90 }, (_, i) => `b-${100 + i}`)
  const inShard = (shard: number, of: string) => {
    for (let n = 0; ; n += 1) if (shardOf(`${of}-${n}`, 2) === shard) return `${of}-${n}`
  }
  const ids = [
    ...own.map((task) => [task, 0] as const),
    ...both.flatMap((task) => [0, 1].map((n) => [task, n] as const)),
  ]
  const jobs = ids.map(([task, shard]) => ({
    ...{ id: inShard(shard, task), task, payload: '', priority: 0, rememberMs: 0, ...reporting },
  }))
  await scene.store.enqueue([{ callId: 'wide', queue: 'wide', jobs }])
  await scene.store.records.bury('wide', 'all')

  const backlog = await scene.store.deaths.backlog(['wide'], 10)

  expect(backlog.map(({ task, count }) => [task, count])).toEqual([
    ...own.sort().map((task) => [task, 1]),
    ...both.slice(0, 40).map((task) => [task, 2]),
  ])
})

it('a job in the morgue has its input once, and its death gets that when the job leaves', async () => {
  const payload = JSON.stringify('x'.repeat(50_000))
  const ids = ['deleted', 'revived', 'replaced', 'reported']
  await scene.add(...ids.map((id) => ({ id, payload, ...reporting })))
  for (const claim of await scene.take(ids.length)) await scene.end(claim, { kind: 'bury', error: 'ü', reason: 'no' })
  const { deaths, records } = scene.store
  const before = await deaths.unreported([queue], ['send'], 10)
  const bytes = async () => Buffer.concat(await scene.all('deaths')).length

  expect(before.map((death) => death.payload)).toEqual(ids.map(() => payload))
  expect(await bytes()).toBeLessThan(1_000)
  const reported = before.find(({ id }) => id === 'reported')!
  await deaths.reported(queue, [reported])
  expect((await scene.fields('notes')).filter((field) => field.startsWith('d'))).toHaveLength(3)
  await records.morgue.delete(queue, { ids: ['deleted', 'reported'] })
  await records.morgue.revive(queue, { ids: ['revived'] })
  await scene.add({ id: 'replaced', payload: '1', ifWaiting: 'replace' })

  expect(await bytes()).toBeGreaterThan(150_000)
  expect(await deaths.unreported([queue], ['send'], 10)).toEqual(before.filter((death) => death !== reported))
  expect((await scene.fields('notes')).filter((field) => field.startsWith('d'))).toEqual([])
  expect(await faults()).toEqual([])
})

it('a death that has lost its job is named, and is reported without an input', async () => {
  await scene.add({ id: 'a', ...reporting })
  await scene.store.records.bury(queue, 'all')
  await scene.raw('HDEL', 'notes', 'da')

  const [fault, ...others] = await faults()
  expect(others).toEqual([])
  expect(fault!.text).toMatch(/what 'deaths' holds of them cannot be read: send/)
  await scene.raw('HDEL', 'jobs', 'a')
  const [death] = await scene.store.deaths.unreported([queue], ['send'], 1)
  expect(death).toMatchObject({ id: 'a', payload: '', reason: 'buried' })
  await scene.store.deaths.reported(queue, [death!])
  expect(await unreportedIds()).toEqual([])
})
