import { defineOrderedTask, defineTask, exponential, type Mill } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent } from '../../next-event.js'
import { storeKinds, testMill } from '../../test-mill.js'
import { listenerOn } from '../../workers/listener/listener-scene.js'

const invalid = (message: RegExp) => ({ code: 'argument-invalid', message: expect.stringMatching(message) })

describe.each(storeKinds)('the fields of a job, on %s', (kind) => {
  it('are set by a handle, and shown in records and lists', async () => {
    const task = defineTask({ name: 'encode' })
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, 1, { id: 'a' })

    expect(await m.job('a').fields.set({ node: 'eu-3', cost: 0.25, paid: false })).toBe(true)
    expect(await m.job(task, 'a').fields.set({ cost: null, paid: true })).toBe(true)

    const fields = { node: 'eu-3', paid: true }
    expect((await m.job('a').record())?.fields).toEqual(fields)
    expect((await m.queue('default').jobs.list()).jobs[0]?.fields).toEqual(fields)
    expect(await m.job('nobody').fields.set({ node: 'eu-3' })).toBe(false)
    expect(await m.queue('default').jobs.setFields('nobody', { node: 'eu-3' })).toBe(false)
  })

  it('are set by a handler, and kept for later attempts', async () => {
    const task = defineTask({
      name: 'encode',
      retry: { max: 1, backoff: exponential({ base: 1, max: 1 }) },
      async run(_, ctx) {
        await ctx.fields.set({ [`attempt-${ctx.job.attempt}`]: 'begun' })
        if (ctx.job.attempt === 1) throw new Error('once more')
        return 'done'
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    const done = nextEvent(m, 'job.completed')
    await m.worker().start()
    await done

    expect((await job.record())?.fields).toEqual({ 'attempt-1': 'begun', 'attempt-2': 'begun' })
  })

  it('are read by a handler, also those that others have set, and by a handle', async () => {
    const seen: unknown[] = []
    const task = defineTask({
      name: 'encode',
      async run(_, ctx) {
        seen.push(await ctx.fields.get())
        await ctx.fields.set({ cost: 1 })
        seen.push(await ctx.fields.get())
      },
    })
    const m = testMill({ tasks: [task] }, kind)
    await m.enqueue(task, 1, { id: 'plain' })
    expect(await m.job('plain').fields.get()).toEqual({})
    await m.job('plain').fields.set({ node: 'eu-3' })
    const done = nextEvent(m, 'job.completed')
    await m.worker().start()
    await done

    expect(seen).toEqual([{ node: 'eu-3' }, { node: 'eu-3', cost: 1 }])
    expect(await m.job('nobody').fields.get()).toEqual({})
  })

  it("are set by a listener's claim", async () => {
    const task = defineTask({ name: 'encode', queue: 'video' })
    const m = testMill({ tasks: [task], queues: { video: {} } }, kind)
    const job = await m.enqueue(task, 1)
    const claim = await listenerOn(m).next()

    expect(await claim.fields.set({ node: 'eu-3' })).toBe(true)
    expect((await job.record())?.fields).toEqual({ node: 'eu-3' })
    await claim.complete()
    expect(await claim.fields.set({ node: 'eu-4' })).toBe(false)
  })

  it('are refused if there are too many, and none is changed', async () => {
    const task = defineTask({ name: 'encode' })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)
    const many = Object.fromEntries(Array.from({ length: 33 }, (_, i) => [`n${i}`, i]))

    await expect(job.fields.set(many)).rejects.toMatchObject(
      invalid(/would have more than 32 fields, or more than 4096/),
    )
    expect((await job.record())?.fields).toBeUndefined()
  })

  it.each<[string, unknown, RegExp]>([
    ['no object', 5, /fields must be an object of names and values; got 5/],
    ['a list', ['node'], /fields must be an object/],
    ['a name with a space', { 'a b': 1 }, /the name of a field must be 1 to 64 of .*; got "a b"/],
    ['an empty name', { '': 1 }, /the name of a field/],
    ['a name of 65 letters', { ['n'.repeat(65)]: 1 }, /the name of a field/],
    ['a name that pollutes', JSON.parse('{"__proto__":1}'), /the name of a field/],
    [
      'an object as value',
      { node: {} },
      /field 'node' must be a text, a finite number or a boolean of at most 256 bytes/,
    ],
    ['NaN', { cost: Number.NaN }, /field 'cost' must be .*; got NaN/],
    ['undefined', { node: undefined }, /field 'node' must be .* or null, which takes it out; got undefined/],
    ['a long text', { node: 'é'.repeat(128) }, /at most 256 bytes as JSON/],
  ])('are refused as %s', async (_, fields, message) => {
    const task = defineTask({ name: 'encode' })
    const m = testMill({ tasks: [task] }, kind)
    const job = await m.enqueue(task, 1)

    await expect(job.fields.set(fields as never)).rejects.toMatchObject(invalid(message))
  })
})

describe.each(storeKinds)('the fields of an enqueue, on %s', (kind) => {
  const encode = defineTask({ name: 'encode' })
  const both = defineTask({ name: 'both', joins: { one: encode } })
  const parent = defineTask({
    name: 'parent',
    queue: 'parents',
    run: async (_, ctx) => void (await ctx.enqueue(encode, 1, { fields: { from: 'parent' } })),
  })
  const tasks = [encode, both, parent]
  const fieldsIn = async (m: Mill) =>
    (await m.queue('default').jobs.list({ by: 'time' })).jobs.map(({ fields }) => fields)

  it('belong to the job from the beginning, however it is enqueued', async () => {
    const m = testMill({ tasks }, kind)
    await m.enqueue(encode, 1, { fields: { order: '4711', paid: false } })
    await m.enqueueNamed('encode', 1, { fields: { order: '4712' } })
    await m.enqueueMany(encode, [1, 2], (_, n) => ({ fields: { n } }))
    await m.enqueueMany([
      [encode, 1, { fields: { first: true } }],
      [encode, 1, { fields: {} }],
    ])

    const all = [{ order: '4711', paid: false }, { order: '4712' }, { n: 0 }, { n: 1 }, { first: true }, undefined]
    expect(await fieldsIn(m)).toEqual(all)
    expect(await m.queue('default').jobs.count({ fields: { order: '4711' } })).toBe(1)
  })

  it('belong to jobs of a flow, to a join, and to a job that a handler enqueues', async () => {
    const m = testMill({ tasks }, kind)
    await m.enqueue(parent, null)
    const child = nextEvent(m, 'job.enqueued', ({ task }) => task === 'encode')
    await m.worker({ queues: ['parents'] }).start()
    await child
    await m.flow((f) => {
      const one = f.job(encode, 1, { fields: { part: 1 } })
      f.job(both, null, { after: { one }, fields: { whole: true } })
    })

    expect(new Set(await fieldsIn(m))).toEqual(new Set([{ from: 'parent' }, { part: 1 }, { whole: true }]))
  })

  it('are read by the handler, and changed like others', async () => {
    const seen: unknown[] = []
    const read = defineTask({
      name: 'read',
      run: async (_, ctx) => {
        seen.push(await ctx.fields.get())
        await ctx.fields.set({ paid: true, order: null })
        return 1
      },
    })
    const m = testMill({ tasks: [read] }, kind)
    const job = await m.enqueue(read, null, { fields: { order: '4711' } })
    const done = job.result({ timeout: '10s' })
    await m.worker().start()
    await done

    expect(seen).toEqual([{ order: '4711' }])
    expect((await job.record())?.fields).toEqual({ paid: true })
  })

  it('of a job that is there already stay as they are', async () => {
    const m = testMill({ tasks }, kind)
    await m.enqueue(encode, 1, { id: 'a', fields: { order: '4711' } })
    expect((await m.enqueue(encode, 1, { id: 'a', fields: { order: 'other' } })).outcome).toBe('duplicate')
    expect(await fieldsIn(m)).toEqual([{ order: '4711' }])
  })
})

const retry = { max: 2, backoff: exponential({ base: 1, max: 1 }) }

describe.each(storeKinds)('the record of a failed job, on %s', (kind) => {
  it('lists each attempt, with the last in full, also for an ordered job', async () => {
    const lastErrors: (string | undefined)[] = []
    const send = defineTask({
      name: 'send',
      retry,
      run: async (_, { job }) => {
        lastErrors.push(job.lastError?.split('\n', 1)[0])
        throw new Error(`attempt ${job.attempt} found nobody`)
      },
    })
    const sync = defineOrderedTask({
      name: 'sync',
      queue: 'orders',
      retry,
      run: async () => {
        throw new Error('no such order')
      },
    })
    const mill = testMill({ tasks: [send, sync], queues: { orders: { ordered: true } } }, kind)
    await mill.enqueue(send, 1, { id: 'a' })
    await mill.enqueue(sync, 1, { id: 'o' })
    const buried = [
      nextEvent(mill, 'job.buried', ({ id }) => id === 'a'),
      nextEvent(mill, 'job.buried', ({ id }) => id === 'o'),
    ]
    await mill.worker().start()
    await Promise.all(buried)

    const record = await mill.queue('default').jobs.get('a')
    expect(record?.attempt).toBe(3)
    expect(record?.error).toMatch(/^Error: attempt 3 found nobody\n +at /)
    expect(record?.failures?.map(({ attempt, error }) => [attempt, error.split('\n', 1)[0]])).toEqual([
      [1, 'Error: attempt 1 found nobody'],
      [2, 'Error: attempt 2 found nobody'],
      [3, 'Error: attempt 3 found nobody'],
    ])
    expect(record?.failures?.at(-1)?.error).toBe(record?.error)
    expect(lastErrors).toEqual([undefined, 'Error: attempt 1 found nobody', 'Error: attempt 2 found nobody'])
    const dead = await mill.queue('orders').morgue.get('o')
    expect(dead?.failures).toHaveLength(3)
    expect(dead?.error).toMatch(/^Error: no such order/)

    const thrown = await mill
      .job(send, 'a')
      .result()
      .catch((error: Error) => error)
    expect(String(thrown)).not.toContain('\u001e')
  })

  it('includes failures by an operator', async () => {
    const encode = defineTask({ name: 'encode', queue: 'video', retry: { max: 4 } })
    const mill = testMill({ queues: { video: {} }, tasks: [encode] }, kind)
    await mill.enqueue(encode, {}, { id: 'film' })
    const listener = mill.listener('video')
    await listener.next()
    await mill.queue('video').jobs.fail('film', 'it hangs', { last: false })
    await listener.next()
    await mill.queue('video').jobs.fail('film', 'it hangs again')

    expect(await mill.queue('video').morgue.get('film')).toMatchObject({
      error: 'it hangs again',
      failures: [
        { attempt: 1, error: 'it hangs' },
        { attempt: 2, error: 'it hangs again' },
      ],
    })
  })
})
