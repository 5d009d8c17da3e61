/** Backoff: the documented delays, and that no delay is ever one a store could not take. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { type Backoff, delayAfter, exponential, polynomial } from '#src/core/task/backoff.js'
import type { Duration } from '#src/core/values/duration.js'
import { seededRandom } from '../../seeded-random.js'

const tenYearsMs = 10 * 365 * 86_400_000
const least = () => 0
const most = () => 1 - 2 ** -53
/** One draw of each of the thirty numbers that Lowkiq's delay adds. */
const draws = Array.from({ length: 30 }, (_, i) => () => (i + 0.5) / 30)

describe('exponential', () => {
  it('draws from 0 up to a doubling bound of 1, 2, 4, 8, 15, 15 minutes', () => {
    const backoff = exponential()
    const minutes = [1, 2, 3, 4, 5, 6].map((failures) => backoff(failures, most) / 60_000)

    expect(minutes).toEqual([1, 2, 4, 8, 15, 15])
    expect(backoff(6, least)).toBe(0)
  })

  it('stays within [0, min(base · 2^(failures−1), max)] and is whole, for any options', () => {
    const ms = fc.nat(1e12)
    fc.assert(
      fc.property(ms, ms, fc.integer({ min: 1, max: 1e6 }), fc.integer(), (base, max, failures, seed) => {
        const delay = exponential({ base, max })(failures, seededRandom(seed))

        expect(Number.isInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(Math.min(base * 2 ** Math.min(failures - 1, 100), max))
      }),
      { seed: 1 },
    )
  })

  it('uses the whole range: the mean of many draws is its middle', () => {
    const random = seededRandom(2)
    const delays = Array.from({ length: 10_000 }, () => exponential({ base: '1s', max: '1s' })(1, random))

    expect(delays.reduce((sum, delay) => sum + delay) / delays.length).toBeGreaterThan(485)
    expect(delays.reduce((sum, delay) => sum + delay) / delays.length).toBeLessThan(515)
  })

  it('refuses an invalid duration and names the option', () => {
    expect(() => exponential({ base: 'soon' as Duration })).toThrow(
      /^exponential\(\{ base \}\) must be a duration such as .*got "soon"/,
    )
    expect(() => exponential({ max: -1 })).toThrow(/^exponential\(\{ max \}\) must be/)
    expect(() => exponential({ jiter: false } as never)).toThrow(/^exponential\(\{ jiter \}\) is not an option/)
    expect(() => exponential({ jitter: 'no' } as never)).toThrow(/^exponential\(\{ jitter \}\) must be/)
  })
})

describe('exponential backoff without jitter', () => {
  it('gives 60, 120, 240, 480 s for the four retries of the default (K5), then 900 s for ever', () => {
    const seconds = [1, 2, 3, 4, 5, 6, 2_000].map((failures) => exponential({ jitter: false })(failures, least) / 1_000)

    expect(seconds).toEqual([60, 120, 240, 480, 900, 900, 900])
  })

  it('takes another multiple and maximum', () => {
    expect(exponential({ base: '1s', max: '3s', jitter: false })(2, least)).toBe(2_000)
    expect(exponential({ base: '1s', max: '3s', jitter: false })(3, least)).toBe(3_000)
  })

  it('returns 0 for a multiple of 0, however many failures', () => {
    expect(exponential({ base: 0, jitter: false })(5_000, least)).toBe(0)
    expect(exponential({ base: 0 })(5_000, most)).toBe(0)
  })
})

describe('polynomial backoff', () => {
  it.each([
    [1, 15, 44],
    [2, 16, 74],
    [3, 31, 118],
    [4, 96, 212],
    [5, 271, 416],
    [6, 640, 814],
  ])('after %i failures returns 30 delays, spread evenly over its documented range (L7)', (failures, low, high) => {
    const seconds = draws.map((random) => polynomial()(failures, random) / 1_000)

    expect(seconds).toEqual(draws.map((_, i) => low + (i * (high - low)) / 29))
    expect([polynomial()(failures, least), polynomial()(failures, most)]).toEqual([low * 1_000, high * 1_000])
  })

  it.each([
    [14, 1],
    [16, 2],
    [18, 3],
    [19, 5],
    [20, 6],
    [21, 8],
    [22, 10],
    [23, 13],
    [24, 16],
    [25, 20],
  ])('keeps a job with %i retries alive for %i whole days, whatever the random numbers', (retries, days) => {
    const sum = (delayOf: (failures: number) => number) =>
      Array.from({ length: retries }, (_, i) => delayOf(i + 1)).reduce((a, b) => a + b) / 86_400_000
    const mean = (failures: number) =>
      draws.map((random) => polynomial()(failures, random)).reduce((a, b) => a + b) / draws.length
    const lives = [(n: number) => polynomial()(n, least), mean, (n: number) => polynomial()(n, most)].map(sum)

    expect(lives.map(Math.floor)).toEqual([days, days, days])
    expect(lives).toEqual(lives.toSorted((a, b) => a - b))
  })

  it('waits 20.4 to 20.5 days on average over 25 retries, 1.04 to 1.07 over 14 (L7)', () => {
    const random = seededRandom(3)
    const days = (retries: number) =>
      Array.from({ length: retries }, (_, i) => polynomial()(i + 1, random)).reduce((sum, ms) => sum + ms) / 86_400_000
    const mean = (retries: number) => Array.from({ length: 500 }, () => days(retries)).reduce((a, b) => a + b) / 500

    expect(mean(25)).toBeGreaterThan(20.4)
    expect(mean(25)).toBeLessThan(20.5)
    expect(mean(14)).toBeGreaterThan(1.04)
    expect(mean(14)).toBeLessThan(1.07)
  })
})

describe('delayAfter', () => {
  it.each([
    [Number.NaN, 0],
    [-1, 0],
    [-Infinity, 0],
    [Infinity, tenYearsMs],
    [1e300, tenYearsMs],
    [0.4, 0],
    [1_000.6, 1_001],
  ])('turns %d from a user function into %d', (given, expected) => {
    expect(delayAfter(() => given, 1, least)).toBe(expected)
  })

  it('is a whole number from 0 to ten years, whatever number a user function returns', () => {
    fc.assert(
      fc.property(fc.double(), (given) => {
        const delay = delayAfter(() => given, 1, least)

        expect(Number.isSafeInteger(delay)).toBe(true)
        expect(delay).toBeGreaterThanOrEqual(0)
        expect(delay).toBeLessThanOrEqual(tenYearsMs)
      }),
      { seed: 4 },
    )
  })

  it('passes failures and random on', () => {
    expect(
      delayAfter(
        (failures, random) => failures * 100 + random(),
        7,
        () => 0.9,
      ),
    ).toBe(701)
  })

  it.each([['5m'], [undefined], [null], [5n], [Promise.resolve(1)]])('refuses %o, which is not a number', (given) => {
    const wrong = (() => given) as unknown as Backoff

    expect(() => delayAfter(wrong, 1, least)).toThrow(InvalidArgumentError)
    expect(() => delayAfter(wrong, 1, least)).toThrow(/must return a number of milliseconds/)
  })
})
