/** What a handler of an ordered task says is done stays done, whatever becomes of its run. */

import { bury, type OrderedContext, snooze, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'
import { events, numbers, type Options, oneShard, orders, type Push, push } from './order-tasks.js'

/** The handler that applies payloads one by one, until one fails. */
function applying(fails: (n: number, ctx: OrderedContext) => void, options: Options = {}) {
  const applied: number[] = []
  const task = orders((payloadsById, ctx) => {
    for (const [id, payloads] of payloadsById)
      for (const [i, { n }] of payloads.entries()) {
        fails(n, ctx)
        applied.push(n)
        ctx.done(id, i + 1)
      }
  }, options)
  return { task, applied }
}

describe.each(storeKinds)('finished payloads, on %s', (kind) => {
  it('are applied once each, and only the failing one is buried', async () => {
    const { task, applied } = applying(
      (n) => {
        if (n === 3) throw new Error('poison')
      },
      { retry: { max: 1 } },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    const job = await m.enqueueMany(task, push('a', 1, 2, 3, 4))
    const failed = recorded(m, 'job.failed')
    await m.worker({ concurrency: 1 }).start()

    await expect(job[0]!.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-dead' })
    expect(applied).toEqual([1, 2, 4])
    const dead = await m.queue('orders').morgue.get('a')
    expect(dead).toMatchObject({ payloads: [{ input: { n: 3 } }], reason: 'max-retries' })
    expect(failed).toHaveLength(2)
  })

  it('give the next payload all its attempts, however often its id has failed', async () => {
    let failures = 0
    const { task, applied } = applying(
      (n) => {
        // Each payload fails once before it is applied.
        if (failures < n) {
          failures = n
          throw new Error(`not yet ${n}`)
        }
      },
      { retry: { max: 1 } },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    const [job] = await m.enqueueMany(task, push('a', 1, 2, 3, 4, 5))
    await m.worker({ concurrency: 1 }).start()

    await job!.result({ timeout: '10s' })
    expect(applied).toEqual([1, 2, 3, 4, 5])
  })
})

describe('a finished payload', () => {
  const run = async (
    options: Options,
    handler: (payloads: readonly Push[], ctx: OrderedContext, run: number) => unknown,
  ) => {
    const runs: unknown[] = []
    const task = orders((payloadsById, ctx) => {
      runs.push([numbers(payloadsById)['a'], ctx.jobs.get('a')!.attempt, ctx.jobs.get('a')!.lastError?.split('\n')[0]])
      return handler(payloadsById.get('a')!, ctx, runs.length)
    }, options)
    const m = testMill({ tasks: [task], queues: oneShard })
    const [job] = await m.enqueueMany(task, push('a', 1, 2, 3))
    await m.worker({ concurrency: 1 }).start()
    await job!.result({ timeout: '10s' }).catch(() => undefined)
    return { runs, dead: (await m.queue('orders').morgue.get('a'))?.payloads?.map(({ input }) => (input as Push).n) }
  }

  it('stays finished when the run is snoozed, and the others have not failed', async () => {
    const { runs } = await run({}, (_, ctx, run) => {
      if (run === 1) throw new Error('once')
      if (run > 2) return undefined
      ctx.done('a', 2)
      return snooze('1s')
    })
    expect(runs).toEqual([
      [[1, 2, 3], 1, undefined],
      [[1, 2, 3], 2, expect.stringContaining('once')],
      [[3], 1, undefined],
    ])
  })

  it('is not buried', async () => {
    const { dead } = await run({}, (_, ctx) => {
      ctx.done('a', 1)
      return bury('enough')
    })
    expect(dead).toEqual([2, 3])
  })

  it('stays finished when the time limit is exceeded', async () => {
    const { runs } = await run({ timeLimit: '100ms' }, (_, ctx, run) => {
      ctx.done('a', 1)
      if (run > 1) return undefined
      return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    })
    expect(runs.map((one) => (one as unknown[])[0])).toEqual([
      [1, 2, 3],
      [2, 3],
    ])
  })

  it('completes the id if it is the last, however the run ends', async () => {
    const { runs, dead } = await run({}, (payloads, ctx) => {
      ctx.done('a', payloads.length)
      ctx.done('a', 1)
      throw new UnrecoverableError('of another id')
    })
    expect(runs).toHaveLength(1)
    expect(dead).toBeUndefined()
  })

  it('is not passed to onExhausted, which gets the failed payload', async () => {
    const told: number[] = []
    const onExhausted: Options['onExhausted'] = (payloads) => void told.push(...payloads.map(({ input }) => input.n))
    const { dead } = await run({ retry: { max: 0 }, onExhausted }, (payloads, ctx) => {
      if (payloads.length < 3) return
      ctx.done('a', 1)
      ctx.fail('a', new Error('broken'))
    })
    expect(dead).toEqual([2])
    await expect.poll(() => told).toEqual([2])
  })

  it('can be reported only for ids of the batch, up to their count, and before the run has ended', async () => {
    let late: (() => void) | undefined
    const { runs } = await run({}, (_, ctx) => {
      expect(() => ctx.done('z', 1)).toThrow('ctx.done() was given "z", which is no id of this batch')
      for (const count of [-1, 4, 1.5, Number.NaN])
        expect(() => ctx.done('a', count)).toThrow(`ctx.done() was given ${count} for "a"`)
      late = () => ctx.done('a', 1)
    })
    expect(runs).toHaveLength(1)
    expect(late).toThrow('ctx.done() was called for "a" when the run had ended')
  })

  it('stays finished when a stop interrupts the run', async () => {
    const task = orders((_, ctx) => {
      ctx.done('a', 2)
      return new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason)))
    })
    const m = testMill({ tasks: [task], queues: oneShard })
    await m.enqueueMany(task, push('a', 1, 2, 3))
    const started = nextEvent(m, 'job.started')
    const worker = m.worker({ concurrency: 1, grace: '10ms' })
    const released = events(m, 'job.released', 1)
    await worker.start()
    await started
    await worker.stop()
    await released
    expect((await m.queue('orders').jobs.get('a'))!.payloads!.map(({ input }) => (input as Push).n)).toEqual([3])
  })
})
