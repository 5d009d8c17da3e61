import { describe, expect, it } from 'vitest'
import { Prefetch } from '#src/workers/claims/claim-plan.js'

function measured(concurrency: number, runMs: Record<string, number>, claimMs: number): Prefetch {
  const prefetch = new Prefetch(concurrency)
  for (const [queue, ms] of Object.entries(runMs)) prefetch.ran(queue, ms)
  prefetch.claimed(claimMs)
  return prefetch
}

describe('the prefetch of a worker', () => {
  it('claims nothing ahead until it has measured something', () => {
    const prefetch = new Prefetch(10)
    expect(prefetch.ahead('a')).toBe(0)
    prefetch.ran('a', 1)
    expect(prefetch.ahead('a')).toBe(0)
    prefetch.claimed(1)
    expect(prefetch.ahead('a')).toBe(20)
    expect(prefetch.ahead('b')).toBe(0)
  })

  it('bridges two claims at the pace of all slots, but holds no job for longer than 20 ms', () => {
    expect(measured(10, { a: 2 }, 4).ahead('a')).toBe(40)
    expect(measured(10, { a: 2 }, 4_000).ahead('a')).toBe(100)
  })

  it('claims nothing ahead from a slow queue, and equally from all others', () => {
    const prefetch = measured(1, { slow: 20, a: 1, b: 5 }, 10)

    expect(prefetch.ahead('slow')).toBe(0)
    expect(prefetch.ahead('a')).toBe(prefetch.ahead('b'))
  })

  it('gives one slot as many jobs as it can begin in a quarter of a second, and at least one', () => {
    const prefetch = measured(1, { slow: 2_000, quick: 10, quicker: 0 }, 10)

    expect(prefetch.inARow('slow')).toBe(1)
    expect(prefetch.inARow('quick')).toBe(26)
    expect(prefetch.inARow('quicker')).toBeGreaterThan(1_000)
    expect(prefetch.inARow('unknown')).toBe(Number.POSITIVE_INFINITY)
  })

  it('fills two calls if each call costs money, and holds no job for longer than half a second', () => {
    const paid = (runMs: number, concurrency: number) => {
      const prefetch = new Prefetch(concurrency, 10)
      prefetch.ran('a', runMs)
      return [prefetch.ahead('a'), prefetch.worthwhile('a')]
    }

    expect(paid(0, 10)).toEqual([20, 10])
    expect(paid(100, 10)).toEqual([20, 10])
    expect(paid(100, 1)).toEqual([5, 5])
    expect(paid(10_000, 10)).toEqual([0, 0])
    expect(new Prefetch(10, 10).ahead('unknown')).toBe(0)
    expect(measured(10, { a: 2 }, 4).worthwhile('a')).toBe(0)
  })
})
