/** A test mill: its clock stands, and drain() runs what is due by the parts of a worker. */

import {
  bury,
  cancel,
  type Death,
  defineOrderedTask,
  defineSignal,
  defineTask,
  hold,
  type JobContext,
  snooze,
  UnrecoverableError,
} from 'millrace'
import { testContext, testMill } from 'millrace/testing'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { z } from 'zod'

const now = '2026-03-01T09:00:00Z'
type Made = Parameters<typeof testMill>[0]

/** Closed when the test is over. */
const made: typeof testMill = (options) => {
  const mill = testMill({ now, ...options })
  onTestFinished(() => mill.close())
  return mill
}

const mail = defineTask({ name: 'mail', input: z.object({ to: z.string() }), run: async ({ to }) => ({ sent: to }) })

/** Throws until its attempt is `at`. */
const flaky = (at: number, max = 4) =>
  defineTask({
    name: 'flaky',
    retry: { max, backoff: (failures) => failures * 60_000 },
    async run(_, { job }) {
      if (job.attempt < at) throw new Error(`attempt ${job.attempt} failed`)
      return job.attempt
    },
  })

describe('a wait for a result before drain()', () => {
  it('is warned of once, and ends with the drain', async () => {
    const mill = made({ tasks: [mail] })
    const warned: Error[] = []
    const heard = (warning: Error) => void warned.push(warning)
    process.on('warning', heard)
    onTestFinished(() => void process.off('warning', heard))
    const jobs = [await mill.enqueue(mail, { to: 'ada' }), await mill.enqueue(mail, { to: 'alan' })]
    const results = Promise.all(jobs.map((job) => job.result()))
    await vi.waitFor(() => expect(warned).toHaveLength(1), 5_000)

    expect(warned[0]).toMatchObject({ name: 'MillraceWarning', code: 'MILLRACE_UNDRAINED' })
    expect(warned[0]!.message).toContain('`await mill.drain()` before `await job.result()`')
    await mill.drain()
    expect(await results).toEqual([{ sent: 'ada' }, { sent: 'alan' }])
    expect(warned).toHaveLength(1)
  })
})

