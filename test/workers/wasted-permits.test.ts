/** The permits of throttled jobs that were claimed and not started: each is told, and the job goes back. */
import { defineTask, type EventMap, type Middleware, type QueueOptions } from 'millrace'
import { memoryHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { JobCancelledError } from '#src/core/errors.js'
import { Events } from '#src/core/events.js'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { LeaseKeeper } from '#src/runtime/leases/lease-keeper.js'
import { Prefetch } from '#src/runtime/prefetch.js'
import { ClaimDecoder } from '#src/runtime/run/claim-decoder.js'
import { Executor } from '#src/runtime/run/executor.js'
import { Settler } from '#src/runtime/run/settler.js'
import { SoloGate } from '#src/runtime/solo-gate.js'
import { GrouplessJobs } from '#src/workers/claim-loop/groupless-jobs.js'
import { InFlight } from '#src/workers/claim-loop/in-flight.js'
import { DepartureSizes } from '#src/workers/departures/departure-sizes.js'
import { LimitedQueues } from '#src/workers/departures/limited-queues.js'
import { Punctuality } from '#src/workers/departures/punctuality.js'
import { EndHooks } from '#src/workers/end-hooks.js'
import { Slots } from '#src/workers/slots.js'
import { notesOn } from '../runtime/updates-on.js'

/** A workbench on a queue that is stored as throttled, or is not, and whose jobs run until they are ended. */
async function bench(given: {
  readonly slots?: number
  readonly throttled?: boolean
  readonly window?: number
  readonly queue?: QueueOptions
}) {
  const { slots = 1, throttled = true, window = 1_000, queue = {} } = given
  const begun: string[] = []
  const ends: (() => void)[] = []
  const [task, other] = ['default', 'other'].map((queue) =>
    defineTask({
      name: queue === 'default' ? 't' : 'other',
      queue,
      run: (_, { job }) => {
        begun.push(job.id)
        return new Promise<void>((resolve) => ends.push(resolve))
      },
    }),
  )
  const harness = await memoryHarness()
  const store = await harness.open()
  const settings = { name: 'default', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
  const stored = await store.open([
    { ...settings, ...(throttled ? { throttle: throttleOf('default', { limit: 100, window }) } : {}) },
    { ...settings, name: 'other' },
  ])
  const queues = { default: queue, other: {} }
  const options = checkOptions({ store: 'memory:', tasks: [task!, other!], queues }, store.traits)
  const events = new Events()
  const wasted: EventMap['permit.wasted'][] = []
  const late: EventMap['start.late'][] = []
  events.on('start.late', (event) => late.push(event))
  events.on('permit.wasted', (event) => wasted.push(event))
  let now = 0
  const mono = () => now
  const limited = new LimitedQueues(stored)
  const timers = new Set<{ readonly at: number; readonly work: () => void }>()
  const keeper = new LeaseKeeper({ store, events, mono, host: 'h', pid: 1 })
  const settler = new Settler({ store, events, random: Math.random, mono: () => performance.now() })
  const slowness = { ms: 0 }
  const slow: Middleware = {
    run: (_, next) => {
      now += slowness.ms
      return next()
    },
  }
  const shared = { ...options, events, worker: 'w', random: Math.random, middleware: [slow] }
  const notes = notesOn(store, events)
  const prefetch = new Prefetch(1)
  const inFlight = new InFlight({
    ...shared,
    slots: new Slots(slots),
    executor: (bench) => new Executor({ ...shared, mono, bench }),
    settler,
    keeper,
    soloGate: new SoloGate(),
    prefetch,
    limited,
    punctuality: new Punctuality(limited, options.registry),
    sizes: new DepartureSizes({ limited, registry: options.registry, prefetch }),
    after: (ms, work) => {
      const timer = { at: now + ms, work }
      timers.add(timer)
      return () => timers.delete(timer)
    },
    mono,
    rules: {
      ...options,
      maxResultBytes: 1_000,
      maxDelayMs: 1_000_000,
      canHold: true,
      now: () => 0,
      resultDropped: () => {},
    },
    notes,
    hooks: new EndHooks([], events),
    groupless: new GrouplessJobs({ ...options, limited, events }),
    decoder: new ClaimDecoder(options.registry, options.packing, notes, () => 0),
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
    late,
    /** How long a middleware takes before each handler. */
    slowness,
    inFlight,
    /** Time passes, and what is due by then is done. */
    async pass(ms: number) {
      now += ms
      for (const timer of timers) if (timer.at <= now && timers.delete(timer)) timer.work()
      await new Promise(setImmediate)
    },
    /**
     * Jobs of these ids are claimed by a call that was sent at `sentAt` on the clock of the bench, and are accepted now; the
     * store granted them at `grantedAt`.
     */
    async claimed(
      ids: readonly string[],
      given: {
        readonly sentAt?: number
        readonly grantedAt?: number
        readonly name?: string
        readonly queue?: 'default' | 'other'
      } = {},
    ) {
      const { sentAt = now, grantedAt = sentAt, queue = 'default', name = queue === 'other' ? queue : 't' } = given
      const jobs = ids.map((id) => ({ id, task: name, payload: '1', priority: 0, rememberMs: 0 }))
      if (jobs.length > 0) await store.enqueue([{ callId: ids.join(), queue, jobs }])
      const { claims } = await store.claim([{ queue, limit: 10 }], { worker: 'w', leaseMs: 30_000 })
      inFlight.accept(claims, { sentAt, answeredAt: now, now: storeStartedAt + grantedAt })
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

/** The clock of the store and that of the bench are so far apart. */
const storeStartedAt = 1_000_000
const ref = (id: string) => ({ queue: 'default', id, task: 't' })

describe('a permit is wasted', () => {
  it('where a stop puts back what waits for its instant, or what a claim still brings', async () => {
    const { inFlight, claimed, wasted, state, endAll, pass } = await bench({})
    await claimed(['runs'])
    await pass(51)
    await claimed(['waits'])
    inFlight.close()
    await claimed(['comes late'])
    await endAll()

    expect(wasted).toEqual([
      { ...ref('waits'), reason: 'stopping' },
      { ...ref('comes late'), reason: 'stopping' },
    ])
    expect(await Promise.all(['runs', 'waits', 'comes late'].map(state))).toEqual([undefined, 'ready', 'ready'])
  })

  it('where the job was cancelled before it was begun', async () => {
    const { inFlight, claimed, wasted, pass, endAll } = await bench({})
    await claimed(['cancelled'])
    const [cancelled] = inFlight.executions
    cancelled!.abort(new JobCancelledError('default', 'cancelled'))
    await pass(51)
    await endAll()

    expect(wasted).toEqual([{ ...ref('cancelled'), reason: 'cancelled' }])
  })

  it('where no handler is here for the job', async () => {
    const { claimed, wasted } = await bench({})
    await claimed(['a'], { name: 'elsewhere' })

    expect(wasted).toEqual([{ queue: 'default', id: 'a', task: 'elsewhere', reason: 'unknown-task' }])
  })

  it('by none that begins at its instant, nor in a queue without a throttle', async () => {
    const throttled = await bench({ slots: 2 })
    await throttled.claimed(['a', 'b'])
    await throttled.pass(51)
    await throttled.endAll()
    const free = await bench({ throttled: false })
    await free.claimed(['a', 'b'])
    free.inFlight.close()
    await free.endAll()

    expect([throttled.begun, throttled.wasted, free.begun, free.wasted]).toEqual([['a', 'b'], [], ['a'], []])
  })
})

describe('a job of a throttled queue', () => {
  it('begins 50 ms after the store granted it, however soon the answer came, with all that were granted with it', async () => {
    const { claimed, begun, pass } = await bench({ slots: 9 })
    await claimed(['quick'])
    await pass(51)
    await pass(10)
    await claimed(['a', 'b'], { sentAt: 51, grantedAt: 51 })
    await pass(40)
    expect(begun).toEqual(['quick'])
    await pass(2)

    expect(begun).toEqual(['quick', 'a', 'b'])
  })

  it('is put back if it can only begin 100 ms after its grant: its start would fall into a window that is given to others', async () => {
    const { claimed, begun, wasted, pass, endAll, state } = await bench({ slots: 9 })
    await claimed(['before'])
    await pass(51)
    await claimed(['late'])
    await pass(100)
    await endAll()

    expect(begun).toEqual(['before'])
    expect(wasted).toEqual([{ ...ref('late'), reason: 'late' }])
    expect(await state('late')).toBe('ready')
  })

  it('finds the slot free that was counted for it, whatever else was claimed meanwhile', async () => {
    const { claimed, begun, pass } = await bench({ slots: 2 })
    await claimed(['waits'])
    await claimed(['first', 'second'], { queue: 'other' })
    expect(begun).toEqual(['first'])
    await pass(51)

    expect(begun).toEqual(['first', 'waits'])
  })

  it('begins behind others in its slot, if it was claimed with more than there are slots because all of them are short', async () => {
    const { claimed, begun, wasted, pass, endAll } = await bench({ slots: 1 })
    await claimed(['first'])
    await pass(51)
    await endAll()
    await pass(10)
    await claimed(['a', 'b', 'c'])
    await claimed(['other'], { queue: 'other' })
    expect(begun).toEqual(['first'])
    await pass(51)
    for (let ends = 0; ends < 3; ends += 1) await endAll()

    expect(begun).toEqual(['first', 'a', 'b', 'c', 'other'])
    expect(wasted).toEqual([])
  })

  it('is put back if none of its slots was free in time, although none is free yet', async () => {
    const { inFlight, claimed, begun, wasted, pass } = await bench({ slots: 1 })
    await claimed(['runs', 'a', 'b'])
    await pass(51)
    inFlight.relieve()
    expect(wasted).toEqual([])
    await pass(60)
    inFlight.relieve()

    expect(begun).toEqual(['runs'])
    expect(wasted).toEqual(['a', 'b'].map((id) => ({ ...ref(id), reason: 'late' })))
  })

  it('may wait for its slot as long as its spread allows', async () => {
    const { inFlight, claimed, wasted, pass } = await bench({ slots: 1, window: 3_600_000 })
    await claimed(['runs', 'a'])
    await pass(51)
    await pass(990)
    inFlight.relieve()
    expect(wasted).toEqual([])
    await pass(10)
    inFlight.relieve()

    expect(wasted).toEqual([{ ...ref('a'), reason: 'late' }])
  })

  it('is put back if its slot is free too late, which costs no attempt', async () => {
    const { claimed, begun, wasted, pass, endAll } = await bench({ slots: 1 })
    await claimed(['a', 'b'])
    await pass(51)
    await pass(60)
    await endAll()

    expect(begun).toEqual(['a'])
    expect(wasted).toEqual([{ ...ref('b'), reason: 'late' }])
  })

  it('is put back if what goes before its handler takes too long, and after three in a row the next begins all the same', async () => {
    const { claimed, begun, wasted, late, pass, endAll, slowness } = await bench({ slots: 9 })
    await claimed(['before'])
    await pass(51)
    slowness.ms = 60
    await claimed(['a'])
    await pass(51)
    await endAll()
    expect([begun, wasted]).toEqual([['before'], [{ ...ref('a'), reason: 'late' }]])
    for (let times = 0; times < 3; times += 1) {
      await claimed([])
      await pass(51)
      await endAll()
    }

    expect(wasted).toEqual(Array(3).fill({ ...ref('a'), reason: 'late' }))
    expect(begun).toEqual(['before', 'a'])
    expect(late).toEqual([{ ...ref('a'), lateMs: 12 }])
  })

  it('begins as soon as it can where the store is so far away that none begins in time', async () => {
    const { claimed, begun, late, wasted, pass, endAll } = await bench({ slots: 9 })
    for (let trips = 0; trips < 8; trips += 1) {
      await pass(400)
      await claimed(trips === 0 ? ['a'] : [], { sentAt: trips * 400, grantedAt: trips * 400 + 200 })
      await pass(0)
      await endAll()
    }

    expect([begun, wasted.length]).toEqual([['a'], 7])
    expect(late).toEqual([{ ...ref('a'), lateMs: 111 }])
  })
})

describe('jobs of a lease that is not renewed', () => {
  const queue: QueueOptions = { renewLease: false, lease: '10m' }

  it('have a slot each where the queue is limited, and begin together', async () => {
    const { claimed, begun, pass } = await bench({ slots: 3, queue })
    await claimed(['a', 'b', 'c'])
    await pass(51)

    expect(begun).toEqual(['a', 'b', 'c'])
  })

  it('have one slot for all where it is not', async () => {
    const { claimed, begun } = await bench({ slots: 3, queue, throttled: false })
    await claimed(['a', 'b', 'c'])

    expect(begun).toEqual(['a'])
  })
})
