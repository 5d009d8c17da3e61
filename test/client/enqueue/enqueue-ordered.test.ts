/** Enqueueing for ordered tasks: where id and score come from, what merges, and what a store is handed. */
import { defineOrderedTask, defineTask, type EventMap, type Middleware, millrace } from 'millrace'
import type { NewJob } from 'millrace/store'
import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import type { EnqueueManyError } from '#src/core/errors.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

const order = z.object({ order: z.union([z.string(), z.number()]), rev: z.number() })
const sync = defineOrderedTask({
  name: 'sync',
  queue: 'orders',
  input: order,
  id: (o) => o.order,
  score: (o) => o.rev,
})
/** No functions: each enqueue says it all. */
const bare = defineOrderedTask({ name: 'bare' })

/** A mill, and the calls that its store was given. */
function millWithCalls(middleware: readonly Middleware[] = []) {
  const store = new MemoryStore()
  const calls: { callId: string; jobs: readonly NewJob[] }[] = []
  const enqueue = store.enqueue.bind(store)
  store.enqueue = (given) => {
    calls.push(...given)
    return enqueue(given)
  }
  const mill = testMillOn(store, { tasks: [sync, bare], middleware })
  return { mill, store, calls, jobs: () => calls.flatMap(({ jobs }) => jobs) }
}

describe.each(storeKinds.filter((kind) => isOrdered(kind)))('an enqueue for an ordered task, on %s', (kind) => {
  const options = { tasks: [sync, bare] }

  it('creates a job for a new id, and adds the payload to a job that waits under it', async () => {
    const m = testMill(options, kind)
    const first = await m.enqueue(sync, { order: 'a', rev: 1 })
    const second = await m.enqueue(sync, { order: 'a', rev: 2 })

    expect(first).toMatchObject({ id: 'a', queue: 'orders', outcome: 'added' })
    expect(second).toMatchObject({ id: 'a', queue: 'orders', outcome: 'merged' })
    expect(await m.queue('orders').depth()).toMatchObject({ ready: 1, payloads: 2 })
  })

  it('merges an equal payload', async () => {
    const m = testMill(options, kind)
    for (const rev of [1, 1]) await m.enqueue(sync, { order: 'a', rev })

    expect(await m.queue('orders').depth()).toMatchObject({ ready: 1, payloads: 1 })
  })

  it('takes a due time', async () => {
    const m = testMill(options, kind)
    const runAt = new Date(Date.now() + 60_000)
    const [late, later] = await m.enqueueMany(bare, ['x', 'y'], (_, i) =>
      i === 0 ? { id: i, runAt } : { id: i, delay: '1h' },
    )

    expect((await late!.record())?.runAt).toEqual(runAt)
    const { runAt: due, createdAt } = (await later!.record())!
    expect(due.getTime() - createdAt.getTime()).toBe(3_600_000)
    expect(await m.queue('bare').depth()).toMatchObject({ scheduled: 2, ready: 0 })
  })

  it('emits an event', async () => {
    const m = testMill(options, kind)
    const told: EventMap['job.enqueued'][] = []
    m.on('job.enqueued', (event) => told.push(event))
    for (const rev of [1, 2]) await m.enqueue(sync, { order: 'a', rev })

    const ref = { queue: 'orders', id: 'a', task: 'sync' }
    expect(told).toEqual([
      { ...ref, outcome: 'added' },
      { ...ref, outcome: 'merged' },
    ])
  })

  it('refuses payloads that exceed the limit of the queue', async () => {
    const m = testMill({ ...options, queues: { bare: { maxPending: 2, shards: 1 } } }, kind)
    await m.enqueueMany(bare, ['x', 'y'], (_, score) => ({ id: 'a', score }))

    expect((await m.enqueue(bare, 'x', { id: 'a', score: 0 })).outcome).toBe('merged')
    await expect(m.enqueue(bare, 'x', { id: 'a' })).rejects.toMatchObject({ code: 'queue-full' })
    expect(await m.queue('bare').depth()).toMatchObject({ payloads: 2 })
  })
})