describe('drain()', () => {
  it('runs due jobs and resolves with the end of each attempt', async () => {
    const mill = made({ tasks: [mail] })
    const { id } = await mill.enqueue(mail, { to: 'ada' })

    expect(await mill.drain()).toEqual([
      { task: 'mail', id, queue: 'default', attempt: 1, state: 'completed', result: { sent: 'ada' } },
    ])
    expect(await mill.drain()).toEqual([])
    expect(await mill.job(mail, id).result()).toEqual({ sent: 'ada' })
  })

  it('keeps the order of a worker: queues as they are declared, then priority, then first in first out', async () => {
    const low = defineTask({ name: 'low', queue: 'low', run: async (n: number) => n })
    const high = defineTask({ name: 'high', queue: 'high', run: async (n: number) => n })
    const mill = made({ queues: { high: {}, low: {} }, tasks: [low, high] })
    await mill.enqueueMany([
      [low, 1],
      [high, 2],
      [high, 3, { priority: 5 }],
      [low, 4],
      [high, 5],
    ])

    expect((await mill.drain()).map(({ result }) => result)).toEqual([3, 2, 5, 1, 4])
  })

  it('also runs the jobs that its jobs enqueue', async () => {
    const countdown = defineTask({
      name: 'countdown',
      async run(n: number): Promise<number> {
        if (n > 0) await mill.enqueue(countdown, n - 1)
        return n
      },
    })
    const mill = made({ tasks: [countdown] })
    await mill.enqueue(countdown, 3)

    expect((await mill.drain()).map(({ result }) => result)).toEqual([3, 2, 1, 0])
  })

  it('gives handlers a working ctx.enqueue: a job that runs again enqueues nothing twice', async () => {
    const parent = defineTask({
      name: 'parent',
      retry: { max: 1, backoff: () => 0 },
      async run(_, ctx) {
        await ctx.enqueue(mail, { to: 'child' })
        if (ctx.job.attempt === 1) throw new Error('after its call')
      },
    })
    const mill = made({ tasks: [parent, mail] })
    const { id } = await mill.enqueue(parent)
    const ran = await mill.drain()

    expect(ran.map(({ task, state }) => [task, state])).toEqual([
      ['parent', 'ready'],
      ['mail', 'completed'],
      ['parent', 'completed'],
    ])
    expect(await mill.job(ran[1]!.id).record()).toMatchObject({ parent: { id, task: 'parent' } })
  })

  it('reports deaths, whatever brought them about', async () => {
    const told: Death[] = []
    const obituary = defineTask({
      name: 'obituary',
      async run(death: Death, ctx) {
        told.push(death)
        await ctx.enqueue(mail, { to: death.job })
      },
    })
    const dying = defineTask({ name: 'dying', onDead: obituary, run: async (how: string) => bury(how) })
    const mill = made({ tasks: [dying, obituary, mail] })
    const by = await mill.enqueueMany(dying, ['itself', 'an operator'])
    await mill.queue('default').jobs.bury([by[1]!.id])
    const ran = await mill.drain()
    await mill.queue('default').morgue.revive([by[0]!.id])
    const again = await mill.drain()

    expect(told.map(({ job, reason }) => [job, reason]).sort()).toEqual(
      [by[0], by[0], by[1]].map((job, i) => [job!.id, i === 2 ? 'buried' : 'itself']).sort(),
    )
    expect(ran.filter(({ task }) => task === 'mail').map(({ result }) => result)).toHaveLength(2)
    expect(again.map(({ task, state }) => [task, state])).toEqual([
      ['dying', 'dead'],
      ['obituary', 'completed'],
      ['mail', 'completed'],
    ])
  })

  it('leaves jobs for later until the clock has reached them', async () => {
    const mill = made({ tasks: [mail] })
    await mill.enqueue(mail, { to: 'later' }, { delay: '5m' })
    await mill.enqueue(mail, { to: 'at' }, { runAt: '2026-03-01T10:00:00Z' })

    expect(await mill.drain()).toEqual([])
    mill.advance('4m')
    expect(await mill.drain()).toEqual([])
    mill.advance('1m')
    expect(await mill.drain()).toMatchObject([{ result: { sent: 'later' } }])
    mill.advance('55m')
    expect(await mill.drain()).toMatchObject([{ result: { sent: 'at' } }])
    expect(mill.now).toEqual(new Date('2026-03-01T10:00:00Z'))
  })

  it('ends expired jobs, and runs the others', async () => {
    const mill = made({ tasks: [mail] })
    await mill.enqueueMany(
      mail,
      Array.from({ length: 150 }, (_, i) => ({ to: `${i}` })),
      () => ({ expiresIn: '2m' }),
    )
    await mill.enqueue(mail, { to: 'patient' })
    const cancelled: string[] = []
    mill.on('job.cancelled', ({ reason }) => cancelled.push(reason!))
    mill.advance('2m')

    expect(await mill.drain()).toMatchObject([{ result: { sent: 'patient' } }])
    expect(cancelled).toEqual(Array(150).fill('expired'))
  })

  it('retries with the back-off of the task as the clock moves, and buries a job without retries left', async () => {
    const task = flaky(9, 2)
    const mill = made({ tasks: [task] })
    await mill.enqueue(task)
    const first = await mill.drain()
    mill.advance('1m')
    const second = await mill.drain()
    mill.advance('1m')
    const early = await mill.drain()
    mill.advance('1m')
    const last = await mill.drain()

    expect(first).toMatchObject([
      { attempt: 1, state: 'scheduled', error: new Error('attempt 1 failed'), runAt: new Date('2026-03-01T09:01:00Z') },
    ])
    expect(second).toMatchObject([{ attempt: 2, state: 'scheduled', runAt: new Date('2026-03-01T09:03:00Z') }])
    expect(early).toEqual([])
    expect(last).toMatchObject([{ attempt: 3, state: 'dead', reason: 'max-retries' }])
    expect((await mill.queue('default').morgue.list()).jobs).toMatchObject([{ reason: 'max-retries' }])
  })

  it('has a jitter of one half: the first retry of a task is due after 30 s', async () => {
    const task = defineTask({
      name: 'down',
      async run() {
        throw new Error('down')
      },
    })
    const mill = made({ tasks: [task] })
    await mill.enqueue(task)

    expect(await mill.drain()).toMatchObject([{ runAt: new Date('2026-03-01T09:00:30Z') }])
  })

  it.each([
    ['snooze', () => snooze('10m'), { state: 'scheduled', reason: 'snoozed', runAt: new Date('2026-03-01T09:10:00Z') }],
    ['cancel', () => cancel('not wanted'), { state: 'cancelled', reason: 'not wanted' }],
    ['bury', () => bury('bad'), { state: 'dead', reason: 'bad' }],
    ['hold', () => hold('30s'), { state: 'ready', reason: 'held' }],
  ])('carries out the outcome %s', async (_, run, told) => {
    const task = defineTask({ name: 'task', run })
    const mill = made({ tasks: [task] })
    await mill.enqueue(task)

    expect(await mill.drain()).toMatchObject([told])
  })

  it('buries unrecoverable jobs and invalid input', async () => {
    const hopeless = defineTask({
      name: 'hopeless',
      async run() {
        throw new UnrecoverableError('no such account')
      },
    })
    const strict = defineTask({ name: 'strict', input: z.object({ n: z.number().max(3) }), run: async () => {} })
    const loose = defineTask({ name: 'strict', queue: 'default' })
    const mill = made({ tasks: [hopeless, strict] })
    await mill.enqueue(hopeless)
    await mill.enqueue(loose, { n: 4 })

    expect(await mill.drain()).toMatchObject([
      { task: 'hopeless', state: 'dead', reason: 'unrecoverable' },
      { task: 'strict', state: 'dead', reason: 'bad-payload', error: { code: 'job-invalid' } },
    ])
  })

  it('keeps the record of a job that takes a second of the clock, and of no shorter one', async () => {
    const work = defineTask({ name: 'work', input: z.number(), run: (ms): void => mill.advance(ms) })
    const mill = made({ tasks: [work] })
    const jobs = await mill.enqueueMany(work, [999, 1_000])
    await mill.drain()

    expect(await Promise.all(jobs.map((job) => job.status()))).toEqual([undefined, 'completed'])
  })

  it('keeps a throttle: denied jobs run when its window has passed', async () => {
    const task = defineTask({ name: 'call', queue: 'api', run: async (n: number) => n })
    const mill = made({ queues: { api: { throttle: { limit: 2, window: '1m' } } }, tasks: [task] })
    await mill.enqueueMany(task, [1, 2, 3, 4, 5])
    const ran = async () => (await mill.drain()).map(({ result }) => result)

    expect(await ran()).toEqual([1, 2])
    mill.advance('59s')
    expect(await ran()).toEqual([])
    // A window of starts, and how unevenly they may come.
    mill.advance('2s')
    mill.advance(1)
    expect(await ran()).toEqual([3, 4])
  })

  it('gives an ordered task its batches, with one outcome for each id', async () => {
    const seen: [string, number[]][][] = []
    const sync = defineOrderedTask({
      name: 'sync',
      batchSize: 2,
      id: (change: { id: string; rev: number }) => change.id,
      score: ({ rev }) => rev,
      retry: { max: 1, backoff: () => 1_000 },
      run(payloadsById: ReadonlyMap<string, readonly { id: string; rev: number }[]>, ctx) {
        seen.push([...payloadsById].map(([id, payloads]) => [id, payloads.map(({ rev }) => rev)]))
        if (payloadsById.has('b')) ctx.fail('b', new Error('b is stuck'))
      },
    })
    const mill = made({ queues: { sync: { shards: 1 } }, tasks: [sync] })
    await mill.enqueueMany(sync, [
      { id: 'a', rev: 2 },
      { id: 'b', rev: 1 },
      { id: 'a', rev: 1 },
      { id: 'c', rev: 7 },
    ])

    expect((await mill.drain()).map(({ id, state }) => [id, state])).toEqual([
      ['a', 'completed'],
      ['b', 'scheduled'],
      ['c', 'completed'],
    ])
    expect(seen).toEqual([
      [
        ['a', [1, 2]],
        ['b', [1]],
      ],
      [['c', [7]]],
    ])
    mill.advance('1s')
    expect(await mill.drain()).toMatchObject([{ id: 'b', attempt: 2, state: 'dead', reason: 'max-retries' }])
  })

  it('calls middleware and onExhausted, and emits the events of a worker', async () => {
    const heard: string[] = []
    const task = defineTask({
      name: 'task',
      retry: { max: 0 },
      async run() {
        throw new Error('no luck')
      },
      onExhausted: ({ error }) => void heard.push(`exhausted: ${(error as Error).message}`),
    })
    const mill = made({
      tasks: [task],
      middleware: [
        {
          run(_, next) {
            heard.push('middleware')
            return next()
          },
        },
      ],
    })
    for (const name of ['job.enqueued', 'job.started', 'job.failed', 'job.buried'] as const)
      mill.on(name, () => heard.push(name))
    await mill.enqueue(task)
    await mill.drain()

    expect(heard).toEqual([
      'job.enqueued',
      'job.started',
      'middleware',
      'job.failed',
      'job.buried',
      'exhausted: no luck',
    ])
  })

  it('runs the jobs of given queues only, on request', async () => {
    const other = defineTask({ name: 'other', queue: 'other', run: async () => 1 })
    const mill = made({ tasks: [mail, other] })
    await mill.enqueueMany([[mail, { to: 'ada' }], [other]])

    expect(await mill.drain({ queues: ['other'] })).toMatchObject([{ task: 'other' }])
    await expect(mill.drain({ queues: ['nope' as 'other'] })).rejects.toMatchObject({ code: 'queue-unknown' })
  })

  it('runs isolated tasks in place, with their checkpoints and logs', async () => {
    const encode = defineTask({
      name: 'encode',
      isolate: 'process',
      module: import.meta.url,
      retry: { max: 1, backoff: () => 0 },
      async run(_, ctx) {
        ctx.log('begun')
        if (ctx.lastCheckpoint === undefined) {
          await ctx.checkpoint({ part: 7 })
          throw new Error('lost')
        }
        return ctx.lastCheckpoint
      },
    })
    const mill = made({ tasks: [encode] })
    const job = await mill.enqueue(encode)

    expect(await mill.drain()).toMatchObject([{ state: 'ready' }, { state: 'completed', result: { part: 7 } }])
    expect((await job.record())?.log).toBe('begun\nbegun\n')
  })

  it('refuses a task whose handler is elsewhere, and ends if jobs are due without end', async () => {
    const elsewhere = defineTask({ name: 'elsewhere', isolate: 'process', module: import.meta.url })
    const again = defineTask({ name: 'again', run: () => snooze(0) })
    const first = made({ tasks: [elsewhere] })
    await first.enqueue(elsewhere)
    const second = made({ tasks: [again] })
    await second.enqueue(again)

    await expect(first.drain()).rejects.toThrow(/tasks\.elsewhere: must have its handler here/)
    await expect(second.drain({ limit: 5 })).rejects.toThrow(
      /^drain\(\) has made 5 attempts and jobs are still due \(limit: 5\).*the last attempts:\n {2}again \S+: ready \(snoozed\)/s,
    )
  })

  it('simulates a day in no time', async () => {
    const hourly = defineTask({ name: 'hourly', run: async () => snooze('1h') })
    const mill = made({ tasks: [hourly] })
    await mill.enqueue(hourly)
    let runs = 0
    const startedAt = performance.now()
    for (let hour = 0; hour < 24; hour += 1) {
      runs += (await mill.drain()).length
      mill.advance('1h')
    }

    expect(runs).toBe(24)
    expect(performance.now() - startedAt).toBeLessThan(5_000)
  })
})

