/** The administration of a throttle: what it has counted, and other rules for it. */
import { defineTask, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ConfigError, InvalidArgumentError, UnsupportedByStoreError } from '#src/core/errors.js'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { testMillOn } from '../../test-mill.js'

const task = defineTask({ name: 't', queue: 'q' })

/** A mill on a store whose clock stands; `take` claims as many as it is given of the queue `q`. */
function scene(options: QueueOptions, others: Record<string, QueueOptions> = {}) {
  const clock = new ManualClock(1_000_000)
  const store = new MemoryStore(clock)
  const mill = testMillOn(store, { tasks: [task], queues: { q: options, ...others } })
  const take = async (limit = 1) =>
    (await store.claim([{ queue: 'q', limit }], { worker: 'w', leaseMs: 60_000 })).claims.length
  return { clock, store, mill, take, throttle: mill.queue('q').throttle }
}

describe('a throttle', () => {
  it('shows its rules, its queues, the starts in each window, and when the next may start', async () => {
    const options: QueueOptions = {
      throttle: [
        { limit: 2, window: '1s', scope: 's' },
        { limit: 5, window: '1h', scope: 's', moderate: true, elastic: { buffer: 1 } },
      ],
    }
    const { clock, mill, take, throttle } = scene(options, { z: options })
    await mill.enqueueMany(task, [1, 2, 3])
    expect(await take()).toBe(1)
    clock.advance(1_500)

    expect(await throttle.get()).toEqual({
      scope: 's',
      by: 'queue',
      rules: [
        { limit: 2, windowMs: 1_000, spreadMs: 50, moderate: false },
        { limit: 5, windowMs: 3_600_000, spreadMs: 1_000, moderate: true, elasticBuffer: 1 },
      ],
      queues: ['q', 'z'],
      hits: [0, 1],
      forMs: 720_200 - 1_500,
      quietForMs: 0,
    })
    expect(await mill.queue('z').throttle.get()).toMatchObject({ hits: [0, 1] })
  })

  it('by group shows the requested group, also by number, or how many groups there are', async () => {
    const { mill, take, throttle } = scene({ throttle: { limit: 1, window: '1s', by: 'group' } })
    await mill.enqueueMany(task, [1, 2], (group) => ({ group: group as number }))
    expect(await take(2)).toBe(2)

    expect(await throttle.get(1)).toMatchObject({ by: 'group', hits: [1], forMs: 1_051 })
    expect(await throttle.get('2')).toMatchObject({ hits: [1] })
    expect(await throttle.get('')).toMatchObject({ hits: [0], forMs: 0 })
    expect(await throttle.get()).toMatchObject({ hits: [0], groups: 2 })
  })

  it('is undefined if the queue has none', async () => {
    expect(await scene({}).throttle.get()).toBeUndefined()
  })

  it('by group gives one group its own rate, shows it, lists it, and ends it', async () => {
    const { mill, take, throttle } = scene({ throttle: { limit: 1, window: '1s', by: 'group' } })
    await mill.enqueueMany(task, [1, 1, 1, 2, 2], (group) => ({ group: `g${group}` }))
    expect(await take(9)).toBe(2)
    await throttle.set({ limit: 2, window: '10s' }, { group: 'g1' })
    await throttle.set([{ limit: 3, window: '1s', moderate: true }], { group: 7 })

    const rules = [{ limit: 2, windowMs: 10_000, spreadMs: 250, moderate: false }]
    const own = { groups: 2, longestMs: 10_250, leastSpreadMs: 50 }
    expect(await take(9)).toBe(1)
    expect(await throttle.get('g1')).toMatchObject({ rules, hits: [2], isOwn: true, own })
    expect(await throttle.get('g2')).toMatchObject({ rules: [{ limit: 1 }], hits: [1], own })
    expect((await throttle.get('g2'))!.isOwn).toBeUndefined()
    expect(await throttle.rates()).toMatchObject({ rates: [{ group: '7' }, { group: 'g1', rules }], total: 2 })
    expect((await throttle.rates({ limit: 1 })).rates).toHaveLength(1)
    await throttle.set('default', { group: 'g1' })
    expect(await throttle.get('g1')).toMatchObject({ rules: [{ limit: 1, windowMs: 1_000 }], hits: [2] })
    expect((await throttle.rates()).total).toBe(1)
  })

  it('changes nothing if no group is named, or if no rules are by group', async () => {
    const { mill, throttle } = scene({ throttle: { limit: 1, window: '1s', by: 'group' } })
    await mill.ready()
    const rate = { limit: 9, window: '1s' } as const
    for (const choice of [{}, { group: undefined }, { group: null }, { group: ['a'] }, { name: 'a' }])
      await expect(throttle.set(rate, choice as never)).rejects.toThrow(InvalidArgumentError)
    await expect(throttle.set('default' as never)).rejects.toThrow(/is for one group; got no group/)
    await expect(throttle.set({ ...rate, limit: 0 }, { group: 'a' })).rejects.toThrow(/rate of group 'a'/)
    await expect(throttle.rates({ limit: 0 })).rejects.toThrow(InvalidArgumentError)
    expect(await throttle.get('a')).toMatchObject({ rules: [{ limit: 1 }] })

    const whole = scene({ throttle: { limit: 1, window: '1s' } }).throttle
    await expect(whole.set(rate, { group: 'a' })).rejects.toThrow(/one throttle for all of its jobs together/)
    expect(await whole.rates()).toEqual({ rates: [], total: 0 })
  })

  it('for all and for each group shows both, and accepts either', async () => {
    const { mill, take, throttle } = scene({
      throttle: [
        { limit: 3, window: '1s' },
        { limit: 1, window: '2s', by: 'group' },
      ],
    })
    await mill.enqueueMany(task, ['a', 'a', 'b', 'c', 'd'], (group) => ({ group: group as string }))
    expect(await take(9)).toBe(3)
    const all = { by: 'queue', rules: [{ limit: 3 }], eachGroup: [{ limit: 1, windowMs: 2_000 }], hits: [3], groups: 3 }
    expect(await throttle.get()).toMatchObject({ ...all, forMs: 1_051 })
    expect(await throttle.get('a')).toMatchObject({ ...all, groupHits: [1], forMs: 2_051 })

    await throttle.set({ limit: 9, window: '1s' })
    await throttle.set({ limit: 2, window: '2s', by: 'group' })
    await throttle.set({ limit: 5, window: '1h' }, { group: 'a' })
    expect(await throttle.get('a')).toMatchObject({
      ...{ rules: [{ limit: 9 }], eachGroup: [{ limit: 5, windowMs: 3_600_000 }], hits: [3], groupHits: [1] },
      ...{ isOwn: true, own: { groups: 1 } },
    })
    expect(await throttle.get('b')).toMatchObject({ eachGroup: [{ limit: 2 }] })
    await expect(throttle.set({ limit: 5, window: '1h', by: 'queue' }, { group: 'a' })).rejects.toThrow(/by group/)
    const whole = scene({ throttle: { limit: 1, window: '1s' } })
    await whole.mill.ready()
    await expect(whole.throttle.set({ limit: 1, window: '1s', by: 'group' })).rejects.toThrow(/has no rules by group/)
  })

  it('accepts other rules, under which waiting jobs may start at once; earlier starts still count', async () => {
    const { mill, take, throttle } = scene({ throttle: { limit: 1, window: '1h' } })
    await mill.enqueueMany(task, [1, 2, 3, 4])
    expect([await take(4), await take(4)]).toEqual([1, 0])
    await throttle.set({ limit: 3, window: '30m' })

    expect(await take(4)).toBe(2)
    expect(await throttle.get()).toMatchObject({
      rules: [{ limit: 3, windowMs: 1_800_000, spreadMs: 1_000, moderate: false }],
      hits: [3],
    })
    await throttle.set([
      { limit: 10, window: '1s' },
      { limit: 20, window: '1m', moderate: true },
    ])
    expect((await throttle.get())!.rules.map(({ limit }) => limit)).toEqual([10, 20])
  })
})

