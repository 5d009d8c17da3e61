/** The log of starts: what it keeps, and what it forgets. */

import { expect, it } from 'vitest'
import { logAfter } from '#src/stores/rules/throttle/start-log.js'

const forMs = 1_000

it('a log of starts has each instant once, with all its starts', () => {
  const log = [
    { at: 0, count: 2 },
    { at: 10, count: 1 },
  ]

  expect(logAfter(log, 3, forMs, 10)).toEqual([
    { at: 0, count: 2 },
    { at: 10, count: 4 },
  ])
  expect(logAfter(log, 3, forMs, 11)).toEqual([...log, { at: 11, count: 3 }])
})

it('a log of starts counts late ones from the latest instant on, and later starts no earlier', () => {
  const late = logAfter([{ at: 0, count: 1 }], 2, forMs, 10, 100)
  expect(late).toEqual([
    { at: 0, count: 1 },
    { at: 110, count: 2 },
  ])
  expect(logAfter(late, 1, forMs, 20)).toEqual([
    { at: 0, count: 1 },
    { at: 110, count: 3 },
  ])
})

it('a log of starts forgets what every window has passed, and keeps the edge of the longest window', () => {
  const log = [
    { at: 0, count: 2 },
    { at: 1, count: 1 },
  ]

  expect(logAfter(log, 1, forMs, 1_000)).toHaveLength(3)
  expect(logAfter(log, 1, forMs, 1_001)).toEqual([
    { at: 1, count: 1 },
    { at: 1_001, count: 1 },
  ])
})