describe('enqueued()', () => {
  it('returns the waiting jobs of a task, with input and options, from any queue', async () => {
    const other = defineTask({ name: 'other', run: async () => {} })
    const mill = made({ queues: { urgent: {} }, tasks: [mail, other] })
    await mill.enqueue(mail, { to: 'later' }, { delay: '1h', meta: { by: 'ada' } })
    await mill.enqueue(mail, { to: 'first' }, { priority: 7, queue: 'urgent' })
    await mill.enqueue(mail, { to: 'second' })
    await mill.enqueue(other)

    expect((await mill.enqueued(mail)).map(({ input, queue, priority }) => [input?.to, queue, priority])).toEqual([
      ['first', 'urgent', 7],
      ['second', 'default', 0],
      ['later', 'default', 0],
    ])
    const later = (await mill.enqueued(mail)).at(-1)
    expect(later).toMatchObject({ state: 'scheduled', runAt: new Date('2026-03-01T10:00:00Z'), meta: { by: 'ada' } })
    await mill.drain()
    expect(await mill.enqueued(mail)).toHaveLength(1)
  })

  it('returns all of them, however many', async () => {
    const mill = made({ tasks: [mail] })
    await mill.enqueueMany(
      mail,
      Array.from({ length: 450 }, (_, i) => ({ to: `${i}` })),
    )

    expect((await mill.enqueued(mail)).map(({ input }) => Number(input!.to))).toEqual([...Array(450).keys()])
  })
})

