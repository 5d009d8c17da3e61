import { expect, it } from 'vitest'
import { lockPauseMs } from '#src/stores/sqlite/thread/lock-patience.js'

const longest = (waitedMs: number) => lockPauseMs(waitedMs, 1)

it('on a busy file all waiters retry the lock equally often: at most 8 ms apart', () => {
  expect([0, 1, 50, 512].map(longest)).toEqual([8, 8, 8, 8])
  expect(lockPauseMs(50, 0.25)).toBe(2)
})

it('a long waiter retries the lock less often, but at least every 64 ms', () => {
  expect([1_024, 2_048, 4_096, 29_000].map(longest)).toEqual([16, 32, 64, 64])
})

it('hundreds of waiters leave the processor to the holder of the lock', () => {
  const asksPerSecond = (200 * 1_000) / lockPauseMs(4_096, 0.5)
  expect(asksPerSecond).toBeLessThan(7_000)
})
