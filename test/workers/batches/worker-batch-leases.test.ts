import { defineOrderedTask, type OrderedContext } from 'millrace'
import type { SettleItem } from 'millrace/store'
import { memoryHarness } from 'millrace/store-testing'
import { expect, it, onTestFinished } from 'vitest'
import { JobCancelledError, LeaseLostError } from '#src/core/errors.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

/** A worker with jobs a and b in one batch, whose handler has begun and ends when it is told to. */
async function running() {
  const harness = await memoryHarness()
  onTestFinished(() => harness.close())
  const store = await harness.open()
  let end = (_error?: Error) => {}
  let begin = (_ctx: OrderedContext) => {}
  const begun = new Promise<OrderedContext>((resolve) => (begin = resolve))
  const task = defineOrderedTask({
    name: 'orders',
    id: (id) => String(id),
    batchSize: 2,
    retry: { backoff: () => 60_000 },
    run: (_, ctx) =>
      new Promise<void>((resolve, reject) => {
        end = (error) => (error === undefined ? resolve() : reject(error))
        begin(ctx)
      }),
  })
  const m = testMillOn(store, { tasks: [task], queues: { orders: { ordered: true, shards: 1, lease: '3s' } } })
  const settled: SettleItem[] = []
  const settle = store.settle.bind(store)
  store.settle = (items) => {
    settled.push(...items)
    return settle(items)
  }
  /** Resolves when the store has answered so to the beat of this job. */
  const answered = (id: string, answer: 'cancel' | 'lost') =>
    new Promise<void>((resolve) => {
      const extend = store.extend.bind(store)
      store.extend = async (items) => {
        const answers = await extend(items)
        for (const [i, item] of items.entries()) {
          if (item.id !== id) continue
          answers[i] = answer
          setImmediate(resolve)
        }
        return answers
      }
    })
  await m.enqueueMany(task, ['a', 'b'])
  const worker = m.worker({ concurrency: 1 })
  await worker.start()
  const ctx = await begun
  const kinds = () => settled.map(({ id, kind }) => [id, kind])
  return { m, store, ctx, worker, kinds, answered, end: (error?: Error) => end(error) }
}

const aborted = ({ signal }: OrderedContext) =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason)))

it('a batch goes on when one of its jobs is cancelled; that one is completed with it', async () => {
  const { m, store, ctx, kinds, end } = await running()
  const told = nextEvent(m, 'job.completed', ({ id }) => id === 'b')
  const seen = new Promise<void>((resolve) => {
    const extend = store.extend.bind(store)
    store.extend = async (items) => {
      const answers = await extend(items)
      if (answers.includes('cancel')) setImmediate(resolve)
      return answers
    }
  })
  await store.records!.cancel('orders', { ids: ['a'] })
  await seen
  expect(ctx.signal.aborted).toBe(false)
  end()
  await told

  expect(kinds()).toEqual([
    ['a', 'complete'],
    ['b', 'complete'],
  ])
})

it('a job that is cancelled while its batch fails is removed, and only the others are retried', async () => {
  const { m, answered, kinds, end } = await running()
  const cancelled = nextEvent(m, 'job.cancelled')
  const failed = nextEvent(m, 'job.failed')
  await answered('a', 'cancel')
  end(new Error('all of it'))

  expect(await cancelled).toMatchObject({ id: 'a' })
  expect(await failed).toMatchObject({ id: 'b' })
  expect(kinds()).toEqual([
    ['a', 'cancel'],
    ['b', 'retry'],
  ])
})

it('a batch is aborted when all its jobs are cancelled', async () => {
  const { m, store, ctx, kinds, end } = await running()
  const cancelled = recorded(m, 'job.cancelled')
  const both = nextEvent(m, 'job.cancelled', () => cancelled.length === 2)
  const reason = aborted(ctx)
  await store.records!.cancel('orders', { ids: ['a', 'b'] })
  expect(await reason).toBeInstanceOf(JobCancelledError)
  end(ctx.signal.reason as Error)
  await both

  expect(kinds()).toEqual([
    ['a', 'cancel'],
    ['b', 'cancel'],
  ])
  expect(await m.queue('orders').depth()).toMatchObject({ running: 0, ready: 0, scheduled: 0, dead: 0, failed: 0 })
})

it('a batch is aborted when the lease of one of its jobs is lost, and the others are released, uncounted', async () => {
  const { m, ctx, answered, kinds, end } = await running()
  const lost = nextEvent(m, 'lease.lost')
  const released = recorded(m, 'job.released')
  const both = nextEvent(m, 'job.released', () => released.length === 2)
  const reason = aborted(ctx)
  void answered('b', 'lost')
  expect(await reason).toBeInstanceOf(LeaseLostError)
  end(ctx.signal.reason as Error)
  await both

  expect(await lost).toMatchObject({ id: 'b' })
  expect(released.map(({ id, reason }) => [id, reason])).toEqual([
    ['a', 'lease-lost'],
    ['b', 'lease-lost'],
  ])
  expect(kinds().slice(0, 2)).toEqual([
    ['a', 'release'],
    ['b', 'release'],
  ])
})