describe('the options of a test mill', () => {
  it('are those of a mill, checked in the same way', () => {
    expect(() => made({ tasks: [mail], queues: { a: { weight: 0 } } })).toThrow(/queues\.a\.weight/)
    expect(() => testMill({ store: 'memory:' } as Made)).not.toThrow()
    expect(() => made({ now: 'soon' })).toThrow(/^testMill\(\{ now \}\) must be a Date, ISO-8601 text/)
    expect(() => made({}).advance('5 minutes' as '5m')).toThrow(/^advance\(duration\) must be a duration/)
  })

  it('start at the present time by default', async () => {
    const before = Date.now()

    expect(testMill({}).now.getTime()).toBeGreaterThanOrEqual(before)
  })
})

const given: number[][] = []
const insert = defineTask({
  name: 'insert',
  batch: { size: 3 },
  retry: { max: 1, backoff: () => 60_000 },
  async run(inputs: number[], ctx) {
    given.push(inputs)
    const odd = inputs.indexOf(7)
    if (odd !== -1) ctx.fail(odd, new Error('seven'))
    return inputs.map((input) => (input === 9 ? snooze('5m') : 2 * input))
  },
})

it('drain() gives a batch task at most its batch size, and reports the end of each job', async () => {
  const mill = testMill({ tasks: [insert] })
  await mill.enqueueMany(insert, [1, 7, 9, 4])
  const ran = await mill.drain()

  expect(given).toEqual([[1, 7, 9], [4]])
  expect(ran.map(({ state, result, error }) => [state, result, error])).toEqual([
    ['completed', 2, undefined],
    ['scheduled', undefined, new Error('seven')],
    ['scheduled', undefined, undefined],
    ['completed', 8, undefined],
  ])
})

