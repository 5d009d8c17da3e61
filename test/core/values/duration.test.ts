/** Durations: which forms are one, and what they come to. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { parseByteSize } from '#src/core/values/byte-size.js'
import { durationMs, exactDuration, formatDuration, parseDuration } from '#src/core/values/duration.js'
import { instantMistake, parseInstant } from '#src/core/values/instant.js'

describe('parseDuration', () => {
  it.each([
    [0, 0],
    [1, 1],
    [86_400_000, 86_400_000],
    [Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER],
    ['0s', 0],
    ['500ms', 500],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['3d', 259_200_000],
    ['1w', 604_800_000],
    ['1h30m', 5_400_000],
    ['1m30s500ms', 90_500],
    ['1.5h', 5_400_000],
    ['0.25s', 250],
    ['0.4ms', 0],
    ['90m', 5_400_000],
  ])('reads %j as %d ms', (form, ms) => {
    expect(parseDuration(form)).toBe(ms)
  })

  const wrong: unknown[] = [
    ...['', '5', '5 m', ' 5m', '5m ', '-5m', '+5m', '5M', '5min', '5 minutes', 'm', '1e3ms', '.5s', '5.s', '1h,30m'],
    ...['1h-30m', 'infinity', 'NaN', '٣s', '5m\n', '0x5s', '999999999999w', `${'1s'.repeat(33)}`],
    ...[-1, 0.5, Number.NaN, Infinity, -Infinity, Number.MAX_SAFE_INTEGER + 1, 5n],
    ...[undefined, null, true, [], ['5m'], {}, new Date(0), () => 5, Symbol('5m')],
  ]

  it.each(wrong.map((form) => [form]))('refuses %o', (form) => {
    expect(parseDuration(form)).toBeUndefined()
    expect(() => durationMs(form, 'delay')).toThrow(InvalidArgumentError)
    expect(() => durationMs(form, 'delay')).toThrow(/^delay must be a duration such as '500ms'.*; got /)
  })

  it('names the value it was given', () => {
    const message = (form: unknown): string => {
      try {
        return String(durationMs(form, 'delay'))
      } catch (error) {
        return (error as Error).message.replace(/^.*; got /, '')
      }
    }

    expect([Number.NaN, '5', 5n, {}, () => 1, undefined].map(message)).toEqual([
      'NaN.',
      '"5".',
      '5n.',
      '[object Object].',
      'a function.',
      'undefined.',
    ])
    expect(message('x'.repeat(500)).length).toBeLessThan(100)
  })

  it('adds up its parts, which are whole and never negative', () => {
    const units = { w: 604_800_000, d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 }
    const part = fc.tuple(fc.nat(9_999), fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[])))
    fc.assert(
      fc.property(fc.array(part, { minLength: 1, maxLength: 6 }), (parts) => {
        const text = parts.map(([amount, unit]) => `${amount}${unit}`).join('')

        expect(parseDuration(text)).toBe(parts.reduce((sum, [amount, unit]) => sum + amount * units[unit], 0))
      }),
      { seed: 1 },
    )
  })

  it('answers at once for any text', () => {
    expect(parseDuration('1'.repeat(1_000_000))).toBeUndefined()
    fc.assert(
      fc.property(fc.string(), (text) => {
        const ms = parseDuration(text)
        if (ms !== undefined) expect(Number.isSafeInteger(ms) && ms >= 0).toBe(true)
      }),
      { seed: 2 },
    )
  })
})

describe('formatDuration', () => {
  it.each([
    [0, '0ms'],
    [999, '999ms'],
    [999.6, '1s'],
    [1_000, '1s'],
    [61_000, '1m 1s'],
    [192_400, '3m 12s'],
    [3_600_000, '1h'],
    [3_605_000, '1h 5s'],
    [90_061_000, '1d 1h'],
    [604_800_000, '7d'],
  ])('shows %d ms as %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text)
  })

  it('can be parsed back, within the smallest unit it shows', () => {
    fc.assert(
      fc.property(fc.nat(1e12), (ms) => {
        const back = parseDuration(formatDuration(ms).replace(' ', ''))!
        const smallest = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }[formatDuration(ms).at(-1)!]!
        if (ms < 999) expect(back).toBe(ms)
        else expect(Math.abs(back - ms)).toBeLessThan(Math.max(smallest, 3_600_000 * Number(ms >= 86_400_000)))
      }),
      { seed: 3 },
    )
  })
})

describe('exactDuration', () => {
  it.each([
    [0, '0ms'],
    [1_500, '1s500ms'],
    [60_000, '1m'],
    [5_400_000, '1h30m'],
    [86_400_000 * 9 + 1, '9d1ms'],
  ])('formats %d ms as %s', (ms, text) => {
    expect(exactDuration(ms)).toBe(text)
  })

  it('can be parsed back without loss', () => {
    fc.assert(
      fc.property(fc.nat(1e12), (ms) => {
        expect(parseDuration(exactDuration(ms))).toBe(ms)
      }),
      { seed: 4 },
    )
  })
})

it.each([
  ['512MB', 536_870_912],
  ['2gb', 2_147_483_648],
  ['1KB', 1_024],
  ['4096', 4_096],
  [4_096, 4_096],
])('%s is a byte size', (size, bytes) => {
  expect(parseByteSize(size)).toBe(bytes)
})

it.each([
  '',
  '0',
  '0MB',
  '-1',
  '1.5GB',
  '512 MB',
  '512M',
  'MB',
  0,
  -1,
  1.5,
  Number.NaN,
  null,
  undefined,
  '9999999999999999GB',
])('%s is not a byte size', (size) => {
  expect(parseByteSize(size)).toBeUndefined()
})

describe('an instant', () => {
  const days: readonly [text: string, iso: string][] = [
    ['2028-02-29T09:00:00Z', '2028-02-29T09:00:00.000Z'],
    ['2026-12-31T23:59:59.5+01:00', '2026-12-31T22:59:59.500Z'],
    ['1970-01-01T00:00Z', '1970-01-01T00:00:00.000Z'],
  ]
  it.each(days)('in %s is %s', (text, iso) => {
    expect(new Date(parseInstant(text)!).toISOString()).toBe(iso)
  })

  const mistakes: readonly [value: unknown, mistake: RegExp][] = [
    ['2027-02-30T09:00:00Z', /a day that exists/],
    ['2027-02-29T09:00:00Z', /a day that exists/],
    ['2027-06-31T09:00:00+02:00', /a day that exists/],
    ['2027-13-01T09:00:00Z', /a day that exists/],
    ['9999-12-31T00:00:00Z', /before the year 2287/],
    [new Date('9999-12-31T00:00:00Z'), /before the year 2287/],
    ['1969-12-31T23:59:59Z', /not be before 1970/],
    [new Date(-1), /not be before 1970/],
    [new Date(Number.NaN), /valid Date/],
    ['2027-02-03', /a zone/],
    ['2027-02-03T25:00:00Z', /valid Date/],
    [1_800_000_000_000, /valid Date/],
    [undefined, /valid Date/],
  ]
  it.each(mistakes)('cannot be %s, and the error says why', (value, mistake) => {
    expect(parseInstant(value)).toBeUndefined()
    expect(instantMistake(value)).toMatch(mistake)
  })
})
