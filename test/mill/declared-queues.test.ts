/** The declared queues: which of them are ordered, what contradicts in them and their tasks, and what a store hears of them. */
import { defineOrderedTask, defineTask, type MillOptions, millrace, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { UnsupportedByStoreError } from '#src/core/errors.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import type { QueueSettings } from '#src/stores/contract/queue-settings.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { issuesOf } from '../issues-of.js'
import { testMill, testMillOn } from '../test-mill.js'

const sync = defineOrderedTask({ name: 'sync', queue: 'orders' })
const latest = defineOrderedTask({ name: 'latest', merge: 'latest' })
const email = defineTask({ name: 'email' })

describe('a queue', () => {
  it.each(['constructor', 'prototype', '__proto__'])('or a schedule named %s is refused, not left out', (name) => {
    const queues = JSON.parse(`{ "${name}": {}, "mail": {} }`) as Record<string, QueueOptions>
    const schedules = JSON.parse(`{ "${name}": { "task": "email", "every": "1h" } }`) as MillOptions['schedules']

    expect(() => testMill({ queues })).toThrow(`queues.${name}: must have another name`)
    expect(() => testMill({ tasks: [email], schedules: schedules! })).toThrow(
      `schedules.${name}: must have another name`,
    )
  })

  it('that an ordered task names is ordered, declared or not; others are plain', () => {
    const { queues } = testMill({ tasks: [sync, latest, email], queues: { orders: { weight: 5 }, plain: {} } })

    expect([...queues.values()].map(({ name, ordered, shards }) => [name, ordered, shards])).toEqual([
      ['orders', true, 5],
      ['plain', false, 1],
      ['latest', true, 5],
      ['default', false, 1],
    ])
    expect(queues.get('orders')?.weight).toBe(5)
  })

  it('may be declared as ordered if its task is unknown', () => {
    const { queues } = testMill({ queues: { orders: { ordered: true, shards: 24, exclusive: 'shard' } } })

    expect(queues.get('orders')).toMatchObject({ ordered: true, shards: 24, exclusive: 'shard' })
  })

  it('of an ordered task may have the name of a built-in property', () => {
    const { queues } = testMill({ tasks: [defineOrderedTask({ name: 'constructor' })] })

    expect(queues.get('constructor')).toMatchObject({ ordered: true, weight: 10 })
  })
})

describe('a clash', () => {
  const mistakes = (options: Partial<MillOptions>) => issuesOf(() => millrace({ store: 'memory:', ...options }))

  const orders = (options: QueueOptions) => ({ queues: { orders: options } })
  const table: [string, Partial<MillOptions>, string][] = [
    [
      'a queue that is not to be ordered, and its ordered task',
      { tasks: [sync], ...orders({ ordered: false }) },
      "queues.orders.ordered: must not be false: the ordered task 'sync' uses this queue; leave it out, or give the task another queue",
    ],
    [
      'two ordered tasks on one queue',
      { tasks: [sync, defineOrderedTask({ name: 'sync2', queue: 'orders' })] },
      "tasks.sync2.queue: must be another: 'orders' belongs to the ordered task 'sync', and an ordered queue has one task",
    ],
    [
      'a plain task before the ordered one on its queue',
      { tasks: [defineTask({ name: 'note', queue: 'orders' }), sync] },
      "tasks.note.queue: must be another: 'orders' belongs to the ordered task 'sync', and an ordered queue has one task",
    ],
    [
      'a plain task on an ordered queue whose task is not known',
      { tasks: [defineTask({ name: 'note', queue: 'orders' })], ...orders({ ordered: true }) },
      "tasks.note.queue: must be another: 'orders' is ordered, and only a task made by defineOrderedTask() can use it",
    ],
    [
      'exclusive on a plain queue',
      orders({ exclusive: 'id' }),
      'queues.orders.exclusive: is for ordered queues only; set `ordered: true`, or leave it out',
    ],
    [
      'shardOrder on a plain queue',
      orders({ ordered: false, shardOrder: 'lag' }),
      'queues.orders.shardOrder: is for ordered queues only; set `ordered: true`, or leave it out',
    ],
    [
      'lifo on an ordered queue',
      { tasks: [sync], ...orders({ order: 'lifo' }) },
      "queues.orders.order: must be 'fifo' or left out: an ordered queue goes by time",
    ],
    [
      'kept results on an ordered queue',
      orders({ ordered: true, retention: { results: { count: 5 } } }),
      'queues.orders.retention.results: must be left out: jobs of an ordered queue have no results',
    ],
  ]

  it.each(table)('of %s is reported with its remedy', (_, options, message) => {
    expect(mistakes(options)).toEqual([message])
  })

  it('is reported together with all others', () => {
    const tasks = [sync, defineTask({ name: 'a', queue: 'orders' }), defineOrderedTask({ name: 'b', queue: 'orders' })]

    expect(mistakes({ tasks, queues: { q: { exclusive: 'id', shardOrder: 'lag' } } })).toHaveLength(4)
  })

  it('does not arise from options that an ordered queue may have', () => {
    const queue = {
      ordered: true,
      shardOrder: 'sequential',
      retention: { results: 'none', dead: { count: 5 } },
    } as const

    expect(mistakes({ tasks: [sync], ...orders(queue) })).toEqual([])
  })
})

describe('a store', () => {
  it('without ordered queues is named, with a remedy', () => {
    const traits = { ...memoryTraits, name: 'tiny', ordered: false }
    const check = (options: Omit<MillOptions, 'store'>) => () => checkOptions({ store: 'memory:', ...options }, traits)

    expect(check({ tasks: [sync] })).toThrow(UnsupportedByStoreError)
    expect(check({ tasks: [sync] })).toThrow(
      "the tiny store cannot do this: ordered queue 'orders'. Make 'sync' by defineTask(), or use a store with ordered queues.",
    )
    expect(check({ queues: { orders: { ordered: true } } })).toThrow(
      "the tiny store cannot do this: ordered queue 'orders'. Leave `ordered` out, or use a store with ordered queues.",
    )
  })

  it('gets the form of each queue, and the way to merge payloads only if the task is known', async () => {
    const store = new MemoryStore()
    let opened: readonly QueueSettings[] = []
    const open = store.open.bind(store)
    store.open = (settings, how) => {
      opened = settings
      return open(settings, how)
    }
    const queues: Record<string, QueueOptions> = {
      orders: { exclusive: 'shard', shards: 24, maxPending: 7 },
      unknown: { ordered: true },
    }
    await testMillOn(store, { tasks: [sync, latest, email], queues }).ready()
    const told = opened.map(({ order, ...rest }) => rest)

    expect(told).toEqual([
      { name: 'orders', kind: 'ordered', shards: 24, exclusive: 'shard', merge: 'all', maxPending: 7 },
      { name: 'unknown', kind: 'ordered', shards: 5, exclusive: 'id' },
      { name: 'latest', kind: 'ordered', shards: 5, exclusive: 'id', merge: 'latest' },
      { name: 'default', kind: 'plain', shards: 1 },
    ])
  })
})

const limitMistakes = (queues: Record<string, QueueOptions>, tasks: MillOptions['tasks'] = []) =>
  issuesOf(() => millrace({ store: 'memory:', queues, tasks }))

const perGroup = { maxRunning: { perGroup: 2 } }

describe('maxRunning of each group', () => {
  const remedy = 'set `shards: 1`, or give a number for all groups together'

  it('is refused for several shards, which ordered queues have by default', () => {
    const ordered = (shards: number) =>
      `queues.q.maxRunning: cannot be \`{ perGroup }\` over its ${shards} shards (5 if an ordered queue has no \`shards\`): ${remedy}`

    expect(limitMistakes({ q: { ...perGroup, ordered: true } })).toEqual([ordered(5)])
    expect(limitMistakes({ q: perGroup }, [defineOrderedTask({ name: 'q' })])).toEqual([ordered(5)])
    expect(limitMistakes({ q: { ...perGroup, ordered: true, shards: 2 } })).toEqual([ordered(2)])
    expect(limitMistakes({ q: { ...perGroup, shards: 3 } })).toEqual([
      `queues.q.maxRunning: cannot be \`{ perGroup }\` over its 3 shards: ${remedy}`,
    ])
  })

  it('is accepted for one shard, and a number for all groups for several', () => {
    expect(limitMistakes({ q: perGroup, o: { ...perGroup, ordered: true, shards: 1 } })).toEqual([])
    expect(limitMistakes({ o: { maxRunning: 7, ordered: true } })).toEqual([])
  })
})

describe('queues of one scope', () => {
  const ten = { limit: 10, window: '1m' } as const

  it('that disagree about its rules are each reported together with the first', () => {
    const queues = {
      a: { throttle: { ...ten, scope: 'sites' } },
      b: { throttle: { ...ten, scope: 'sites', moderate: true } },
      sites: { throttle: { ...ten, by: 'group' as const } },
      c: { throttle: { limit: 10, window: 60_000, scope: 'sites' } },
    }

    expect(limitMistakes(queues)).toEqual([
      "queues.b.throttle: must be the same as that of queue 'a', as the two share the scope 'sites': 10 in 1m, scope 'sites'; got 10 in 1m, moderate, scope 'sites'",
      "queues.sites.throttle: must be the same as that of queue 'a', as the two share the scope 'sites': 10 in 1m, scope 'sites'; got 10 in 1m, by group",
    ])
  })

  it('that agree are accepted, and so are other rules in another scope', () => {
    expect(
      limitMistakes({ a: { throttle: { ...ten, scope: 's' } }, s: { throttle: ten }, b: { throttle: ten } }),
    ).toEqual([])
    expect(limitMistakes({ a: { throttle: ten }, b: { throttle: { limit: 1, window: '1s' } } })).toEqual([])
  })
})

it('clashes of limits are reported at once, together with other clashes', () => {
  const queues: Record<string, QueueOptions> = {
    a: { ...perGroup, shards: 2, exclusive: 'shard' },
    b: { throttle: { limit: 1, window: '1s', scope: 'c' } },
    c: { throttle: { limit: 2, window: '1s' } },
  }

  expect(limitMistakes(queues).map((text) => text.split(':')[0])).toEqual([
    'queues.a.exclusive',
    'queues.a.maxRunning',
    'queues.c.throttle',
  ])
})
