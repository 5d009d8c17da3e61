import { defineTask } from 'millrace'
import type { ExtendItem } from 'millrace/store'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Events } from '#src/core/events.js'
import { LeaseKeeper } from '#src/runtime/leases/lease-keeper.js'
import { tickMs } from '#src/runtime/leases/lease-messages.js'
import { JobExecution } from '#src/runtime/run/execution.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { memoryTraits } from '#src/stores/memory/memory-traits.js'
import { claimOf } from './claim-of.js'
import { notesOn } from './updates-on.js'

const claim = claimOf()
const task = defineTask({ name: 't' })
const options = { leaseMs: 30_000, sentAt: 0, maxBlockMs: 30_000 }

/** The ticks of keepers that go on. What else runs in this process may set timers of its own while the clock is a fake one. */
const ticking = new Set<unknown>()

beforeEach(() => {
  vi.useFakeTimers()
  vi.setSystemTime(0)
  ticking.clear()
  const [begin, end] = [globalThis.setInterval, globalThis.clearInterval]
  vi.spyOn(globalThis, 'setInterval').mockImplementation(((run: () => void, ms: number) => {
    const timer = begin(run, ms)
    if (ms === tickMs) ticking.add(timer)
    return timer
  }) as typeof setInterval)
  vi.spyOn(globalThis, 'clearInterval').mockImplementation((timer) => {
    ticking.delete(timer)
    end(timer)
  })
})
afterEach(() => {
  // First, or what the spies put back would be the timers of the fake clock.
  vi.restoreAllMocks()
  vi.useRealTimers()
})

function keeper(
  answer: (items: readonly ExtendItem[]) => Promise<('ok' | 'lost' | 'cancel')[]>,
  more: Partial<ConstructorParameters<typeof LeaseKeeper>[0]> = {},
) {
  const sent: { at: number; items: readonly ExtendItem[] }[] = []
  const store = Object.assign(new MemoryStore(), {
    traits: { ...memoryTraits, beatsFromThread: true },
    extend: (items: readonly ExtendItem[]) => {
      sent.push({ at: Date.now(), items })
      return answer(items)
    },
  })
  const events = new Events()
  const leases = new LeaseKeeper({ store, events, mono: () => Date.now(), host: 'h', pid: 7, ...more })
  return { sent, events, leases }
}

const allOk = async (items: readonly ExtendItem[]) => items.map(() => 'ok' as const)
const execution = (id = 'a') => new JobExecution({ ...claim, id }, task, 1, {}, notesOn())

