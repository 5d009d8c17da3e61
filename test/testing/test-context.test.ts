/** A test context: one call of a handler, and what it has done. */

import { defineOrderedTask, defineTask, type JobContext, type JobHandle } from 'millrace'
import { testContext, testMill } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'

const encode = defineTask({
  name: 'encode',
  queue: 'video',
  async run({ file }: { file: string }, ctx) {
    ctx.progress(0.5, file)
    ctx.log(`attempt ${ctx.job.attempt} of ${ctx.job.id}`)
    await ctx.checkpoint({ from: ctx.lastCheckpoint })
    ctx.signal.throwIfAborted()
    return ctx.job.meta['by']
  },
})

describe('the context of a plain task', () => {
  it('describes a first attempt, and records what the handler does', async () => {
    const ctx = testContext(encode)
    await encode.run!({ file: 'a.mp4' }, ctx)

    expect(ctx.job).toMatchObject({
      id: 'job-1',
      task: 'encode',
      queue: 'video',
      attempt: 1,
      crashes: 0,
      fence: 1,
      meta: {},
    })
    expect(ctx.progressed).toEqual([{ fraction: 0.5, note: 'a.mp4' }])
    expect(ctx.logged).toEqual(['attempt 1 of job-1'])
    expect(ctx.checkpoints).toEqual([{ from: undefined }])
  })

  it('describes the job that the test asks for', async () => {
    const ctx = testContext(encode, {
      ...{ id: 'x', attempt: 3, meta: { by: 'ada' }, lastCheckpoint: 7, lastError: 'no luck', group: 'g' },
      runAt: new Date(0),
    })

    expect(await encode.run!({ file: 'a.mp4' }, ctx)).toBe('ada')
    expect(ctx.job).toMatchObject({ id: 'x', attempt: 3, lastError: 'no luck', group: 'g', runAt: new Date(0) })
    expect(ctx.checkpoints).toEqual([{ from: 7 }])
  })

  it('describes where the job comes from', () => {
    const parent = { queue: 'default', id: 'a', task: 'cut' }
    const schedule = { name: 'nightly', tickAt: new Date(0) }
    const trace = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01` }
    const ctx = testContext(encode, { parent, repeatOf: parent, schedule, trace, meta: { by: 'ada' } })

    expect(ctx.job).toMatchObject({ parent, repeatOf: parent, schedule, trace, meta: { by: 'ada' } })
    expect(ctx.job).toBe(ctx.job)
    expect(testContext(encode).job).not.toHaveProperty('schedule')
  })

  it('refuses what it does not know, and what is no Date', () => {
    const given = (options: object) => () => testContext(encode, options)

    expect(given({ atempt: 2 })).toThrow(
      /testContext\(\{ atempt \}\) is not an option; check its spelling: .* Probably `attempt` is meant/,
    )
    expect(given({ joined: {} })).toThrow('testContext({ joined }) is not an option')
    expect(given({ runAt: '2026-03-01T09:00:00Z' })).toThrow('testContext({ runAt }) must be a Date')
    expect(given({ group: undefined })).not.toThrow()
  })

  it('records what the handler enqueues, checked and not sent', async () => {
    const thumb = defineTask({ name: 'thumb', input: z.object({ at: z.number() }), run: async () => 'a.png' })
    const cut = defineTask({
      name: 'cut',
      async run(_, ctx) {
        const job = await ctx.enqueue(thumb, { at: 3 }, { priority: 1, key: 'first' })
        await ctx.enqueueMany(thumb, [{ at: 4 }], () => ({ id: 'mine' }))
        return job
      },
    })
    const ctx = testContext(cut)
    const job = (await cut.run!(undefined, ctx)) as JobHandle

    expect(ctx.enqueued).toEqual([
      { task: thumb, input: { at: 3 }, options: { priority: 1, key: 'first' } },
      { task: thumb, input: { at: 4 }, options: { id: 'mine' } },
    ])
    expect(job).toMatchObject({ queue: 'default', outcome: 'added' })
    await expect(job.result()).rejects.toThrow('was enqueued in a test context, which runs no jobs')
    await expect(ctx.enqueue(thumb, { at: '3' as unknown as number })).rejects.toMatchObject({ code: 'job-invalid' })
  })

  it('records for which job of a batch the handler enqueues', async () => {
    const row = defineTask({ name: 'row', run: async (_: number) => {} })
    const rows = defineTask({
      name: 'rows',
      batch: { size: 10 },
      async run(inputs: readonly number[], ctx) {
        for (const [i, n] of inputs.entries()) await ctx.enqueue(row, n, { parent: i })
      },
    })
    const ctx = testContext(rows, { inputs: [7, 8] })
    await rows.run!([7, 8], ctx)

    expect(ctx.enqueued.map(({ input, options }) => [input, options])).toEqual([
      [7, { parent: 0 }],
      [8, { parent: 1 }],
    ])
  })

  it('is aborted by the test, with its reason or that of a stopping worker', async () => {
    const [stopped, timedOut] = [testContext(encode), testContext(encode)]
    stopped.abort()
    timedOut.abort(new Error('too long'))

    expect(stopped.signal.reason).toMatchObject({ code: 'worker-stopped' })
    await expect(encode.run!({ file: '' }, timedOut)).rejects.toThrow('too long')
  })

  it('refuses a checkpoint that a worker would refuse', async () => {
    await expect(testContext(encode).checkpoint('x'.repeat(2_000_000))).rejects.toMatchObject({
      code: 'payload-too-large',
    })
  })
})

describe('the context of an ordered task', () => {
  const sync = defineOrderedTask({
    name: 'sync',
    run(payloadsById: ReadonlyMap<string, readonly number[]>, ctx) {
      for (const [id, payloads] of payloadsById)
        if (payloads.includes(0)) ctx.fail(id, new Error('zero'))
        else ctx.done(id, 1)
      ctx.progress(1)
    },
  })

  it('records failed ids and finished payloads, and knows for which ids more follow', () => {
    const payloadsById = new Map([
      ['a', [1, 2]],
      ['b', [0]],
    ])
    const ctx = testContext(sync, { payloadsById, more: ['b'], attempt: 2 })
    sync.run!(payloadsById, ctx)

    expect([...ctx.failed]).toEqual([['b', new Error('zero')]])
    expect([...ctx.payloadsDone]).toEqual([['a', 1]])
    expect(ctx.progressed).toEqual([{ fraction: 1 }])
    expect([ctx.more('a'), ctx.more('b')]).toEqual([false, true])
    expect(ctx.jobs.get('a')).toMatchObject({ attempt: 2, payloads: [{ score: 0 }, { score: 1 }] })
    expect(() => ctx.fail('c', new Error())).toThrow('no id of this batch')
  })

  it('requires payloads', () => {
    expect(() => testContext(sync, {} as { payloadsById: Map<string, number[]> })).toThrow(
      "testContext() of the ordered task 'sync' needs the payloads",
    )
    expect(() => testContext('sync' as unknown as typeof sync, { payloadsById: new Map() })).toThrow('expects a task')
    const given = { payloadsById: new Map([['a', [1]]]), id: 'a' }
    expect(() => testContext(sync, given as object as { payloadsById: Map<string, number[]> })).toThrow(
      'testContext({ id }) is not an option',
    )
  })
})

const mail = defineTask({ name: 'mail', input: z.object({ to: z.string() }), run: async ({ to }) => ({ sent: to }) })

describe('a handler given by a test', () => {
  const bill = defineTask({ name: 'bill', input: z.object({ of: z.string() }) }).returns<{ paid: boolean }>()
  bill.handle(async () => {
    throw new Error('a test charged a real card')
  })
  const paid = async (answer: boolean) => {
    const mill = testMill({ tasks: [bill, mail], handlers: { bill: async () => ({ paid: answer }) } })
    await mill.enqueue(bill, { of: 'ada' })
    await mill.enqueue(mail, { to: 'ada' })
    return (await mill.drain()).map(({ result }) => result)
  }

  it('replaces the attached one, and can differ in each test', async () => {
    expect(await paid(true)).toEqual([{ paid: true }, { sent: 'ada' }])
    expect(await paid(false)).toEqual([{ paid: false }, { sent: 'ada' }])
    const mill = testMill({ tasks: [bill] })
    await mill.enqueue(bill, { of: 'ada' })
    expect((await mill.drain()).map(({ error }) => String(error))).toEqual(['Error: a test charged a real card'])
  })

  it('runs a task that has none, also an ordered, a batch and an isolated one', async () => {
    const none = defineTask({ name: 'none' }).returns<number>()
    const sync = defineOrderedTask({ name: 'sync', id: (n: number) => n })
    const many = defineTask({ name: 'many', queue: 'many', batch: { size: 2 } }).returns<number>()
    const alone = defineTask({ name: 'alone', queue: 'alone', isolate: 'process' }).returns<number>()
    const seen: unknown[] = []
    const mill = testMill({
      tasks: [none, sync, many, alone],
      handlers: {
        none: () => 1,
        sync: (byId) => void seen.push([...byId]),
        many: async (inputs) => inputs.map((_, i) => i),
        alone: async () => 5,
      },
    })
    await mill.enqueueMany([
      [none, 0],
      [sync, 7],
      [many, 0],
      [many, 0],
      [alone, 0],
    ])

    const ran = await mill.drain()
    expect(ran.map(({ task, result }) => [task, result]).sort()).toEqual([
      ['alone', 5],
      ['many', 0],
      ['many', 1],
      ['none', 1],
      ['sync', undefined],
    ])
    expect(seen).toEqual([[['7', [7]]]])
  })

  it('is refused for an unknown task, and if it is not a function', () => {
    const handlers = { bil: () => {}, mail: 7 } as object
    expect(() => testMill({ tasks: [bill, mail], handlers })).toThrow(
      /handlers\.bil: is no task of this mill; its tasks are bill, mail[\s\S]*handlers\.mail: must be a function/,
    )
  })
})

describe('what a handler needs', () => {
  const greet = defineTask({
    name: 'greet',
    run: async (name: string, { context }: JobContext<{ mailer: { send(to: string): void } }>) =>
      context.mailer.send(name),
  })

  it('is given with the context', async () => {
    const sent: string[] = []
    const ctx = testContext(greet, { context: { mailer: { send: (to) => void sent.push(to) } } })
    await greet.run!('ada', ctx)

    expect(sent).toEqual(['ada'])
  })

  it('is asked for by its name if it is missing', () => {
    const ctx = testContext(defineTask({ name: 'other', run: async () => {} }))

    expect(() => ctx.context).toThrow(
      'a test context is given what its handler finds in ctx.context: { context: { … } }.',
    )
  })
})
