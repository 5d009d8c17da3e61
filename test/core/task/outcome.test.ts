/** Outcomes: what a handler may return instead of a result. */

import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { bury, cancel, type HoldTime, hold, holdTimeMs, outcomeOf, snooze } from '#src/core/task/outcome.js'
import type { Duration } from '#src/core/values/duration.js'

describe('an outcome', () => {
  it.each([
    [snooze('10m'), { kind: 'snooze', delayMs: 600_000 }],
    [snooze(0), { kind: 'snooze', delayMs: 0 }],
    [cancel('not needed'), { kind: 'cancel', reason: 'not needed' }],
    [cancel(), { kind: 'cancel', reason: undefined }],
    [hold('30s'), { kind: 'hold', holdMs: 30_000 }],
    [hold(0), { kind: 'hold', holdMs: 0 }],
    [bury('no such user'), { kind: 'bury', reason: 'no such user' }],
  ])('is distinguished from a result', (value, outcome) => {
    expect(outcomeOf(value)).toEqual(outcome)
  })

  it.each([[undefined], [null], [5], ['snooze'], [{ kind: 'snooze', delayMs: 5 }], [[]], [() => snooze(1)]])(
    'is not recognised in %o',
    (value) => {
      expect(outcomeOf(value)).toBeUndefined()
    },
  )

  it.each([['later'], [-1], [Number.NaN], [undefined]])('snooze refuses %o', (delay) => {
    expect(() => snooze(delay as Duration)).toThrow(InvalidArgumentError)
    expect(() => snooze(delay as Duration)).toThrow(/^snooze\(delay\) must be a duration/)
  })

  it.each([[true], [{}.toString], [[30]], [{ headers: 'none' }]])('hold() refuses %o', (when) => {
    expect(() => hold(when as never)).toThrow(InvalidArgumentError)
    expect(() => hold(when as never)).toThrow(/^hold\(when\) must be a duration/)
  })
})

const now = Date.parse('1994-11-06T08:49:37Z')
const [s, m, h, d] = [1_000, 60_000, 3_600_000, 86_400_000]
const ms = (when: HoldTime, atMost = '7d' as const) => holdTimeMs(when, { atMost }, now, 'hold')
const answer = (headers: Record<string, string>) => new Response(null, { status: 429, headers })

describe('the duration of a hold', () => {
  it.each<[HoldTime, number]>([
    // Durations
    ['30s', 30 * s],
    ['1h30m', 90 * m],
    ['500ms', 500],
    [250, 250],
    [0, 0],
    ['0s', 0],
    [1.6, 2],
    // Computed from a header, as in `${Number(header) || 30}s`
    [`${-1}s`, s],
    [`${999_999_999_999_999}s`, 7 * d],
    [`${1e30}s`, 7 * d],
    [`${Number.POSITIVE_INFINITY}s`, 7 * d],
    [`${Number.NEGATIVE_INFINITY}s`, s],
    [`${Number.NaN}s`, 30 * s],
    [-1, s],
    [Number.NaN, 30 * s],
    [Number.POSITIVE_INFINITY, 7 * d],
    // Seconds of a header
    ['120', 120 * s],
    [' 120 ', 120 * s],
    ['0', s],
    ['-1', s],
    ['1.5', 1_500],
    ['.5', s],
    ['1e3', 1_000 * s],
    ['99999999999', 7 * d],
    ['999999999999999', 7 * d],
    ['120, 120', 120 * s],
    ['5,60', 60 * s],
    // Dates of a header
    ['Sun, 06 Nov 1994 08:50:37 GMT', m],
    ['Sunday, 06-Nov-94 08:50:37 GMT', m],
    ['Sun Nov  6 08:50:37 1994', m],
    ['1994-11-06T08:50:37Z', m],
    ['1994-11-06T09:50:37+01:00', m],
    ['Sun, 06 Nov 1994 08:49:30 GMT', s],
    ['Sun, 06 Nov 2094 08:49:37 GMT', 7 * d],
    ['Sun, 99 Nov 1994 08:49:37 GMT', 30 * s],
    [new Date(now + 5 * s), 5 * s],
    [new Date(now - 5 * s), s],
    [new Date(Number.NaN), 30 * s],
    // Nothing, and nonsense
    [undefined, 30 * s],
    [null, 30 * s],
    ['', 30 * s],
    ['soon', 30 * s],
    ['banana 5', 30 * s],
    ['120, soon', 30 * s],
    ['120s; foo', 30 * s],
    ['9'.repeat(5_000), 7 * d],
    // Answers and headers
    [answer({ 'retry-after': '120' }), 120 * s],
    [answer({ 'Retry-After': '120' }).headers, 120 * s],
    [answer({}), 30 * s],
    [{ headers: { 'retry-after': '7' } }, 7 * s],
    [{ 'retry-after': '7' }, 7 * s],
    [{}, 30 * s],
    [{ headers: {} }, 30 * s],
  ])('for %o is %i ms', (when, holdMs) => {
    expect(ms(when)).toBe(holdMs)
  })

  it('is measured by the clock of the server if its answer carries a date', () => {
    const wrong = { date: 'Sun, 06 Nov 1994 11:00:00 GMT', 'retry-after': 'Sun, 06 Nov 1994 11:02:00 GMT' }
    expect(ms(answer(wrong))).toBe(2 * m)
    expect(ms(answer({ ...wrong, date: 'nonsense' }))).toBe(2 * h + 12 * m + 23 * s)
  })

  it('is limited to an hour, or to another given bound', () => {
    expect(holdTimeMs('5h', undefined, now, 'hold')).toBe(h)
    expect(holdTimeMs('5h', { atMost: '2h' }, now, 'hold')).toBe(2 * h)
    expect(holdTimeMs('1m', { atMost: '10s' }, now, 'hold')).toBe(10 * s)
    expect(holdTimeMs(undefined, { atMost: '10s' }, now, 'hold')).toBe(10 * s)
  })

  it.each([
    [{ atMost: 'long' }, 'hold({ atMost }) must be a duration'],
    [{ atMots: '5m' }, 'hold({ atMots }) is not an option; check its spelling: there are atMost'],
  ])('is refused for the options %o', (options, message) => {
    expect(() => hold('5s', options as never)).toThrow(
      expect.objectContaining({ code: 'argument-invalid', message: expect.stringContaining(message) }),
    )
  })
})
