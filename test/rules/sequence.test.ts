/** Stamps and fences: they grow where order depends on it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { dueAt, nextFence, nextStamp, stampOf } from '#src/stores/rules/sequence.js'

const instant = fc.integer({ min: 0, max: 8_640_000_000_000 })

describe('the stamp of a ready job', () => {
  it('is the time in µs if the clock has advanced', () => {
    expect(nextStamp(0, 1_000)).toBe(1_000_000)
    expect(nextStamp(1_000_000, 1_001)).toBe(1_001_000)
  })

  it('keeps counting while the clock stands still or steps back by at most a second', () => {
    expect(nextStamp(5_000_000, 5_000)).toBe(5_000_001)
    expect(nextStamp(5_000_000, 4_000)).toBe(5_000_001)
  })

  it('follows the clock when it steps back by more than a second', () => {
    expect(nextStamp(5_000_000, 3_999)).toBe(3_999_000)
  })

  it('grows strictly over any steps within a second', () => {
    fc.assert(
      fc.property(instant, fc.array(fc.integer({ min: -1_000, max: 1_000 })), (start, steps) => {
        let last = nextStamp(0, start + 1_000)
        for (const step of steps) {
          const next = nextStamp(last, Math.floor(last / 1_000) + step)
          expect(next).toBeGreaterThan(last)
          last = next
        }
      }),
      { seed: 1 },
    )
  })
})

describe('the stamp of a due time', () => {
  it('yields the due time', () => {
    fc.assert(
      fc.property(instant, (at) => {
        expect(dueAt(stampOf(at))).toBe(at)
      }),
      { seed: 2 },
    )
  })

  it('yields for a counted stamp the millisecond in which it was given', () => {
    expect(dueAt(nextStamp(5_000_000, 5_000))).toBe(5_000)
  })
})

describe('the fence', () => {
  it('grows with every claim, whatever the clock does, and never lags behind the clock', () => {
    fc.assert(
      fc.property(fc.array(instant, { minLength: 1 }), (times) => {
        let last = 0
        for (const now of times) {
          const next = nextFence(last, now)
          expect(next).toBeGreaterThan(last)
          expect(next).toBeGreaterThanOrEqual(now * 1_000)
          expect(Number.isSafeInteger(next)).toBe(true)
          last = next
        }
      }),
      { seed: 3 },
    )
  })

  it('keeps growing in a new store', () => {
    expect(nextFence(0, 2_000)).toBeGreaterThan(nextFence(nextFence(0, 1_000), 1_000))
  })
})
