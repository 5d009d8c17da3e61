import { describe, expect, it } from 'vitest'
import { count, counted, fromNow, rate } from '#src/cli/terminal/figures.js'

describe('figures', () => {
  it('are grouped, and their nouns agree with the number', () => {
    expect([count(1_234_567), counted(1, 'job'), counted(0, 'job'), counted(2_000, 'job')]).toEqual([
      '1,234,567',
      '1 job',
      '0 jobs',
      '2,000 jobs',
    ])
  })

  it('show an instant by its distance from now', () => {
    const at = (ms: number) => fromNow(new Date(1_000_000 + ms), 1_000_000)
    expect([at(0), at(-400), at(65_000), at(-3_600_000)]).toEqual(['now', 'now', 'in 1m 5s', '1h ago'])
  })

  it('show a small rate with its fraction, and 0 if no time has passed', () => {
    expect([rate(1_500, 1_000), rate(3, 2_000), rate(0, 1_000), rate(5, 0)]).toEqual(['1,500', '1.5', '0', '0'])
  })
})
