/** Batch tasks: a handler that is given several jobs at once, each of which is still a job of its own. */

import {
  type BatchContext,
  bury,
  type Duration,
  defineTask,
  type MillOptions,
  snooze,
  UnrecoverableError,
} from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { nextEvent } from '../../next-event.js'
import { type StoreKind, storeKinds, testMill } from '../../test-mill.js'

type Run = (inputs: readonly number[], ctx: BatchContext) => unknown

/** A mill with a batch task in a queue of its own; what its handler was given, call by call. */
function rows(
  run: Run,
  {
    size = 10,
    wait = 0,
    ...options
  }: { readonly size?: number; readonly wait?: Duration } & Record<string, unknown> = {},
  kind: StoreKind = 'memory',
  mill: Partial<MillOptions> = {},
) {
  const calls: (readonly number[])[] = []
  const insert = defineTask({
    name: 'insert',
    queue: 'rows',
    batch: { size, wait },
    retry: { max: 1, backoff: () => 0 },
    ...options,
    run: (inputs: readonly number[], ctx) => {
      calls.push([...inputs])
      return run(inputs, ctx)
    },
  })
  return { calls, insert, mill: testMill({ tasks: [insert], ...mill }, kind) }
}

const many = (n: number) => Array.from({ length: n }, (_, i) => i)
const inOrder = (calls: readonly (readonly number[])[]) => calls.flat().sort((a, b) => a - b)

describe.each(storeKinds)('a batch task, on %s', (kind) => {
  it('gets up to `size` jobs at once, and each job has its own result', async () => {
    const { mill, insert, calls } = rows((inputs) => inputs.map((n) => n * 2), { size: 4 }, kind)
    const jobs = await mill.enqueueMany(insert, many(10))
    await mill.worker({ concurrency: 1 }).start()

    expect(await Promise.all(jobs.map((job) => job.result({ timeout: '10s' })))).toEqual(many(10).map((n) => n * 2))
    expect(calls.map(({ length }) => length)).toEqual([4, 4, 2])
    expect(inOrder(calls)).toEqual(many(10))
  })

  it('collects jobs for `wait`, and begins when that is over, or at once when it is full', async () => {
    const { mill, insert, calls } = rows(() => undefined, { size: 3, wait: '300ms' }, kind)
    await mill.worker({ concurrency: 1 }).start()
    // By their events: a full batch may have ended before the last of its jobs can be waited for.
    const ended = new Promise<void>((resolve) => {
      let left = 4
      mill.on('job.completed', () => {
        left -= 1
        if (left === 0) resolve()
      })
    })
    for (const n of many(4)) await mill.enqueue(insert, n)
    await ended

    expect(calls).toEqual([[0, 1, 2], [3]])
  })
})

