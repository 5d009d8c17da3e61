/** Outcomes: what a handler may return instead of a result. */
import { describe, expect, it } from 'vitest'
import { InvalidArgumentError } from '#src/core/errors.js'
import { bury, cancel, hold, outcomeOf, snooze } from '#src/core/task/outcome.js'
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
