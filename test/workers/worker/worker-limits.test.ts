/** Workers and limits: what a throttled or full queue costs, that it holds up no other, and that pauses are kept. */
import {
  type Duration,
  defineOrderedTask,
  defineTask,
  hold,
  type Mill,
  type QueueOptions,
  type ThrottleOptions,
} from 'millrace'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { CountingStore } from './counting-store.js'

const nothing = defineTask({ name: 'nothing', queue: 'q', run: async () => {} })
const other = defineTask({ name: 'other', queue: 'other', run: async () => {} })
const never: ThrottleOptions = { limit: 1, window: '1h' }
/** One each 40 ms. */
const even: ThrottleOptions = { limit: 25, window: '1s', moderate: true }
const ones = (count: number) => Array<number>(count).fill(1)

/** Resolves with the completion of so many jobs of a queue from now on. */
function completions(m: Mill, queue: string, count: number): Promise<unknown> {
  let completed = 0
  return nextEvent(m, 'job.completed', (event) => event.queue === queue && ++completed === count)
}

/** The mill's own clock stands: a claim never comes too late, however busy the machine is. */
function limited(queue: QueueOptions, others: QueueOptions = {}) {
  const store = new CountingStore()
  const queues = { q: queue, other: others }
  return { store, m: testMillOn(store, { tasks: [nothing, other], queues }, new ManualClock(0)) }
}

describe('a moderated queue', () => {
  /** Time passes only here: a busy process may run a timer early, and the claim that it makes is then denied. */
  async function workedFor(ms: number, m: Mill, queue: string): Promise<void> {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate', 'performance', 'Date'],
    })
    onTestFinished(() => void vi.useRealTimers())
    await m.worker({ queues: [queue], concurrency: 5 }).start()
    await vi.advanceTimersByTimeAsync(ms)
  }

  it('costs one claim for each job that may start, and none while it is denied', async () => {
    const { store, m } = limited({ throttle: even })
    await m.enqueueMany(nothing, ones(20))
    await workedFor(8 * 40, m, 'q')

    expect(store.counted.map(({ answer }) => answer.claims.length)).toEqual(ones(8))
  })

  it('costs the same if it is sharded', async () => {
    const orders = defineOrderedTask({ name: 'orders', id: (id) => id as number, run: async () => {} })
    const store = new CountingStore()
    const m = testMillOn(store, { tasks: [orders], queues: { orders: { throttle: even } } }, new ManualClock(0))
    await m.enqueueMany(
      orders,
      Array.from({ length: 40 }, (_, i) => i),
    )
    await workedFor(8 * 40, m, 'orders')

    expect(store.counted.map(({ answer }) => answer.claims.length)).toEqual(ones(8))
  })

  async function claimedInAll(queue: QueueOptions) {
    const { m } = limited(queue)
    const putBack = recorded(m, 'job.released')
    const claimed = recorded(m, 'queue.claimed')
    await m.enqueueMany(nothing, ones(300))
    const done = completions(m, 'q', 300)
    await m.worker({ queues: ['q'], concurrency: 3 }).start()
    await done
    return { sizes: claimed.map(({ jobs }) => jobs), putBack }
  }

  it('with very short jobs claims twice as many each time, up to a tenth of its limit', async () => {
    const { sizes, putBack } = await claimedInAll({ throttle: { limit: 1_000, window: '1h' } })

    expect(sizes).toEqual([3, 6, 12, 24, 48, 96, 100, 11])
    expect(putBack).toEqual([])
  })

  it('with a limit of running jobs claims for free slots only', async () => {
    const { sizes } = await claimedInAll({ throttle: { limit: 1_000, window: '1h' }, maxRunning: 100 })

    expect(Math.max(...sizes)).toBe(3)
  })
})

describe('a queue that is denied', () => {
  it.each([1, 3])('delays no other queue, whose claims do not ask it again (iterations %i)', async (iterations) => {
    const { store, m } = limited({ throttle: never, iterations }, { iterations })
    await m.enqueueMany(nothing, ones(5))
    const first = completions(m, 'q', 1)
    await m.worker({ selector: 'sequential', concurrency: 2 }).start()
    await first
    await m.enqueueMany(other, ones(100))
    await completions(m, 'other', 100)

    expect(store.asked('q').length).toBeLessThanOrEqual(2)
    expect(await m.queue('q').depth()).toMatchObject({ ready: 4, processed: 1 })
  })

  it('is claimed as soon as its rules allow it', async () => {
    const { m } = limited({ throttle: never })
    await m.enqueueMany(nothing, ones(3))
    const first = completions(m, 'q', 1)
    await m.worker({ concurrency: 2 }).start()
    await first
    const rest = completions(m, 'q', 2)
    await m.queue('q').throttle.set({ limit: 3, window: '1h' })
    await rest

    expect(await m.queue('q').throttle.get()).toMatchObject({ hits: [3] })
  })
})

