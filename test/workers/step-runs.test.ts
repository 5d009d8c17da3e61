/** Steps, sleeps and signals as real workers run them. */

import { type AnyTask, defineSignal, defineTask, type JobContext, type Mill, snooze } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { nextEvent, recorded } from '../next-event.js'
import { storeKinds, testMill } from '../test-mill.js'
import { workerRedis } from '../worker-redis.js'

const redis = await workerRedis()

const approved = defineSignal({
  name: 'approved',
  data: z.object({ yes: z.boolean(), by: z.string().default('nobody') }),
})
const stopped = defineSignal({ name: 'stopped' })
const now = { max: 4, backoff: () => 0 }

/** A task whose handler is given by the test. */
function taskOf<Result>(run: (ctx: JobContext) => Promise<Result>, retry = now) {
  return defineTask({ name: 'order', retry, run: async (_: unknown, ctx) => run(ctx) })
}

const kinds = [...storeKinds, 'redis'] as const

/** A mill on a fresh store of this kind. */
function millOn(kind: (typeof kinds)[number], tasks: readonly AnyTask[]): Mill {
  if (kind !== 'redis') return testMill({ tasks }, kind)
  return testMill({ tasks, store: redis.url, namespace: `steps-${Math.random()}` })
}

describe.each(kinds)('a worker on %s', (kind) => {
  it('calls the function of a finished step once, whatever happens to the runs', async () => {
    const calls: string[] = []
    const keys = new Set<string>()
    const order = taskOf(async (ctx) => {
      const paid = await ctx.step('charge', ({ key }) => {
        calls.push('charge')
        keys.add(key)
        return { at: new Date(0), of: ctx.job.attempt }
      })
      if (ctx.job.attempt === 1) throw new Error('broken')
      await ctx.step('ship', ({ key }) => {
        calls.push(`ship ${ctx.job.attempt}`)
        keys.add(key)
        if (ctx.job.attempt === 2) throw new Error('no van')
      })
      return paid
    })
    const mill = millOn(kind, [order])
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect(await job.result({ timeout: '10s' })).toEqual({ at: new Date(0), of: 1 })
    expect(calls).toEqual(['charge', 'ship 2', 'ship 3'])
    expect(keys.size).toBe(2)
  })

  it('gives a step the same key in each run, and others to the steps of another job', async () => {
    const keys: string[] = []
    const order = taskOf((ctx) =>
      ctx.step('charge', ({ key }) => {
        keys.push(key)
        if (ctx.job.attempt === 1) throw new Error('broken')
      }),
    )
    const mill = millOn(kind, [order])
    await mill.worker().start()
    await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })
    await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })
    expect(keys).toHaveLength(4)
    expect(new Set(keys).size).toBe(2)
    expect(keys[0]).toBe(keys[1])
  })

  it('gives the steps of a job that replaces another keys of their own', async () => {
    const keys: string[] = []
    const order = taskOf(
      (ctx) =>
        ctx.step('charge', ({ key }) => {
          keys.push(key)
          if (keys.length === 1) throw new Error('broken')
          return 'paid'
        }),
      { max: 4, backoff: () => 60_000 },
    )
    const mill = millOn(kind, [order])
    const retried = nextEvent(mill, 'job.failed')
    await mill.worker().start()
    const options = { id: 'order-1', ifWaiting: 'replace' } as const
    await mill.enqueue(order, undefined, options)
    await retried
    const job = await mill.enqueue(order, undefined, options)
    expect(job.outcome).toBe('replaced')
    await mill.queue('default').jobs.runNow([job.id])
    expect(await job.result({ timeout: '10s' })).toBe('paid')
    expect(keys).toHaveLength(2)
    expect(keys[0]).not.toBe(keys[1])
  })

  it('enqueues a job in each step and one after them, though their inputs are equal, and none twice', async () => {
    const reminded = new Set<string>()
    const remind = defineTask({ name: 'remind', run: async (_: string, ctx) => void reminded.add(ctx.job.id) })
    const order = taskOf(async (ctx) => {
      const enqueued: string[] = []
      for (const n of [1, 2, 3]) {
        enqueued.push(
          await ctx.step(`remind-${n}`, async () => {
            const { id } = await ctx.enqueue(remind, 'ada')
            if (ctx.job.attempt === n) throw new Error('once more')
            return id
          }),
        )
        await ctx.sleep(`nap-${n}`, 5)
      }
      enqueued.push((await ctx.enqueue(remind, 'ada')).id)
      return enqueued
    })
    const mill = millOn(kind, [order, remind])
    const ended = new Set<string>()
    const all = nextEvent(mill, 'job.completed', ({ id, task }) => task === 'remind' && ended.add(id).size === 4)
    await mill.worker().start()
    const ids = await (await mill.enqueue(order, undefined)).result({ timeout: '20s' })
    expect(new Set(ids).size).toBe(4)
    await all
    expect(reminded).toEqual(new Set(ids))
  })

  it('runs steps side by side', async () => {
    const order = taskOf((ctx) => Promise.all([1, 2, 3].map((n) => ctx.step(`page-${n}`, () => n * 2))))
    const mill = millOn(kind, [order])
    await mill.worker().start()
    expect(await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })).toEqual([2, 4, 6])
  })

  it('keeps a step that is under way when the job begins to wait', async () => {
    let calls = 0
    let finish = () => {}
    const sent = new Promise<void>((resolve) => {
      finish = resolve
    })
    const order = taskOf(async (ctx) => {
      const step = ctx.step('mail', async () => {
        calls += 1
        setImmediate(() => setImmediate(finish))
        await sent
        return 'sent'
      })
      const [mail, answer] = await Promise.all([step, ctx.waitFor(stopped)])
      return [mail, answer ?? 'none']
    })
    const mill = millOn(kind, [order])
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    await released
    await mill.signal(job, stopped)
    expect(await job.result({ timeout: '10s' })).toEqual(['sent', 'none'])
    expect(calls).toBe(1)
  })

  it('keeps a step that is under way when another throws', async () => {
    const calls: string[] = []
    let finish = () => {}
    const sent = new Promise<void>((resolve) => {
      finish = resolve
    })
    const order = taskOf((ctx) =>
      Promise.all([
        ctx.step('slow', async () => {
          calls.push('slow')
          await sent
        }),
        ctx.step('throws', () => {
          calls.push('throws')
          setImmediate(() => setImmediate(finish))
          if (calls.length === 2) throw new Error('no')
        }),
      ]),
    )
    const mill = millOn(kind, [order])
    await mill.worker().start()
    await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })
    expect(calls).toEqual(['slow', 'throws', 'throws'])
  })

  it('sleeps without a slot and without an attempt, and goes on after it', async () => {
    const runs: number[] = []
    const order = taskOf(async (ctx) => {
      runs.push(ctx.job.attempt)
      await ctx.sleep('short', 30)
      await ctx.sleep('shorter', 10)
      return 'woken'
    })
    const mill = millOn(kind, [order])
    const released = recorded(mill, 'job.released')
    await mill.worker({ concurrency: 1 }).start()
    const job = await mill.enqueue(order, undefined)
    expect(await job.result({ timeout: '10s' })).toBe('woken')
    expect(runs).toEqual([1, 1, 1])
    expect(released.map(({ reason }) => reason)).toEqual(['sleeping', 'sleeping'])
  })

  it('ends a sleep when an operator runs the job now', async () => {
    const order = taskOf(async (ctx) => {
      await ctx.sleep('long', '30d')
      return 'woken'
    })
    const mill = millOn(kind, [order])
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    await released
    expect(await job.status()).toBe('scheduled')
    // A sleep that began in this very ms is not over.
    const since = Date.now()
    await expect.poll(() => Date.now()).toBeGreaterThan(since)
    await mill.queue('default').jobs.runNow([job.id])
    expect(await job.result({ timeout: '10s' })).toBe('woken')
  })

  it('waits for a signal, whose data its schema makes', async () => {
    const order = taskOf((ctx) => ctx.waitFor(approved))
    const mill = millOn(kind, [order])
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect((await released).reason).toBe('waiting')
    expect(await job.status()).toBe('waiting')
    expect((await mill.queue('default').depth()).waiting).toBe(1)
    expect(await mill.signal(job, approved, { yes: true })).toBe('delivered')
    expect(await job.result({ timeout: '10s' })).toEqual({ yes: true, by: 'nobody' })
    expect(await mill.signal(job, approved, { yes: false })).toBe('gone')
  })

  it('finds a signal that came before it waits, sent by id', async () => {
    const order = taskOf(async (ctx) => [await ctx.waitFor(approved), await ctx.waitFor(stopped)])
    const mill = millOn(kind, [order])
    const { id } = await mill.enqueue(order, undefined)
    expect(await mill.signal(id, approved, { yes: true })).toBe('kept')
    expect(await mill.signal(id, approved, { yes: false })).toBe('duplicate')
    expect(await mill.signal(id, stopped)).toBe('kept')
    await mill.worker().start()
    expect(await mill.job(order, id).result({ timeout: '10s' })).toEqual([{ yes: true, by: 'nobody' }, undefined])
  })

  it('says how to forget a signal that its schema does not accept, and waits for it anew', async () => {
    const order = defineTask({
      name: 'order',
      retry: { max: 0 },
      run: async (_: unknown, ctx) => ({ answer: await ctx.waitFor(approved) }),
    })
    const mill = millOn(kind, [order])
    const buried = nextEvent(mill, 'job.buried')
    const released = nextEvent(mill, 'job.released')
    const { jobs, morgue } = mill.queue('default')
    const { id } = await mill.enqueue(order, undefined)
    // As before a deploy.
    await mill.signal(id, defineSignal<unknown>({ name: 'approved' }), { yes: 'of course' })
    await mill.worker().start()
    expect((await buried).error).toContain(
      `forget it, and the next run waits for it anew: millrace jobs forget-step default ${id} 'approved' --signal`,
    )
    expect(await jobs.forgetStep(id, 'approved')).toBe(false)
    expect(await jobs.forgetStep(id, 'approved', { signal: true })).toBe(true)
    await morgue.revive([id])
    expect((await released).reason).toBe('waiting')
    expect(await mill.signal(id, approved, { yes: true })).toBe('delivered')
    expect(await mill.job(order, id).result({ timeout: '10s' })).toEqual({ answer: { yes: true, by: 'nobody' } })
  })

  it('goes on with undefined when nobody has sent the signal in time', async () => {
    const order = taskOf(async (ctx) => ({ answer: (await ctx.waitFor(approved, { timeout: 10 })) ?? 'none' }))
    const mill = millOn(kind, [order])
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect(await job.result({ timeout: '20s' })).toEqual({ answer: 'none' })
  })

  it('puts a job back that swallows what ends its run, and says so', async () => {
    const order = taskOf(async (ctx) => {
      try {
        await ctx.sleep('nap', 10)
      } catch {
        return 'too early'
      }
      return 'in time'
    })
    const mill = millOn(kind, [order])
    const swallowed = nextEvent(mill, 'suspension.swallowed')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    expect(await swallowed).toEqual({ queue: 'default', id: job.id, task: 'order', text: "sleeps ('nap')" })
    expect(await job.result({ timeout: '10s' })).toBe('in time')
  })

  it('sleeps though the handler does not await it', async () => {
    const runs: number[] = []
    const order = taskOf(async (ctx) => {
      runs.push(runs.length)
      void ctx.sleep('nap', 10)
      await ctx.step('another', () => 1)
      return runs.length
    })
    const mill = millOn(kind, [order])
    const swallowed = nextEvent(mill, 'suspension.swallowed')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    await swallowed
    expect(await job.result({ timeout: '10s' })).toBe(2)
  })

  it('cancels a job that waits for a signal', async () => {
    const order = taskOf((ctx) => ctx.waitFor(approved))
    const mill = millOn(kind, [order])
    const released = nextEvent(mill, 'job.released')
    await mill.worker().start()
    const job = await mill.enqueue(order, undefined)
    await released
    expect(await job.cancel('changed my mind')).toBe(true)
    await expect(job.result({ timeout: '10s' })).rejects.toMatchObject({ code: 'job-cancelled' })
    expect(await mill.signal(job, approved, { yes: true })).toBe('gone')
  })

  it('keeps what an outcome says after a step', async () => {
    let calls = 0
    const order = defineTask({
      name: 'order',
      run: async (_: unknown, ctx) => {
        await ctx.step('look', () => (calls += 1))
        return ctx.job.runAt.getTime() === ctx.job.createdAt.getTime() ? snooze(10) : calls
      },
    })
    const mill = millOn(kind, [order])
    await mill.worker().start()
    expect(await (await mill.enqueue(order, undefined)).result({ timeout: '10s' })).toBe(1)
  })
})
