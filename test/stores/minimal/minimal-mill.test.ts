import { defineOrderedTask, defineTask, UnrecoverableError } from 'millrace'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { makeStore } from './minimal-store.js'

describe('a mill on a store with only the eight verbs', () => {
  it('runs every job, retries a failing one, and buries an unrecoverable one', async () => {
    const ran: string[] = []
    const task = defineTask({
      name: 'greet',
      queue: 'minimal-runs',
      retry: { max: 3, backoff: () => 1 },
      async run(name, ctx) {
        ran.push(`${name} ${ctx.job.attempt}`)
        if (name === 'late' && ctx.job.attempt === 1) throw new Error('not yet')
        if (name === 'broken') throw new UnrecoverableError('never')
      },
    })
    const mill = testMillOn(makeStore(), { tasks: [task], queues: { 'minimal-runs': {} } })
    const names = ['late', 'broken', ...Array.from({ length: 30 }, (_, i) => `job-${i}`)]
    const completed = recorded(mill, 'job.completed')
    const ended = Promise.all([
      nextEvent(mill, 'job.buried'),
      nextEvent(mill, 'job.completed', () => completed.length === names.length - 1),
    ])
    await mill.enqueueMany(task, names)
    const worker = mill.worker({ concurrency: 4 })
    await worker.start()
    await ended
    await worker.stop()

    expect(ran.sort()).toEqual([...names.map((name) => `${name} 1`), 'late 2'].sort())
    expect(await mill.queue('minimal-runs').depth()).toMatchObject({ ready: 0, running: 0, scheduled: 0, dead: 1 })
  })

  it('wakes an idle worker for a later job, and for one that falls due', async () => {
    const task = defineTask({ name: 'late', queue: 'minimal-late', run: async () => undefined })
    const mill = testMillOn(makeStore(), { tasks: [task], queues: { 'minimal-late': {} } })
    const worker = mill.worker()
    await worker.start()
    const completed = recorded(mill, 'job.completed')
    const ended = nextEvent(mill, 'job.completed', () => completed.length === 2)
    await mill.enqueue(task, 'now')
    await mill.enqueue(task, 'soon', { delay: 50 })
    await ended
    await worker.stop()
  })

  const plain = defineTask({ name: 'plain', run: async () => undefined })
  const refused = { code: 'unsupported-by-store' }
  it.each([
    ['an ordered task', { tasks: [defineOrderedTask({ name: 'sync', queue: 'sync', id: String })] }],
    ['a throttle', { queues: { default: { throttle: { limit: 1, window: '1s' } } } }],
    ['maxRunning', { queues: { default: { maxRunning: 1 } } }],
    ['maxPending', { queues: { default: { maxPending: 1 } } }],
    ['the order lifo', { queues: { default: { order: 'lifo' } } }],
    ['groups', { tasks: [defineTask({ name: 'crawl', group: String })] }],
    ['onDead', { tasks: [plain, defineTask({ name: 'told', onDead: plain })] }],
    ['a lease beyond the longest', { queues: { default: { lease: '13h' } } }],
  ] as const)('refuses %s when it is created, with a remedy', (_, options) => {
    expect(() => testMillOn(makeStore(), options)).toThrow(expect.objectContaining(refused))
  })

  it.each([
    ['a priority', { priority: 1 }],
    ['an id of your own', { id: 'welcome-42' }],
  ])('refuses %s at the enqueue, and sends nothing', async (_, options) => {
    const store = makeStore()
    const mill = testMillOn(store, { tasks: [plain] })

    await expect(mill.enqueue(plain, 'x', options)).rejects.toMatchObject(refused)
    expect((await mill.queue('default').depth()).ready).toBe(0)
  })
})
