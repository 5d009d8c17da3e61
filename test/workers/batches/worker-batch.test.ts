import { defineTask, millrace } from 'millrace'
import { ManualClock, memoryHarness } from 'millrace/store-testing'
import { describe, expect, it, onTestFinished } from 'vitest'
import { ConfigError } from '#src/core/errors.js'
import { nextEvent, recorded } from '../../next-event.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

describe.each(storeKinds)('a queue without lease renewal, on %s', (kind) => {
  it('gives one slot a whole batch, which it runs one job after the other', async () => {
    let running = 0
    let most = 0
    const task = defineTask({
      name: 't',
      run: async () => {
        running += 1
        most = Math.max(most, running)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
      },
    })
    const m = testMill({ tasks: [task], queues: { default: { renewLease: false, claimSize: 4 } } }, kind)
    const claimed = recorded(m, 'queue.claimed')
    const jobs = await m.enqueueMany(task, [1, 2, 3, 4, 5, 6])
    await m.worker({ concurrency: 1 }).start()
    await Promise.all(jobs.map((job) => job.result({ timeout: '5s' })))

    expect(claimed.map((claim) => claim.jobs)).toEqual([4, 2])
    expect(most).toBe(1)
  })

  it('does not make jobs that a slot has not begun wait for the end of a stop', async () => {
    let finish = () => {}
    const task = defineTask({ name: 't', run: () => new Promise<void>((done) => (finish = done)) })
    const m = testMill({ tasks: [task], queues: { default: { renewLease: false } } }, kind)
    const jobs = await m.enqueueMany(task, [1, 2, 3])
    const started = nextEvent(m, 'job.started')
    const released = recorded(m, 'job.released')
    const worker = m.worker({ concurrency: 1 })
    await worker.start()
    await started
    const back = nextEvent(m, 'job.released', () => released.length === 2)
    const stopped = worker.stop()
    await back
    finish()
    await stopped

    expect(released.map(({ reason }) => reason)).toEqual(['stopping', 'stopping'])
    expect(await Promise.all(jobs.map((job) => job.status()))).toEqual([undefined, 'ready', 'ready'])
    expect(await jobs[1]!.record()).toMatchObject({ state: 'ready', attempt: 1, crashes: 0 })
  })
})

/** Two workers with one slot each, and ten jobs that end when they are told to; the first worker has claimed all of them. */
async function twoWorkers() {
  const harness = await memoryHarness()
  onTestFinished(() => harness.close())
  const clock = new ManualClock(0)
  const finish = new Map<string, () => void>()
  let isOver = false
  const task = defineTask({
    name: 't',
    timeLimit: '2500ms',
    run: (_, { job }) => new Promise<void>((done) => (isOver ? done() : finish.set(job.id, done))),
  })
  const store = await harness.open()
  const queues = { default: { renewLease: false, lease: '6s' } } as const
  const m = testMillOn(store, { tasks: [task], queues }, clock)
  onTestFinished(() => {
    isOver = true
    for (const done of finish.values()) done()
  })
  const claimed = recorded(m, 'queue.claimed')
  const started = recorded(m, 'job.started')
  await m.enqueueMany(task, [...Array(10).keys()])
  const [one, two] = [m.worker({ concurrency: 1 }), m.worker({ concurrency: 1 })]
  const begun = nextEvent(m, 'job.started')
  await one!.start()
  await begun
  expect(claimed.map(({ jobs }) => jobs)).toEqual([10])
  const end = ({ id }: { id: string }) => finish.get(id)!()
  return { m, store, clock, one, two, started, claimed, end }
}

describe('a batch of slow jobs', () => {
  it('leaves jobs that it has not begun in a quarter of a second to others, and none of these is charged', async () => {
    const { m, clock, one, two, started } = await twoWorkers()
    const released = recorded(m, 'job.released')
    const another = nextEvent(m, 'job.started', ({ worker }) => worker !== one.id)
    await two.start()
    clock.advance(251)
    await another

    expect(started.map(({ worker }) => worker)).toEqual([one.id, two.id])
    expect(released).toHaveLength(9)
    expect(new Set(released.map(({ reason }) => reason))).toEqual(new Set(['no-slot']))
    expect(started[1]).toMatchObject({ attempt: 1 })
  })

  it('is claimed one by one as soon as it is known to be slow', async () => {
    const { m, clock, started, claimed, end } = await twoWorkers()
    const second = nextEvent(m, 'job.started')
    clock.advance(2_000)
    end(started[0]!)
    await second
    const third = nextEvent(m, 'job.started')
    clock.advance(2_000)
    end(started[1]!)
    // Two of the batch were begun, and for the third its lease is too short: all others go back.
    await third

    expect(claimed.map(({ jobs }) => jobs)).toEqual([10, 1])
  })

  it('is not claimed again before its worker has rested, if it is put back because the lease is too short', async () => {
    const { m, store, clock, started, end } = await twoWorkers()
    const calls: string[] = []
    const [settle, claim, wait] = [store.settle.bind(store), store.claim.bind(store), store.wait.bind(store)]
    store.settle = (items) => {
      calls.push(...items.map(({ kind }) => kind))
      return settle(items)
    }
    store.claim = (from, by) => {
      calls.push('claim')
      return claim(from, by)
    }
    store.wait = (...how) => {
      calls.push('wait')
      return wait(...how)
    }
    const another = nextEvent(m, 'job.started')
    clock.advance(4_000)
    end(started[0]!)
    await another

    const claimedAt = calls.indexOf('claim')
    expect(calls.slice(0, claimedAt)).toEqual(expect.arrayContaining(['complete', 'release', 'wait']))
  })
})

describe('a job of a batch', () => {
  it('is put back at once if its time limit reaches beyond the lease', async () => {
    const harness = await memoryHarness()
    const clock = new ManualClock(0)
    let finish = () => {}
    const first = defineTask({
      name: 'first',
      timeLimit: '5s',
      run: () => new Promise<void>((done) => (finish = done)),
    })
    const long = defineTask({ name: 'long', timeLimit: '6s', run: () => {} })
    const short = defineTask({ name: 'short', timeLimit: '4s', run: () => {} })
    const queues = { default: { renewLease: false, lease: '10s' } } as const
    const m = testMillOn(await harness.open(), { tasks: [first, long, short], queues }, clock)
    const started = recorded(m, 'job.started')
    const released = nextEvent(m, 'job.released')
    await m.enqueue(first, 1)
    const deferred = await m.enqueue(long, 1)
    await m.enqueue(short, 1)
    const begun = nextEvent(m, 'job.started')
    const done = nextEvent(m, 'job.completed', ({ task }) => task === 'short')
    const worker = m.worker({ concurrency: 1 })
    await worker.start()
    await begun
    // 4.5 s are left: too few for 6 s, enough for 4 s.
    clock.advance(5_500)
    finish()

    expect(await released).toMatchObject({ id: deferred.id, reason: 'deferred', delayMs: 0 })
    await done
    expect(started.map(({ task }) => task).slice(0, 2)).toEqual(['first', 'short'])
    await m.close()
    await harness.close()
  })

  it('must be able to end within a lease: anything else is refused in the configuration', () => {
    const task = defineTask({ name: 't', timeLimit: '60s', run: () => {} })

    expect(() =>
      millrace({ store: 'memory:', tasks: [task], queues: { default: { renewLease: false, lease: '60s' } } }),
    ).toThrow(ConfigError)
    expect(() =>
      millrace({ store: 'memory:', tasks: [task], queues: { default: { renewLease: false } } }),
    ).not.toThrow()
  })
})
