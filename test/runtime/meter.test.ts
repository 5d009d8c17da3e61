import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { Events } from '#src/core/events.js'
import { Meter } from '#src/runtime/meter.js'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import type { HistoryPoint } from '#src/stores/contract/history.js'
import type { Store } from '#src/stores/contract/store.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'
import { givenSurroundings } from './given-surroundings.js'

const minuteMs = 60_000
/** The beginning of an hour. */
const startAt = 1_700_002_800_000
const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const

let clock: ManualClock
let data: MemoryData
let store: MemoryStore
let calls: { add: number; depth: number }
let isAsleep: boolean
let isAway: boolean
beforeEach(async () => {
  clock = new ManualClock(startAt)
  data = new MemoryData()
  store = new MemoryStore(clock, data)
  calls = { add: 0, depth: 0 }
  isAway = false
  isAsleep = false
  await store.open([
    { ...plain, name: 'mail' },
    { ...plain, name: 'video' },
  ])
})

/** The meter of another process, with its counter. */
function process(queues: readonly string[] = []) {
  const events = new Events()
  const refuse = () => {
    if (isAway) throw Object.assign(new Error('away'), { code: 'store-unavailable' })
  }
  const seen: Pick<Store, 'history' | 'depth' | 'idle'> = {
    idle: { isAsleep: () => isAsleep },
    history: {
      ...store.history,
      async add(entries) {
        calls.add += 1
        refuse()
        return store.history.add(entries)
      },
    },
    async depth(queues) {
      calls.depth += 1
      refuse()
      return store.depth(queues)
    },
  }
  const meter = new Meter({ ...givenSurroundings({ events, random: () => 0 }), clock }, seen, queues)
  meter.start()
  onTestFinished(() => meter.close())
  const minute = async () => {
    clock.advance(minuteMs)
    meter.turn()
    await meter.send()
  }
  return { events, meter, counter: events.counter!, minute }
}

async function points(queue = 'mail', step: 'minute' | 'hour' = 'minute'): Promise<HistoryPoint[]> {
  const [found] = await store.history.read([queue], { step, fromAt: 0, toAt: clock.now() + 3_600_000 })
  return found!
}

