/** What a handler enqueues by `ctx.flow()`: a graph, once for each parent, and known by its parent. */

import { defineOrderedTask, defineTask, type JobContext, type JobHandle, many } from 'millrace'
import { testContext } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../test-mill.js'

const rates = defineTask({ name: 'rates', queue: 'sums', run: async (_: string) => 1 })
const sum = defineTask({ name: 'sum', queue: 'sums', run: async (n: number) => n })
const report = defineTask({
  name: 'report',
  queue: 'reports',
  joins: { rate: rates, sales: many(sum) },
  run: async (_: string) => 'done',
})
const others = [rates, sum, report] as const

/** Two reports, which share their rate. */
const flowOf =
  (...months: string[]) =>
  (f: Parameters<Parameters<JobContext['flow']>[0]>[0]) => {
    const rate = f.job(rates, 'today')
    return months.map((month) => f.job(report, month, { after: { rate, sales: f.jobs(sum, [1, 2]) } }))
  }

/** A mill whose parent task does these things, one after the other at each attempt; and a worker that serves its queue alone. */
async function parents(kind: (typeof storeKinds)[number], runs: readonly ((ctx: JobContext) => unknown)[]) {
  let run = 0
  const parent = defineTask({
    name: 'parent',
    retry: { max: 10, backoff: () => 0 },
    run: (_, ctx) => runs[Math.min(run++, runs.length - 1)]!(ctx),
  })
  const mill = testMill({ tasks: [parent, ...others] }, kind)
  await mill.worker({ queues: ['default'], concurrency: 1 }).start()
  const countOf = async (queue: 'sums' | 'reports') => (await mill.queue(queue).jobs.list()).jobs.length
  return { mill, parent, counts: async () => [await countOf('reports'), await countOf('sums')] }
}

const again = (ctx: JobContext) => {
  if (ctx.job.attempt === 1) throw new Error('broken')
}

