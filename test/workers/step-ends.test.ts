/** How a run ends while steps of it are under way: it stops, is cancelled, loses its lease, or its handler is done with it. */

import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { defineSignal, defineTask, type JobContext, snooze } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../next-event.js'
import { storeKinds, testMill } from '../test-mill.js'

const approved = defineSignal({ name: 'approved' })

function taskOf<Result>(run: (ctx: JobContext) => Promise<Result>, options: { readonly timeLimit?: number } = {}) {
  return defineTask({
    name: 'order',
    retry: { max: 9, backoff: () => 0 },
    ...options,
    run: async (_: unknown, ctx) => run(ctx),
  })
}

/** A promise and what resolves it. */
function gate(): { readonly opened: Promise<void>; readonly open: () => void } {
  let open = () => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

/** Two ways to rest beside a step. */
const rests = {
  'waits for a signal': (ctx: JobContext) => ctx.waitFor(approved),
  sleeps: (ctx: JobContext) => ctx.sleep('nap', '1h'),
} as const

describe.each(storeKinds)('a run with a step under way, on %s', (kind) => {
  describe.each(Object.entries(rests))('beside which it %s', (_, rest) => {
    /** A job whose step says that it has begun, and ends when its gate is open. */
    async function scene() {
      const [begun, end] = [gate(), gate()]
      const seen: { calls: number; reason?: unknown } = { calls: 0 }
      const order = taskOf(async (ctx) => {
        const step = ctx.step('mail', async ({ signal }) => {
          seen.calls += 1
          signal.addEventListener('abort', () => {
            seen.reason = signal.reason.code
            end.open()
          })
          begun.open()
          await end.opened
          return 'sent'
        })
        return (await Promise.all([step, rest(ctx)]))[0]
      })
      const mill = testMill({ tasks: [order] }, kind)
      const worker = mill.worker()
      await worker.start()
      const job = await mill.enqueue(order, undefined)
      await begun.opened
      const wake = async () => {
        await mill.signal(job, approved)
        await mill.queue('default').jobs.runNow([job.id])
      }
      return { mill, worker, job, end, seen, wake }
    }

    it('keeps the step if that ends within the grace of a stop', async () => {
      const { mill, worker, job, end, seen, wake } = await scene()
      const stopped = worker.stop()
      end.open()
      await stopped
      expect(await job.status()).toMatch(/waiting|scheduled/)
      // A sleep that began in this very ms is not over.
      await delay(2)
      await wake()
      await mill.worker().start()
      expect(await job.result({ timeout: '10s' })).toBe('sent')
      expect(seen).toEqual({ calls: 1 })
    })

    it('aborts the step when the grace of a stop is over, and puts the job back as it was', async () => {
      const { worker, job, seen } = await scene()
      await worker.stop({ grace: 10 })
      expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
      expect(seen).toEqual({ calls: 1, reason: 'worker-stopped' })
    })

    it('aborts the step when the job is cancelled', async () => {
      const { mill, job, seen } = await scene()
      const cancelled = nextEvent(mill, 'job.cancelled')
      await job.cancel('not wanted')
      await cancelled
      expect(seen).toEqual({ calls: 1, reason: 'job-cancelled' })
      expect(await job.status()).toBe('cancelled')
    })
  })

  it('aborts its steps and ends when its lease is lost while it waits for them', async () => {
    const [begun, go] = [gate(), gate()]
    const seen: string[] = []
    const order = taskOf(async (ctx) => {
      if (seen.length > 0) return ctx.job.attempt
      const deaf = ctx.step('deaf', async ({ signal }) => {
        begun.open()
        await once(signal, 'abort')
        seen.push(signal.reason.code)
      })
      const quick = ctx.step('quick', () => go.opened)
      return Promise.all([ctx.waitFor(approved), deaf, quick])
    })
    const mill = testMill({ tasks: [order] }, kind)
    await mill.worker({ concurrency: 1 }).start()
    const job = await mill.enqueue(order, undefined)
    await begun.opened
    await mill.queue('default').jobs.fail(job.id, 'an operator ends the run')
    go.open()
    expect(await job.result({ timeout: '10s' })).toBe(2)
    expect(seen).toEqual(['lease-lost'])
  })

  it('keeps a step that ends after the handler has put its job back', async () => {
    let calls = 0
    const order = taskOf(async (ctx) => {
      const step = ctx.step('charge', async () => {
        calls += 1
        await delay(30)
        return calls
      })
      return Promise.race([step, delay(1).then(() => snooze(1))])
    })
    const mill = testMill({ tasks: [order] }, kind)
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect(await job.result({ timeout: '10s' })).toBe(1)
    expect(calls).toBe(1)
  })

  it('does not wait for a step once the handler has returned a result', async () => {
    const end = gate()
    const order = taskOf(async (ctx) => {
      void ctx.step('log', () => end.opened)
      await ctx.step('charge', () => {})
      return 'paid'
    })
    const mill = testMill({ tasks: [order] }, kind)
    await mill.worker().start()
    expect(await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })).toBe('paid')
    end.open()
  })

  it('keeps a step that ends after its time limit, while its lease is held', async () => {
    let calls = 0
    const order = taskOf(
      async (ctx) => {
        const paid = await ctx.step('charge', async ({ signal }) => {
          calls += 1
          await once(signal, 'abort')
          return calls
        })
        await ctx.step('ship', () => {})
        return paid
      },
      { timeLimit: 200 },
    )
    const mill = testMill({ tasks: [order] }, kind)
    const failed = recorded(mill, 'job.failed')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect(await job.result({ timeout: '10s' })).toBe(1)
    expect(calls).toBe(1)
    expect(failed.map(({ error }) => error)).toMatchObject([{ message: expect.stringContaining('time limit') }])
  })
})

describe.each(storeKinds)('a handler that swallows what ends its run, on %s', (kind) => {
  it('does not complete a job that is cancelled before it returns', async () => {
    const begun = gate()
    const order = taskOf(async (ctx) => {
      await ctx.sleep('nap', '1h').catch(() => {})
      begun.open()
      await once(ctx.signal, 'abort')
      return 'too early'
    })
    const mill = testMill({ tasks: [order] }, kind)
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    await begun.opened
    await job.cancel('not wanted')
    await expect(job.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-cancelled' })
  })

  it.each(Object.entries(rests))('and returns at once, without awaiting it: the job %s', async (_, rest) => {
    let runs = 0
    const order = taskOf(async (ctx) => {
      runs += 1
      void rest(ctx)
      return runs
    })
    const mill = testMill({ tasks: [order] }, kind)
    const swallowed = nextEvent(mill, 'suspension.swallowed')
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    const completed = job.result({ timeout: '10s' }).then(() => 'completed')
    expect(await Promise.race([released.then(({ reason }) => reason), completed])).toMatch(/waiting|sleeping/)
    await swallowed
    await delay(2)
    await mill.signal(job, approved)
    await mill.queue('default').jobs.runNow([job.id])
    await completed
    expect(runs).toBe(2)
  })
})
