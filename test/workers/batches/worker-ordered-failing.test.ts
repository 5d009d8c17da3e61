import { bury, cancel, type OrderedContext, snooze, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMill } from '../../test-mill.js'
import { events, kinds, numbers, oneShard, orders, push } from './order-tasks.js'

describe.each(kinds)('an ordered task that fails, on %s', (kind) => {
  it('retries only the id that ctx.fail named, with the last error it was given', async () => {
    const runs: unknown[] = []
    const task = orders(
      (payloadsById, ctx) => {
        runs.push(numbers(payloadsById))
        if (ctx.jobs.get('b')?.attempt !== 1) return
        ctx.fail('b', new Error('first'))
        ctx.fail('b', new Error('second'))
        expect(() => ctx.fail('z', new Error('who?'))).toThrow('ctx.fail() was given "z", which is no id of this batch')
        expect(() => ctx.more('z')).toThrow('ctx.more()')
      },
      { batchSize: 3 },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 1), ...push('c', 1)])
    const failed = recorded(m, 'job.failed')
    const done = events(m, 'job.completed', 3)
    await m.worker({ concurrency: 1 }).start()

    expect((await done).map(({ id, attempt }) => [id, attempt])).toEqual([
      ['a', 1],
      ['c', 1],
      ['b', 2],
    ])
    expect(failed.map(({ id, error, retryMs }) => [id, (error as Error).message, retryMs])).toEqual([
      ['b', 'second', 0],
    ])
    expect(runs).toEqual([{ a: [1], b: [1], c: [1] }, { b: [1] }])
  })

  it('fails every id when it throws, and those named by ctx.fail with their own errors', async () => {
    const task = orders(
      (_, ctx) => {
        if ([...ctx.jobs.values()].some(({ attempt }) => attempt > 1)) return
        ctx.fail('b', new Error('its own'))
        throw new Error('of all')
      },
      { batchSize: 3 },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 1), ...push('c', 1)])
    const failed = recorded(m, 'job.failed')
    const done = events(m, 'job.completed', 3)
    await m.worker({ concurrency: 1 }).start()

    expect((await done).map(({ attempt }) => attempt)).toEqual([2, 2, 2])
    expect(failed.map(({ id, error }) => [id, (error as Error).message])).toEqual([
      ['a', 'of all'],
      ['b', 'its own'],
      ['c', 'of all'],
    ])
  })

  it.each([0, 1, 3])(
    'runs a job that always fails %i + 1 times, then buries the oldest payload and starts over with the rest',
    async (max) => {
      const runs: [number[], number][] = []
      const exhausted: unknown[] = []
      const task = orders(
        (payloadsById, ctx) => {
          runs.push([payloadsById.get('a')!.map(({ n }) => n), ctx.jobs.get('a')!.attempt])
          throw new Error(`run ${runs.length}`)
        },
        {
          retry: { max },
          onExhausted: (payloads) =>
            void exhausted.push(...payloads.map(({ error, ...one }) => ({ ...one, error: (error as Error).message }))),
        },
      )
      const m = testMill({ tasks: [task], queues: oneShard }, kind)
      await m.enqueueMany(task, push('a', 1, 2), ({ n }) => ({ meta: { n } }))
      const buried = events(m, 'job.buried', 2)
      await m.worker({ concurrency: 1 }).start()

      const reason = max === 0 ? 'no-retries' : 'max-retries'
      expect((await buried).map((event) => [event.id, event.reason])).toEqual([
        ['a', reason],
        ['a', reason],
      ])
      const attempts = Array.from({ length: max + 1 }, (_, i) => i + 1)
      expect(runs).toEqual([...attempts.map((n) => [[1, 2], n]), ...attempts.map((n) => [[2], n])])
      const last = max + 1
      expect(exhausted).toEqual([
        { id: 'a', input: { id: 'a', n: 1 }, score: 1, meta: { n: 1 }, error: `run ${last}` },
        { id: 'a', input: { id: 'a', n: 2 }, score: 2, meta: { n: 2 }, error: `run ${2 * last}` },
      ])
      expect(await m.queue('orders').depth()).toMatchObject({ dead: 1, ready: 0, scheduled: 0, failed: 2 * last })
    },
  )

  it('calls onExhausted once a batch, only with those whose retries are exhausted', async () => {
    const calls: [string, number][][] = []
    const task = orders(
      (_, ctx) => {
        ctx.fail('a', new UnrecoverableError('never'))
        ctx.fail('b', new Error('no more'))
        ctx.fail('c', new Error('no more'))
      },
      {
        batchSize: 4,
        retry: { max: 0 },
        onExhausted: async (payloads) => {
          calls.push(payloads.map(({ id, input }) => [id, input.n]))
          throw new Error('the hook is broken')
        },
      },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 2), ...push('c', 3), ...push('d', 4)])
    const hook = nextEvent(m, 'hook.failed')
    const buried = recorded(m, 'job.buried')
    await m.worker({ concurrency: 1 }).start()

    expect(await hook).toMatchObject({ hook: "onExhausted of task 'orders'" })
    expect(calls).toEqual([
      [
        ['b', 2],
        ['c', 3],
      ],
    ])
    expect(buried.map(({ id, reason }) => [id, reason])).toEqual([
      ['a', 'unrecoverable'],
      ['b', 'no-retries'],
      ['c', 'no-retries'],
    ])
  })

  it('refuses a failure that is reported after the run has ended', async () => {
    let kept: OrderedContext | undefined
    const task = orders((_, ctx) => {
      kept = ctx
    })
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueueMany(task, push('a', 1))
    const completed = nextEvent(m, 'job.completed')
    await m.worker({ concurrency: 1 }).start()
    await completed

    expect(() => kept!.fail('a', new Error('late'))).toThrow(InvalidArgumentError)
    expect(await m.queue('orders').depth()).toMatchObject({ processed: 1, failed: 0 })
  })

  it('never calls onExhausted if nothing was buried', async () => {
    let calls = 0
    const task = orders((_, ctx) => ctx.jobs.get('a')!.attempt === 1 && Promise.reject(new Error('once')), {
      onExhausted: () => {
        calls += 1
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueueMany(task, push('a', 1))
    const done = nextEvent(m, 'job.completed')
    await m.worker().start()

    expect(await done).toMatchObject({ id: 'a', attempt: 2 })
    expect(calls).toBe(0)
  })

  it('runs payloads that arrived during a failed run together with the failed ones, by score', async () => {
    const runs: unknown[] = []
    const task = orders(async (payloadsById, ctx) => {
      runs.push(numbers(payloadsById))
      if (ctx.jobs.get('a')!.attempt > 1) return
      await m.enqueueMany(task, push('a', 1, 5))
      throw new Error('once')
    })
    const m = testMill({ tasks: [task] }, kind)
    const done = nextEvent(m, 'job.completed')
    await m.enqueueMany(task, push('a', 3))
    await m.worker().start()

    expect(await done).toMatchObject({ id: 'a', attempt: 2 })
    expect(runs).toEqual([{ a: [3] }, { a: [1, 3, 5] }])
  })

  it('runs payloads that arrived during a successful run as a new job', async () => {
    const runs: unknown[] = []
    const task = orders(async (payloadsById) => {
      runs.push(numbers(payloadsById))
      if (runs.length === 1) await m.enqueueMany(task, push('a', 1))
    })
    const m = testMill({ tasks: [task] }, kind)
    const done = events(m, 'job.completed', 2)
    await m.enqueueMany(task, push('a', 3))
    await m.worker().start()
    await done

    expect(runs).toEqual([{ a: [3] }, { a: [1] }])
  })

  it('delays, buries or cancels a batch as a whole after an outcome, except for failed ids', async () => {
    for (const [outcome, name, ended] of [
      [snooze('1h'), 'job.released', { scheduled: 2, dead: 1 }],
      [bury('as told'), 'job.buried', { scheduled: 0, dead: 3 }],
      [cancel('as told'), 'job.cancelled', { scheduled: 0, dead: 1 }],
    ] as const) {
      const task = orders(
        (_, ctx) => {
          ctx.fail('b', new UnrecoverableError('never'))
          return outcome
        },
        { batchSize: 3 },
      )
      const m = testMill({ tasks: [task], queues: oneShard }, kind)
      await m.enqueueMany(task, [...push('a', 1, 2), ...push('b', 1), ...push('c', 1)])
      const told = events(m, name, name === 'job.buried' ? 3 : 2)
      const failed = recorded(m, 'job.failed')
      await m.worker({ concurrency: 1 }).start()
      await told

      expect(failed.map(({ id }) => id)).toEqual(['b'])
      expect(await m.queue('orders').depth()).toMatchObject({ ...ended, ready: 0, running: 0 })
    }
  })
})
