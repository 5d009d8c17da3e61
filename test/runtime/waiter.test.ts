import { expect, it } from 'vitest'
import { restMs, Waiter } from '#src/runtime/waiter.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'

it('rests until the first of its queues changes by itself, and no longer than its long poll', () => {
  expect(restMs([], 5_000)).toBe(5_000)
  expect(restMs([{ queue: 'a', reason: 'empty' }], 5_000)).toBe(5_000)
  expect(
    restMs(
      [
        { queue: 'a', reason: 'scheduled', forMs: 1_200.4 },
        { queue: 'b', reason: 'empty', forMs: 9_000 },
      ],
      5_000,
    ),
  ).toBe(1_201)
})

it('rests at least a moment where the store says at once again', () => {
  expect(restMs([{ queue: 'a', reason: 'scheduled', forMs: 0 }], 5_000)).toBe(1)
})

it('is woken before its time', async () => {
  const store = new MemoryStore()
  await store.open([{ name: 'a', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }])
  const waiter = new Waiter(store)
  const rested = waiter.rest(['a'], [], 60_000)
  waiter.wake()
  await rested
})
