/** Lists in the `after` of a flow: their jobs may wait for others themselves, and several joins may wait for one list. */

import { defineTask, type Flow, many } from 'millrace'
import { describe, expect, it } from 'vitest'
import { RedisStore } from '#src/stores/redis/redis-store.js'
import { connect } from '../../stores/redis/redis-scene.js'
import { type StoreKind, storeKinds, testMill, testMillOn } from '../../test-mill.js'
import { workerRedis } from '../../worker-redis.js'

const rates = defineTask({ name: 'rates', queue: 'singles', run: async (date: string) => date.length })
const region = defineTask({
  name: 'region',
  queue: 'regions',
  joins: { rate: rates },
  retry: { max: 0 },
  async run(name: string, ctx) {
    if (name === 'broken' && ctx.joined.rate < 9) throw new Error('no figures')
    return `${name} ${ctx.joined.rate}`
  },
})
const total = defineTask({
  name: 'total',
  queue: 'totals',
  joins: { regions: many(region) },
  async run(of: string, ctx) {
    const all: string[] = []
    for await (const one of ctx.joined.regions) all.push(one)
    return [of, ...all]
  },
})
const world = defineTask({
  name: 'world',
  queue: 'totals',
  joins: { totals: many(total), singles: many(rates) },
  async run(_: object, ctx) {
    const all: string[] = []
    for await (const one of ctx.joined.totals) all.push(...one)
    for await (const one of ctx.joined.singles) all.push(String(one))
    return all
  },
})
const tasks = [rates, region, total, world] as const
const queues = { singles: {}, regions: {}, totals: {} }

/** A mill on a fresh store, and a worker for all of its queues. */
async function made(kind: StoreKind | 'redis') {
  const mill = kind === 'redis' ? await onRedis() : testMill({ tasks, queues }, kind)
  return { mill, worker: mill.worker({ queues: Object.keys(queues) }) }
}

let namespaces = 0
async function onRedis() {
  const namespace = `listed-${process.pid}-${++namespaces}`
  const store = new RedisStore({ client: connect(await workerRedis()), namespace })
  return testMillOn(store, { tasks, queues: { ...queues, regions: { shards: 3 } } })
}

/** Regions that wait for one job. */
const regionsOf = (f: Flow, names: readonly string[], date = 'today') => {
  const rate = f.job(rates, date)
  return names.map((name) => f.job(region, name, { after: { rate } }))
}

describe.each([...storeKinds, 'redis'] as const)('a list in the after of a flow, on %s', (kind) => {
  it('makes a diamond: its jobs wait for one job, and are read in the order of the list', async () => {
    const { mill, worker } = await made(kind)
    const job = await mill.flow((f) =>
      f.job(total, 'all', { after: { regions: regionsOf(f, ['north', 'south', 'east', 'west']).reverse() } }),
    )
    await worker.start()

    expect(await job.result({ timeout: '10s' })).toEqual(['all', 'west 5', 'east 5', 'south 5', 'north 5'])
  })

  it('may be waited for by several joins, the beginning of a list too, and has joins of joins', async () => {
    const { mill, worker } = await made(kind)
    const job = await mill.flow((f) => {
      const regions = regionsOf(f, ['north', 'south', 'east'])
      const few = f.job(total, 'few', { after: { regions: regions.slice(0, 2) } })
      const all = f.job(total, 'all', { after: { regions } })
      const none = f.job(total, 'none', { after: { regions: [] } })
      const sums = f.jobs(rates, ['a', 'bb'])
      return f.job(world, {}, { after: { totals: [all, none, few], singles: [...sums.jobs, f.job(rates, 'ccc')] } })
    })
    await worker.start()

    const told = ['all', 'north 5', 'south 5', 'east 5', 'none', 'few', 'north 5', 'south 5', '1', '2', '3']
    expect(await job.result({ timeout: '10s' })).toEqual(told)
  })

  it('has members that are revived with the join, and the joins among them with theirs', async () => {
    const { mill, worker } = await made(kind)
    const job = await mill.flow((f) => {
      const regions = regionsOf(f, ['north', 'broken'])
      const totals = [f.job(total, 'all', { after: { regions } })]
      return f.job(world, {}, { after: { totals, singles: [] } })
    })
    await worker.start()
    await expect(job.result({ timeout: '10s' })).rejects.toMatchObject({
      code: 'job-dead',
      message: expect.stringMatching(/\(join-member-dead\): member .* is dead: member .* is dead: Error: no figures$/),
    })
    await worker.stop()

    expect(await mill.queue('totals').morgue.revive([job.id], { members: true })).toBe(3)
    expect(await job.status()).toBe('waiting')
  })

  it('is stored once if the flow is repeated', async () => {
    const { mill, worker } = await made(kind)
    const build = (f: Flow) => {
      const regions = regionsOf(f, ['north', 'south'])
      const all = f.job(total, 'all', { id: 'one', after: { regions } })
      return { all, regions }
    }
    const [first, second] = [await mill.flow(build), await mill.flow(build)]
    await worker.start()

    expect(second.all.outcome).toBe('duplicate')
    expect(second.regions.map(({ id }) => id)).toEqual(first.regions.map(({ id }) => id))
    expect(await second.all.result({ timeout: '10s' })).toEqual(['all', 'north 5', 'south 5'])
  })
})

it('a flow of a handler may have lists, and is stored once however often the handler runs', async () => {
  const ids: string[][] = []
  const parent = defineTask({
    name: 'parent',
    retry: { max: 1, backoff: () => 0 },
    async run(_: object, ctx) {
      const { all, regions } = await ctx.flow((f) => {
        const listed = regionsOf(f, ['north', 'south'])
        return { all: f.job(total, 'all', { id: 'total', after: { regions: listed } }), regions: listed }
      })
      ids.push([all.id, ...regions.map(({ id }) => id)])
      if (ctx.job.attempt === 1) throw new Error('once')
    },
  })
  const mill = testMill({ tasks: [parent, ...tasks], queues })
  await mill.worker({ queues: ['default', ...Object.keys(queues)] }).start()
  await (await mill.enqueue(parent, {})).result({ timeout: '10s' })

  expect(await mill.job(total, 'total').result({ timeout: '10s' })).toEqual(['all', 'north 5', 'south 5'])
  expect(ids[1]).toEqual(ids[0])
})
