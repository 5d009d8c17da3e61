/** What a handler enqueues by `ctx.enqueue()`: typed, once for each parent, and known by its parent. */

import {
  bury,
  defineOrderedTask,
  defineTask,
  type JobContext,
  type JobRecord,
  type MillOptions,
  snooze,
} from 'millrace'
import { describe, expect, it } from 'vitest'
import { storeKinds, testMill } from '../test-mill.js'

const ship = defineTask({ name: 'ship', queue: 'shipping' })

/** A mill whose parent task does these things, one after the other at each attempt; and a worker that serves its queue alone. */
async function parents(
  kind: (typeof storeKinds)[number],
  runs: readonly ((ctx: JobContext) => unknown)[],
  options: Pick<MillOptions, 'idempotency' | 'queues'> = {},
) {
  let run = 0
  const parent = defineTask({
    name: 'parent',
    retry: { max: 10, backoff: () => 0 },
    run: (_, ctx) => runs[Math.min(run++, runs.length - 1)]!(ctx),
  })
  const mill = testMill({ tasks: [parent, ship], ...options }, kind)
  await mill.worker({ queues: ['default'], concurrency: 1 }).start()
  const children = async (): Promise<JobRecord[]> => (await mill.queue('shipping').jobs.list({ by: 'time' })).jobs
  return { mill, parent, children, runs: () => run }
}

/** Enqueues these, and then fails, or is done. */
const shipping =
  (parcels: readonly unknown[], end: 'fails' | 'completes' = 'completes') =>
  async (ctx: JobContext) => {
    for (const parcel of parcels) await ctx.enqueue(ship, parcel)
    if (end === 'fails') throw new Error('broken')
    return 'done'
  }

