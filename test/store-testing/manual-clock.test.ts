import { ManualClock } from 'millrace/store-testing'
import { expect, it } from 'vitest'

it('a manual clock stands still until it is moved, and then moves both its times', () => {
  const clock = new ManualClock(1_000)
  expect([clock.now(), clock.mono(), clock.now()]).toEqual([1_000, 0, 1_000])

  clock.advance(250)

  expect([clock.now(), clock.mono()]).toEqual([1_250, 250])
})

it('a manual clock steps its wall time forward or back and keeps the monotonic time', () => {
  const clock = new ManualClock(1_000)

  clock.step(-400)
  clock.step(100)

  expect([clock.now(), clock.mono()]).toEqual([700, 0])
})

it('a manual clock refuses to advance backwards', () => {
  const clock = new ManualClock(1_000)

  expect(() => clock.advance(-1)).toThrow(RangeError)
  expect(() => clock.advance(Number.NaN)).toThrow(RangeError)
  expect(clock.now()).toBe(1_000)
})
