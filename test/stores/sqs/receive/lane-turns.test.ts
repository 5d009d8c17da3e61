/** The turns of a lane: how a message begins that waited behind others of its group or its id. */

import { ManualClock } from 'millrace/store-testing'
import { afterEach, describe, expect, it, vi } from 'vitest'
import type { Claim } from '#src/stores/contract/claim.js'
import type { SqsMessage } from '#src/stores/sqs/client/sqs-api.js'
import { message, storeWith } from './batching-service.js'

afterEach(() => void vi.useRealTimers())

const minute = 60_000
const hidden = (sent: readonly (readonly [string, readonly string[]])[]) =>
  sent.flatMap(([kind, entries]) => (kind === 'ChangeMessageVisibilityBatch' ? entries : []))

describe('a message that has its turn', () => {
  it.each([
    ['after a quarter of an hour goes back with those behind it, and begins with 12 hours', 15, ['r2 0', 'r3 0']],
    ['sooner begins at once', 13, []],
  ] as const)('%s', async (_, minutes, back) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const clock = new ManualClock(Date.now())
    const messages = [message(1), message(2), message(3)]
    const { store, sent, claim } = await storeWith(messages, { fifo: true }, clock)
    // The lease takes half of itself from the time that a run may last.
    const lease = 2 * minute
    const [first] = await claim(lease)
    const renew = () => store.extend([{ queue: 'q', id: 'job-1', fence: first!.fence, leaseMs: lease }])
    for (let passed = 0; passed < minutes * minute; passed += 5_000) {
      clock.advance(5_000)
      vi.advanceTimersByTime(5_000)
      expect(await renew()).toEqual(['ok'])
    }
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'complete' }])
    const before = sent.length
    if (back.length > 0) messages.push(message(2, 'g', {}, 2), message(3, 'g', {}, 2))

    expect(await claim(lease)).toMatchObject([{ id: 'job-2', attempt: 1 }])
    expect(hidden(sent.slice(before)).filter((entry) => entry.endsWith(' 0'))).toEqual(back)
    await store.close()
  })

  it('has five seconds to be claimed, however long it waited', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    const clock = new ManualClock(Date.now())
    const { store, sent, claim } = await storeWith([message(1), message(2)], { fifo: true }, clock)
    const [first] = await claim(minute)
    clock.advance(10_000)
    vi.advanceTimersByTime(5_000)
    await store.settle([{ queue: 'q', id: 'job-1', fence: first!.fence, kind: 'complete' }])
    vi.advanceTimersByTime(5_000)

    expect(await claim(minute)).toMatchObject([{ id: 'job-2' }])
    expect(hidden(sent)).not.toContain('r2 0')
  })

  it('goes back if another that is claimed with it is lost', async () => {
    const { store, sent, claim, voidReceipts } = await storeWith([message(1), message(2)], { kind: 'ordered' })
    expect(await store.wait(['q'], 1_000, new AbortController().signal)).toEqual(['q'])
    voidReceipts.add('r2')
    expect(await claim(minute)).toEqual([])
    await store.close()

    expect(hidden(sent)).toEqual(['r1 60', 'r2 60', 'r1 0'])
  })
})

it('the payloads that are left of an ordered claim begin anew, if the oldest is buried or some are done', async () => {
  const messages: SqsMessage[] = []
  const { store, claim } = await storeWith(messages, { kind: 'ordered' })
  const settle = async (receives: number, ns: readonly number[], how: { last?: true; done?: number } = {}) => {
    messages.push(...ns.map((n) => message(n, 'g', {}, receives)))
    const [{ id, fence, attempt, payloads }] = (await claim()) as [Claim]
    expect(payloads!.map(({ payload }) => Number(payload))).toEqual(ns)
    expect(await store.settle([{ queue: 'q', id, fence, kind: 'retry', delayMs: 0, ...how }])).toEqual(['ok'])
    return attempt
  }
  expect(await settle(1, [1, 2, 3])).toBe(1)
  expect(await settle(2, [1, 2, 3], { last: true })).toBe(2)
  expect(await settle(3, [2, 3])).toBe(1)
  expect(await settle(4, [2, 3], { done: 1 })).toBe(2)

  // For the last one that was its first failure.
  expect(await settle(5, [3])).toBe(2)
  await store.close()
})
