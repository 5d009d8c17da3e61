/** Jobs that wait for others: from their enqueue to their run, on a test mill. */

import { defineTask, many, type Settled, UnrecoverableError } from 'millrace'
import { testContext, testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { QueueAdmin } from '#src/client/admin/queue-admin.js'
import { StepBudget } from '#src/client/admin/step-loop.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../test-mill.js'

const now = '2026-03-01T09:00:00Z'

/** Closed when the test is over. */
const made: typeof testMill = (options) => {
  const mill = testMill({ now, ...options })
  onTestFinished(() => mill.close())
  return mill
}

const rates = defineTask({ name: 'rates', run: async ({ date }: { date: string }) => ({ eur: date.length }) })
const sum = defineTask({
  name: 'sum',
  queue: 'sums',
  retry: { max: 0 },
  async run(region: number) {
    if (region < 0) throw new UnrecoverableError(`region ${region} is broken`)
    return { region, total: region * 10 }
  },
})
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rates, sales: many(sum) },
  async run({ month }: { month: string }, ctx) {
    const totals: number[] = []
    for await (const { total } of ctx.joined.sales) totals.push(total)
    return { month, eur: ctx.joined.rates.eur, totals, counts: ctx.joined.sales.counts }
  },
})
const patient = defineTask({
  name: 'patient',
  queue: 'reports',
  joins: { sales: many(sum, { onDead: 'go-on' }), rate: { task: rates, onDead: 'go-on' } },
  async run(_: object, ctx) {
    const all: Settled<{ region: number; total: number }>[] = []
    for await (const one of ctx.joined.sales) all.push(one)
    return { all, rate: ctx.joined.rate, counts: ctx.joined.sales.counts }
  },
})
const tasks = [rates, sum, report, patient] as const
const november = { month: '2026-11' }