describe('the meter of a process', () => {
  it('asks nothing of a store that is let sleep, unless it has counted something', async () => {
    const { counter, minute } = process(['mail'])
    isAsleep = true
    await minute()
    expect(calls).toEqual({ add: 0, depth: 0 })
    counter.completed('mail', 1)
    await minute()
    expect(calls).toEqual({ add: 1, depth: 1 })
  })

  it('counts each kind of end by queue, with run times by class', async () => {
    const { counter, minute } = process()
    counter.enqueued('mail')
    counter.enqueued('mail', 4)
    for (const runMs of [10, 10.5, 100, 600_001]) counter.completed('mail', runMs)
    counter.failed('mail', 1_000)
    counter.started('video')
    counter.buried('mail')
    counter.crashed('mail')
    counter.cancelled('mail')
    await minute()
    const ends = { completed: 4, failed: 1, dead: 1, crashed: 1, cancelled: 1, runMs: 601_122 }
    const gauges = { lagMs: 0, waiting: 0, running: 0 }
    expect(await points()).toEqual([
      { at: startAt, enqueued: 5, started: 0, ...ends, runTimes: [1, 2, 1, 0, 0, 0, 1], gauges },
    ])
    expect((await points('video'))[0]).toMatchObject({ started: 1, completed: 0 })
  })

  it('writes once for a minute with events, and never for another', async () => {
    const { counter, minute } = process()
    await minute()
    expect(calls).toEqual({ add: 0, depth: 0 })
    for (let i = 0; i < 1_000; i += 1) counter.completed('mail', 1)
    counter.enqueued('video')
    await minute()
    expect(calls).toEqual({ add: 1, depth: 1 })
    await minute()
    expect(calls).toEqual({ add: 1, depth: 1 })
  })

  it('adds up over two processes', async () => {
    const processes = [process(), process()]
    for (const { counter } of processes) counter.completed('mail', 5)
    await Promise.all(processes.map(({ meter }) => meter.send()))
    clock.advance(minuteMs)
    for (const { meter } of processes) {
      meter.turn()
      await meter.send()
    }
    expect((await points()).map(({ completed, runMs }) => [completed, runMs])).toEqual([[2, 10]])
  })

  it('keeps the counts during an outage, and stores each minute once it is over', async () => {
    const { counter, events, minute } = process()
    const failures: string[] = []
    events.on('store.failed', ({ call }) => failures.push(call))
    isAway = true
    for (const jobs of [1, 2, 3]) {
      counter.enqueued('mail', jobs)
      await minute()
    }
    expect(await points()).toEqual([])
    expect(failures).toEqual(['history.add', 'history.add', 'history.add'])
    isAway = false
    await minute()
    const told = (found: HistoryPoint[]) => found.map(({ at, enqueued }) => [(at - startAt) / minuteMs, enqueued])
    expect(told(await points())).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
    ])
    expect(told(await points('mail', 'hour'))).toEqual([[0, 6]])
  })

  it('keeps the minutes of the last hour in a long outage, and loses no count', async () => {
    const { counter, minute } = process()
    isAway = true
    for (let i = 0; i < 200; i += 1) {
      counter.enqueued('mail')
      await minute()
    }
    isAway = false
    await minute()
    const found = await points()
    expect(found).toHaveLength(60)
    expect(found.reduce((sum, { enqueued }) => sum + enqueued, 0)).toBe(200)
    expect(found[0]).toMatchObject({ at: startAt + 140 * minuteMs, enqueued: 141 })
  })

  it('measures a served queue while it holds anything, and once more when it is empty', async () => {
    const { events, minute } = process()
    events.emit('worker.started', { worker: 'w', queues: ['mail'] })
    await minute()
    expect(calls.add).toBe(0)
    const job = { id: 'a', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: '1', queue: 'mail', jobs: [job] }])
    await minute()
    const { claims } = await store.claim([{ queue: 'mail', limit: 1 }], { worker: 'w', leaseMs: minuteMs })
    await minute()
    await store.settle([{ ...claims[0]!, kind: 'complete' }])
    await minute()
    await minute()
    expect((await points()).map(({ gauges }) => gauges)).toEqual([
      { lagMs: minuteMs, waiting: 1, running: 0 },
      { lagMs: 0, waiting: 0, running: 1 },
      { lagMs: 0, waiting: 0, running: 0 },
    ])
  })

  it('measures an unserved queue of its mill as long as a job waits there', async () => {
    const { minute } = process(['mail', 'video'])
    const job = { id: 'a', task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: '1', queue: 'mail', jobs: [job] }])
    await minute()
    await minute()
    expect((await points()).map(({ gauges }) => gauges)).toEqual([
      { lagMs: minuteMs, waiting: 1, running: 0 },
      { lagMs: 2 * minuteMs, waiting: 1, running: 0 },
    ])
    expect(await points('video')).toEqual([])
  })

  it('writes the rest when it closes, and then counts no more', async () => {
    const { meter, counter, events } = process()
    counter.completed('mail', 1)
    await meter.close()
    expect(events.counter).toBeUndefined()
    expect((await points()).map(({ completed }) => completed)).toEqual([1])
    expect(calls).toEqual({ add: 1, depth: 0 })
    await meter.close()
    expect(calls.add).toBe(1)
  })

  it('closes without waiting for a store that is away', async () => {
    const { meter, counter } = process()
    counter.completed('mail', 1)
    isAway = true
    await meter.close()
    expect(await points()).toEqual([])
  })

  it('counts nothing on a store without histories', () => {
    const events = new Events()
    const { depth } = store
    new Meter(givenSurroundings({ events }), { depth }, []).start()
    expect(events.counter).toBeUndefined()
  })
})
