import { ConfigError, defineTask, millrace } from 'millrace'
import { ManualClock, memoryHarness } from 'millrace/testing'
import { describe, expect, it } from 'vitest'
import { nextEvent, recorded } from '../next-event.js'
import { storeKinds, testMill, testMillOn } from '../test-mill.js'

describe.each(storeKinds)('a queue whose lease is not renewed, on %s', (kind) => {
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

  it('lets nothing that a slot has not begun wait for the end of a stop', async () => {
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

describe('a job of a batch', () => {
  it('is put back at once where its time limit is not less than what is left of the lease', async () => {
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
    const queues = { default: { renewLease: false, lease: '10s' } }
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