it('testContext() of a batch task accepts its inputs, and lists the jobs that the handler has failed', async () => {
  const ctx = testContext(insert, { inputs: [1, 7] })
  await insert.run!([1, 7], ctx)

  expect(ctx.failed).toEqual(new Map([[1, new Error('seven')]]))
  expect(ctx.jobs.map(({ id, attempt }) => [id, attempt])).toEqual([
    ['job-1', 1],
    ['job-2', 1],
  ])
  expect(() => testContext(insert, { inputs: [] })).toThrow(/needs the inputs/)
})

it('testContext() keeps the fields that a handler has set, and refuses invalid ones', async () => {
  const encode = defineTask({
    name: 'encode',
    run: async (_: string, ctx) => {
      await ctx.fields.set({ node: 'eu-3', codec: 'av1' })
      await ctx.fields.set({ codec: null })
    },
  })
  const ctx = testContext(encode)
  await encode.run!('a', ctx)

  expect(ctx.fieldsWritten).toEqual({ node: 'eu-3' })
  await expect(ctx.fields.set({ 'no name': 1 })).rejects.toMatchObject({ code: 'argument-invalid' })
})

describe('steps in drain()', () => {
  it('sleeps until the clock is moved, waits until it is signalled, and gives up when the time is over', async () => {
    const approved = defineSignal<string>({ name: 'approved' })
    const calls: string[] = []
    const order = defineTask({
      name: 'order',
      async run(_: unknown, ctx) {
        await ctx.step('charge', () => void calls.push('charge'))
        await ctx.sleep('cool-off', '3d')
        return (await ctx.waitFor(approved, { timeout: '7d' })) ?? 'nobody'
      },
    })
    const mill = made({ tasks: [order] })
    const job = await mill.enqueue(order, undefined)
    const other = await mill.enqueue(order, undefined)
    expect(await mill.drain()).toMatchObject([{ state: 'scheduled', reason: 'sleeping' }, { state: 'scheduled' }])
    expect(await mill.drain()).toEqual([])
    mill.advance('3d')
    expect(await mill.drain()).toMatchObject([{ state: 'waiting', reason: 'approved' }, { state: 'waiting' }])
    expect(await mill.signal(job, approved, 'ada')).toBe('delivered')
    expect(await mill.drain()).toMatchObject([{ id: job.id, state: 'completed', result: 'ada' }])
    mill.advance('7d')
    expect(await mill.drain()).toMatchObject([{ id: other.id, state: 'completed', result: 'nobody' }])
    expect(calls).toEqual(['charge', 'charge'])
  })
})