describe.each(storeKinds)('a flow of a handler, on %s', (kind) => {
  it('is stored once, however often the parent runs, and its jobs know their parent', async () => {
    const outcomes: unknown[] = []
    const { mill, parent, counts } = await parents(kind, [
      async (ctx) => {
        const reports = await ctx.flow(flowOf('May', 'June'))
        outcomes.push(...reports.map(({ id, outcome }) => [id, outcome]))
        again(ctx)
      },
    ])
    await (await mill.enqueue(parent, {}, { id: 'first' })).result({ timeout: '5s' })
    const ids = outcomes.map((one) => (one as [string])[0])

    expect(outcomes.map((one) => (one as string[])[1])).toEqual(['added', 'added', 'duplicate', 'duplicate'])
    expect(ids.slice(2)).toEqual(ids.slice(0, 2))
    expect(await counts()).toEqual([2, 5])
    expect(await mill.job(report, ids[0]!).record()).toMatchObject({
      ...{ state: 'waiting', parent: { queue: 'default', id: 'first', task: 'parent' } },
    })
    await mill.worker({ queues: ['sums', 'reports'] }).start()
    expect(await mill.job(report, ids[1]!).result({ timeout: '10s' })).toBe('done')
  })

  it('is another one if its jobs are others, and if one run builds the same twice', async () => {
    const { mill, parent, counts } = await parents(kind, [
      async (ctx) => {
        await ctx.flow(flowOf('May'))
        if (ctx.job.attempt === 2) await ctx.flow(flowOf('June'))
        await ctx.flow(flowOf('May'))
        again(ctx)
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(await counts()).toEqual([3, 9])
  })

  it('is one for each key, whatever its jobs', async () => {
    const { mill, parent, counts } = await parents(kind, [
      async (ctx) => {
        await ctx.flow(ctx.job.attempt === 1 ? flowOf('May') : flowOf('June', 'July'), { key: 'reports' })
        again(ctx)
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(await counts()).toEqual([1, 3])
  })

  it('is known by its first join, even once that has ended, if the parent died before the call was noted', async () => {
    const { mill } = await parents(kind, [])
    const { children } = mill.runParts
    const outcomes: unknown[] = []
    const call = {
      origin: {},
      named: () => ({ name: '01M8JTS0000000000000000000', isDone: false }),
      enqueued: (_: string, jobs: readonly JobHandle[]) => void outcomes.push(...jobs.map(({ outcome }) => outcome)),
    }
    const [job] = await children.flow(flowOf('May'), call)
    const done = job!.result({ timeout: '10s' })
    await mill.worker({ queues: ['sums', 'reports'] }).start()
    await done
    await children.flow(flowOf('May'), call)

    expect(outcomes).toEqual([...Array(4).fill('added'), ...Array(4).fill('duplicate')])
    expect((await mill.queue('sums').depth()).processed).toBe(3)
  })

  it('is refused with a wrong key, without a join, and once the run has ended', async () => {
    let late: JobContext | undefined
    const { mill, parent } = await parents(kind, [
      async (ctx) => {
        late = ctx
        await expect(ctx.flow(flowOf('May'), { key: '' })).rejects.toThrow('a flow: key must')
        await expect(ctx.flow((f) => void f.job(rates, ''))).rejects.toThrow('a flow needs a job that waits')
        await expect(ctx.flow(async () => {})).rejects.toThrow('the function of ctx.flow() must not be async')
        return 'refused'
      },
    ])

    expect(await (await mill.enqueue(parent, {})).result({ timeout: '5s' })).toBe('refused')
    await expect(late!.flow(flowOf('May'))).rejects.toThrow('ctx.flow() was called when the run had ended')
  })

  it('is not waited for by a handler of the same queue', async () => {
    const own = defineTask({ name: 'own', run: async (_: number) => {} })
    const after = defineTask({ name: 'after', joins: { own }, run: async () => {} })
    const parent = defineTask({
      name: 'parent',
      run: async (_: object, ctx) => {
        const job = await ctx.flow((f) => f.job(after, undefined, { after: { own: f.job(own, 1) } }))
        await expect(job.result()).rejects.toThrow('a handler must not wait for the result of job')
        return 'not waited'
      },
    })
    const mill = testMill({ tasks: [own, after, parent] }, kind)
    await mill.worker({ queues: ['default'] }).start()

    expect(await (await mill.enqueue(parent, {})).result({ timeout: '5s' })).toBe('not waited')
  })
})

it('a job of a batch, and an id of an ordered task, enqueue a flow for themselves', async () => {
  const batch = defineTask({
    name: 'batch',
    queue: 'batches',
    batch: { size: 2 },
    retry: { max: 1, backoff: () => 0 },
    async run(months: readonly string[], ctx) {
      await expect(ctx.flow(flowOf('May'))).rejects.toThrow('ctx.flow() needs `parent` in a batch')
      for (const [i, month] of months.entries()) await ctx.flow(flowOf(month), { parent: i })
      if (ctx.jobs[0]!.attempt === 1) throw new Error('once more')
    },
  })
  const ordered = defineOrderedTask({
    name: 'ordered',
    id: (shop: string) => shop,
    async run(payloadsById, ctx) {
      for (const id of payloadsById.keys()) await ctx.flow(flowOf(id), { parent: id })
    },
  })
  const mill = testMill({ tasks: [batch, ordered, ...others] })
  const jobs = await mill.enqueueMany(batch, ['May', 'June'])
  const done = jobs.map((job) => job.result({ timeout: '10s' }))
  await mill.enqueue(ordered, 'July')
  await mill.worker({ queues: ['batches', 'ordered'] }).start()
  await Promise.all(done)
  const reportsOf = async () => (await mill.queue('reports').jobs.list()).jobs

  await expect.poll(async () => (await reportsOf()).map(({ input }) => input).sort()).toEqual(['July', 'June', 'May'])
  expect((await reportsOf()).map(({ parent }) => parent?.task).sort()).toEqual(['batch', 'batch', 'ordered'])
})

it('a test context records the jobs of a flow, and gives handles to them', async () => {
  const parent = defineTask({
    name: 'parent',
    run: async (_: object, ctx) => (await ctx.flow(flowOf('May'), { key: 'one' })).map(({ queue }) => queue),
  })
  const ctx = testContext(parent, {})

  expect(await parent.run!({}, ctx)).toEqual(['reports'])
  expect(ctx.enqueued.map(({ task, input }) => [task.name, input])).toEqual([
    ['report', 'May'],
    ['rates', 'today'],
    ['sum', 1],
    ['sum', 2],
  ])
})
