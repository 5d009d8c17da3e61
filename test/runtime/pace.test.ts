import { describe, expect, it } from 'vitest'
import { Prefetch } from '#src/runtime/prefetch.js'

function measured(concurrency: number, runMs: Record<string, number>, claimMs: number): Prefetch {
  const pace = new Prefetch(concurrency)
  for (const [queue, ms] of Object.entries(runMs)) pace.ran(queue, ms)
  pace.claimed(claimMs)
  return pace
}

describe('the pace of a worker', () => {
  it('claims nothing ahead before it has measured anything', () => {
    const pace = new Prefetch(10)
    expect(pace.ahead('a')).toBe(0)
    pace.ran('a', 1)
    expect(pace.ahead('a')).toBe(0)
    pace.claimed(1)
    expect(pace.ahead('a')).toBe(20)
    expect(pace.ahead('b')).toBe(0)
  })

  it('bridges two claims at the pace of all slots, but holds no job for longer than 20 ms', () => {
    expect(measured(10, { a: 2 }, 4).ahead('a')).toBe(40)
    expect(measured(10, { a: 2 }, 4_000).ahead('a')).toBe(100)
  })

  it('claims nothing ahead of a slow queue, and alike of all others', () => {
    const pace = measured(1, { slow: 20, a: 1, b: 5 }, 10)

    expect(pace.ahead('slow')).toBe(0)
    expect(pace.ahead('a')).toBe(pace.ahead('b'))
  })

  it('gives one slot what it begins within a quarter of a second, and at least one job', () => {
    const pace = measured(1, { slow: 2_000, quick: 10, quicker: 0 }, 10)

    expect(pace.inARow('slow')).toBe(1)
    expect(pace.inARow('quick')).toBe(26)
    expect(pace.inARow('quicker')).toBeGreaterThan(1_000)
    expect(pace.inARow('unknown')).toBe(Number.POSITIVE_INFINITY)
  })
})
