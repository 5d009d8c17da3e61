import type { Claim, ExtendItem } from 'millrace'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Events } from '#src/core/events.js'
import { Execution } from '#src/runtime/execution.js'
import { LeaseKeeper } from '#src/runtime/lease-keeper.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

const claim: Claim = {
  queue: 'q',
  id: 'a',
  task: 't',
  payload: '1',
  priority: 0,
  attempt: 1,
  crashes: 0,
  fence: 1,
  createdAt: 0,
  runAt: 0,
}

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

function keeper(answer: (items: readonly ExtendItem[]) => Promise<('ok' | 'lost' | 'cancel')[]>) {
  const store = new MemoryStore()
  const sent: { at: number; items: readonly ExtendItem[] }[] = []
  store.extend = (items) => {
    sent.push({ at: Date.now(), items })
    return answer(items)
  }
  vi.setSystemTime(0)
  const events = new Events()
  return { sent, events, keeper: new LeaseKeeper({ store, events, mono: () => Date.now(), host: 'h', pid: 7 }) }
}

const allOk = async (items: readonly ExtendItem[]) => items.map(() => 'ok' as const)

describe('the lease keeper', () => {
  it('announces a claim after a second and beats at a third of its lease, until it is let go', async () => {
    const { sent, keeper: leases } = keeper(allOk)
    const forget = leases.keep(new Execution(claim, 't', 1, {}), 30_000, 0)
    await vi.advanceTimersByTimeAsync(32_500)
    forget()
    await vi.advanceTimersByTimeAsync(60_000)

    expect(sent.map(({ at }) => at)).toEqual([1_000, 11_000, 21_000, 31_000])
    expect(sent[0]!.items).toEqual([
      { queue: 'q', id: 'a', fence: 1, leaseMs: 30_000, beat: { started: true, host: 'h', pid: 7 } },
    ])
    expect(sent[1]!.items).toEqual([{ queue: 'q', id: 'a', fence: 1, leaseMs: 30_000 }])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('keeps nothing any longer once it is stopped', async () => {
    const { sent, keeper: leases } = keeper(allOk)
    leases.keep(new Execution(claim, 't', 1, {}), 30_000, 0)
    leases.stop()
    await vi.advanceTimersByTimeAsync(60_000)

    expect(sent).toEqual([])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('sends nothing for a job that ends within the first second', async () => {
    const { sent, keeper: leases } = keeper(allOk)
    const forget = leases.keep(new Execution(claim, 't', 1, {}), 30_000, 0)
    await vi.advanceTimersByTimeAsync(999)
    forget()
    await vi.advanceTimersByTimeAsync(5_000)

    expect(sent).toEqual([])
  })

  it('keeps the shortest lease there is, however late its timer runs', async () => {
    const { events, sent, keeper: leases } = keeper(allOk)
    const lost: unknown[] = []
    events.on('lease.lost', (event) => lost.push(event))
    const execution = new Execution(claim, 't', 1, {})
    leases.keep(execution, 3_000, -7)
    for (let i = 0; i < 200; i += 1) {
      await vi.advanceTimersByTimeAsync(500)
      // The loop was busy: time went on, and the timer comes late.
      vi.setSystemTime(Date.now() + (i % 3) * 40)
    }

    expect(lost).toEqual([])
    expect(execution.abortReason).toBeUndefined()
    for (const [i, { at }] of sent.entries()) expect(at - (sent[i - 1]?.at ?? 0)).toBeLessThan(1_700)
  })

  it('carries the latest progress once', async () => {
    const { sent, keeper: leases } = keeper(allOk)
    const execution = new Execution(claim, 't', 1, {})
    leases.keep(execution, 30_000, 0)
    execution.progress(0.1)
    execution.progress(7, 'over')
    await vi.advanceTimersByTimeAsync(3_500)

    expect(sent.map(({ items }) => items[0]!.beat?.progress)).toEqual([{ fraction: 1, note: 'over' }])
  })

  it('aborts a claim that the store says is lost, and one that is to be cancelled', async () => {
    for (const [answer, code] of [
      ['lost', 'lease-lost'],
      ['cancel', 'job-cancelled'],
    ] as const) {
      const { keeper: leases } = keeper(async () => [answer])
      const execution = new Execution(claim, 't', 1, {})
      const forget = leases.keep(execution, 30_000, 0)
      await vi.advanceTimersByTimeAsync(1_000)

      expect(execution.signal.reason).toMatchObject({ code })
      forget()
    }
  })

  it('gives a claim up before the lease can end when no beat gets through', async () => {
    const { events, keeper: leases } = keeper(() => Promise.reject(new Error('store away')))
    const execution = new Execution(claim, 't', 1, {})
    const lost: unknown[] = []
    events.on('lease.lost', (event) => lost.push(event))
    leases.keep(execution, 30_000, 0)

    await vi.advanceTimersByTimeAsync(26_999)
    expect(execution.abortReason).toBeUndefined()
    await vi.advanceTimersByTimeAsync(1)
    expect(execution.abortReason).toMatchObject({ code: 'lease-lost' })
    expect(lost).toEqual([{ queue: 'q', id: 'a', task: 't' }])
    expect(vi.getTimerCount()).toBe(0)
  })
})
