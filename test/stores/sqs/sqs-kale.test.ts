/** What Kale did on SQS, done here: its retries, its batches under one visibility timeout, its stops. */

import { defineTask, exponential, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { freshStores } from './fresh-store.js'

const { service, freshStore } = freshStores()

/** What is known of the dead-letter queue of `default`. */
const dead = async (mill: ReturnType<typeof testMillOn>) => (await mill.queue('default').depth()).dead

describe('a job that fails again and again', () => {
  it('runs after 60, 120, 240 and 480 s, and is in the dead-letter queue after its fifth run', async () => {
    const { store } = await freshStore()
    const task = defineTask({
      name: 'fail',
      retry: { max: 4, backoff: exponential({ jitter: false }) },
      run: async () => {
        throw new Error('no')
      },
    })
    const mill = testMillOn(store, { tasks: [task] })
    await mill.createQueues()
    const started = recorded(mill, 'job.started')
    const worker = mill.worker({ concurrency: 1 })
    await worker.start()
    const buried = nextEvent(mill, 'job.buried')
    let failed = nextEvent(mill, 'job.failed')
    await mill.enqueue(task, {})
    for (const [i, seconds] of [60, 120, 240, 480].entries()) {
      await failed
      expect(started).toHaveLength(i + 1)
      failed = nextEvent(mill, 'job.failed')
      // Not a second before.
      service().advance((seconds - 1) * 1_000)
      expect((await mill.queue('default').depth()).ready).toBe(0)
      service().advance(1_000)
    }
    await buried
    await worker.stop()

    expect(started).toHaveLength(5)
    expect(await dead(mill)).toBe(1)
  }, 30_000)

  it('is buried at once if it is unrecoverable', async () => {
    const { store } = await freshStore()
    const task = defineTask({
      name: 'fail',
      retry: { max: 4, backoff: exponential({ jitter: false }) },
      run: async () => {
        throw new UnrecoverableError('no')
      },
    })
    const mill = testMillOn(store, { tasks: [task] })
    await mill.createQueues()
    const worker = mill.worker()
    await worker.start()
    const buried = nextEvent(mill, 'job.buried')
    await mill.enqueue(task, {})

    expect(await buried).toMatchObject({ reason: 'unrecoverable' })
    await worker.stop()
    expect(await dead(mill)).toBe(1)
  })
})

describe('a batch under one lease', () => {
  it('is refused for a task whose time limit exceeds the lease, and both are named', async () => {
    const { store } = await freshStore()
    const task = defineTask({ name: 'slow', timeLimit: '60s', run: async () => {} })
    const queues = { default: { renewLease: false, lease: '60s' } } as const

    expect(() => testMillOn(store, { tasks: [task], queues })).toThrow(
      /tasks\.slow\.timeLimit: must be less than the lease of queue 'default' \(1m\)/,
    )
    await store.close()
  })

  it('that ends early lets begun jobs finish, and puts back the others, which run once', async () => {
    const { store } = await freshStore()
    const task = defineTask({
      name: 'half',
      timeLimit: '1s',
      run: () => new Promise((resolve) => setTimeout(resolve, 300)),
    })
    const mill = testMillOn(store, { tasks: [task], queues: { default: { renewLease: false, lease: '3s' } } })
    await mill.createQueues()
    const completed = recorded(mill, 'job.completed')
    const released = recorded(mill, 'job.released')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === 10)
    await mill.enqueueMany(
      task,
      Array.from({ length: 10 }, (_, i) => i),
    )
    const worker = mill.worker({ concurrency: 1 })
    await worker.start()
    await ended
    await worker.stop()

    expect(new Set(completed.map(({ id }) => id)).size).toBe(10)
    expect(released.length).toBeGreaterThan(0)
    expect(released.length).toBeLessThan(10)
  }, 30_000)
})

describe('a stop with one job running and five fetched', () => {
  it('lets the one finish and gives the five to another worker at once', async () => {
    const { store: one, open } = await freshStore()
    const two = await open()
    let finish = () => {}
    const ran: string[] = []
    const task = defineTask({
      name: 'work',
      run: async (_, ctx) => {
        ran.push(ctx.job.id)
        if (ran.length === 1)
          await new Promise<void>((resolve) => {
            finish = resolve
          })
      },
    })
    const queues = { default: { renewLease: false, lease: '10m' } } as const
    const [first, second] = [testMillOn(one, { tasks: [task], queues }), testMillOn(two, { tasks: [task], queues })]
    await first.createQueues()
    const started = nextEvent(first, 'job.started')
    await first.enqueueMany(task, [1, 2, 3, 4, 5, 6])
    const worker = first.worker({ concurrency: 1 })
    await worker.start()
    await started
    expect(await first.queue('default').depth()).toMatchObject({ running: 6, ready: 0 })
    const released = recorded(first, 'job.released')
    const back = nextEvent(first, 'job.released', () => released.length === 5)
    const stopped = worker.stop()
    await back
    const completed = recorded(second, 'job.completed')
    const others = nextEvent(second, 'job.completed', () => completed.length === 5)
    const other = second.worker({ concurrency: 1 })
    await other.start()
    await others
    finish()
    await stopped
    await other.stop()

    expect(new Set(ran).size).toBe(6)
    expect(await second.queue('default').depth()).toMatchObject({ ready: 0, running: 0, dead: 0 })
  }, 30_000)
})
