import { defineTask, type Mill } from 'millrace'
import { ManualClock } from 'millrace/store-testing'
import { describe, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { seededRandom } from '../seeded-random.js'
import { testMill, testMillOn } from '../test-mill.js'
import { popped, pushed, tenPerTen, throttledScene } from './throttled-scene.js'

describe('a throttled queue', () => {
  it("does what the original's documentation shows: the higher priority first", async () => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue('my_key', { limit: 5, window: '10s' })
    await queue.push('item', 5)
    await queue.push('item2', 10)

    expect([await queue.pop(), await queue.pop(), await queue.pop()]).toEqual(['item2', 'item', null])
  })

  it('returns ten of twenty items at once, and the others as soon as ten seconds have passed', async () => {
    const { mill, clock } = throttledScene()
    const queue = mill.throttledQueue<string>('testqueue', tenPerTen)
    await pushed(queue, 20)
    const names = (from: number) => Array.from({ length: 10 }, (_, i) => `item-${from - i}`)

    expect(await popped(queue)).toEqual(names(19))
    expect(await queue.tryPop()).toMatchObject({ wait: 'throttled' })
    // The window, and 2.5 % of it by which starts may be uneven.
    clock.advance(10_250)
    // It is closed: what starts at its very end counts with what started at its beginning.
    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 1 })
    clock.advance(1)
    expect(await popped(queue)).toEqual(names(9))
  })

  it('claims for the pops of one tick at most as many items as one call settles', async () => {
    const { mill, store } = throttledScene()
    const queue = mill.throttledQueue<string>('testqueue', { limit: 600, window: '10s' })
    await pushed(queue, 600)
    const sizes: number[] = []
    const settle = store.settle.bind(store)
    store.settle = (items) => {
      sizes.push(items.length)
      return settle(items)
    }
    const items = await Promise.all(Array.from({ length: 600 }, () => queue.pop()))

    expect(new Set(items).size).toBe(600)
    expect(Math.max(...sizes)).toBe(store.traits.maxBatch)
  })

  it('gives two processes together as much as one, and no item twice', async () => {
    const { mill, store, clock } = throttledScene()
    const ours = mill.throttledQueue<string>('testqueue', tenPerTen)
    // Its clock is half a minute ahead: clocks of clients decide nothing.
    const skewed = new ManualClock(clock.now() + 30_000)
    skewed.advance(30_000)
    const theirs = testMillOn(store, {}, skewed).throttledQueue<string>('testqueue', tenPerTen)
    await pushed(ours, 20)
    const turns: string[][] = []
    for (let seconds = 0; seconds <= 10; seconds += 5) {
      const both = await Promise.all(Array.from({ length: 8 }, (_, i) => (i % 2 === 0 ? ours : theirs).pop()))
      turns.push(both.filter((item) => item !== null))
      const more = await Promise.all([popped(ours), popped(theirs)])
      turns.at(-1)!.push(...more.flat())
      clock.advance(5_126)
      skewed.advance(5_126)
    }

    expect(turns.map((items) => items.length)).toEqual([10, 0, 10])
    expect(new Set(turns.flat()).size).toBe(20)
  })

  it('spaces moderated pops evenly, and one pop per window needs no moderation', async () => {
    const { mill, clock } = throttledScene()
    const even = mill.throttledQueue<string>('even', { limit: 15, window: 29_269, moderate: true })
    const single = mill.throttledQueue<string>('single', {
      limit: 1,
      window: 1_949,
      moderate: true,
      elastic: { buffer: 0 },
    })
    await Promise.all([pushed(even, 20), pushed(single, 3)])
    const given: string[] = []
    for (let ms = 0; ms < 6_000; ms += 500) {
      if ((await even.pop()) !== null) given.push(`even ${ms}`)
      if ((await single.pop()) !== null) given.push(`single ${ms}`)
      clock.advance(500)
    }

    expect(given).toEqual(['even 0', 'single 0', 'even 2000', 'single 2000', 'even 4000', 'single 4000'])
  })

  it('keeps up, elastic, with a caller that is late by up to three spacings, and never exceeds the limit', async () => {
    const { mill, clock } = throttledScene()
    const queue = mill.throttledQueue('sites', { limit: 60, window: '59s', moderate: true, elastic: { buffer: 0 } })
    await Promise.all(Array.from({ length: 700 }, (_, i) => queue.push(i)))
    const random = seededRandom(7)
    const startedAt = clock.mono()
    const starts: number[] = []
    while (clock.mono() - startedAt < 600_000) {
      // The original's example: it sleeps whether it was given something or not.
      while ((await queue.pop()) !== null) starts.push(clock.mono())
      clock.advance(Math.floor(random() * 3_000))
    }

    // It catches up once `limit` items were given.
    const possible = Math.floor((600_000 - starts[59]!) / 1_000)
    expect(starts.length - 60).toBeGreaterThanOrEqual(0.99 * possible)
    expect(starts.filter((at, i) => (starts[i + 60] ?? Number.POSITIVE_INFINITY) - at <= 59_000)).toEqual([])
  })

  it('distinguishes empty, throttled, scheduled, paused and full', async () => {
    const task = defineTask({ name: 'crawl', queue: 'sites' })
    const throttle = { limit: 1, window: '1s' } as const
    const { mill, clock, claim } = throttledScene({ tasks: [task], queues: { sites: { throttle, maxRunning: 1 } } })
    const queue = mill.throttledQueue('sites')

    expect(await queue.tryPop()).toEqual({ wait: 'empty' })
    await mill.enqueue(task, 'later', { delay: '5s' })
    expect(await queue.tryPop()).toEqual({ wait: 'scheduled', forMs: 5_000 })
    for (const item of ['first', 'second', 'third']) await queue.push(item)
    expect(await queue.tryPop()).toEqual({ item: 'first' })
    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 1_051 })
    clock.advance(1_051)
    await mill.queue('sites').pause()
    expect(await queue.tryPop()).toEqual({ wait: 'paused' })
    await mill.queue('sites').resume()
    await claim([{ queue: 'sites', limit: 1 }], { worker: 'another', leaseMs: 3_000 })
    clock.advance(1_051)
    expect(await queue.tryPop()).toMatchObject({ wait: 'full' })
  })

  it('also returns jobs enqueued for a task: one per id, with the input as the item', async () => {
    const task = defineTask({ name: 'crawl', queue: 'sites' })
    const { mill } = throttledScene({ tasks: [task] })
    const queue = mill.throttledQueue('sites', { limit: 10, window: '1s' })
    for (const url of ['/a', '/b', '/a']) await mill.enqueue(task, url, { id: url })

    expect(await popped(queue)).toEqual(['/a', '/b'])
  })

  it('spends nothing on an empty queue: an item pushed after a window of polling is returned at once', async () => {
    const { mill, clock } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 10, window: '10s', moderate: true })
    for (let ms = 0; ms < 10_000; ms += 100) {
      expect(await queue.tryPop()).toEqual({ wait: 'empty' })
      clock.advance(100)
    }
    await queue.push('item')

    expect(await queue.pop()).toBe('item')
  })

  it('never limits pushes, and counts every item; after a clear it is empty, and earlier pops still count', async () => {
    const { mill, clock } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 2, window: '10s' })
    await pushed(queue, 50)
    expect(await queue.length()).toBe(50)
    await popped(queue)
    expect(await queue.length()).toBe(48)

    expect(await queue.clear()).toBe(48)
    expect(await queue.length()).toBe(0)
    expect(await queue.tryPop()).toEqual({ wait: 'empty' })
    await queue.push('next')
    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 10_251 })
    clock.advance(10_251)
    expect(await queue.pop()).toBe('next')
  })

  it('returns equal priorities in the order of their pushes, and equal items twice', async () => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 100, window: '1s' })
    for (const [item, priority] of [['z'], ['a'], ['top', 1], ['a'], ['low', -1]] as const)
      await queue.push(item, priority)

    expect(await popped(queue)).toEqual(['top', 'z', 'a', 'a', 'low'])
  })

  it.each([
    ['fifo', ['first', 'second', 'third']],
    ['lifo', ['third', 'second', 'first']],
  ] as const)('returns items in order %s, which then have no priority', async (order, expected) => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue<string>(order, { limit: 100, window: '1s', order })
    for (const item of ['first', 'second', 'third']) await queue.push(item)

    expect(await popped(queue)).toEqual(expected)
    await expect(queue.push('urgent', 5)).rejects.toThrow(
      `items of the throttled queue '${order}' have no priority; got 5. Leave it out, or leave \`order\` out or set it to 'priority'.`,
    )
    expect(await queue.length()).toBe(0)
  })

  it('holds any value of the codec; tryPop distinguishes null from no item', async () => {
    const { mill } = throttledScene()
    const queue = mill.throttledQueue('sites', { limit: 100, window: '1s' })
    const items = [{ at: new Date(0), tags: new Set(['a']) }, '', 0, undefined, null]
    for (const item of items) await queue.push(item)

    for (const item of items) expect(await queue.tryPop()).toEqual({ item })
    expect(await queue.tryPop()).toEqual({ wait: 'empty' })
  })

  it('follows other rules as soon as they are set: at twice the limit the spacing is half', async () => {
    const { mill, store, clock } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 10, window: '10s', moderate: true })
    await pushed(queue, 20)
    await queue.pop()
    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 1_025 })
    await store.throttles.set('sites', [{ limit: 20, windowMs: 10_000, moderate: true }])
    clock.advance(1_025)
    const given: number[] = []
    for (let ms = 0; ms < 2_000; ms += 250) {
      if ((await queue.pop()) !== null) given.push(ms)
      clock.advance(250)
    }

    expect(given).toEqual([0, 500, 1_000, 1_500])
  })

  it('gives no item later than the spread of the rules of now allows', async () => {
    const { mill, store, clock, calls, claim } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', { limit: 10, window: '1m' })
    await pushed(queue, 3)
    await queue.pop()
    // The answers to claims are 500 ms late. The spread was a second.
    store.claim = async (...asked) => {
      calls.push('claim')
      const claimed = await claim(...asked)
      if (calls.length === 1) clock.advance(500)
      return claimed
    }
    calls.length = 0
    expect(await queue.pop()).toBe('item-1')
    expect(calls).toEqual(['claim', 'settle'])

    await store.throttles.set('sites', [{ limit: 10, windowMs: 1_000, spreadMs: 50, moderate: false }])
    clock.advance(5_000)
    calls.length = 0
    expect(await queue.pop()).toBe('item-0')
    // The first grant is put back.
    expect(calls).toEqual(['claim', 'settle', 'claim', 'settle'])
  })

  it('shares one limit with the queues of its scope', async () => {
    const { mill } = throttledScene()
    const options = { limit: 3, window: '5s', scope: 'site.example' } as const
    const [pages, images] = [
      mill.throttledQueue<string>('pages', options),
      mill.throttledQueue<string>('images', options),
    ]
    await pushed(pages, 2)
    await pushed(images, 2)

    expect([...(await popped(pages)), ...(await popped(images))]).toEqual(['item-1', 'item-0', 'item-1'])
    expect(await images.tryPop()).toEqual({ wait: 'throttled', forMs: 5_126 })
  })
})

