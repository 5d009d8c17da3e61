import type { Middleware } from 'millrace'
import { describe, expect, it } from 'vitest'
import { recorded } from '../../next-event.js'
import { testMill } from '../../test-mill.js'
import { events, kinds, numbers, oneShard, orders, push, type Run } from './order-tasks.js'

describe.each(kinds)('an ordered task, on %s', (kind) => {
  it('gets the payloads of an id from old to new by score, equal ones once', async () => {
    const runs: unknown[] = []
    const task = orders((payloadsById) => void runs.push(numbers(payloadsById)))
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueueMany(task, push('a', 3, 1, 2, 1))
    const done = events(m, 'job.completed', 1)
    await m.worker().start()

    expect(await done).toMatchObject([{ queue: 'orders', id: 'a', task: 'orders', attempt: 1 }])
    expect(runs).toEqual([{ a: [1, 2, 3] }])
    expect(await m.queue('orders').depth()).toMatchObject({ processed: 1, payloads: 0, running: 0 })
  })

  it('never runs an id twice at once with four workers, and runs others meanwhile', async () => {
    const running = new Map<string, number>()
    let mostOfOne = 0
    let mostOfAll = 0
    let runs = 0
    const task = orders(
      async (payloadsById) => {
        for (const id of payloadsById.keys()) running.set(id, (running.get(id) ?? 0) + 1)
        mostOfOne = Math.max(mostOfOne, ...running.values())
        mostOfAll = Math.max(
          mostOfAll,
          [...running.values()].reduce((sum, n) => sum + n, 0),
        )
        for (let i = 0; i < 3; i += 1) await new Promise((resolve) => setImmediate(resolve))
        for (const id of payloadsById.keys()) running.set(id, running.get(id)! - 1)
        runs += 1
      },
      { batchSize: 2 },
    )
    const m = testMill({ tasks: [task] }, kind)
    await Promise.all(Array.from({ length: 4 }, () => m.worker({ concurrency: 3 }).start()))
    const ids = Array.from({ length: 20 }, (_, i) => `id-${i}`)
    for (let n = 0; n < 10; n += 1) {
      await m.enqueueMany(
        task,
        ids.map((id) => ({ id, n })),
      )
      await new Promise((resolve) => setImmediate(resolve))
    }
    await m.queue('orders').drain()

    expect(mostOfOne).toBe(1)
    expect(mostOfAll).toBeGreaterThan(2)
    expect(runs).toBeGreaterThan(20)
  })

  it('describes each job of a batch separately, in the order of its payloads', async () => {
    const seen: unknown[] = []
    const task = orders(
      (payloadsById, ctx) => {
        const { signal, job, jobs } = ctx
        seen.push([...payloadsById.keys()], job, signal.aborted, [...jobs.values()])
        ctx.progress(0.5, 'half way')
      },
      { batchSize: 2 },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    const done = events(m, 'job.completed', 2)
    await m.enqueueMany(task, [...push('a', 2, 1), ...push('b', 7)], ({ n }) => ({ meta: { n } }))
    await m.worker({ concurrency: 1 }).start()
    await done

    const fence = expect.any(Number)
    const job = { attempt: 1, crashes: 0, fence, createdAt: expect.any(Date), runAt: expect.any(Date) }
    const a = {
      ...job,
      id: 'a',
      payloads: [
        { score: 1, meta: { n: 1 } },
        { score: 2, meta: { n: 2 } },
      ],
    }
    const b = { ...job, id: 'b', payloads: [{ score: 7, meta: { n: 7 } }] }
    expect(seen).toEqual([['a', 'b'], { task: 'orders', queue: 'orders', fence }, false, [a, b]])
  })

  it('gets at most batchSize ids, which share a fence', async () => {
    const batches: { ids: string[]; fences: Set<number> }[] = []
    const task = orders(
      (payloadsById, ctx) => {
        const fences = new Set([ctx.job.fence, ...[...ctx.jobs.values()].map(({ fence }) => fence)])
        batches.push({ ids: [...payloadsById.keys()], fences })
      },
      { batchSize: 3 },
    )
    const m = testMill({ tasks: [task], queues: { orders: { ordered: true, shards: 5 } } }, kind)
    const ids = Array.from({ length: 50 }, (_, i) => `id-${i}`)
    await m.enqueueMany(
      task,
      ids.flatMap((id) => push(id, 1)),
    )
    const done = events(m, 'job.completed', 50)
    await m.worker({ concurrency: 2 }).start()
    await done

    expect(batches.flatMap((batch) => batch.ids).toSorted()).toEqual(ids.toSorted())
    expect(Math.max(...batches.map((batch) => batch.ids.length))).toBe(3)
    expect(batches.map(({ fences }) => fences.size)).toEqual(batches.map(() => 1))
  })

  it('gets at most the oldest maxPayloads of an id, and ctx.more tells whether there are others', async () => {
    const runs: unknown[] = []
    const task = orders((payloadsById, ctx) => void runs.push([numbers(payloadsById), ctx.more('a')]), {
      maxPayloads: 2,
    })
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueueMany(task, push('a', 5, 4, 3, 2, 1))
    const done = events(m, 'job.completed', 3)
    await m.worker().start()
    await done

    expect(runs).toEqual([
      [{ a: [1, 2] }, true],
      [{ a: [3, 4] }, true],
      [{ a: [5] }, false],
    ])
  })

  it('is wrapped in its middleware once a batch, the first outermost, and fails as a whole if one throws', async () => {
    const calls: unknown[] = []
    const layer = (name: string): Middleware => ({
      async run({ task, input, ctx }, next) {
        calls.push([name, task.name, 'jobs' in ctx && [...ctx.jobs.keys()], numbers(input as Parameters<Run>[0])])
        await next()
        if (name === 'inner' && calls.length === 3) throw new Error('not through me')
      },
    })
    const task = orders((payloadsById) => void calls.push(numbers(payloadsById)), { batchSize: 2 })
    const m = testMill({ tasks: [task], queues: oneShard, middleware: [layer('outer'), layer('inner')] }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 2)])
    const failed = recorded(m, 'job.failed')
    const done = events(m, 'job.completed', 2)
    await m.worker({ concurrency: 1 }).start()
    await done

    const run = [
      ['outer', 'orders', ['a', 'b'], { a: [1], b: [2] }],
      ['inner', 'orders', ['a', 'b'], { a: [1], b: [2] }],
      { a: [1], b: [2] },
    ]
    expect(calls).toEqual([...run, ...run])
    expect(failed.map(({ id }) => id)).toEqual(['a', 'b'])
  })
})