describe('the lease keeper without a thread', () => {
  it('sends heartbeats for kept jobs from this thread, reports begun ones, and rests when all are forgotten', async () => {
    const { sent, leases } = keeper(allOk)
    const [a, b] = [execution('a'), execution('b')]
    await leases.start()
    leases.keep([a, b], options)
    leases.begin(b, Date.now())
    await vi.advanceTimersByTimeAsync(12_000)
    leases.forget(a)
    leases.forget(b)
    leases.forget(b)
    await vi.advanceTimersByTimeAsync(60_000)

    expect(sent.map(({ at }) => at)).toEqual([1_000, 11_000])
    expect(sent[0]!.items).toEqual([
      { queue: 'q', id: 'a', fence: 1, leaseMs: 30_000 },
      { queue: 'q', id: 'b', fence: 1, leaseMs: 30_000, beat: { startedMs: 1_000, host: 'h', pid: 7 } },
    ])
    expect(leases.answeredAt).toBe(11_000)
    expect(ticking.size).toBe(0)

    leases.keep([execution('c')], { ...options, sentAt: Date.now() })
    await vi.advanceTimersByTimeAsync(1_000)
    expect(sent.at(-1)!.items[0]!.id).toBe('c')
  })

  it('forgets exactly the given jobs', async () => {
    const { sent, leases } = keeper(allOk)
    const claimed = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => execution(id))
    leases.keep(claimed, options)
    for (const i of [0, 1, 3, 5, 4]) leases.forget(claimed[i]!)
    await vi.advanceTimersByTimeAsync(1_000)

    expect(sent.flatMap(({ items }) => items.map(({ id }) => id))).toEqual(['c'])
    leases.forget(claimed[2]!)
    await vi.advanceTimersByTimeAsync(500)
    expect(ticking.size).toBe(0)
  })

  it('reads progress at its tick, and leaves it to the end of the job, which may overtake the beat', async () => {
    const { sent, leases } = keeper(allOk)
    const running = execution()
    leases.keep([running], options)
    running.progress(0.1)
    running.progress(1.7, 'over')
    await vi.advanceTimersByTimeAsync(3_500)

    expect(sent.map(({ items }) => items[0]!.beat?.progress)).toEqual([{ fraction: 1, note: 'over' }])
    expect(running.unsentProgress).toEqual({ fraction: 1, note: 'over' })
  })

  it.each([
    [50, 0.5],
    [2, 0.02],
    [250, 1],
    [1.9, 1],
    [1, 1],
    [-3, 0],
    [Number.NaN, 0],
  ])('reads a progress of 2 and more as a percentage: %d', async (told, fraction) => {
    const { sent, leases } = keeper(allOk)
    const running = execution()
    leases.keep([running], options)
    running.progress(told)
    await vi.advanceTimersByTimeAsync(3_500)

    expect(sent.map(({ items }) => items[0]!.beat?.progress)).toEqual([{ fraction }])
  })

  it('aborts a claim that the store reports as lost, and a cancelled one', async () => {
    for (const [answer, code, lost] of [
      ['lost', 'lease-lost', 1],
      ['cancel', 'job-cancelled', 0],
    ] as const) {
      const { events, leases } = keeper(async () => [answer])
      const told: unknown[] = []
      events.on('lease.lost', (event) => told.push(event))
      const running = execution()
      leases.keep([running], { ...options, sentAt: Date.now() })
      await vi.advanceTimersByTimeAsync(1_000)

      expect(running.signal.reason).toMatchObject({ code })
      expect(told).toHaveLength(lost)
      leases.forget(running)
    }
    await vi.advanceTimersByTimeAsync(500)
    expect(ticking.size).toBe(0)
  })

  it('is silent about a lost lease of a decided job, whose settled end may be the cause', async () => {
    const { events, leases } = keeper(async () => ['lost'])
    const told: unknown[] = []
    events.on('lease.lost', (event) => told.push(event))
    const decided = execution()
    leases.keep([decided], { ...options, sentAt: Date.now() })
    decided.isDecided = true
    await vi.advanceTimersByTimeAsync(1_000)

    expect(told).toEqual([])
    expect(decided.abortReason).toBeUndefined()
    await vi.advanceTimersByTimeAsync(500)
    expect(ticking.size).toBe(0)
  })

  it('gives a claim up before its lease can end if no heartbeat gets through', async () => {
    const { events, leases } = keeper(() => Promise.reject(new Error('store away')))
    const [lost, failed]: unknown[][] = [[], []]
    events.on('lease.lost', (event) => lost!.push(event))
    events.on('store.failed', (event) => failed!.push(event))
    const running = execution()
    leases.keep([running], options)

    await vi.advanceTimersByTimeAsync(26_999)
    expect(running.abortReason).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(running.abortReason).toMatchObject({ code: 'lease-lost' })
    expect(lost).toEqual([{ queue: 'q', id: 'a', task: 't' }])
    expect(failed![0]).toMatchObject({ call: 'extend', retryMs: 500 })
    await vi.advanceTimersByTimeAsync(500)
    expect(ticking.size).toBe(0)
  })

  it('keeps nothing after it is stopped', async () => {
    const { sent, leases } = keeper(allOk)
    leases.keep([execution('a')], options)
    await leases.stop()
    leases.keep([execution('b')], options)
    await vi.advanceTimersByTimeAsync(60_000)

    expect(sent).toEqual([])
    expect(ticking.size).toBe(0)
  })

  it('reports nothing after it is stopped, not even for a call under way', async () => {
    let fail: (error: Error) => void = () => {}
    const { sent, events, leases } = keeper(
      () =>
        new Promise((_, reject) => {
          fail = reject
        }),
    )
    const failed: unknown[] = []
    events.on('store.failed', (event) => failed.push(event))
    leases.keep([execution()], options)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(sent).toHaveLength(1)
    await leases.stop()
    fail(new Error('closed'))
    await vi.advanceTimersByTimeAsync(1_000)

    expect(failed).toEqual([])
  })

  it('sends heartbeats from this thread if its own cannot start, reports it, and retries at growing intervals', async () => {
    const startThread = vi.fn(() => {
      throw new Error('no more threads')
    })
    const { sent, events, leases } = keeper(allOk, { startThread })
    const failed: unknown[] = []
    events.on('store.failed', (event) => failed.push(event))
    await leases.start()
    leases.keep([execution()], options)
    await vi.advanceTimersByTimeAsync(3_500)

    expect(sent.map(({ at }) => at)).toEqual([1_000])
    expect(failed).toMatchObject([
      { call: 'lease-thread', error: { message: 'no more threads' }, retryMs: 1_000 },
      { retryMs: 2_000 },
      { retryMs: 4_000 },
    ])
    await leases.stop()
    expect(ticking.size).toBe(0)
  })
})
