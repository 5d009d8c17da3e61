import { defineOrderedTask, defineTask } from 'millrace'
import * as v from 'valibot'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { testMill } from '../../test-mill.js'
import { events, kinds, numbers, oneShard, orders, push, raw } from './order-tasks.js'

describe.each(kinds)('an ordered batch, on %s', (kind) => {
  it('buries an id with a payload that is no longer valid, names it, and runs the others', async () => {
    const runs: unknown[] = []
    const task = orders((payloadsById, ctx) => void runs.push([numbers(payloadsById), [...ctx.jobs.keys()]]), {
      batchSize: 4,
    })
    const { m, put } = await raw(kind, task)
    await put('a', '{"id":"a","n":1}')
    await put('b', '{"id":"b","n":1}')
    await put('b', '{"id":"b","n":"two"}')
    await put('c', '{"id":"c","n":1}')
    await put('c', '{"n":')
    await put('d', '{"id":"d","n":1}')
    const buried = recorded(m, 'job.buried')
    const done = events(m, 'job.completed', 2)
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(runs).toEqual([[{ a: [1], d: [1] }, ['a', 'd']]])
    expect(buried.map(({ id, reason }) => [id, reason])).toEqual([
      ['c', 'bad-payload'],
      ['b', 'bad-payload'],
    ])
    const errors = buried.map(({ error }) => error)
    expect(errors[0]).toMatch(/^payload 2 of 2 \(score \d+(\.\d+)?\) cannot be decoded: /)
    expect(errors[1]).toMatch(/^payload 2 of 2 \(score \d+(\.\d+)?\) does not match its schema:\n {2}n: /)
    expect(await m.queue('orders').depth()).toMatchObject({ dead: 2, processed: 2, failed: 0 })
  })

  it('does not call the handler if no payload of the batch is valid', async () => {
    const task = orders(() => expect.unreachable())
    const { m, put } = await raw(kind, task)
    await put('a', '{}')
    const buried = nextEvent(m, 'job.buried')
    await m.worker().start()

    expect(await buried).toMatchObject({ id: 'a', reason: 'bad-payload' })
    expect(await m.queue('orders').depth()).toMatchObject({ dead: 1, failed: 0 })
  })

  it('counts a schema that throws as a failure of its id', async () => {
    let breaks = true
    const input = v.pipe(
      v.object({ id: v.string(), n: v.number() }),
      v.check(({ id }) => {
        if (id === 'b' && breaks) throw new Error('no database')
        return true
      }),
    )
    const attempts: unknown[] = []
    const task = defineOrderedTask({
      name: 'orders',
      input,
      batchSize: 2,
      retry: { backoff: () => 0 },
      run: (_, ctx) => {
        attempts.push([...ctx.jobs.values()].map(({ id, attempt }) => [id, attempt]))
        breaks = false
      },
    })
    const { m, put } = await raw(kind, task)
    await put('a', '{"id":"a","n":1}')
    await put('b', '{"id":"b","n":1}')
    const failed = nextEvent(m, 'job.failed')
    const done = events(m, 'job.completed', 2)
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(await failed).toMatchObject({ id: 'b', error: { message: 'no database' } })
    expect(attempts).toEqual([[['a', 1]], [['b', 2]]])
  })

  it('leaves an id with payloads of another codec, or without a handler here, to other workers', async () => {
    const task = orders(() => {})
    const { m, put } = await raw(kind, task)
    await put('a', 'x', 'other')
    await put('a', '{"id":"a","n":1}')
    const foreign = nextEvent(m, 'job.released')
    await m.worker().start()
    expect(await foreign).toMatchObject({ id: 'a', reason: 'unknown-codec', delayMs: 20 })
    const [left] = (await m.queue('orders').jobs.list()).jobs
    expect(left?.error).toMatch(/^stored by codec 'other', .* The last one has codec 'json'\./)

    const { run: _, ...unhandled } = { name: 'orders', run: undefined }
    const other = await raw(kind, defineOrderedTask(unhandled), defineTask({ name: 'handled', run: () => {} }))
    await other.put('a', '{"id":"a","n":1}')
    const unknown = nextEvent(other.m, 'job.released')
    await other.m.worker().start()
    expect(await unknown).toMatchObject({ id: 'a', reason: 'unknown-task', delayMs: 20 })
  })

  it('runs payloads stored under another name: the queue is its own', async () => {
    const task = orders(() => {})
    const { m, put } = await raw(kind, task)
    await put('a', '{"id":"a","n":1}', 'json', 'former-name')
    const done = nextEvent(m, 'job.completed')
    await m.worker().start()

    expect(await done).toMatchObject({ id: 'a', task: 'former-name' })
  })

  it('is aborted at its one time limit, and given up with all its jobs if it does not end', async () => {
    const task = orders(() => new Promise(() => {}), { batchSize: 2, timeLimit: 50, retry: { max: 0 }, slowAfter: 10 })
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 2)])
    const slow = recorded(m, 'job.slow')
    const retired = events(m, 'slot.retired', 1)
    const buried = events(m, 'job.buried', 2)
    const worker = m.worker({ concurrency: 2, grace: 0 })
    await worker.start()
    await buried

    expect(await retired).toMatchObject([{ id: 'a', left: 1 }])
    expect(slow.map(({ id }) => id)).toEqual(['a', 'b'])
    expect(await m.queue('orders').depth()).toMatchObject({ dead: 2, running: 0 })
    expect(worker.status()).toMatchObject({ retired: 1, jobs: [] })
  })

  it('shows each of its jobs in the status of its worker, with the progress of all', async () => {
    let end = () => {}
    const task = orders(
      (_, ctx) => {
        ctx.progress(1, 'nearly')
        return new Promise<void>((resolve) => (end = resolve))
      },
      { batchSize: 2 },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 2)])
    const started = events(m, 'job.started', 2)
    const done = events(m, 'job.completed', 2)
    const worker = m.worker({ concurrency: 1 })
    await worker.start()
    await started
    const job = {
      queue: 'orders',
      task: 'orders',
      attempt: 1,
      phase: 'running',
      progress: { fraction: 1, note: 'nearly' },
    }
    // The event comes before the handler is called.
    await new Promise((resolve) => setImmediate(resolve))

    expect(worker.status().jobs).toMatchObject([
      { id: 'a', ...job },
      { id: 'b', ...job },
    ])
    end()
    await done
  })

  it('is released as a whole, uncounted, when the grace of a stop is over', async () => {
    const task = orders(
      (_, ctx) => new Promise((_, reject) => ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason))),
      {
        batchSize: 2,
      },
    )
    const m = testMill({ tasks: [task], queues: oneShard }, kind)
    await m.enqueueMany(task, [...push('a', 1), ...push('b', 2), ...push('c', 3)])
    const started = events(m, 'job.started', 2)
    const released = recorded(m, 'job.released')
    const worker = m.worker({ concurrency: 1 })
    await worker.start()
    await started
    await worker.stop({ grace: 0 })

    expect(released.map(({ id, reason }) => [id, reason]).filter(([, reason]) => reason === 'interrupted')).toEqual([
      ['a', 'interrupted'],
      ['b', 'interrupted'],
    ])
    expect(await m.queue('orders').depth()).toMatchObject({ ready: 3, running: 0, fresh: 3, failed: 0, crashed: 0 })
  })

  it('follows another in one slot if the lease is not renewed, except those that would not end in time', async () => {
    const batches: unknown[] = []
    const task = orders((payloadsById) => void batches.push(numbers(payloadsById)), { batchSize: 2, timeLimit: '5s' })
    const queues = { orders: { ordered: true, shards: 1, renewLease: false, claimSize: 5, lease: '10s' } } as const
    const m = testMill({ tasks: [task], queues }, kind)
    await m.enqueueMany(
      task,
      ['a', 'b', 'c', 'd', 'e'].flatMap((id) => push(id, 1)),
    )
    const claimed = recorded(m, 'queue.claimed')
    const done = events(m, 'job.completed', 5)
    await m.worker({ concurrency: 4 }).start()
    await done

    expect(claimed.map(({ jobs }) => jobs)).toEqual([5])
    expect(batches).toEqual([{ a: [1], b: [1] }, { c: [1], d: [1] }, { e: [1] }])
  })

  it('stores no result, because what its handler returns belongs to no single id', async () => {
    const task = orders(() => ({ of: 'all' }))
    const { m, put, store } = await raw(kind, task)
    const settled: unknown[] = []
    const settle = store.settle.bind(store)
    store.settle = (items) => {
      settled.push(...items)
      return settle(items)
    }
    await put('a', '{"id":"a","n":1}')
    const done = nextEvent(m, 'job.completed')
    await m.worker().start()
    await done

    expect(settled).toEqual([{ queue: 'orders', id: 'a', fence: expect.any(Number), kind: 'complete' }])
  })

  it('runs a suspect alone, in a batch of one', async () => {
    const batches: unknown[] = []
    const task = orders((payloadsById) => void batches.push(Object.keys(numbers(payloadsById))), { batchSize: 5 })
    const { m, put, store } = await raw(kind, task)
    for (const id of ['a', 'b']) await put(id, `{"id":"${id}","n":1}`)
    const { claims } = await store.claim([{ queue: 'orders', limit: 2 }], { worker: 'dead', leaseMs: 600_000 })
    await store.workers!.gone(claims, 'dead')
    for (const id of ['c', 'd']) await put(id, `{"id":"${id}","n":1}`)
    const done = events(m, 'job.completed', 4)
    await m.worker({ concurrency: 4 }).start()
    await done

    expect(batches.filter((ids) => (ids as string[]).some((id) => id < 'c'))).toEqual([['a'], ['b']])
    expect(await m.queue('orders').depth()).toMatchObject({ crashed: 2, failed: 0, processed: 4 })
  })
})
