import { ManualClock } from 'millrace/store-testing'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { Countdown } from '#src/runtime/run/time-limits.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A countdown of 100 ms, and who was called back for when. */
function subject(forMs = 100, mono = () => performance.now()) {
  const due: [number, string][] = []
  const startedAt = performance.now()
  const countdown = new Countdown<string>(
    forMs,
    (member) => {
      due.push([performance.now() - startedAt, member])
      if (member === 'hostile') throw new Error('mine')
    },
    mono,
  )
  return { countdown, due }
}

it('a countdown calls back once for each member that stayed long enough, never early, and not for members that left', () => {
  const { countdown, due } = subject()
  const a = countdown.start('a')
  vi.advanceTimersByTime(40)
  const b = countdown.start('b')
  countdown.start('c')
  vi.advanceTimersByTime(40)
  a.stop()
  b.stop()
  countdown.start('d')
  vi.advanceTimersByTime(1_000)

  expect(due).toEqual([
    [140, 'c'],
    [180, 'd'],
  ])
  countdown.start('a')
  vi.advanceTimersByTime(100)
  expect(due.at(-1)).toEqual([1_180, 'a'])
})

it('a countdown has one timer for all members, which keeps the process alive only while it has members', () => {
  const timers: NodeJS.Timeout[] = []
  const original = globalThis.setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((...given: Parameters<typeof setTimeout>) => {
    timers.push(original(...given))
    return timers.at(-1)!
  }) as typeof setTimeout)
  const { countdown } = subject()
  const a = countdown.start('a')
  const b = countdown.start('b')
  expect(timers.map((timer) => timer.hasRef())).toEqual([true])
  a.stop()
  expect(timers[0]!.hasRef()).toBe(true)
  b.stop()
  expect(timers[0]!.hasRef()).toBe(false)
  countdown.start('c')
  expect(timers.map((timer) => timer.hasRef())).toEqual([true])
  vi.restoreAllMocks()
})

it('a countdown goes on for the others if a callback throws', () => {
  const { countdown, due } = subject()
  countdown.start('hostile')
  countdown.start('a')

  expect(() => vi.advanceTimersByTime(100)).toThrow('mine')
  vi.advanceTimersByTime(100)
  expect(due.map(([, member]) => member)).toEqual(['hostile', 'a'])
})

it('a countdown can last longer than a timer can', () => {
  const longest = 2 ** 31 - 1
  const { countdown, due } = subject(longest + 1_000)
  countdown.start('a')
  vi.advanceTimersByTime(longest)
  expect(due).toEqual([])
  vi.advanceTimersByTime(1_000)
  expect(due).toEqual([[longest + 1_000, 'a']])
})

it('a countdown follows its own clock, whenever its timer fires', () => {
  const clock = new ManualClock(0)
  const { countdown, due } = subject(100, () => clock.mono())
  countdown.start('a')
  vi.advanceTimersByTime(1_000)
  expect(due).toEqual([])
  clock.advance(100)
  vi.advanceTimersByTime(100)

  expect(due.map(([, member]) => member)).toEqual(['a'])
})