describe('a join', () => {
  it.each([
    [1_000, 0],
    [1_001, 1_000],
  ])('of %i members of which the last is refused leaves %i', async (members, left) => {
    const strict = defineTask({ name: 'strict', queue: 'reports', joins: { all: many(sum) }, run: async () => {} })
    const mill = made({ tasks: [sum, strict] })
    const all: unknown[] = Array.from({ length: members }, (_, n) => n)
    all[members - 1] = Symbol('refused')

    const enqueued = mill.enqueue(strict, undefined, { after: { all: all as number[] } })

    await expect(enqueued).rejects.toMatchObject({ code: 'job-invalid' })
    expect((await mill.queue('sums').depth()).ready).toBe(left)
  })

  it('runs once its members have ended, with their results in order', async () => {
    const mill = made({ tasks })
    const job = await mill.enqueue(report, november, { after: { rates: { date: 'today' }, sales: [3, 1, 2] } })

    expect(await job.status()).toBe('waiting')
    expect((await mill.drain()).map(({ task }) => task)).toEqual(['rates', 'sum', 'sum', 'sum', 'report'])
    expect(await job.result()).toEqual({
      month: '2026-11',
      eur: 5,
      totals: [30, 10, 20],
      counts: { completed: 3, dead: 0, cancelled: 0, expired: 0 },
    })
  })

  it('takes an iterable or an async iterable of inputs, and none at all', async () => {
    const mill = made({ tasks })
    const today = { date: 'today' }
    async function* regions() {
      yield 1
      yield 2
    }
    const jobs = [
      await mill.enqueue(report, november, { after: { rates: today, sales: new Set([7]) } }),
      await mill.enqueue(report, november, { after: { rates: today, sales: regions() } }),
      await mill.enqueue(report, november, { after: { rates: today, sales: [] } }),
    ]
    await mill.drain()

    expect((await Promise.all(jobs.map((job) => job.result()))).map(({ totals }) => totals)).toEqual([
      [70],
      [10, 20],
      [],
    ])
  })

  it('is dead as soon as a member is, and its error names the member', async () => {
    const mill = made({ tasks })
    const failed: unknown[] = []
    mill.on('join.failed', (event) => failed.push(event))
    const job = await mill.enqueue(report, november, { after: { rates: { date: '' }, sales: [1, -2] } })
    await mill.drain()

    expect(await job.record()).toMatchObject({ state: 'dead', reason: 'join-member-dead' })
    const error = `member '${job.id}.sales.1' of set 'sales' in queue 'sums' is dead: UnrecoverableError: region -2 is broken`
    expect((await job.record())?.error).toContain(error)
    await expect(job.result()).rejects.toThrow(error)
    expect(failed).toEqual([{ queue: 'reports', id: job.id, task: 'report', reason: 'join-member-dead' }])
  })

  it('gets each end if its set goes on', async () => {
    const mill = made({ tasks })
    const job = await mill.enqueue(patient, {}, { after: { sales: [1, -2], rate: { date: 'x' } } })
    await mill.drain()

    const { all, rate, counts } = await job.result()
    expect(all[0]).toEqual({ fate: 'completed', result: { region: 1, total: 10 } })
    expect(all[1]).toMatchObject({ fate: 'dead' })
    expect((all[1] as { error: string }).error).toContain('region -2 is broken')
    expect(rate).toEqual({ fate: 'completed', result: { eur: 1 } })
    expect(counts).toEqual({ completed: 1, dead: 1, cancelled: 0, expired: 0 })
  })

  it('is dead as late if its members have not ended in time', async () => {
    const mill = made({ tasks })
    const job = await mill.enqueue(report, november, { after: { rates: { date: '' }, sales: [] }, within: '2d' })
    mill.advance('3d')
    await mill.drain({ queues: ['reports'] })

    expect(await job.record()).toMatchObject({ state: 'dead', reason: 'join-late' })
  })

  it('gets the results of members whose queue keeps none', async () => {
    const mill = made({ tasks, queues: { sums: { retention: { results: 'none' } } } })
    const job = await mill.enqueue(report, november, { after: { rates: { date: '' }, sales: [4] } })
    await mill.drain()

    expect((await job.result()).totals).toEqual([40])
  })

  it('of more than 1,000 members is stored open and sealed, with results in order', async () => {
    const mill = made({ tasks })
    async function* regions() {
      for (let region = 0; region < 2_345; region += 1) yield region
    }
    const job = await mill.enqueue(report, november, { after: { rates: { date: '' }, sales: regions() } })
    await mill.drain()

    const { totals, counts } = await job.result()
    expect(totals).toEqual(Array.from({ length: 2_345 }, (_, n) => n * 10))
    expect(counts.completed).toBe(2_345)
  })

  it('of few members with large inputs is stored in several calls, with results in order', async () => {
    const size = defineTask({ name: 'size', queue: 'sums', run: async (text: string) => text.length })
    const sizes = defineTask({
      name: 'sizes',
      queue: 'reports',
      joins: { first: size, all: many(size) },
      async run(_: object, ctx) {
        const all: number[] = []
        for await (const one of ctx.joined.all) all.push(one)
        return [ctx.joined.first, ...all]
      },
    })
    const mill = made({ tasks: [size, sizes] })
    const all = Array.from({ length: 60 }, (_, n) => 'x'.repeat(200_000 + n))
    const job = await mill.enqueue(sizes, {}, { after: { first: 'x', all } })
    await mill.drain()

    expect(await job.result()).toEqual([1, ...all.map(({ length }) => length)])
  })

  it('of many members passes through the middleware in parts', async () => {
    const parts: number[] = []
    const mill = made({
      tasks,
      middleware: [
        {
          async enqueue(items, next) {
            parts.push(items.length)
            await next()
          },
        },
      ],
    })
    const sales = Array.from({ length: 1_200 }, (_, n) => n)
    await mill.enqueue(report, november, { after: { rates: { date: '' }, sales } })

    expect([parts[0], Math.max(...parts) <= 250]).toEqual([2, true])
    expect(parts.reduce((sum, part) => sum + part, 0)).toBe(1_202)
  })

  it('names a wrong input of many by its number, and is open until its call is repeated', async () => {
    const strict = defineTask({
      name: 'strict',
      queue: 'sums',
      input: z.number(),
      run: async (n) => n,
    })
    const counted = defineTask({
      name: 'counted',
      queue: 'reports',
      joins: { all: many(strict) },
      run: async (_: object, ctx) => ctx.joined.all.counts.completed,
    })
    const mill = made({ tasks: [strict, counted] })
    const numbers = Array.from({ length: 1_300 }, (_, n) => n)
    const options = (all: readonly unknown[]) => ({ id: 'counted', after: { all: all as number[] } })
    await expect(mill.enqueue(counted, {}, options([...numbers.slice(0, -1), 'x']))).rejects.toThrow(
      /^member 1299 of set 'all': [\s\S]* is open: enqueue it again under the same id of your own to go on/,
    )
    await mill.drain()
    expect(await mill.job(counted, 'counted').status()).toBe('waiting')
    await mill.enqueue(counted, {}, options(numbers))
    await mill.drain()

    expect(await mill.job(counted, 'counted').result()).toBe(1_300)
  })

  it('under an id of its own is stored once', async () => {
    const mill = made({ tasks })
    const options = { id: 'november', after: { rates: { date: '' }, sales: [1] } }
    const first = await mill.enqueue(report, november, options)
    const second = await mill.enqueue(report, november, options)

    expect([first.outcome, second.outcome]).toEqual(['added', 'duplicate'])
    expect((await mill.enqueued(sum)).length).toBe(1)
  })

  it('of an id that a dead join has is dropped, with an event and without a second run', async () => {
    const mill = made({ tasks })
    const dropped: unknown[] = []
    mill.on('job.dropped', (event) => dropped.push(event))
    const enqueue = () =>
      mill.enqueue(report, november, { id: 'november', after: { rates: { date: '' }, sales: [-1] } })
    const flow = () =>
      mill.flow((f) => {
        const after = { rates: f.job(rates, { date: '' }), sales: f.jobs(sum, [-1]) }
        return f.job(report, november, { id: 'december', after })
      })
    for (const send of [enqueue, flow]) {
      await send()
      await mill.drain()
      const { processed, dead } = await mill.queue('sums').depth()
      const again = await send()
      expect(again.outcome).toBe('duplicate')
      await expect(again.result()).rejects.toMatchObject({ code: 'job-dead', reason: 'join-member-dead' })
      await mill.drain()
      expect(await mill.queue('sums').depth()).toMatchObject({ processed, dead, ready: 0 })
    }
    expect(dropped).toEqual(['november', 'december'].map((id) => ({ queue: 'reports', id, task: 'report' })))
  })

  it('under an id of its own does not tell the store that nobody else adds its members', async () => {
    const store = new MemoryStore()
    const enqueue = store.enqueue.bind(store)
    const news = new Set<boolean | undefined>()
    store.enqueue = (calls) => {
      for (const { hasNewIds } of calls) news.add(hasNewIds)
      return enqueue(calls)
    }
    const mill = testMillOn(store, { tasks })
    onTestFinished(() => mill.close())
    const after = { rates: { date: '' }, sales: Array.from({ length: 1_100 }, (_, n) => n) }
    await mill.enqueue(report, november, { id: 'november', after })
    expect([...news]).toEqual([false])
    news.clear()
    await mill.enqueue(report, november, { after })
    expect([...news]).toEqual([true])
  })

  it('that its producer left open is completed by a call that repeats it', async () => {
    const mill = made({ tasks })
    const regions = Array.from({ length: 1_500 }, (_, n) => n)
    function* dying() {
      yield* regions.slice(0, 1_300)
      throw new Error('the producer dies')
    }
    const options = (sales: Iterable<number>) => ({ id: 'november', after: { rates: { date: '' }, sales } })
    await expect(mill.enqueue(report, november, options(dying()))).rejects.toThrow('the producer dies')
    expect(await mill.job(report, 'november').status()).toBe('waiting')
    const again = await mill.enqueue(report, november, options(regions))
    await mill.drain()

    expect(again.outcome).toBe('duplicate')
    expect((await again.result()).totals).toEqual(regions.map((n) => n * 10))
    expect((await mill.queue('sums').depth()).processed).toBe(1_500)
  })

  it('whose producer died is dead as never sealed', async () => {
    const mill = made({ tasks })
    async function* dying() {
      for (let n = 0; n < 1_200; n += 1) yield n
      throw new Error('the producer dies')
    }
    const after = { rates: { date: '' }, sales: dying() }
    await mill.enqueue(report, november, { id: 'x', after, sealWithin: '10m' }).catch(() => {})
    mill.advance('10m')
    await mill.drain()

    expect(await mill.job(report, 'x').record()).toMatchObject({ state: 'dead', reason: 'join-never-sealed' })
  })
})

