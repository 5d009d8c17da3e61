/** What a worker without jobs costs. */

import { afterEach, describe, expect, it, vi } from 'vitest'
import type { SqsApi, SqsCall } from '#src/stores/sqs/client/sqs-api.js'
import { ApiCalls } from '#src/stores/sqs/client/sqs-sdk.js'
import { isWorthAsking, polledNext } from '#src/stores/sqs/receive/empty-queue.js'
import { SqsStore } from '#src/stores/sqs/sqs-store.js'

afterEach(() => void vi.useRealTimers())

/** A service whose queues stay empty, in fake time. */
function emptyService(): { readonly api: SqsApi; readonly calls: ApiCalls; readonly polled: string[] } {
  const calls = new ApiCalls()
  const polled: string[] = []
  const call = async (kind: SqsCall, input: { QueueUrl?: string; QueueName?: string; WaitTimeSeconds?: number }) => {
    calls.made(kind, 1)
    if (kind === 'GetQueueUrl') return { QueueUrl: input.QueueName }
    if (kind === 'ReceiveMessage' && input.WaitTimeSeconds! > 0) {
      polled.push(input.QueueUrl!)
      await new Promise((resolve) => setTimeout(resolve, input.WaitTimeSeconds! * 1_000))
    }
    return {}
  }
  return {
    api: { where: 'a service of the test', call: call as SqsApi['call'], made: () => ({}), close() {} },
    calls,
    polled,
  }
}

describe('a worker without jobs', () => {
  it('makes at most four calls a minute with three queues, and polls each of them within a minute', async () => {
    vi.useFakeTimers()
    const { api, calls, polled } = emptyService()
    const clock = { now: () => Date.now(), mono: () => performance.now() }
    const store = new SqsStore({ api, namespace: '', clock })
    const queues = ['high', 'default', 'low']
    await store.open(queues.map((name) => ({ name, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} })))
    let isOver = false
    const work = (async () => {
      for (let turn = 0; !isOver; turn += 1) {
        // The selector draws another order each time.
        const drawn = queues.map((_, i) => queues[(i + turn) % queues.length]!)
        await store.claim(
          drawn.map((queue) => ({ queue, limit: 10 })),
          { worker: 'w', leaseMs: 30_000 },
        )
        await store.wait(drawn, 5_000, new AbortController().signal)
      }
    })()
    // It has nothing to do from the start, and has settled down after a minute.
    await vi.advanceTimersByTimeAsync(60_000)
    const before = calls.total
    polled.length = 0
    await vi.advanceTimersByTimeAsync(10 * 60_000)
    const made = calls.total - before
    isOver = true
    await vi.advanceTimersByTimeAsync(30_000)
    await work
    await store.close()

    expect(made / 10).toBeLessThanOrEqual(4)
    for (const name of queues) expect(polled.filter((queue) => queue === name).length).toBeGreaterThanOrEqual(9)
  })

  it('polls the first queue in its order, unless another one has waited too long', () => {
    const asked = (ages: Record<string, number>) => (queue: string) => ({ askedAt: -ages[queue]! * 1_000, empties: 1 })
    const order = ['high', 'default', 'low']

    expect(polledNext(order, asked({ high: 1, default: 2, low: 3 }), 0)).toBe('high')
    expect(polledNext(order, asked({ high: 1, default: 39, low: 3 }), 0)).toBe('high')
    expect(polledNext(order, asked({ high: 1, default: 40, low: 50 }), 0)).toBe('low')
  })
})

describe('an empty queue', () => {
  it('is asked by claims after 1, 2, 4 and then every 5 s while others have jobs', () => {
    for (const [i, pauseMs] of [1_000, 2_000, 4_000, 5_000, 5_000].entries()) {
      const asked = { askedAt: 0, empties: i + 1 }
      expect(isWorthAsking(asked, 0, pauseMs - 1)).toBe(false)
      expect(isWorthAsking(asked, 0, pauseMs)).toBe(true)
    }
  })

  it('is left to polls after 20 s without jobs, and is asked at once after news of it', () => {
    expect(isWorthAsking({ askedAt: 0, empties: 5 }, 20_000, 60_000)).toBe(false)
    expect(isWorthAsking({ askedAt: 0, empties: 0 }, 20_000, 1)).toBe(true)
  })
})