describe('limits that are only stored', () => {
  it('apply to a worker whose mill declares none: it claims for free slots, and no more than may run', async () => {
    const data = new MemoryData()
    const [mine, stranger] = [new MemoryStore(undefined, data), new MemoryStore(undefined, data)]
    await testMillOn(stranger, { tasks: [nothing], queues: { q: { throttle: { limit: 29, window: '1h' } } } }).ready()
    const m = testMillOn(mine, { tasks: [nothing] })
    const claimed = recorded(m, 'queue.claimed')
    await m.enqueueMany(nothing, ones(29))
    const done = completions(m, 'q', 29)
    await m.worker({ concurrency: 3 }).start()
    await done

    expect(Math.max(...claimed.map(({ jobs }) => jobs))).toBe(3)
  })
})

describe('maxRunning', () => {
  it('is never exceeded by several workers, and every end lets the next begin', async () => {
    let running = 0
    let most = 0
    const busy = defineTask({
      name: 'busy',
      queue: 'q',
      run: async () => {
        most = Math.max(most, ++running)
        await new Promise(setImmediate)
        running -= 1
      },
    })
    const m = testMillOn(new CountingStore(), { tasks: [busy], queues: { q: { maxRunning: 3 } } })
    await m.enqueueMany(busy, ones(60))
    const done = completions(m, 'q', 60)
    await Promise.all([1, 2].map(() => m.worker({ concurrency: 5 }).start()))
    await done

    expect(most).toBe(3)
  })
})

describe('hold()', () => {
  /** Asks for a pause at its first call, with the jobs of host `slow`. */
  function crawler(pause: Duration) {
    const seen: string[] = []
    let asked = false
    const crawl = defineTask({
      name: 'crawl',
      queue: 'q',
      group: (url) => String(url).split('/')[0]!,
      run: async (url, { job }) => {
        seen.push(String(url))
        if (asked || job.group !== 'slow') return
        asked = true
        return hold(pause)
      },
    })
    return { crawl, seen }
  }

  it('holds the group of its job, which keeps its place, uncounted; other groups go on', async () => {
    const { crawl, seen } = crawler('200ms')
    const m = testMillOn(new CountingStore(), { tasks: [crawl] })
    const released = recorded(m, 'job.released')
    const [first] = await m.enqueueMany(crawl, ['slow/1', 'slow/2', 'fast/1', 'fast/2'])
    const done = completions(m, 'q', 4)
    const startedAt = performance.now()
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(seen).toEqual(['slow/1', 'fast/1', 'fast/2', 'slow/1', 'slow/2'])
    expect(performance.now() - startedAt).toBeGreaterThan(199)
    expect(released).toEqual([{ queue: 'q', id: first!.id, task: 'crawl', reason: 'held', delayMs: 0, holdMs: 200 }])
  })

  it('holds the queue if the job has no group', async () => {
    const alone = defineTask({ name: 'alone', queue: 'q', run: () => hold('1h') })
    const store = new CountingStore()
    const m = testMillOn(store, { tasks: [alone] })
    await m.enqueue(alone, 1)
    const denied = store.next(({ answer }) => answer.waits.some(({ reason }) => reason === 'throttled'))
    await m.worker({ concurrency: 1 }).start()
    await denied
    await m.enqueue(alone, 2, { group: 'g' })

    const { claims, waits } = await store.claim([{ queue: 'q', limit: 5 }], { worker: 'w', leaseMs: 30_000 })
    expect({ claims, waits }).toMatchObject({ claims: [], waits: [{ reason: 'throttled' }] })
    expect(await m.queue('q').depth()).toMatchObject({ ready: 2, failed: 0 })
  })

  it('in a batch holds the group of each of its jobs', async () => {
    const batches: string[][] = []
    const sync = defineOrderedTask({
      name: 'sync',
      batchSize: 2,
      group: (id) => id[0]!,
      run: (byId) => {
        batches.push([...byId.keys()])
        return batches.length === 1 ? hold('1h') : undefined
      },
    })
    const m = testMillOn(new CountingStore(), { tasks: [sync], queues: { sync: { shards: 1 } } })
    await m.enqueueMany(sync, [1, 2, 3, 4, 5], (_, i) => ({ id: ['a1', 'b1', 'a2', 'b2', 'c1'][i]! }))
    const done = completions(m, 'sync', 1)
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(batches[1]).toEqual(['c1'])
    expect(batches[0]!.map((id) => id[0])).toEqual(['a', 'b'])
    expect(await m.queue('sync').depth()).toMatchObject({ ready: 4, failed: 0, processed: 1 })
  })
})
