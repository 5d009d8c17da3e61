/**
 * Every call of the public objects refuses an option or an argument that it does not know. The calls are found in the objects
 * themselves: a new one must be named here with arguments before its options.
 */

import { defineOrderedTask, defineTask, millrace } from 'millrace'
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

/** The arguments before the options, for each call of each object; `null`: not a call that somebody outside makes. */
type Calls = Readonly<Record<string, readonly unknown[] | null>>

const objects: readonly (readonly [name: string, object: object, calls: Calls])[] = [
  [
    'mill',
    mill,
    {
      enqueue: [task, null],
      enqueueMany: [[[task, null, strange]]],
      // Only on SQLite; it checks its options as `enqueue` does.
      enqueueIn: null,
      results: [[]],
      ready: [],
      job: [task, 'a'],
      worker: [],
      listener: ['plain'],
      throttledQueue: ['items'],
      queue: ['plain'],
      on: ['job.added', () => {}],
      close: [],
      serveInPlace: null,
      isolated: null,
      depths: [[]],
      histories: [[]],
      apiCalls: [],
      workers: [],
      stopWorker: ['w', { recycle: true }],
      health: [],
      examine: [],
      storedQueues: [],
      createQueues: [{}],
    },
  ],
  [
    'queue',
    queue,
    {
      events: [],
      history: [],
      look: [],
      depth: [],
      pause: [{ group: 'group' }],
      resume: [{ group: 'group' }],
      drain: [],
      clear: [],
      reshard: [2],
      move: ['other'],
    },
  ],
  [
    'queue.jobs',
    queue.jobs,
    {
      list: [],
      get: ['a'],
      cancel: ['all'],
      delete: ['all'],
      runNow: ['all'],
      bury: ['all'],
      fail: ['a', 'why'],
      setFields: ['a', { x: '1' }],
    },
  ],
  ['queue.morgue', queue.morgue, { get: ['a'], list: [], revive: ['all'], delete: ['all'] }],
  [
    'queue.throttle',
    queue.throttle,
    {
      get: ['group'],
      set: [{ limit: 1, window: 1_000 }],
      rates: [],
      holds: [],
      release: ['group'],
      pauseGroup: null,
      resumeGroup: null,
    },
  ],
  [
    'mill.schedules',
    mill.schedules,
    {
      set: ['s', { every: '1h', task }],
      remove: ['s'],
      clear: ['s'],
      restore: [],
      get: ['s'],
      list: [],
      pause: ['s'],
      resume: ['s'],
      runNow: ['s'],
      next: ['s', 1],
      reconcile: [1],
    },
  ],
  ['handle', mill.job(task, 'a'), { record: [], status: [], result: [], cancel: [] }],
  ['worker', mill.worker(), { start: [], stop: [], finished: [], status: [], fail: null }],
  ['listener', listener, { next: [], attach: ['token'], close: [] }],
  [
    'claim',
    claim,
    {
      started: [],
      extend: [],
      progress: [0.5, 'note'],
      log: ['text'],
      checkpoint: [1],
      complete: [1],
      fail: ['x'],
      hold: ['10s'],
      release: [],
      hear: null,
    },
  ],
  [
    'throttled queue',
    mill.throttledQueue('items', { limit: 1, window: '1s' }),
    { push: [1, 0], pop: [], tryPop: [], length: [], clear: [], close: [] },
  ],
  [
    'test mill',
    clocked,
    { drain: [], enqueued: [task], advance: ['1s'], failNext: ['enqueue', new Error('x')], outage: [] },
  ],
]

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

describe.each(objects)('each call of %s', (_, object, calls) => {
  it('is covered by this test', () => {
    expect(Object.keys(calls).sort()).toEqual(callsOf(holderOf(object)).sort())
  })

  it.each(Object.entries(calls).filter(([, before]) => before !== null))(
    'refuses options that it would ignore: %s',
    async (name, before) => {
      const call = (object as Record<string, (...args: unknown[]) => unknown>)[name]!
      const answer = async () => call.apply(object, [...before!, strange])
      const error = await answer().then(
        () => undefined,
        (thrown: Error & { code?: string }) => thrown,
      )
      expect(error, `${name}() has ignored it`).toBeDefined()
      expect(error!.code).toMatch(/^(?:argument-invalid|config-invalid|job-invalid|enqueue-many-refused)$/)
      expect(error!.message).toContain('strangeOption')
    },
  )
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