describe.each(storeKinds)('a job that a handler enqueues, on %s', (kind) => {
  it('knows its parent, even while that runs, and keeps its own meta separate', async () => {
    const { mill, parent, children } = await parents(kind, [
      (ctx) => ctx.enqueue(ship, { parcel: 1 }, { meta: { traceId: 7 } }).then(() => {}),
      shipping([{ parcel: 2 }]),
    ])
    const first = await mill.enqueue(parent, {}, { id: 'first' })
    await first.result({ timeout: '5s' }).catch(() => {})
    await expect.poll(children).toHaveLength(1)
    const [child] = await children()
    expect(child).toMatchObject({
      parent: { queue: 'default', id: 'first', task: 'parent' },
      meta: { traceId: 7 },
      input: { parcel: 1 },
    })
    expect(child!.id).toMatch(/^[0-9A-Z]{26}$/)

    const claim = await mill.listener('shipping').next()
    expect([claim!.meta, claim!.parent]).toEqual([{ traceId: 7 }, { queue: 'default', id: 'first', task: 'parent' }])
    await claim!.complete()
    await mill.enqueue(parent, {}, { id: 'second' })
    await expect.poll(children).toHaveLength(1)
    expect((await children())[0]).not.toHaveProperty('meta')
  })

  it('is enqueued once, however often the parent fails between its calls', async () => {
    const { mill, parent, children } = await parents(kind, [
      shipping([1], 'fails'),
      shipping([1, 2], 'fails'),
      shipping([1, 2, 3]),
    ])
    const job = await mill.enqueue(parent, {})

    expect(await job.result({ timeout: '5s' })).toBe('done')
    expect((await children()).map(({ input }) => input).sort()).toEqual([1, 2, 3])
  })

  it('is identified by its input, so that reordered or new calls lose none', async () => {
    const { mill, parent, children } = await parents(kind, [shipping(['a', 'b'], 'fails'), shipping(['new', 'b', 'a'])])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect((await children()).map(({ input }) => input).sort()).toEqual(['a', 'b', 'new'])
  })

  it('exists twice if one run asks for the same twice, and stays twice', async () => {
    const outcomes: unknown[] = []
    const { mill, parent, children } = await parents(kind, [
      async (ctx) => {
        for (const delay of ['1m', '2m'] as const)
          outcomes.push((await ctx.enqueue(ship, 'reminder', { delay })).outcome)
        if (ctx.job.attempt === 1) throw new Error('broken')
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(await children()).toHaveLength(2)
    expect(outcomes).toEqual(['added', 'added', 'duplicate', 'duplicate'])
  })

  it('exists once for each key, whatever the input', async () => {
    const { mill, parent, children } = await parents(kind, [
      async (ctx) => {
        await ctx.enqueue(ship, Math.random(), { key: 'label' })
        if (ctx.job.attempt === 1) throw new Error('broken')
        await ctx.enqueueMany(ship, ['a', 'b'], (_, i) => ({ key: i }))
        await ctx.enqueueMany([[ship, 'c', { key: 'label' }], [ship, 'd'], [ship]])
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(await children()).toHaveLength(5)
  })

  it('is not enqueued again by a parent that is put back, or revived from the morgue', async () => {
    const ends = [snooze(1), bury('as told'), 'done']
    const { mill, parent, children } = await parents(kind, [
      async (ctx) => {
        await ctx.enqueue(ship, 1)
        await ctx.enqueueMany(ship, [2, 3])
        return ends.shift()
      },
    ])
    const job = await mill.enqueue(parent, {}, { id: 'nightly' })
    await expect.poll(() => job.status()).toBe('dead')
    await mill.queue('default').morgue.revive(['nightly'])

    expect(await job.result({ timeout: '5s' })).toBe('done')
    expect(ends).toEqual([])
    expect(await children()).toHaveLength(3)
  })

  it('is enqueued again by a later job with the same id', async () => {
    const { mill, parent, children, runs } = await parents(kind, [shipping([1])], { idempotency: '1ms' })
    await (await mill.enqueue(parent, {}, { id: 'nightly' })).result({ timeout: '5s' })
    await expect.poll(async () => (await mill.enqueue(parent, {}, { id: 'nightly' })).outcome).toBe('added')

    await expect.poll(children).toHaveLength(2)
    expect(runs()).toBe(2)
  })

  it('is a job of its own if a later run gives its call another id', async () => {
    const outcomes: unknown[] = []
    const { mill, parent } = await parents(kind, [
      async (ctx) => {
        const id = `report-${ctx.job.attempt}`
        const [many] = await ctx.enqueueMany(ship, [2], () => ({ id: `many-${id}` }))
        outcomes.push((await ctx.enqueue(ship, 1, { id })).outcome, many!.outcome)
        if (ctx.job.attempt === 1) throw new Error('broken')
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(outcomes).toEqual(['added', 'added', 'added', 'added'])
    for (const id of ['report-1', 'report-2', 'many-report-1', 'many-report-2'])
      expect(await mill.job(ship, id).status()).toBe('ready')
  })

  it('is in each queue that its calls name, in whichever order they come', async () => {
    const into = (queues: readonly string[]) => async (ctx: JobContext) => {
      for (const queue of queues) await ctx.enqueue(ship, 1, { queue })
      if (queues.length === 1) throw new Error('broken')
    }
    const runs = [into(['shipping']), into(['returns', 'shipping'])]
    const { mill, parent } = await parents(kind, runs, { queues: { returns: {} } })
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    for (const queue of ['returns', 'shipping'])
      expect((await mill.queue(queue).jobs.list({ by: 'time' })).jobs.map(({ input }) => input)).toEqual([1])
  })

  it('has the id from its options, if they give one', async () => {
    const { mill, parent } = await parents(kind, [(ctx) => ctx.enqueue(ship, 1, { id: 'mine' }).then(() => {})])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(await mill.job(ship, 'mine').record()).toMatchObject({ parent: { task: 'parent' } })
  })
})

describe('a job that a handler enqueues', () => {
  it('passes through the middleware of the mill, which sees its parent', async () => {
    const seen: unknown[] = []
    const parent = defineTask({ name: 'parent', run: async (_, ctx) => void (await ctx.enqueueMany(ship, [1, 2])) })
    const mill = testMill({
      tasks: [parent, ship],
      middleware: [
        {
          async enqueue(items, next) {
            for (const { origin } of items) seen.push(origin?.parent?.task)
            await next()
          },
        },
      ],
    })
    await mill.worker({ queues: ['default'] }).start()
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    expect(seen).toEqual([undefined, 'parent', 'parent'])
  })

  it('is refused once the run is over, with the reason of its signal or by name', async () => {
    const caught: unknown[] = []
    let late: Promise<unknown> = Promise.resolve()
    const { mill, parent } = await parents('memory', [
      (ctx) => {
        late = new Promise<void>((resolve) => setImmediate(resolve)).then(() => ctx.enqueue(ship, 1))
        late.catch(() => {})
      },
      async (ctx) => {
        await new Promise((resolve) => ctx.signal.addEventListener('abort', resolve))
        caught.push(await ctx.enqueue(ship, 1).catch((error: Error) => error === ctx.signal.reason && error.name))
      },
    ])
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })
    await expect(late).rejects.toMatchObject({ code: 'argument-invalid', message: /ctx\.enqueue\(\) was called when/ })

    const job = await mill.enqueue(parent, {})
    await expect.poll(() => job.status()).toBe('running')
    await job.cancel()
    await expect.poll(() => caught, { timeout: 15_000 }).toEqual(['JobCancelledError'])
  })

  it('is refused with the mistake: an invalid task, an invalid key, a key with an id', async () => {
    const { mill, parent, children } = await parents('memory', [
      async (ctx) => {
        const messages: string[] = []
        for (const call of [
          () => ctx.enqueue(undefined as never, 1 as never),
          () => ctx.enqueue(ship, 1, { key: '' }),
          () => ctx.enqueue(ship, 1, { key: 'a', id: 'b' }),
          () => ctx.enqueue(ship, () => {}),
          () => ctx.enqueue(ship, 1, JSON.parse('{ "parent": "a" }')),
        ])
          await call().catch((error: Error) => messages.push(error.message))
        return messages
      },
    ])
    const messages = (await (await mill.enqueue(parent, {})).result({ timeout: '5s' })) as string[]

    expect(messages).toEqual([
      expect.stringContaining('ctx.enqueue() expects a task'),
      expect.stringContaining('key must be 1 to 256 bytes'),
      expect.stringContaining('give id or key, not both'),
      expect.stringContaining("the input of a job of task 'ship' cannot be encoded"),
      expect.stringContaining("'parent' is not an option of enqueue"),
    ])
    expect(await children()).toEqual([])
  })

  it('may not have the meta key under which the origin is stored', async () => {
    const mill = testMill({ tasks: [ship] })

    await expect(mill.enqueue(ship, 1, { meta: { 'millrace:origin': 7 } })).rejects.toMatchObject({
      code: 'job-invalid',
      message: /meta must have no key 'millrace:origin'/,
    })
  })
})

describe.each(storeKinds)('payloads that a handler enqueues, on %s', (kind) => {
  it('are added once each even if its runs repeat, and equal ones are kept', async () => {
    const sync = defineOrderedTask({ name: 'sync', merge: 'all' })
    let runs = 0
    const parent = defineOrderedTask({
      name: 'parent',
      retry: { max: 1, backoff: () => 0 },
      async run(_, ctx) {
        for (let i = 0; i < 2; i += 1) await ctx.enqueue(sync, 'sold', { id: 'cup' })
        await ctx.enqueueMany(sync, ['sold', 'sold'], () => ({ id: 'pot' }))
        runs += 1
        if (runs === 1) throw new Error('broken')
      },
    })
    const mill = testMill({ tasks: [parent, sync] }, kind)
    await mill.enqueue(parent, {}, { id: 'a' })
    await mill.worker({ queues: ['parent'] }).start()
    await expect.poll(() => runs).toBe(2)
    const sets = await Promise.all(['cup', 'pot'].map((id) => mill.queue('sync').jobs.get(id)))
    expect(sets.map((job) => job!.payloadCount)).toEqual([2, 2])
  })
})

describe('a job that the handler of an ordered task enqueues', () => {
  const ordered = (batchSize: number, run: Parameters<typeof defineOrderedTask>[0]['run']) =>
    defineOrderedTask({ name: 'sync', batchSize, id: () => 'order', retry: { max: 5, backoff: () => 0 }, run: run! })

  it('belongs to the id it names, and is new if that has other payloads', async () => {
    let runs = 0
    const sync = ordered(10, async (payloadsById, ctx) => {
      runs += 1
      for (const [id, payloads] of payloadsById) {
        await ctx.enqueue(ship, 'same', { parent: id })
        await ctx.enqueueMany(ship, payloads, (payload) => ({ parent: id, key: `rev-${payload}` }))
      }
      if (runs === 1) {
        await mill.enqueue(sync, 2)
        throw new Error('broken')
      }
    })
    const mill = testMill({ tasks: [sync, ship] })
    await mill.worker({ queues: ['sync'] }).start()
    await (await mill.enqueue(sync, 1)).result({ timeout: '5s' })

    const { jobs } = await mill.queue('shipping').jobs.list({ by: 'time' })
    expect(jobs.map(({ input }) => input).sort()).toEqual([1, 2, 'same', 'same'])
    expect(jobs[0]).toMatchObject({ parent: { queue: 'sync', id: 'order', task: 'sync' } })
  })

  it('needs a parent if a run may have several ids, and one in the batch', async () => {
    const errors: unknown[] = []
    const sync = ordered(2, async (_, ctx) => {
      await ctx.enqueue(ship, 1).catch((error: Error) => errors.push(error.message))
      await ctx.enqueue(ship, 1, { parent: 'other' }).catch((error: Error) => errors.push(error.message))
    })
    const mill = testMill({ tasks: [sync, ship] })
    await mill.worker({ queues: ['sync'] }).start()
    await (await mill.enqueue(sync, 1)).result({ timeout: '5s' })

    expect(errors).toEqual([
      expect.stringContaining('needs `parent` in a batch'),
      expect.stringContaining('ctx.enqueue() was given "other", which is no id of this batch'),
    ])
  })

  it('has the only id of the run as its parent if a run has just one', async () => {
    const sync = ordered(1, (_, ctx) => ctx.enqueue(ship, 1))
    const mill = testMill({ tasks: [sync, ship] })
    await mill.worker({ queues: ['sync'] }).start()
    await (await mill.enqueue(sync, 1)).result({ timeout: '5s' })

    expect((await mill.queue('shipping').jobs.list({ by: 'time' })).jobs[0]!.parent!.id).toBe('order')
  })
})

it('a payload that a handler enqueues knows its parent, in its record and in the batch', async () => {
  const parents: unknown[] = []
  const sync = defineOrderedTask({
    name: 'sync',
    id: () => 'order',
    run: (_, ctx) =>
      void parents.push(...ctx.jobs.get('order')!.payloads.map(({ parent, meta }) => [parent?.id, meta])),
  })
  const parent = defineTask({
    name: 'parent',
    run: async (_, ctx) => {
      await ctx.enqueue(sync, 1, { meta: { traceId: 1 } })
      await ctx.enqueue(sync, 2)
    },
  })
  const mill = testMill({ tasks: [parent, sync] })
  await mill.worker({ queues: ['default'] }).start()
  await (await mill.enqueue(parent, {}, { id: 'p' })).result({ timeout: '5s' })

  const record = await mill.job(sync, 'order').record()
  expect(record!.payloads).toMatchObject([{ parent: { id: 'p' }, meta: { traceId: 1 } }, { parent: { id: 'p' } }])
  expect(record!.payloads![1]).not.toHaveProperty('meta')
  await mill.worker({ queues: ['sync'] }).start()
  await expect
    .poll(() => parents)
    .toEqual([
      ['p', { traceId: 1 }],
      ['p', {}],
    ])
})

describe('a finished call to enqueue', () => {
  let delivered: unknown[] = []
  const letter = defineOrderedTask({
    name: 'letter',
    id: () => 'box',
    run: (payloadsById) => void delivered.push(...[...payloadsById.values()].flat()),
  })

  /** A parent that enqueues a payload and fails when it was delivered; then goes on as `again` says. */
  async function delivering(
    again: (ctx: JobContext) => Promise<unknown>,
    calls: (ctx: JobContext) => Promise<unknown>,
  ) {
    const deliveries: unknown[] = []
    delivered = deliveries
    const parent = defineTask({
      name: 'parent',
      retry: { max: 5, backoff: () => 0 },
      run: async (_, ctx) => {
        const outcome = await calls(ctx)
        if (ctx.job.attempt > 1) return { outcome, more: await again(ctx) }
        await expect.poll(() => deliveries.length).toBeGreaterThan(0)
        throw new Error('broken')
      },
    })
    const mill = testMill({ tasks: [parent, letter] })
    await mill.worker().start()
    const job = await mill.enqueue(parent, {})
    return { deliveries, job, mill }
  }

  it('is not repeated by a later attempt, even if its payload was delivered long ago', async () => {
    const { job, deliveries } = await delivering(
      async (ctx) => (await ctx.enqueue(letter, 'second')).outcome,
      async (ctx) => (await ctx.enqueue(letter, 'first')).outcome,
    )

    expect(await job.result({ timeout: '5s' })).toEqual({ outcome: 'duplicate', more: 'added' })
    await expect.poll(() => deliveries).toEqual(['first', 'second'])
  })

  it('is not repeated if it had many jobs either', async () => {
    const { job, deliveries } = await delivering(
      async () => 'nothing',
      async (ctx) => (await ctx.enqueueMany(letter, [1, 2])).map(({ outcome }) => outcome),
    )

    expect(await job.result({ timeout: '5s' })).toMatchObject({ outcome: ['duplicate', 'duplicate'] })
    expect(deliveries).toEqual([1, 2])
  })

  it('is another call for each id, even if all have the same payload', async () => {
    const sync = defineOrderedTask({ name: 'sync' })
    const parent = defineTask({
      name: 'parent',
      retry: { max: 1, backoff: () => 0 },
      async run(_, ctx) {
        for (const id of ctx.job.attempt === 1 ? ['a', 'b', 'c'] : ['b', 'c', 'd'])
          await ctx.enqueue(sync, { why: 'changed' }, { id })
        if (ctx.job.attempt === 1) throw new Error('broken')
      },
    })
    const mill = testMill({ tasks: [parent, sync] })
    await mill.worker({ queues: ['default'] }).start()
    await (await mill.enqueue(parent, {})).result({ timeout: '5s' })

    const sets = await Promise.all(['a', 'b', 'c', 'd'].map((id) => mill.queue('sync').jobs.get(id)))
    expect(sets.map((job) => job?.payloadCount)).toEqual([1, 1, 1, 1])
  })

  it("is stored with the handler's checkpoint, which is unchanged", async () => {
    const found: unknown[] = []
    const { job, mill } = await delivering(
      async (ctx) => {
        found.push(ctx.lastCheckpoint, (await mill.queue('default').jobs.get(ctx.job.id))?.checkpoint)
        await ctx.checkpoint('two')
        if (ctx.job.attempt === 2) throw new Error('broken')
        return 'done'
      },
      async (ctx) => {
        if (ctx.job.attempt === 1) await ctx.checkpoint('one')
        return (await ctx.enqueue(letter, 'first')).outcome
      },
    )

    expect(await job.result({ timeout: '5s' })).toEqual({ outcome: 'duplicate', more: 'done' })
    expect(found).toEqual(['one', 'one', 'two', 'two'])
  })
})
