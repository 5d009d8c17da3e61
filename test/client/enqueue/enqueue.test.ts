import { defineTask, type Middleware } from 'millrace'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { EnqueueManyError, QueueFullError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

const email = defineTask({ name: 'email', input: z.object({ to: z.string() }) })
const note = defineTask({ name: 'note', queue: 'notes' })

const options = { tasks: [email, note], queues: { small: { maxPending: 3 } } }

describe.each(storeKinds)('enqueue, on %s', (kind) => {
  it('stores the job with all of its options', async () => {
    const m = testMill(options, kind)
    const runAt = new Date(Date.now() + 60_000)
    const job = await m.enqueue(
      email,
      { to: 'a' },
      { id: 'a-1', runAt, priority: 7, meta: { from: new Set([1]) }, queue: 'notes' },
    )

    expect(job).toMatchObject({ id: 'a-1', queue: 'notes', outcome: 'added' })
    expect(await job.record()).toMatchObject({
      id: 'a-1',
      task: 'email',
      queue: 'notes',
      state: 'scheduled',
      input: { to: 'a' },
      meta: { from: new Set([1]) },
      priority: 7,
      attempt: 1,
      crashes: 0,
      runAt,
    })
  })

  it('takes ISO-8601 text with a zone as runAt, and a delay from now', async () => {
    const m = testMill(options, kind)
    const job = await m.enqueue(email, { to: 'a' }, { runAt: '2199-12-24T18:00:00+01:00' })
    expect((await job.record())?.runAt).toEqual(new Date('2199-12-24T17:00:00Z'))

    const delayed = (await (await m.enqueue(email, { to: 'a' }, { delay: '1h' })).record())!
    expect(delayed.runAt.getTime() - delayed.createdAt.getTime()).toBe(3_600_000)
  })

  it("answers 'duplicate' if the id is live, and stores nothing", async () => {
    const m = testMill(options, kind)
    await m.enqueue(email, { to: 'first' }, { id: 'same' })
    const again = await m.enqueue(email, { to: 'second' }, { id: 'same' })

    expect(again.outcome).toBe('duplicate')
    expect((await again.record())?.input).toEqual({ to: 'first' })
    expect(await m.queue('default').depth()).toMatchObject({ ready: 1 })
  })

  it('replaces a waiting job with the same id on request, and says so', async () => {
    const m = testMill(options, kind)
    const told: string[] = []
    m.on('job.enqueued', ({ outcome }) => told.push(outcome))
    await m.enqueue(email, { to: 'first' }, { id: 'same' })
    const kept = await m.enqueue(email, { to: 'second' }, { id: 'same', ifWaiting: 'keep' })
    const again = await m.enqueue(email, { to: 'third' }, { id: 'same', delay: '5s', ifWaiting: 'replace' })

    expect([kept.outcome, again.outcome]).toEqual(['duplicate', 'replaced'])
    expect(told).toEqual(['added', 'duplicate', 'replaced'])
    expect(await again.record()).toMatchObject({ state: 'scheduled', input: { to: 'third' } })
  })

  it('remembers an id after its job has completed, even if no result is kept', async () => {
    const m = testMill({ ...options, tasks: [email, defineTask({ name: 'quick', run: async () => {} })] }, kind)
    const job = await m.enqueue(m.tasks.get('quick')!, 1, { id: 'once' })
    const result = job.result({ timeout: '5s' })
    await m.worker().start()
    await result

    expect(await job.status()).toBe('completed')
    expect((await m.enqueue(m.tasks.get('quick')!, 1, { id: 'once' })).outcome).toBe('duplicate')
  })

  it("forgets an id enqueued with ifWaiting: 'replace' when its job ends: the next enqueue adds a job", async () => {
    const quick = defineTask({ name: 'quick', run: async (text: string) => text })
    const m = testMill({ ...options, tasks: [email, quick] }, kind)
    await m.worker().start()
    const enqueue = (text: string) => m.enqueue(quick, text, { id: 'digest', ifWaiting: 'replace' })
    const job = await enqueue('first')
    await job.result({ timeout: '5s' })

    await expect.poll(async () => (await enqueue('second')).outcome, { timeout: 1_000 }).toBe('added')
  })

  it('refuses an undeclared task, which its own workers could never run', async () => {
    const stray = defineTask({ name: 'stray' })
    const m = testMill(options, kind)

    await expect(m.enqueue(stray, 1)).rejects.toMatchObject({
      code: 'task-unknown',
      message: expect.stringContaining("task 'stray' is not declared"),
    })
    await expect(m.enqueueMany(stray, [1, 2])).rejects.toMatchObject({
      code: 'enqueue-many-refused',
      results: [{ error: { code: 'task-unknown' } }, { error: { code: 'task-unknown' } }],
    })
    expect(await m.queue('notes').depth()).toMatchObject({ ready: 0 })
  })

  it('accepts a task that is known under another definition, under a former name, or only elsewhere', async () => {
    const renamed = defineTask({ name: 'new-name', aliases: ['old-name'] })
    const m = testMill({ tasks: [email, renamed], tasksElsewhere: ['elsewhere'] }, kind)
    for (const name of ['email', 'old-name', 'elsewhere'])
      expect((await m.enqueue(defineTask({ name }), { to: 'a' })).outcome).toBe('added')
  })

  it('shares one call to the store with all others in the same tick', async () => {
    const store = new MemoryStore()
    const sizes: number[] = []
    const enqueue = store.enqueue.bind(store)
    store.enqueue = (calls) => {
      sizes.push(calls.length)
      return enqueue(calls)
    }
    const m = testMillOn(store, { tasks: [email] })
    await Promise.all(Array.from({ length: 1_000 }, () => m.enqueue(email, { to: 'a' })))

    expect(sizes).toEqual([1_000])
  })

  it('gives every call a different id, even if the job ids are equal', async () => {
    const store = new MemoryStore()
    const callIds: string[] = []
    const enqueue = store.enqueue.bind(store)
    store.enqueue = (calls) => {
      callIds.push(...calls.map(({ callId }) => callId))
      return enqueue(calls)
    }
    const m = testMillOn(store, { tasks: [note] })
    const made = await m.enqueue(note, 1)
    const again = await Promise.all([m.enqueue(note, 1, { id: made.id }), m.enqueue(note, 1, { id: made.id })])
    await m.enqueueMany(note, [1, 2])

    expect(again.map(({ outcome }) => outcome)).toEqual(['duplicate', 'duplicate'])
    expect(new Set(callIds).size).toBe(4)
  })

  it('tells the store for each call whether all of its job ids are new', async () => {
    const store = new MemoryStore()
    const told: unknown[] = []
    const enqueue = store.enqueue.bind(store)
    store.enqueue = (calls) => {
      told.push(...calls.map(({ jobs, hasNewIds }) => [jobs.length, hasNewIds]))
      return enqueue(calls)
    }
    const m = testMillOn(store, { tasks: [note] })
    await m.enqueue(note, 1)
    await m.enqueue(note, 1, { id: 'own' })
    await m.enqueueMany(note, [1, 2])
    await m.enqueueMany([
      [note, 1],
      [note, 2, { id: 'another' }],
      [note, 3],
    ])

    expect(told).toEqual([
      [1, true],
      [1, false],
      [2, true],
      [3, false],
    ])
  })

  it('refuses the one call that exceeds maxPending, and not the earlier ones', async () => {
    const m = testMill(options, kind)
    const jobs = await Promise.allSettled(Array.from({ length: 5 }, () => m.enqueue(note, 1, { queue: 'small' })))

    expect(jobs.map(({ status }) => status)).toEqual(['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'rejected'])
    expect((jobs[4] as PromiseRejectedResult).reason).toBeInstanceOf(QueueFullError)
    expect(await m.queue('small').depth()).toMatchObject({ ready: 3 })
  })

  it('goes through its middleware, which may change items and refuse them', async () => {
    const stamped: Middleware = {
      async enqueue(items, next) {
        for (const item of items) item.options = { ...item.options, meta: { ...item.options.meta, stamped: true } }
        await next()
      },
    }
    const strict: Middleware = {
      async enqueue(items, next) {
        if (items.some(({ input }) => (input as { to: string }).to === 'nobody'))
          throw new Error('nobody is no address')
        await next()
      },
    }
    const m = testMill({ ...options, middleware: [stamped, strict] }, kind)

    expect((await (await m.enqueue(email, { to: 'a' })).record())?.meta).toEqual({ stamped: true })
    await expect(m.enqueue(email, { to: 'nobody' })).rejects.toThrow('nobody is no address')
    expect(await m.queue('default').depth()).toMatchObject({ ready: 1 })
  })
})

describe.each(storeKinds)('enqueueMany, on %s', (kind) => {
  it('gives each job its own options, in order', async () => {
    const m = testMill(options, kind)
    const jobs = await m.enqueueMany(note, ['a', 'b', 'c'], (input, i) => ({ id: `${input}${i}`, priority: i }))

    expect(jobs.map(({ id }) => id)).toEqual(['a0', 'b1', 'c2'])
    expect((await m.queue('notes').jobs.list({ state: 'ready' })).jobs.map(({ input }) => input)).toEqual([
      'c',
      'b',
      'a',
    ])
  })

  it('stores nothing if one of the inputs is wrong, and names every wrong one', async () => {
    const m = testMill(options, kind)
    const wrong = [{ to: 'a' }, { to: 1 }, { to: 'b' }, {}] as { to: string }[]
    const error = await m.enqueueMany(email, wrong).catch((thrown) => thrown)

    expect(error).toBeInstanceOf(EnqueueManyError)
    expect(error.message).toMatch(/2 of 4 jobs are not valid; nothing was stored[\s\S]*job 1:[\s\S]*job 3:/)
    expect(await m.queue('default').depth()).toMatchObject({ ready: 0 })
  })

  it('starts validating all inputs before it waits for the first', async () => {
    let asked = 0
    let answer = () => {}
    const answered = new Promise<void>((resolve) => {
      answer = resolve
    })
    const known = z.number().refine(async () => {
      asked += 1
      if (asked === 3) answer()
      await answered
      return true
    })
    const m = testMill({ tasks: [defineTask({ name: 'known', input: known })] }, kind)

    expect(await m.enqueueMany(m.tasks.get('known')!, [1, 2, 3])).toHaveLength(3)
  })

  it('reports the outcome of each job if the queue was full', async () => {
    const m = testMill(options, kind)
    const error = await m
      .enqueueMany(note, ['a', 'b', 'c', 'd'], (_, i) => ({ queue: i < 1 ? 'notes' : i < 3 ? 'small' : 'notes' }))
      .then(() => m.enqueueMany(note, ['e', 'f', 'g'], (_, i) => ({ queue: i < 1 ? 'notes' : 'small' })))
      .catch((thrown) => thrown)

    expect(error).toBeInstanceOf(EnqueueManyError)
    expect(error.results.map((result: object) => Object.keys(result)[0])).toEqual(['job', 'error', 'error'])
    expect(await m.queue('notes').depth()).toMatchObject({ ready: 3 })
  })

  it('accepts 10,000 jobs at once and an empty list', async () => {
    const m = testMill(options, kind)
    expect(await m.enqueueMany(note, [])).toEqual([])
    expect(
      await m.enqueueMany(
        note,
        Array.from({ length: 10_000 }, (_, i) => i),
      ),
    ).toHaveLength(10_000)
    expect(await m.queue('notes').depth()).toMatchObject({ ready: 10_000 })
  })
})

describe.each(storeKinds)('an id of its own, on %s', (kind) => {
  it('cannot be enqueued by the job that has it; the error names snooze()', async () => {
    const errors: unknown[] = []
    const poll = defineTask({
      name: 'poll',
      async run(way: string, ctx): Promise<void> {
        const options = { id: ctx.job.id, ...(way === 'replace' && { ifWaiting: 'replace' as const }) }
        const call = way === 'many' ? ctx.enqueueMany([[poll, way, options]]) : ctx.enqueue(poll, way, options)
        await Promise.resolve(call).catch((error) => errors.push(error))
      },
    })
    const m = testMill({ tasks: [poll], queues: { other: {} } }, kind)
    const jobs = await m.enqueueMany(poll, ['plain', 'replace', 'many'], (way) => ({ id: way }))
    const ended = m.results(jobs, { timeout: '5s' })
    await m.worker().start()
    await ended

    expect(errors).toHaveLength(3)
    for (const error of errors) expect((error as Error).message).toMatch(/its own id '\w+'.*Return snooze\('1m'\)/s)
  })

  it('is free in another queue, and for the children of another job', async () => {
    const outcomes: unknown[] = []
    const next = defineTask({ name: 'next', queue: 'other' })
    const first = defineTask({
      name: 'first',
      async run(_: number, ctx) {
        outcomes.push((await ctx.enqueue(next, 1, { id: ctx.job.id })).outcome)
      },
    })
    const m = testMill({ tasks: [first, next] }, kind)
    const ended = (await m.enqueue(first, 1, { id: 'same' })).result({ timeout: '5s' })
    await m.worker({ queues: ['default'] }).start()
    await ended

    expect(outcomes).toEqual(['added'])
  })

  it('is remembered for as long as the enqueue says, or else the task, or else the mill', async () => {
    const quick = defineTask({ name: 'quick', run: async () => {} })
    const crawl = defineTask({ name: 'crawl', idempotency: 0, run: async () => {} })
    const m = testMill({ tasks: [quick, crawl], idempotency: '1h' }, kind)
    await m.worker().start()
    const again = async (task: typeof quick, id: string, idempotency?: 0 | '1h') => {
      const options = { id, ...(idempotency !== undefined && { idempotency }) }
      const job = await m.enqueue(task, undefined, options)
      await job.result({ timeout: '5s' }).catch(() => {})
      await expect.poll(() => m.queue('default').depth()).toMatchObject({ running: 0 })
      return (await m.enqueue(task, undefined, options)).outcome
    }

    expect(await again(quick, 'of the mill')).toBe('duplicate')
    await expect.poll(() => again(crawl as never, 'of the task')).toBe('added')
    expect(await again(crawl as never, 'of the enqueue', '1h')).toBe('duplicate')
    await expect.poll(() => again(quick, 'not at all', 0)).toBe('added')
  })

  it('of a replacing job leads to other ids for its children', async () => {
    const outcomes: unknown[] = []
    const mail = defineTask({ name: 'mail', queue: 'mails' })
    const digest = defineTask({
      name: 'digest',
      retry: { max: 3, backoff: () => 3_600_000 },
      async run(revision: number, ctx) {
        outcomes.push((await ctx.enqueue(mail, { to: 'ada' })).outcome)
        if (revision === 1) throw new Error('after it enqueued')
      },
    })
    const m = testMill({ tasks: [digest, mail] }, kind)
    await m.worker({ queues: ['default'] }).start()
    const failed = new Promise((resolve) => m.on('job.failed', resolve))
    await m.enqueue(digest, 1, { id: 'digest-ada' })
    await failed
    const second = await m.enqueue(digest, 2, { id: 'digest-ada', ifWaiting: 'replace' })
    await second.result({ timeout: '5s' })

    expect(outcomes).toEqual(['added', 'added'])
  })

  it('of a job that runs again leads to the same ids for its children', async () => {
    const outcomes: unknown[] = []
    const mail = defineTask({ name: 'mail', queue: 'mails' })
    const digest = defineTask({
      name: 'digest',
      retry: { max: 3, backoff: () => 0 },
      async run(_: number, ctx) {
        outcomes.push((await ctx.enqueue(mail, { to: 'ada' })).outcome)
        if (outcomes.length === 1) throw new Error('after it enqueued')
      },
    })
    const m = testMill({ tasks: [digest, mail] }, kind)
    await m.worker({ queues: ['default'] }).start()
    const job = await m.enqueue(digest, 2, { id: 'digest-ada', ifWaiting: 'replace' })
    await job.result({ timeout: '5s' })

    expect(outcomes).toEqual(['added', 'duplicate'])
  })
})
