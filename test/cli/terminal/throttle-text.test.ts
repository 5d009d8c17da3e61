import { describe, expect, it } from 'vitest'
import {
  evennessOf,
  flagsFor,
  rateFlag,
  ratesFlag,
  rulesOf,
  rulesText,
  windowsOf,
} from '#src/cli/terminal/throttle-text.js'
import type { ThrottleRule } from '#src/core/queue/throttle.js'

const rule = (limit: number, windowMs: number, more: Partial<ThrottleRule> = {}): ThrottleRule => ({
  limit,
  windowMs,
  moderate: false,
  ...more,
})

describe('a rate', () => {
  it('is a number of jobs per duration or per unit of time', () => {
    expect(['10/60s', '3/s', '300/h', '20/min', '1/1h30m', '5/250'].map(rateFlag)).toEqual([
      { jobs: 10, ms: 60_000 },
      { jobs: 3, ms: 1_000 },
      { jobs: 300, ms: 3_600_000 },
      { jobs: 20, ms: 60_000 },
      { jobs: 1, ms: 5_400_000 },
      { jobs: 5, ms: 250 },
    ])
  })

  it.each(['10', '10/', '/s', '0/s', '-1/s', '1.5/s', '1000001/s', '1/0s', '1/month', '1/s/s', ''])(
    '%j is refused, and the error names the expected form',
    (given) => {
      expect(() => rateFlag(given)).toThrow('Expected jobs/time such as 3/s, 300/h or 10/60s')
    },
  )

  it('can be given several times, with commas or repeated flags', () => {
    expect(ratesFlag('300/h, 1/m', ratesFlag('3/s')).map(({ jobs }) => jobs)).toEqual([3, 300, 1])
  })
})

describe('throttle rules from flags', () => {
  const rules = (given: string, evenness = {}) => rulesOf(windowsOf(ratesFlag(given), evenness), '--set')

  it('share one evenness', () => {
    expect(rules('10/60s,100/h', { moderate: true, elastic: 2 })).toEqual([
      rule(10, 60_000, { spreadMs: 1_000, moderate: true, elasticBuffer: 2 }),
      rule(100, 3_600_000, { spreadMs: 1_000, moderate: true, elasticBuffer: 2 }),
    ])
  })

  it.each([
    ['10/s', { elastic: 2 }, '--set: `elastic` needs `moderate: true`: only an even tempo can fall behind.'],
    ['10/s', { moderate: true, elastic: 10 }, '--set: `elastic.buffer` must be less than `limit`, or there is '],
    [
      '3/s,4/1000',
      {},
      '--set: must have different windows: of two with the same one only the lower limit would count.',
    ],
  ])('%s with %j are refused with the reason', (given, evenness, message) => {
    expect(() => rules(given, evenness)).toThrow(message)
  })

  it.each([
    [[rule(10, 60_000)], '--set 10/1m'],
    [[rule(3, 1_000), rule(300, 3_600_000)], '--set 3/1s,300/1h'],
    [[rule(10, 1_500, { moderate: true, elasticBuffer: 0 })], '--set 10/1s500ms --moderate --elastic 0'],
  ])('are printed as the flags that set them: %j', (given, flags) => {
    expect(flagsFor(given)).toBe(flags)
  })

  it('are not printed as flags if they differ in evenness', () => {
    expect(flagsFor([rule(3, 1_000), rule(300, 3_600_000, { moderate: true })])).toBeUndefined()
  })

  it('are described in words', () => {
    expect(rulesText([rule(1_000, 60_000, { moderate: true }), rule(9, 7_200_000)])).toBe(
      '1,000 in 1m, one each 60ms and 9 in 2h',
    )
    expect(evennessOf(rule(33, 60_000, { moderate: true, elasticBuffer: 2 }))).toEqual([
      'one each 1.82s',
      'elastic with a buffer of 2',
    ])
    expect(evennessOf(rule(1, 60_000, { moderate: true }))).toEqual([])
  })
})