describe('the end of a job in a batch', () => {
  it('is the value returned for it: a result, or an outcome', async () => {
    const { mill, insert, calls } = rows((inputs) =>
      inputs.map((n) => (n === 1 && calls.length === 1 ? snooze(1) : n === 2 ? bury('as told') : `row ${n}`)),
    )
    const jobs = await mill.enqueueMany(insert, many(3))
    await mill.worker().start()

    expect(await jobs[0]!.result({ timeout: '5s' })).toBe('row 0')
    expect(await jobs[1]!.result({ timeout: '5s' })).toBe('row 1')
    await expect(jobs[2]!.result({ timeout: '5s' })).rejects.toMatchObject({ code: 'job-dead', reason: 'as told' })
    expect(calls).toEqual([[0, 1, 2], [1]])
  })

  it('is its own failure after ctx.fail, with its own attempts, and not that of the others', async () => {
    const { mill, insert, calls } = rows((inputs, ctx) => {
      for (const [i, n] of inputs.entries()) if (n === 1) ctx.fail(i, new Error(`attempt ${ctx.jobs[i]!.attempt}`))
    })
    const jobs = await mill.enqueueMany(insert, many(3))
    const ended = jobs.map((job) => job.result({ timeout: '5s' }))
    await mill.worker().start()

    await expect(ended[1]).rejects.toMatchObject({ code: 'job-dead', reason: 'max-retries', message: /attempt 2/ })
    expect(await Promise.all([ended[0], ended[2]])).toEqual([undefined, undefined])
    expect(calls).toEqual([[0, 1, 2], [1]])
  })

  it('is a failure of all if the handler throws, or does not return one result for each', async () => {
    const returned: unknown[] = [['one too few'], 'no array']
    for (const wrong of [...returned, undefined]) {
      const { mill, insert } = rows(
        () => {
          if (wrong === undefined) throw new UnrecoverableError('broken')
          return wrong
        },
        { retry: { max: 0 } },
      )
      const jobs = await mill.enqueueMany(insert, many(2))
      await mill.worker().start()
      for (const job of jobs)
        await expect(job.result({ timeout: '5s' })).rejects.toMatchObject({
          message: wrong === undefined ? /broken/ : /must return an array of 2 results, one for each input, or nothing/,
        })
    }
  })

  it('is an outcome for all if one is returned', async () => {
    const { mill, insert, calls } = rows(() => (calls.length === 1 ? snooze(1) : undefined))
    const jobs = await mill.enqueueMany(insert, many(2))
    const ended = jobs.map((job) => job.result({ timeout: '5s' }))
    await mill.worker().start()
    await Promise.all(ended)

    expect(inOrder(calls)).toEqual([0, 0, 1, 1])
    expect(await mill.queue('rows').depth()).toMatchObject({ processed: 2, failed: 0 })
  })

  it('is its own burial if its input is invalid, and the handler does not get it', async () => {
    const producer = defineTask({ name: 'insert', queue: 'rows' })
    const insert = defineTask({
      name: 'insert',
      queue: 'rows',
      batch: { size: 10 },
      input: z.number(),
      run: (inputs) => inputs.map((n) => n + 1),
    })
    const mill = testMill({ tasks: [insert] })
    const [good, bad] = await mill.enqueueMany(producer, [1, 'text'])
    await mill.worker().start()

    expect(await good!.result({ timeout: '5s' })).toBe(2)
    await expect(bad!.result({ timeout: '5s' })).rejects.toMatchObject({ reason: 'bad-payload' })
  })

  it('is a release if shouldRun refuses it', async () => {
    const { mill, insert, calls } = rows((inputs) => inputs, { shouldRun: (n: number) => n !== 1 })
    const jobs = await mill.enqueueMany(insert, many(3))
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()

    expect(await jobs[2]!.result({ timeout: '5s' })).toBe(2)
    expect(await released).toMatchObject({ id: jobs[1]!.id, reason: 'should-run' })
    expect(calls).toEqual([[0, 2]])
  })

  it('is reported to onExhausted job by job', async () => {
    const told: unknown[] = []
    const { mill, insert } = rows(
      () => {
        throw new Error('broken')
      },
      {
        retry: { max: 0 },
        onExhausted: ({ input, job }: { input: number; job: { id: string } }) => told.push([job.id, input]),
      },
    )
    const jobs = await mill.enqueueMany(insert, many(2))
    await mill.worker().start()

    await expect.poll(() => told).toEqual(jobs.map(({ id }, i) => [id, i]))
  })

  it('is stored with where and when it ran', async () => {
    const { mill, insert } = rows((inputs) => inputs)
    const job = await mill.enqueue(insert, 1)
    await mill.worker().start()
    await job.result({ timeout: '5s' })

    expect(await job.record()).toMatchObject({ startedAt: expect.any(Date), pid: process.pid, result: 1 })
  })
})

describe('the handler of a batch task', () => {
  it('knows each job, and enqueues for the one it names', async () => {
    const next = defineTask({ name: 'next', queue: 'later' })
    const seen: unknown[] = []
    const { mill, insert } = rows(
      async (inputs, ctx) => {
        for (const [i, n] of inputs.entries()) {
          seen.push([ctx.jobs[i]!.id, ctx.jobs[i]!.meta, ctx.job.task])
          await ctx.enqueue(next, n, { parent: i })
        }
        await expect(ctx.enqueue(next, 7)).rejects.toThrow('needs `parent` in a batch')
        await expect(ctx.enqueue(next, 7, { parent: 2 })).rejects.toThrow('2, which is no index of this batch')
        expect(() => ctx.fail(-1, new Error('x'))).toThrow('-1, which is no index of this batch')
        if (ctx.jobs[0]!.attempt === 1) throw new Error('once more')
      },
      {},
      'memory',
      { tasksElsewhere: ['next'], queues: { later: {} } },
    )
    const jobs = await mill.enqueueMany(insert, many(2), (n) => ({ id: `row-${n}`, meta: { n } }))
    const ended = jobs.map((job) => job.result({ timeout: '5s' }))
    await mill.worker({ queues: ['rows'] }).start()
    await Promise.all(ended)

    expect(seen.slice(0, 2)).toEqual([0, 1].map((n) => [`row-${n}`, { n }, 'insert']))
    const { jobs: children } = await mill.queue('later').jobs.list({ by: 'time' })
    expect(children.map(({ input, parent }) => [input, parent?.id]).sort()).toEqual([
      [0, 'row-0'],
      [1, 'row-1'],
    ])
  })

  it('goes on if one job is cancelled, and is aborted if all are', async () => {
    const aborted: unknown[] = []
    const { mill, insert } = rows(
      (_, ctx) =>
        new Promise((_, reject) =>
          ctx.signal.addEventListener('abort', () => {
            aborted.push(ctx.signal.reason.code)
            reject(ctx.signal.reason)
          }),
        ),
      {},
      'memory',
      { queues: { rows: { lease: '3s' } } },
    )
    const jobs = await mill.enqueueMany(insert, many(2))
    await mill.worker().start()
    await expect.poll(() => jobs[1]!.status()).toBe('running')
    await jobs[0]!.cancel()
    await jobs[1]!.cancel()

    await expect.poll(() => aborted, { timeout: 15_000 }).toEqual(['job-cancelled'])
    await expect.poll(() => jobs[1]!.status()).toBe('cancelled')
  })

  it('is wrapped in middleware once per batch', async () => {
    const seen: unknown[] = []
    const { mill, insert } = rows((inputs) => inputs, {}, 'memory', {
      middleware: [
        {
          async run(run, next) {
            if ('jobs' in run.ctx) seen.push(run.input)
            return next()
          },
        },
      ],
    })
    const jobs = await mill.enqueueMany(insert, many(3))
    await mill.worker().start()

    expect(await jobs[2]!.result({ timeout: '5s' })).toBe(2)
    expect(seen).toEqual([[0, 1, 2]])
  })

  it('can be attached later', async () => {
    const later = defineTask({ name: 'later', batch: { size: 2 } }).returns<string>()
    later.handle((inputs) => inputs.map(String))
    const mill = testMill({ tasks: [later] })
    const job = await mill.enqueue(later, 7)
    await mill.worker().start()

    expect(await job.result({ timeout: '5s' })).toBe('7')
  })
})

