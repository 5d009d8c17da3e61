/** The types of jobs that wait for others: what `after` takes and `ctx.joined` gives, and wrong uses that must fail. Checked by `npm run types`; never run. */

import {
  type AnyTask,
  defineOrderedTask,
  defineTask,
  type FateCounts,
  type JobHandle,
  many,
  millrace,
  type Settled,
  type TaskInput,
  type TaskResult,
} from 'millrace'
import { expectTypeOf } from 'vitest'
import { z } from 'zod'

const rates = defineTask({ name: 'rates', input: z.object({ date: z.string() }), run: async () => ({ eur: 1 }) })
const sum = defineTask({ name: 'sum', run: async (region: string) => ({ region, total: 1 }) })
const insert = defineTask({ name: 'insert', batch: { size: 5 }, run: async (rows: number[]) => rows.map(String) })
const order = defineOrderedTask({ name: 'order', id: (input: { id: string }) => input.id, run: async () => {} })

const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rates, sales: many(sum), rows: many(insert) },
  async run(input: { month: string }, ctx) {
    expectTypeOf(ctx.joined.rates).toEqualTypeOf<{ eur: number }>()
    expectTypeOf(ctx.joined.sales.counts).toEqualTypeOf<FateCounts>()
    for await (const sale of ctx.joined.sales) expectTypeOf(sale).toEqualTypeOf<{ region: string; total: number }>()
    for await (const row of ctx.joined.rows) expectTypeOf(row).toEqualTypeOf<string>()
    // @ts-expect-error 1: no such set
    ctx.joined.expenses
    // @ts-expect-error 2: another field than the result has
    ctx.joined.rates.usd
    // @ts-expect-error 3: many are read one by one
    ctx.joined.sales[0]
    await ctx.checkpoint(ctx.job.attempt)
    return input.month.length
  },
})
expectTypeOf<TaskInput<typeof report>>().toEqualTypeOf<{ month: string }>()
expectTypeOf<TaskResult<typeof report>>().toEqualTypeOf<number>()

const patient = defineTask({
  name: 'patient',
  input: z.object({ n: z.number() }),
  joins: {
    one: { task: rates, onDead: 'go-on' },
    sales: many(sum, { onDead: 'go-on', cancelRest: true }),
    counted: many(sum, { keepResults: false }),
    told: many(sum, { keepResults: false, onDead: 'go-on' }),
  },
  async run({ n }, ctx) {
    expectTypeOf(n).toEqualTypeOf<number>()
    expectTypeOf(ctx.joined.one).toEqualTypeOf<Settled<{ eur: number }>>()
    for await (const sale of ctx.joined.sales) {
      expectTypeOf(sale).toEqualTypeOf<Settled<{ region: string; total: number }>>()
      if (sale.fate === 'completed') expectTypeOf(sale.result.total).toEqualTypeOf<number>()
      else expectTypeOf(sale.error).toEqualTypeOf<string | undefined>()
      // @ts-expect-error 4: a member that did not complete has no result
      sale.result
    }
    for await (const one of ctx.joined.counted) expectTypeOf(one).toEqualTypeOf<undefined>()
    for await (const one of ctx.joined.told) expectTypeOf(one).toEqualTypeOf<Settled<undefined>>()
  },
})

const mill = millrace({ store: 'memory:', queues: { high: {} }, tasks: [rates, sum, insert, order, report, patient] })
const after = { rates: { date: '' }, sales: ['a'], rows: [1] }
expectTypeOf(await mill.enqueue(report, { month: '' }, { after })).toEqualTypeOf<JobHandle<number, { month: string }>>()
await mill.enqueue(
  report,
  { month: '' },
  { after, within: '2d', sealWithin: '1h', queue: 'high', priority: 1, id: 'x' },
)
async function* texts() {
  yield 'a'
}
await mill.enqueue(report, { month: '' }, { after: { ...after, sales: texts(), rows: new Set([1]) } })
// @ts-expect-error 5: nothing of what it waits for
await mill.enqueue(report, { month: '' })
// @ts-expect-error 6: options, and still nothing of what it waits for
await mill.enqueue(report, { month: '' }, { priority: 1 })
// @ts-expect-error 7: a set is missing
await mill.enqueue(report, { month: '' }, { after: { rates: { date: '' }, sales: ['a'] } })
// @ts-expect-error 8: a set too many
await mill.enqueue(report, { month: '' }, { after: { ...after, expenses: [] } })
// @ts-expect-error 9: another input than the task of the set takes
await mill.enqueue(report, { month: '' }, { after: { ...after, rates: { day: '' } } })
// @ts-expect-error 10: one of many has another input
await mill.enqueue(report, { month: '' }, { after: { ...after, sales: ['a', 1] } })
// @ts-expect-error 11: many need a list
await mill.enqueue(report, { month: '' }, { after: { ...after, rows: 1 } })
// @ts-expect-error 12: one member is no list
await mill.enqueue(report, { month: '' }, { after: { ...after, rates: [{ date: '' }] } })
// @ts-expect-error 13: nothing takes the place of a join
await mill.enqueue(report, { month: '' }, { after, id: 'x', ifWaiting: 'replace' })
// @ts-expect-error 14: a task that waits for nobody
await mill.enqueue(rates, { date: '' }, { after: {} })
// @ts-expect-error 15: another input of its own
await mill.enqueue(report, { year: '' }, { after })

