/** The permits of throttled jobs that were claimed and not started: each is told, and the job goes back. */
import { defineTask, type EventMap, JobCancelledError, type QueueOptions } from 'millrace'
import { memoryHarness } from 'millrace/testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { checkOptions } from '#src/config/mill-options.js'
import { Events } from '#src/core/events.js'
import { throttleOf } from '#src/core/throttle-options.js'
import { Executor } from '#src/runtime/executor.js'
import { LeaseKeeper } from '#src/runtime/lease-keeper.js'
import { Pace } from '#src/runtime/pace.js'
import { Settler } from '#src/runtime/settler.js'
import { Solitude } from '#src/runtime/solitude.js'
import { LimitedQueues } from '#src/workers/limited-queues.js'
import { Slots } from '#src/workers/slots.js'
import { Workbench } from '#src/workers/workbench.js'
import { notesOn } from '../runtime/notes-on.js'

const throttle = { limit: 100, window: 1_000 }

/** A workbench on a queue that is stored as throttled, or is not, and whose jobs run until they are ended. */
async function bench(given: { readonly slots?: number; readonly throttled?: boolean; readonly queue?: QueueOptions }) {
  const { slots = 1, throttled = true, queue = {} } = given
  const begun: string[] = []
  const ends: (() => void)[] = []
  const task = defineTask({
    name: 't',
    run: (_, { job }) => {
      begun.push(job.id)
      return new Promise<void>((resolve) => ends.push(resolve))
    },
  })
  const harness = await memoryHarness()
  const store = await harness.open()
  const settings = { name: 'default', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
  const stored = await store.open([
    { ...settings, ...(throttled ? { throttle: throttleOf('default', throttle) } : {}) },
  ])
  const options = checkOptions({ store: 'memory:', tasks: [task], queues: { default: queue } }, store.traits)
  const events = new Events()
  const wasted: EventMap['permit.wasted'][] = []
  events.on('permit.wasted', (event) => wasted.push(event))
  let now = 0
  const mono = () => now
  const keeper = new LeaseKeeper({ store, events, mono, host: 'h', pid: 1 })
  const settler = new Settler(store, events, Math.random)
  const shared = { ...options, events, worker: 'w', random: Math.random }
  const workbench = new Workbench({
    ...shared,
    slots: new Slots(slots),
    executor: (bench) => new Executor({ ...shared, bench }),
    settler,
    keeper,
    solitude: new Solitude(),
    pace: new Pace(1),
    limited: new LimitedQueues(stored),
    mono,
    rules: { ...options, maxResultBytes: 1_000, maxDelayMs: 1_000_000, canHold: true, resultDropped: () => {} },
    notes: notesOn(store, events),
    deferred: () => {},
    processes: undefined,
    maxBlockMs: 30_000,
  })
  onTestFinished(async () => {
    await keeper.stop()
    await harness.close()
  })
  return {
    begun,
    wasted,
    workbench,
    pass: (ms: number) => {
      now += ms
    },
    /** Jobs of these ids are claimed by a call that was sent at `sentAt` on the clock of the bench, and are accepted now. */
    async claimed(ids: readonly string[], sentAt = now, name = 't') {
      const jobs = ids.map((id) => ({ id, task: name, payload: '1', priority: 0, rememberMs: 0 }))
      await store.enqueue([{ callId: ids.join(), queue: 'default', jobs }])
      const { claims } = await store.claim([{ queue: 'default', limit: 10 }], { worker: 'w', leaseMs: 30_000 })
      workbench.accept(claims, sentAt)
      await new Promise(setImmediate)
    },
    async endAll() {
      for (const end of ends.splice(0)) end()
      await new Promise(setImmediate)
      await settler.settled(1_000)
    },
    state: async (id: string) => (await store.records!.get('default', id))?.state,
  }
}

const ref = (id: string) => ({ queue: 'default', id, task: 't' })

describe('a permit is wasted', () => {
  it('where a stop puts back what waits for a slot, or what a claim still brings', async () => {
    const { workbench, claimed, wasted, state, endAll } = await bench({})
    await claimed(['runs', 'waits'])
    workbench.close()
    await claimed(['comes late'])
    await endAll()

    expect(wasted).toEqual([
      { ...ref('waits'), reason: 'stopping' },
      { ...ref('comes late'), reason: 'stopping' },
    ])
    expect(await Promise.all(['runs', 'waits', 'comes late'].map(state))).toEqual([undefined, 'ready', 'ready'])
  })

  it('where the lease was lost, or the job cancelled, before it was begun', async () => {
    const { workbench, claimed, wasted, pass, endAll } = await bench({})
    await claimed(['runs', 'lost', 'cancelled'])
    const cancelled = workbench.executions.find(({ leased }) => leased[0]!.claim.id === 'cancelled')!
    cancelled.abort(new JobCancelledError('default', 'cancelled'))
    pass(27_000)
    await endAll()

    expect(wasted).toEqual([
      { ...ref('lost'), reason: 'lease-lost' },
      { ...ref('cancelled'), reason: 'cancelled' },
    ])
  })

  it('where no handler is here for the job', async () => {
    const { claimed, wasted } = await bench({})
    await claimed(['a'], 0, 'elsewhere')

    expect(wasted).toEqual([{ queue: 'default', id: 'a', task: 'elsewhere', reason: 'unknown-task' }])
  })

  it('by none that is begun at once, nor in a queue without a throttle', async () => {
    const throttled = await bench({ slots: 2 })
    await throttled.claimed(['a', 'b'])
    await throttled.endAll()
    const free = await bench({ throttled: false })
    await free.claimed(['a', 'b'])
    free.workbench.close()
    await free.endAll()

    expect([throttled.begun, throttled.wasted, free.begun, free.wasted]).toEqual([['a', 'b'], [], ['a'], []])
  })
})

describe('a claim of a throttled queue whose answer came late', () => {
  it('is put back, as its start would fall into a window that is given to others', async () => {
    const { claimed, begun, wasted, pass, endAll, state } = await bench({ slots: 9 })
    pass(250)
    await claimed(['in time'], 0)
    pass(1)
    await claimed(['late'], 0)
    await endAll()

    expect(begun).toEqual(['in time'])
    expect(wasted).toEqual([{ ...ref('late'), reason: 'late' }])
    expect(await state('late')).toBe('ready')
  })

  it('is begun where the one before it was late too: a slow store must not stop the queue', async () => {
    const { claimed, begun, wasted, pass, endAll } = await bench({ slots: 9 })
    pass(1_000)
    await claimed(['a'], 0)
    await endAll()
    await claimed(['b'], 0)
    await claimed(['c'], 0)
    await claimed(['in time'], 1_000)
    await claimed(['d'], 0)

    expect(begun).toEqual(['a', 'b', 'c', 'in time'])
    expect(wasted.map(({ id }) => id)).toEqual(['a', 'd'])
  })

  it('is begun where the queue has no throttle', async () => {
    const { claimed, begun, pass } = await bench({ throttled: false })
    pass(1_000)
    await claimed(['a'], 0)

    expect(begun).toEqual(['a'])
  })
})

describe('jobs of a lease that is not renewed', () => {
  const queue: QueueOptions = { renewLease: false, lease: '10m' }

  it('have a slot each where the queue is limited, and begin at once', async () => {
    const { claimed, begun } = await bench({ slots: 3, queue })
    await claimed(['a', 'b', 'c'])

    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('have one slot for all where it is not', async () => {
    const { claimed, begun } = await bench({ slots: 3, queue, throttled: false })
    await claimed(['a', 'b', 'c'])

    expect(begun).toEqual(['a'])
  })
})
