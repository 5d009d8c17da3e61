/** A mill on SQS: what its workers do there, and what it costs. */

import { defineOrderedTask, defineTask, UnrecoverableError } from 'millrace'
import { type WebHandler, webHandler } from 'millrace/web'
import { describe, expect, it, onTestFinished } from 'vitest'
import { newKey } from '../../core/seal-keys.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { freshStores } from './fresh-store.js'

const { service, freshStore } = freshStores()

describe('a mill on SQS', () => {
  it('seals and compresses its messages, also over a retry', async () => {
    const { store } = await freshStore()
    const ran: unknown[] = []
    const run = (input: unknown, ctx: { job: { attempt: number; meta: unknown } }) => {
      if (ctx.job.attempt === 1) throw new Error('not yet')
      ran.push([input, ctx.job.meta])
    }
    const task = defineTask({ name: 'pay', retry: { max: 1, backoff: () => 1 }, run })
    const books: unknown[] = []
    const book = defineOrderedTask({ name: 'book', queue: 'books', run: (all) => void books.push(...all.values()) })
    const seal = { current: 'k', keys: { k: newKey } }
    const mill = testMillOn(store, {
      compress: { above: 200 },
      seal,
      queues: { books: { shards: 1 } },
      tasks: [task, book],
    })
    await mill.createQueues()
    const both = Promise.all([
      nextEvent(mill, 'job.completed', ({ queue }) => queue === 'default'),
      nextEvent(mill, 'job.completed', ({ queue }) => queue === 'books'),
    ])
    await mill.enqueue(task, 'a'.repeat(300_000), { meta: { by: 'me' } })
    await mill.enqueue(book, 'payload', { id: 'a' })
    await mill.worker().start()
    await both

    expect(ran).toEqual([['a'.repeat(300_000), { by: 'me' }]])
    expect(books).toEqual([['payload']])
  })

  it('stores with a job that is put back why it waits', async () => {
    const { store } = await freshStore()
    const mill = testMillOn(store, { tasks: [defineTask({ name: 'greet' })] })
    await mill.createQueues()
    await mill.enqueue(mill.tasks.get('greet')!, 'Ada' as never)
    const claimed = () => store.claim([{ queue: 'default', limit: 1 }], { worker: 'a', leaseMs: 60_000 })
    const { claims } = await claimed()
    const { queue, id, fence } = claims[0]!
    await store.settle([{ queue, id, fence, kind: 'release', delayMs: 0, error: 'no key for it' }])

    expect((await claimed()).claims).toMatchObject([{ id, attempt: 1, error: 'no key for it' }])
  })

  it('runs every job, retries a failing one, and buries an unrecoverable one', async () => {
    const { store } = await freshStore()
    const ran: string[] = []
    const task = defineTask({
      name: 'greet',
      retry: { max: 3, backoff: () => 1 },
      async run(name, ctx) {
        ran.push(`${name} ${ctx.job.attempt}`)
        if (name === 'late' && ctx.job.attempt === 1) throw new Error('not yet')
        if (name === 'broken') throw new UnrecoverableError('never')
      },
    })
    const mill = testMillOn(store, { tasks: [task] })
    const names = ['late', 'broken', ...Array.from({ length: 30 }, (_, i) => `job-${i}`)]
    const completed = recorded(mill, 'job.completed')
    const ended = Promise.all([
      nextEvent(mill, 'job.buried'),
      nextEvent(mill, 'job.completed', () => completed.length === names.length - 1),
    ])
    await mill.createQueues()
    await mill.enqueueMany(task, names)
    const worker = mill.worker({ concurrency: 4 })
    const stopped = recorded(mill, 'worker.stopped')
    await worker.start()
    await ended
    await worker.stop()

    expect(stopped).toMatchObject([{ apiCalls: { CreateQueue: 2, SendMessageBatch: expect.any(Number) } }])
    expect(stopped[0]!.apiCalls).toEqual(await mill.apiCalls())
    expect(ran.sort()).toEqual([...names.map((name) => `${name} 1`), 'late 2'].sort())
    expect(await mill.queue('default').depth()).toMatchObject({ ready: 0, running: 0, scheduled: 0, dead: 1 })
  })

  it('continues by itself when newer credentials replace expired ones', async () => {
    const { store } = await freshStore()
    const task = defineTask({ name: 'work', run: async () => {} })
    const mill = testMillOn(store, { tasks: [task] })
    await mill.createQueues()
    const failed = recorded(mill, 'store.failed')
    const completed = nextEvent(mill, 'job.completed')
    await mill.enqueue(task, {})
    await service().inject({ call: 'ReceiveMessage', error: 'ExpiredToken', status: 403 })
    const worker = mill.worker()
    await worker.start()
    await completed
    await worker.stop()

    expect(failed).toMatchObject([{ call: 'claim', error: { code: 'store-unavailable' } }])
  })

  it('ends its worker if a right is taken away, and the job waits for another', async () => {
    const { store } = await freshStore()
    const task = defineTask({ name: 'work', run: async () => {} })
    const mill = testMillOn(store, { tasks: [task] })
    await mill.createQueues()
    const failed = nextEvent(mill, 'worker.failed')
    await mill.enqueue(task, {})
    await service().inject({ call: 'ReceiveMessage', error: 'AccessDenied', status: 403 })
    await mill.worker().start()

    expect(await failed).toMatchObject({ error: { code: 'store-refused', message: expect.stringContaining('policy') } })
    expect(await mill.queue('default').depth()).toMatchObject({ ready: 1 })
  })

  it('sends ten jobs per call, and receives and deletes in batches if there is enough to do', async () => {
    const { store, calls } = await freshStore()
    const task = defineTask({ name: 'work', run: async () => {} })
    const mill = testMillOn(store, { tasks: [task] })
    const count = 2_000
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === count)
    await mill.createQueues()
    await mill.enqueueMany(
      task,
      Array.from({ length: count }, (_, i) => i),
    )
    const worker = mill.worker({ concurrency: 10 })
    await worker.start()
    await ended
    await worker.stop()

    // How full the batches are depends on the machine: `npm run bench -- sqs` has the figure. One by one it would be three a job.
    expect(calls.byKind.SendMessageBatch).toBe(count / 10)
    expect(calls.total).toBeLessThan(count)
  })

  it('answers on the health of its dashboard whether SQS does, with two calls in ten seconds', async () => {
    const { store, calls } = await freshStore()
    const mill = testMillOn(store, { tasks: [defineTask({ name: 'work' })] })
    await mill.createQueues()
    const health = (window: WebHandler) =>
      window.fetch(new Request('http://localhost/health'), { address: '127.0.0.1' }).then(({ status }) => status)
    const windowOn = () => {
      const window = webHandler(mill)
      onTestFinished(() => window.close())
      return window
    }
    const before = windowOn()
    const asked = calls.byKind.GetQueueAttributes ?? 0

    expect(await Promise.all([health(before), health(before)])).toEqual([200, 200])
    expect(await health(before)).toBe(200)
    expect(calls.byKind.GetQueueAttributes).toBe(asked + 2)
    await service().inject({ call: 'GetQueueAttributes', error: 'AccessDenied', status: 403, times: 2 })
    expect(await health(windowOn())).toBe(503)
  })
})
