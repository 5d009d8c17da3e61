/** Flows: graphs of jobs in which one job may be waited for by several others. */

import { defineTask, many } from 'millrace'
import { testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'

const now = '2026-03-01T09:00:00Z'
const rates = defineTask({ name: 'rates', run: async (date: string) => date.length })
const sum = defineTask({ name: 'sum', queue: 'sums', run: async (n: number) => n * 2 })
const report = defineTask({
  name: 'report',
  joins: { rate: rates, sales: many(sum) },
  async run(month: string, ctx) {
    const totals: number[] = []
    for await (const total of ctx.joined.sales) totals.push(total)
    return `${month}: ${ctx.joined.rate}, ${totals.join(' ')}`
  },
})
const year = defineTask({
  name: 'year',
  queue: 'years',
  joins: { first: report, second: report, rate: { task: rates, onDead: 'go-on' } },
  run: async (_: object, ctx) => [ctx.joined.first, ctx.joined.second, ctx.joined.rate] as const,
})
const tasks = [rates, sum, report, year] as const

/** Closed when the test is over. */
function made(options: Partial<Parameters<typeof testMill>[0]> = {}) {
  const mill = testMill({ tasks, ...options })
  onTestFinished(() => mill.close())
  return mill
}

describe('a flow', () => {
  it('runs each job once, and tells several joins of it', async () => {
    const mill = made()
    const { all } = await mill.flow((f) => {
      const rate = f.job(rates, 'today')
      const sales = f.jobs(sum, [3, 1, 2])
      const first = f.job(report, 'May', { after: { rate, sales } })
      const second = f.job(report, 'June', { after: { rate, sales: f.jobs(sum, [5]) }, priority: 3 })
      return { all: f.job(year, {}, { after: { first, second, rate }, id: '2026', within: '2d' }) }
    })
    const ran = (await mill.drain()).map(({ task }) => task)

    expect(ran.sort()).toEqual(['rates', 'report', 'report', 'sum', 'sum', 'sum', 'sum', 'year'])
    expect(all.id).toBe('2026')
    expect(await all.result()).toEqual(['May: 5, 6 2 4', 'June: 5, 10', { fate: 'completed', result: 5 }])
  })

  it('resolves with handles in the place of the jobs that its function returned, or with all', async () => {
    const mill = made()
    const build = (f: Parameters<Parameters<typeof mill.flow>[0]>[0]) => {
      const sales = f.jobs(sum, [1, 2])
      return { sales, month: f.job(report, 'May', { after: { rate: f.job(rates, ''), sales } }), about: 'May' }
    }
    const { sales, month, about } = await mill.flow(build)
    const all = await mill.flow((f) => void build(f))
    await mill.drain()

    expect(await Promise.all(sales.map((job) => job.result()))).toEqual([2, 4])
    expect([await month.result(), about]).toEqual(['May: 0, 2 4', 'May'])
    expect(all.map(({ outcome, queue }) => [outcome, queue])).toEqual([
      ['added', 'sums'],
      ['added', 'sums'],
      ['added', 'default'],
      ['added', 'default'],
    ])
  })

  it('leaves dates, maps and objects of classes in its value as they are', async () => {
    class Basket {
      count = 2
    }
    const mill = made()
    const [at, byName, basket] = [new Date(now), new Map([['a', 1]]), new Basket()]
    const value = await mill.flow((f) => {
      const month = f.job(report, 'May', { after: { rate: f.job(rates, ''), sales: f.jobs(sum, [1]) } })
      return { at, byName, basket, add: (n: number) => n + 1, parts: [{ month }, 'x'] as const, month, none: null }
    })
    await mill.drain()

    expect([value.at.getTime(), value.byName.get('a'), value.basket, value.add(1)]).toEqual([
      at.getTime(),
      1,
      basket,
      2,
    ])
    expect(Object.keys(value)).toEqual(['at', 'byName', 'basket', 'add', 'parts', 'month', 'none'])
    expect([await value.month.result(), value.parts[0].month, value.parts[1]]).toEqual(['May: 0, 2', value.month, 'x'])
  })

  it('may have a value that contains itself', async () => {
    const mill = made()
    type Ring = { month?: unknown; self?: Ring; all: unknown[] }
    const value = (await mill.flow((f) => {
      const month = f.job(report, 'May', { after: { rate: f.job(rates, ''), sales: f.jobs(sum, [1]) } })
      const ring: Ring = { month, all: [] }
      ring.self = ring
      ring.all.push(ring, month)
      return ring as object
    })) as Ring

    expect(value.self).toBe(value)
    expect(value.all).toEqual([value, value.month])
    expect(value.month).toMatchObject({ outcome: 'added', queue: 'default' })
  })

  it('stores nothing if its value cannot be read', async () => {
    const mill = made()
    const built = mill.flow((f) => {
      f.job(report, 'May', { after: { rate: f.job(rates, ''), sales: f.jobs(sum, [1]) } })
      return {
        get month(): string {
          throw new Error('no month')
        },
      }
    })

    await expect(built).rejects.toThrow('no month')
    expect((await mill.queue('sums').depth()).ready).toBe(0)
  })

  it('whose join has an id of its own is stored once', async () => {
    const mill = made()
    const build = (f: Parameters<Parameters<typeof mill.flow>[0]>[0]) =>
      f.job(report, 'May', { id: 'may', after: { rate: f.job(rates, ''), sales: f.jobs(sum, [1]) } })
    const handles = [await mill.flow(build), await mill.flow(build)]
    await mill.drain()

    expect(handles.map(({ outcome }) => outcome)).toEqual(['added', 'duplicate'])
    expect((await mill.queue('sums').depth()).processed).toBe(1)
  })

  it('passes through the middleware as one enqueue, with every job as an item', async () => {
    const seen: string[] = []
    const mill = made({
      middleware: [
        {
          async enqueue(items, next) {
            await next()
            seen.push(items.map(({ task, job }) => `${task.name} ${job?.outcome}`).join(', '))
          },
        },
      ],
    })
    await mill.flow((f) => f.job(report, 'May', { after: { rate: f.job(rates, ''), sales: f.jobs(sum, [1, 2]) } }))
    await mill.enqueue(report, 'June', { after: { rate: '', sales: [1] } })

    expect(seen).toEqual(['report added, rates added, sum added, sum added', 'report added, rates added, sum added'])
  })
})