describe('a handler that enqueues a join', () => {
  it('enqueues nothing twice when it runs again', async () => {
    const parent = defineTask({
      name: 'parent',
      retry: { max: 1, backoff: () => 0 },
      async run(_: object, ctx) {
        const job = await ctx.enqueue(report, november, { after: { rates: { date: '' }, sales: [1, 2] }, key: 'all' })
        if (ctx.job.attempt === 1) throw new Error('once')
        return job.id
      },
    })
    const mill = made({ tasks: [...tasks, parent] })
    const job = await mill.enqueue(parent, {})
    await mill.drain()

    expect((await mill.queue('sums').depth()).processed).toBe(2)
    const joined = mill.job(report, await job.result())
    expect((await joined.record())?.parent).toEqual({ queue: 'default', id: job.id, task: 'parent' })
    expect((await joined.result()).totals).toEqual([10, 20])
  })
})

describe('the record', () => {
  it('of a join shows what it waits for, and that of a member its joins', async () => {
    const mill = made({ tasks })
    const job = await mill.enqueue(report, november, {
      after: { rates: { date: '' }, sales: [1, 2, 3] },
      within: '2d',
    })
    await mill.drain({ queues: ['default'] })

    const none = { completed: 0, dead: 0, cancelled: 0, expired: 0 }
    const set = { onDead: 'fail' as const }
    expect((await job.record())?.join).toEqual({
      waitsUntil: new Date('2026-03-03T09:00:00Z'),
      sets: [
        {
          ...{ ...set, name: 'rates', queue: 'default', isMany: false, size: 1, added: 1, done: 1 },
          counts: { ...none, completed: 1 },
        },
        {
          ...{ ...set, name: 'sales', queue: 'sums', isMany: true, size: 3, added: 3, done: 0 },
          counts: none,
          oldest: `${job.id}.sales.0`,
        },
      ],
    })
    expect((await mill.queue('reports').depth()).waiting).toBe(1)
    const [member] = await mill.enqueued(sum)
    expect(member?.joins).toEqual([{ queue: 'reports', id: job.id, set: 'sales' }])
    expect((await mill.queue('reports').jobs.get(job.id))?.join?.sets.length).toBe(2)
    expect(await job.cancel('enough')).toBe(true)
    expect(await job.status()).toBe('cancelled')
  })
})