describe('a batch that waits for more jobs', () => {
  it('takes one slot, and leaves the others to other tasks', async () => {
    const other = defineTask({ name: 'other', run: () => 'done' })
    const { insert, calls } = rows(() => undefined, { wait: '1m' })
    const mill = testMill({ tasks: [insert, other] })
    const worker = mill.worker({ concurrency: 2 })
    await worker.start()
    await mill.enqueue(insert, 1)
    await expect.poll(() => worker.status().jobs.map(({ phase }) => phase)).toEqual(['claimed'])

    expect(await (await mill.enqueue(other, 1)).result({ timeout: '5s' })).toBe('done')
    expect(calls).toEqual([])
  })

  it('is put back uncounted by a stop', async () => {
    const { mill, insert, calls } = rows(() => undefined, { wait: '1m' })
    const worker = mill.worker()
    await worker.start()
    const job = await mill.enqueue(insert, 1)
    await expect.poll(() => job.status()).toBe('running')
    const released = nextEvent(mill, 'job.released')
    await worker.stop()

    expect(await released).toMatchObject({ reason: 'stopping' })
    expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1 })
    expect(calls).toEqual([])
  })

  it('keeps collecting even if it has the only slot', async () => {
    const { mill, insert, calls } = rows(() => undefined, { size: 4, wait: '1m' })
    await mill.worker({ concurrency: 1 }).start()
    for (const n of many(3)) {
      const job = await mill.enqueue(insert, n)
      await expect.poll(() => job.status()).toBe('running')
    }
    const last = await mill.enqueue(insert, 3)
    await last.result({ timeout: '5s' }).catch(() => {})

    await expect.poll(() => calls).toEqual([[0, 1, 2, 3]])
  })

  it('exists once for each task of its queue, and jobs of other tasks pass it', async () => {
    const calls: string[] = []
    const batch = (name: string) =>
      defineTask({ name, batch: { size: 2, wait: '1m' }, run: (inputs) => void calls.push(`${name} ${inputs}`) })
    const [a, b] = [batch('a'), batch('b')]
    const single = defineTask({ name: 'single', run: () => 'done' })
    const mill = testMill({ tasks: [a, b, single] })
    await mill.worker({ concurrency: 10 }).start()
    await mill.enqueueMany(a, [1])
    await mill.enqueueMany(b, [2])
    expect(await (await mill.enqueue(single, 1)).result({ timeout: '5s' })).toBe('done')
    await mill.enqueueMany(a, [3])
    await mill.enqueueMany(b, [4])

    await expect.poll(() => calls.sort()).toEqual(['a 1,3', 'b 2,4'])
  })
})

describe('a batch task in a queue with limits', () => {
  it('takes a permit for each of its jobs, and does not wait for more', async () => {
    const { mill, insert, calls } = rows(() => undefined, { size: 10, wait: '1m' }, 'memory', {
      queues: { rows: { throttle: { limit: 3, window: '1h' } } },
    })
    await mill.enqueueMany(insert, many(5))
    await mill.worker().start()

    await expect.poll(() => calls).toEqual([[0, 1, 2]])
    expect(await mill.queue('rows').depth()).toMatchObject({ ready: 2 })
  })

  it('runs at most `maxRunning` jobs at once', async () => {
    const { mill, insert, calls } = rows(() => undefined, { size: 10 }, 'memory', {
      queues: { rows: { maxRunning: 2 } },
    })
    const jobs = await mill.enqueueMany(insert, many(5))
    const ended = jobs.map((job) => job.result({ timeout: '5s' }))
    await mill.worker().start()
    await Promise.all(ended)

    expect(Math.max(...calls.map(({ length }) => length))).toBe(2)
  })
})