describe('what handlers need in drain()', () => {
  interface Mailer {
    send(to: string): Promise<void>
  }
  const greet = defineTask({
    name: 'greet',
    run: async (to: string, ctx: JobContext<{ mailer: Mailer }>) => ctx.context.mailer.send(to),
  })

  it('is opened by the first drain, given to handlers that take the place of others too, and closed by close()', async () => {
    const told: string[] = []
    const mailer: Mailer = { send: async (to) => void told.push(to) }
    const mill = made({
      tasks: [greet, defineTask({ name: 'other', run: async () => {} })],
      context: () => {
        told.push('open')
        return { mailer, [Symbol.dispose]: () => void told.push('close') }
      },
      handlers: { greet: (to, { context }) => context.mailer.send(`${to}, instead`) },
    })
    await mill.enqueue(greet, 'ada')
    expect(told).toEqual([])
    await mill.drain()
    await mill.drain()
    await mill.close()

    expect(told).toEqual(['open', 'ada, instead', 'close'])
  })

  it('that cannot be opened ends the drain, and no job is taken', async () => {
    const context = () => {
      throw new Error('no mailer')
    }
    const mill = made({ tasks: [greet], context })
    const job = await mill.enqueue(greet, 'ada')

    await expect(mill.drain()).rejects.toThrow('no mailer')
    expect(await job.record()).toMatchObject({ state: 'ready', attempt: 1 })
  })
})