const holding = defineTask({ name: 'holding', joins: { sales: many(sum, { onDead: 'hold' }) }, run: async () => {} })
await mill.enqueue(holding, undefined, { after: { sales: [] }, within: '7d' })
// @ts-expect-error 16: a set that holds needs a bound
await mill.enqueue(holding, undefined, { after: { sales: [] } })

// @ts-expect-error 17: ordered tasks have no ends of their own
defineTask({ name: 'bad', joins: { orders: many(order) } })
// @ts-expect-error 18: not as the only member either
defineTask({ name: 'bad', joins: { order } })
// @ts-expect-error 19: a batch task does not wait for others
defineTask({ name: 'bad', batch: { size: 2 }, joins: { rates } })
// @ts-expect-error 20: ordered tasks do not wait for others
defineOrderedTask({ name: 'bad', joins: { rates } })
// @ts-expect-error 21: a word there is not
many(sum, { onDead: 'ignore' })

// A handler from elsewhere
const later = defineTask({ name: 'later', input: z.object({ n: z.number() }), joins: { sales: many(sum) } })
const attached = later.handle(async ({ n }, ctx) => {
  expectTypeOf(n).toEqualTypeOf<number>()
  expectTypeOf(ctx.joined.sales.counts.completed).toEqualTypeOf<number>()
  return 'done'
})
expectTypeOf<TaskResult<typeof attached>>().toEqualTypeOf<string>()
await mill.enqueue(later, { n: 1 }, { after: { sales: ['a'] } })

const yearly = defineTask({ name: 'yearly', joins: { reports: many(report) }, run: async () => {} })

// From a handler
defineTask({
  name: 'parent',
  async run(_: object, ctx) {
    const job = await ctx.enqueue(report, { month: '' }, { after, key: 'report', within: '1d' })
    expectTypeOf(await job.result()).toEqualTypeOf<number>()
    // @ts-expect-error 22: nothing of what it waits for
    await ctx.enqueue(report, { month: '' })
    expectTypeOf(ctx).not.toHaveProperty('joined')
    const { one, all } = await ctx.flow(
      (f) => {
        const sales = f.jobs(sum, ['a'])
        const of = { rates: f.job(rates, { date: '' }), sales, rows: f.jobs(insert, [1]) }
        return { one: f.job(report, { month: '' }, { after: of }), all: sales }
      },
      { key: 'flow' },
    )
    expectTypeOf(await one.result()).toEqualTypeOf<number>()
    expectTypeOf(all).toEqualTypeOf<JobHandle<{ region: string; total: number }, string>[]>()
    await ctx.flow((f) => {
      const [rate, sale, sales] = [f.job(rates, { date: '' }), f.job(sum, 'a'), f.jobs(sum, ['a'])]
      const rows = f.jobs(insert, [])
      // @ts-expect-error 23: one job is not many
      f.job(report, { month: '' }, { after: { rates: rate, sales: sale, rows } })
      // @ts-expect-error 24: a job of another task
      f.job(report, { month: '' }, { after: { rates: sale, sales, rows } })
      const one = f.job(report, { month: '' }, { after: { rates: rate, sales: [sale, f.job(sum, 'b')], rows: [] } })
      const two = f.job(report, { month: '' }, { after: { rates: rate, sales: sales.jobs, rows } })
      f.job(yearly, undefined, { after: { reports: [one, two] } })
      // @ts-expect-error 25: jobs of another task
      f.job(yearly, undefined, { after: { reports: [sale] } })
      // @ts-expect-error 26: one of the list is of another task
      f.job(yearly, undefined, { after: { reports: [one, sale] } })
      // @ts-expect-error 27: a task of that input with another result
      f.job(yearly, undefined, { after: { reports: [f.job(later, { n: 1 }, { after: { sales } })] } })
      // @ts-expect-error 28: inputs are no jobs
      f.job(yearly, undefined, { after: { reports: [{ month: '' }] } })
      // @ts-expect-error 29: handles are no jobs of the flow
      f.job(yearly, undefined, { after: { reports: [job] } })
      // @ts-expect-error 30: a list is not one job
      f.job(report, { month: '' }, { after: { rates: [rate], sales, rows } })
      // @ts-expect-error 31: a list of f.jobs() is no job of an array
      f.job(report, { month: '' }, { after: { rates: rate, sales: [sales], rows } })
    })
    // @ts-expect-error 32: a job of no batch has no parent to name
    await ctx.flow(() => {}, { parent: 0 })
  },
})

/** A wrapper of one's own goes on taking what it took. */
export async function handOver<T extends AnyTask>(task: T, input: TaskInput<T>): Promise<JobHandle> {
  return mill.enqueue(task, input)
}
const some: AnyTask = report
await mill.enqueue(some, 1)

// From a listener
const { rates: listened, sales: listenedSales } = await (await mill.listener('high').next()).joined(report)
expectTypeOf(listened).toEqualTypeOf<{ eur: number }>()
expectTypeOf(listenedSales.counts).toEqualTypeOf<FateCounts>()
