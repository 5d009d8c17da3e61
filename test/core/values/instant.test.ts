import { describe, expect, it } from 'vitest'
import { instantMistake, parseInstant } from '#src/core/values/instant.js'

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