describe('a dead join', () => {
  it('is revived with its dead members, and then runs', async () => {
    const seen = { broken: true }
    const moody = defineTask({
      name: 'moody',
      queue: 'sums',
      retry: { max: 0 },
      async run(n: number) {
        if (seen.broken && n > 1) throw new Error('broken')
        return n
      },
    })
    const after = defineTask({
      name: 'after',
      queue: 'reports',
      joins: { all: many(moody) },
      run: async (_: object, ctx) => ctx.joined.all.counts.completed,
    })
    const mill = made({ tasks: [moody, after] })
    const job = await mill.enqueue(after, {}, { after: { all: [1, 2, 3] } })
    await mill.drain()
    expect(await job.status()).toBe('dead')
    seen.broken = false

    expect(await mill.queue('reports').morgue.revive([job.id], { members: true })).toBe(3)
    await mill.drain()
    expect(await job.result()).toBe(3)
  })

  it('is revived with its dead members in bounded steps, itself last, and a later call does the rest', async () => {
    const strict = defineTask({ name: 'strict', queue: 'reports', joins: { all: many(sum) }, run: async () => {} })
    const mill = made({ tasks: [sum, strict] })
    const all = Array.from({ length: 1_500 }, (_, n) => n)
    const job = await mill.enqueue(strict, undefined, { after: { all } })
    await mill.queue('sums').jobs.bury('all')
    const budget = new StepBudget(0, () => 0)
    const { morgue } = new QueueAdmin('reports', mill.adminParts, budget.loop)
    const revived: [number, boolean, string | undefined][] = []

    for (let i = 0; i < 3; i += 1)
      revived.push([await morgue.revive([job.id], { members: true }), budget.more, await job.status()])

    expect(revived).toEqual([
      [1_000, true, 'dead'],
      [500, true, 'dead'],
      [1, false, 'waiting'],
    ])
    expect(await mill.queue('sums').depth()).toMatchObject({ ready: 1_500, dead: 0 })
  })

  it('is revived with the members of its dead members, though the first of those was deleted', async () => {
    const middle = defineTask({ name: 'middle', queue: 'middles', joins: { sum }, run: async () => {} })
    const outer = defineTask({
      name: 'outer',
      queue: 'reports',
      retry: { max: 0 },
      joins: { all: many(middle, { onDead: 'go-on' }) },
      run: async () => Promise.reject(new Error('broken')),
    })
    const mill = made({ tasks: [sum, middle, outer] })
    const { all, job } = await mill.flow((f) => {
      const all = [-1, -2].map((n) => f.job(middle, undefined, { after: { sum: f.job(sum, n) } }))
      return { all, job: f.job(outer, undefined, { after: { all } }) }
    })
    await mill.drain()
    expect(await job.status()).toBe('dead')
    await mill.queue('middles').morgue.delete([all[0]!.id])

    expect(await mill.queue('reports').morgue.revive([job.id], { members: true })).toBe(3)
    expect((await mill.queue('sums').depth()).ready).toBe(1)
  })
})

describe('a test context of a join', () => {
  it('gives its handler what the test says of its members', async () => {
    const ctx = testContext(report, { joined: { rates: { eur: 3 }, sales: [{ region: 1, total: 10 }] } })

    expect(await report.run!(november, ctx)).toMatchObject({ eur: 3, totals: [10], counts: { completed: 1, dead: 0 } })
  })

  it('counts the ends of a set that goes on', async () => {
    const sales = [{ fate: 'dead', error: 'broken' } as const, { fate: 'expired' } as const]
    const ctx = testContext(patient, { joined: { sales, rate: { fate: 'completed', result: { eur: 1 } } } })

    expect(await patient.run!({}, ctx)).toMatchObject({ all: sales, counts: { completed: 0, dead: 1, expired: 1 } })
  })

  it('is refused without them, by the set that is missing', () => {
    expect(() => testContext(report, { joined: { rates: { eur: 3 } } } as never)).toThrow(
      /needs what its handler finds in ctx\.joined: \{ joined: \{ sales: \[member\] \} \}; got undefined/,
    )
  })
})