describe('the handles of a throttled queue', () => {
  it('must all have the same rules', async () => {
    const { mill, store } = throttledScene()
    await mill.throttledQueue('sites', tenPerTen).push('item')
    const other = testMillOn(store)

    for (const options of [
      { limit: 11, window: '10s' } as const,
      { ...tenPerTen, moderate: true },
      { ...tenPerTen, scope: 'a' },
    ])
      await expect(other.throttledQueue('sites', options).pop()).rejects.toMatchObject({ code: 'throttle-conflict' })
    await expect(other.throttledQueue('sites', { ...tenPerTen, order: 'lifo' }).pop()).rejects.toMatchObject({
      code: 'config-conflict',
    })
    expect(await other.throttledQueue('sites', tenPerTen).pop()).toBe('item')
  })

  it('follow the stored rules if they name none, and need some', async () => {
    const { mill, store } = throttledScene()
    await mill.throttledQueue('sites', { limit: 1, window: '10s' }).push('item')
    const queue = testMillOn(store).throttledQueue('sites')

    expect(await queue.pop()).toBe('item')
    await queue.push('next')
    expect(await queue.tryPop()).toEqual({ wait: 'throttled', forMs: 10_251 })
    await expect(mill.throttledQueue('unlimited').push('item')).rejects.toThrow(
      "queue 'unlimited' has no throttle; give mill.throttledQueue('unlimited', …) a `limit` and a `window`.",
    )
  })

  it.each<[Parameters<Mill['throttledQueue']>[1], string]>([
    [{ limit: 10 }, 'must have `limit` and `window`, or neither'],
    [{ moderate: true }, 'must have `limit` and `window` if they have any other option of the throttle'],
    [{ ...tenPerTen, elastic: { buffer: 0 } }, '`elastic` needs `moderate: true`: only an even tempo can fall behind'],
    [{ ...tenPerTen, moderate: true, elastic: true } as object, 'elastic: must be an object, with buffer; got true'],
    [{ ...tenPerTen, moderate: true, elasticBuffer: 2 } as object, 'elasticBuffer: is not an option'],
    [
      { ...tenPerTen, moderate: true, elastic: { buffer: 10 } },
      '`elastic.buffer` must be less than `limit`, or there is nothing to catch up with',
    ],
    [{ limit: 0, window: '10s' }, 'limit: must be a whole number from 1 to 1000000; got 0'],
    [{ limit: 1, window: '10 parsecs' }, 'window: must be '],
    [{ ...tenPerTen, windowName: 'a' } as object, 'windowName: is not an option; check its spelling'],
  ])('refuse meaningless options: %j', (options, message) => {
    expect(() => testMill().throttledQueue('sites', options)).toThrow(message)
  })

  it('refuse an invalid name, ordered queues and limits by group', async () => {
    const throttle = { limit: 1, window: '1s', by: 'group' } as const
    const mill = testMill({ queues: { orders: { ordered: true }, hosts: { throttle } } })

    expect(() => mill.throttledQueue('a b', tenPerTen)).toThrow('the name of a throttled queue must be')
    expect(() => mill.throttledQueue('orders', tenPerTen)).toThrow('is an ordered queue, whose payloads merge')
    await expect(mill.throttledQueue('hosts').pop()).rejects.toThrow("queue 'hosts' is limited by group")
  })

  it('end with the mill, which waits for taken items', async () => {
    const { mill, store, settle } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    await queue.push('item')
    let settling: () => void
    const hasBegun = new Promise<void>((resolve) => {
      settling = resolve
    })
    let goOn: () => void
    const mayEnd = new Promise<void>((resolve) => {
      goOn = resolve
    })
    store.settle = async (items) => {
      settling()
      await mayEnd
      return settle(items)
    }
    const item = queue.pop()
    await hasBegun
    let isClosed = false
    const closed = mill.close().then(() => {
      isClosed = true
    })
    for (let turns = 0; turns < 10; turns += 1) await new Promise((resolve) => setImmediate(resolve))
    expect(isClosed).toBe(false)
    goOn!()

    expect(await item).toBe('item')
    await closed
    for (const call of [() => queue.pop(), () => queue.push('more')])
      await expect(call()).rejects.toMatchObject({ code: 'closed' })
  })

  it('report an outage, and continue after it', async () => {
    const { mill, store, claim } = throttledScene()
    const queue = mill.throttledQueue<string>('sites', tenPerTen)
    await queue.push('item')
    store.claim = () => Promise.reject(new StoreUnavailableError('nobody answers'))
    const both = await Promise.allSettled([queue.pop(), queue.pop()])
    store.claim = claim

    expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    expect(await queue.pop()).toBe('item')
  })
})