describe('what a throttle refuses', () => {
  const limited: QueueOptions = { throttle: { limit: 1, window: '1h' } }

  it.each([
    ['has no window', { limit: 1 }, /^the throttle of queue 'q' is not valid:\n {2}window: is missing/],
    ['starts nothing', { limit: 0, window: '1s' }, /limit: must be a whole number from 1 to 1000000; got 0/],
    ['is not a list', [], /must name at least one window/],
    [
      'names both kinds',
      [
        { limit: 1, window: '1s', by: 'queue' },
        { limit: 1, window: '1s', by: 'group' },
      ],
      /must have one `by`/,
    ],
    ['names a scope', [{ limit: 1, window: '1s', scope: 'q' }], /must not name `scope`: it is fixed/],
    ['is none', 5, /must be an object, with limit, window, .*; got 5/],
  ])('a rule that %s, and nothing is changed', async (_, change, message) => {
    const { throttle, mill } = scene(limited)
    await mill.ready()
    const refused = await throttle.set(change as never).catch((error: unknown) => error)

    expect(refused).toBeInstanceOf(ConfigError)
    expect((refused as Error).message).toMatch(message)
    expect(await throttle.get()).toMatchObject({ rules: [{ limit: 1, windowMs: 3_600_000 }] })
  })

  it('rules for a queue without a throttle', async () => {
    await expect(scene({}).throttle.set({ limit: 1, window: '1s' })).rejects.toThrow(InvalidArgumentError)
  })

  it('an invalid group', async () => {
    const { throttle } = scene(limited)

    await expect(throttle.get('a\0b')).rejects.toThrow(/a group must be at most 256 bytes/)
    await expect(throttle.get({} as never)).rejects.toThrow(InvalidArgumentError)
  })

  it('everything on a store without throttles, with the remedy', async () => {
    const store = Object.defineProperty(new MemoryStore(), 'throttles', { value: undefined })
    const { throttle } = testMillOn(store, { tasks: [task] }).queue('q')

    for (const asked of [throttle.get(), throttle.set({ limit: 1, window: '1s' })]) {
      await expect(asked).rejects.toThrow(UnsupportedByStoreError)
      await expect(asked).rejects.toThrow('the memory store cannot do this: throttles.')
    }
  })
})