describe('the call that reaches the store', () => {
  it('has id and score from the functions of the task unless the options set them', async () => {
    const { mill, jobs } = millWithCalls()
    await mill.enqueue(sync, { order: 7, rev: 3 })
    await mill.enqueue(sync, { order: 7, rev: 3 }, { id: 'other' })
    await mill.enqueue(sync, { order: 7, rev: 3 }, { id: 0, score: -0.5, meta: { by: 'me' } })
    await mill.enqueue(bare, 'x', { id: 'b' })
    await mill.enqueue(bare, 'x', { id: 'b', score: 0 })

    const sent = { task: 'sync', payload: '{"order":7,"rev":3}', priority: 0, rememberMs: 0 }
    expect(jobs()).toEqual([
      { ...sent, id: '7', score: 3 },
      { ...sent, id: 'other', score: 3 },
      { ...sent, id: '0', score: -0.5, meta: '{"by":"me"}' },
      { id: 'b', task: 'bare', payload: '"x"', priority: 0, rememberMs: 0 },
      { id: 'b', task: 'bare', payload: '"x"', priority: 0, rememberMs: 0, score: 0 },
    ])
  })

  it('has the output of the schema, while the functions of the task get the original input', async () => {
    const { mill, jobs } = millWithCalls()
    const upper = defineOrderedTask({
      name: 'bare',
      input: z.string().transform((text) => text.toUpperCase()),
      id: (text) => text,
    })
    await mill.enqueue(upper, 'a')

    expect(jobs()).toMatchObject([{ id: 'a', payload: '"A"' }])
  })

  it('keeps an empty text', async () => {
    const { mill, jobs } = millWithCalls()
    const withSchema = defineOrderedTask({ name: 'bare', input: z.string() })
    await mill.enqueue(bare, '', { id: 1 })
    await mill.enqueue(withSchema, '', { id: 2 })

    expect(jobs()).toMatchObject([
      { id: '1', payload: '""' },
      { id: '2', payload: '""' },
    ])
  })

  it('has a call id of its own, even if the job id repeats', async () => {
    const { mill, calls } = millWithCalls()
    for (const rev of [1, 2]) await mill.enqueue(sync, { order: 'same', rev })
    await mill.enqueueMany(sync, [{ order: 'same', rev: 3 }])
    const ids = calls.map(({ callId }) => callId)

    expect(new Set([...ids, 'same']).size).toBe(4)
  })

  it('holds all payloads of an enqueueMany, each with its own options', async () => {
    const { mill, calls, jobs } = millWithCalls()
    const runAt = new Date('2199-01-01T00:00:00Z')
    const handles = await mill.enqueueMany(bare, ['x', 'y', 'z'], (_, i) => ({ id: i % 2, score: -i, runAt }))

    expect(handles.map(({ id, outcome }) => [id, outcome])).toEqual([
      ['0', 'added'],
      ['1', 'added'],
      ['0', 'merged'],
    ])
    expect(calls).toHaveLength(1)
    expect(jobs().map(({ id, score, runAt: at }) => [id, score, at])).toEqual([
      ['0', -0, runAt.getTime()],
      ['1', -1, runAt.getTime()],
      ['0', -2, runAt.getTime()],
    ])
  })

  it('holds what middleware has changed', async () => {
    const seen: unknown[] = []
    const { mill, jobs } = millWithCalls([
      {
        async enqueue(items, next) {
          for (const item of items) {
            seen.push(item.options)
            item.options = { ...item.options, id: `tenant-${item.options.id}`, score: (item.options.score ?? 0) + 1 }
          }
          await next()
        },
      },
    ])
    await mill.enqueue(bare, 'x', { id: 5, score: 1 })

    expect(seen).toEqual([{ id: 5, score: 1 }])
    expect(jobs()).toMatchObject([{ id: 'tenant-5', score: 2 }])
  })

  it('accepts a definition of the producer, under the current or a former name of the task', async () => {
    const store = new MemoryStore()
    const known = defineOrderedTask({ name: 'sync', queue: 'orders', aliases: ['old-sync'] })
    const m = testMillOn(store, { tasks: [known] })
    for (const name of ['sync', 'old-sync'])
      await m.enqueue(defineOrderedTask({ name, queue: 'orders' }), name, { id: 1 })

    expect(await m.queue('orders').depth()).toMatchObject({ ready: 1, payloads: 2 })
  })

  it('accepts a definition that only the producer has if the queue is declared as ordered', async () => {
    const m = testMillOn(new MemoryStore(), { queues: { orders: { ordered: true } }, tasksElsewhere: ['sync'] })

    expect((await m.enqueue(sync, { order: 1, rev: 1 })).outcome).toBe('added')
  })
})

describe('one refused payload among many', () => {
  it('keeps all of them out, and the error names its position', async () => {
    const { mill, jobs } = millWithCalls()
    const error: EnqueueManyError = await mill
      .enqueueMany(bare, ['x', 'y', 'z'], (_, i) => (i === 1 ? { id: 'b', score: Number.NaN } : { id: 'a' }))
      .catch((thrown) => thrown)

    expect(error.message).toMatch(
      /^1 of 3 jobs are not valid; nothing was stored:\n {2}job 1: job of task 'bare': score must be a finite number; got NaN\.$/,
    )
    expect(jobs()).toEqual([])
  })
})

describe('a plain job', () => {
  it('is accepted by a plain queue while the mill has an ordered one', async () => {
    const note = defineTask({ name: 'note' })
    const m = testMill({ tasks: [sync, note] })

    expect((await m.enqueue(note, 1, { id: 'a' })).outcome).toBe('added')
    expect((await m.enqueue(note, 2, { id: 'a' })).outcome).toBe('duplicate')
  })
})

function isOrdered(kind: (typeof storeKinds)[number]): boolean {
  return millrace({ store: kind === 'memory' ? 'memory:' : 'sqlite:unopened.db' }).store.traits!.ordered
}
