import { expect, it } from 'vitest'
import { lockPauseMs } from '#src/stores/sqlite/thread/lock-patience.js'

const longest = (waitedMs: number) => lockPauseMs(waitedMs, 1)

it('on a busy file all waiters retry the lock equally often: at most 8 ms apart', () => {
  expect([16, 50, 512].map(longest)).toEqual([8, 8, 8])
  expect(lockPauseMs(50, 0.25)).toBe(2)
})

it('the first pauses are shorter: 1 ms, then half of the time waited so far', () => {
  expect([0, 1, 4, 12].map(longest)).toEqual([1, 1, 2, 6])
})

it('a long waiter retries the lock less often, but at least every 64 ms', () => {
  expect([1_024, 2_048, 4_096, 29_000].map(longest)).toEqual([16, 32, 64, 64])
})

it('hundreds of waiters leave the processor to the holder of the lock', () => {
  const asksPerSecond = (200 * 1_000) / lockPauseMs(4_096, 0.5)
  expect(asksPerSecond).toBeLessThan(7_000)
})
