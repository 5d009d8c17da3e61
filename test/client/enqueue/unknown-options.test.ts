/**
 * Every call of the public objects refuses an option or an argument that it does not know. The calls are found in the objects
 * themselves: a new one must be named here with arguments before its options.
 */

import { defineOrderedTask, defineSignal, defineTask, millrace } from 'millrace'
import { testMill as clockMill } from 'millrace/testing'
import { afterAll, describe, expect, it } from 'vitest'

const strange = { strangeOption: 1 }
const task = defineTask({ name: 'task', run: async () => {} })
const orders = defineOrderedTask({ name: 'orders', id: () => 'a', run: async () => {} })
const mill = millrace({ store: 'memory:', tasks: [task, orders], queues: { plain: {} } })
const clocked = clockMill({ tasks: [task] })
const queue = mill.queue('plain')
const listener = mill.listener('plain')
await mill.enqueue(task, undefined, { id: 'claimed', queue: 'plain' })
const claim = await listener.next()
afterAll(async () => {
  await claim.complete()
  await clocked.close()
  await mill.close()
})

/** The arguments before the options, for each call of an object that needs some. */
type Before = Readonly<Record<string, readonly unknown[]>>

/** Of each object the calls with their arguments, those that take options alone, and those that nobody outside makes. */
const objects: readonly (readonly [name: string, object: object, before: Before, alone: string, inner: string])[] = [
  [
    'mill',
    mill,
    {
      ...{
        enqueue: [task, null],
        enqueueNamed: ['task', null],
        enqueueMany: [[[task, null, strange]]],
        results: [[]],
        flow: [() => {}],
        signal: ['a', defineSignal({ name: 'go' }), undefined],
        job: [task, 'a'],
      },
      ...{ listener: ['plain'], throttledQueue: ['items'], queue: ['plain'], on: ['job.added', () => {}] },
      ...{ depths: [[]], histories: [[]], stopWorker: ['w', { recycle: true }], createQueues: [{}] },
    },
    'ready worker close apiCalls workers health examine storedQueues',
    // `enqueueIn` is only on SQLite; it checks its options as `enqueue` does.
    'enqueueIn serveInPlace isolated openContext',
  ],
  [
    'queue',
    queue,
    { pause: [{ group: 'group' }], resume: [{ group: 'group' }], reshard: [2], move: ['other'] },
    'events history look depth explain drain clear',
    'filteredSteps countSteps',
  ],
  [
    'queue.jobs',
    queue.jobs,
    {
      ...{
        get: ['a'],
        count: [{ group: 'g' }],
        explain: ['a'],
        cancel: ['all'],
        delete: ['all'],
        runNow: ['all'],
        reschedule: ['all'],
        bury: ['all'],
        enqueueAgain: ['a'],
      },
      ...{ fail: ['a', 'why'], forgetStep: ['a', 'charge', {}], setFields: ['a', { x: '1' }] },
    },
    'list',
    '',
  ],
  ['queue.morgue', queue.morgue, { get: ['a'], revive: ['all'], delete: ['all'] }, 'list', ''],
  [
    'queue.throttle',
    queue.throttle,
    { get: ['group'], set: [{ limit: 1, window: 1_000 }], release: ['group'] },
    'rates holds',
    'pauseGroup resumeGroup',
  ],
  [
    'mill.schedules',
    mill.schedules,
    {
      ...{ set: ['s', { every: '1h', task }], remove: ['s'], clear: ['s'], get: ['s'], pause: ['s'], resume: ['s'] },
      ...{ runNow: ['s'], next: ['s', 1], reconcile: [1] },
    },
    'restore list',
    '',
  ],
  ['handle', mill.job(task, 'a'), {}, 'record status explain result cancel events', 'send follow'],
  ['worker', mill.worker(), {}, 'start stop finished status', 'fail'],
  ['listener', listener, { attach: ['token'] }, 'next close', ''],
  [
    'claim',
    claim,
    {
      progress: [0.5, 'note'],
      log: ['text'],
      checkpoint: [1],
      complete: [1],
      fail: ['x'],
      hold: ['10s'],
      joined: [task],
    },
    'started extend release',
    'onExtended',
  ],
  [
    'throttled queue',
    mill.throttledQueue('items', { limit: 1, window: '1s' }),
    { push: [1, 0] },
    'pop tryPop length clear close',
    '',
  ],
  [
    'test mill',
    clocked,
    { enqueued: [task], advance: ['1s'], failNext: ['enqueue', new Error('x')] },
    'drain outage',
    '',
  ],
]

const words = (text: string) => text.split(' ').filter(Boolean)

/** The names of the calls that it has, or else its class. */
function callsOf(holder: object): string[] {
  return Object.entries(Object.getOwnPropertyDescriptors(holder))
    .filter(([name, { value }]) => typeof value === 'function' && name !== 'constructor')
    .map(([name]) => name)
}

/** What has the calls: the object itself, or its class. */
function holderOf(object: object): object {
  const proto = Object.getPrototypeOf(object) as object
  return proto === Object.prototype ? object : proto
}

describe.each(objects)('each call of %s', (_, object, before, alone, inner) => {
  const calls = Object.keys(before).concat(words(alone))

  it('is covered by this test', () => {
    expect([...calls, ...words(inner)].sort()).toEqual(callsOf(holderOf(object)).sort())
  })

  it.each(calls)('refuses options that it would ignore: %s', async (name) => {
    const call = (object as Record<string, (...args: unknown[]) => unknown>)[name]!
    const answer = async () => call.apply(object, [...(before[name] ?? []), strange])
    const error = await answer().then(
      () => undefined,
      (thrown: Error & { code?: string }) => thrown,
    )
    expect(error, `${name}() has ignored it`).toBeDefined()
    expect(error!.code).toMatch(/^(?:argument-invalid|config-invalid|job-invalid|enqueue-many-refused)$/)
    expect(error!.message).toContain('strangeOption')
  })
})

it('a reason that is not text is refused, and nothing is cancelled', async () => {
  const job = await mill.enqueue(task, undefined, { id: 'b', queue: 'plain' })
  await expect(queue.jobs.cancel('all', { group: 'a' } as never)).rejects.toMatchObject({ code: 'argument-invalid' })
  await expect(job.cancel({ group: 'a' } as never)).rejects.toMatchObject({ code: 'argument-invalid' })
  expect(await job.status()).toBe('ready')
})

it('a misspelt option gets a suggestion', async () => {
  await expect(mill.job('b').result({ timout: '1s' } as never)).rejects.toThrow(
    /^result\(\{ timout \}\) is not an option; check its spelling: there are timeout.*Probably `timeout` is meant/,
  )
})
