/** What lasts for a time in a queue of the memory store. */

import { describe, expect, it } from 'vitest'
import { CallMemory, ExpectedIds, RememberedIds } from '#src/stores/memory/queue/memory-times.js'
import { callMemoryCount, callMemoryMs, longestExpectMs } from '#src/stores/rules/bounds.js'

const end = {
  state: 'completed',
  task: 't',
  priority: 0,
  attempt: 1,
  crashes: 0,
  createdAt: 0,
  runAt: 0,
  finishedAt: 0,
}

it('an id that ends again is forgotten at its later time', () => {
  const ids = new RememberedIds()
  for (const until of [10, 20]) ids.add({ ...end, id: 'a', seq: until, until } as never)
  ids.expire(10, 15)

  expect([ids.get('a', 15)?.until, ids.get('a', 20)]).toEqual([20, undefined])
})

describe('the callers that wait for an id', () => {
  it('keep it until the last of them has left', () => {
    const ids = new ExpectedIds()
    ids.set('a', 'first', 10)
    ids.set('a', 'second', 20)
    expect(ids.until('a', 0)).toBe(20)
    ids.set('a', 'second', undefined)
    expect(ids.until('a', 0)).toBe(10)
    ids.expire(10)
    expect(ids.until('a', 0)).toBe(Number.NEGATIVE_INFINITY)
  })

  it('do not count if they are from before the clock was set back', () => {
    const ids = new ExpectedIds()
    ids.set('a', 'first', 1_000 + longestExpectMs)

    expect([ids.until('a', 1_000), ids.until('a', 999)]).toEqual([1_000 + longestExpectMs, Number.NEGATIVE_INFINITY])
  })
})

describe('a call', () => {
  it('is answered as the first time until its time is over, also on a clock that was set back', () => {
    const calls = new CallMemory()
    calls.remember('a', ['added'], 5_000)
    calls.turnBack(4_000)

    expect([calls.answersTo('a', 999 + callMemoryMs), calls.answersTo('a', 1_000 + callMemoryMs)]).toEqual([
      ['added'],
      undefined,
    ])
  })

  it('makes the oldest forgotten if there are too many', () => {
    const calls = new CallMemory()
    for (let i = 0; i <= callMemoryCount; i += 1) calls.remember(`${i}`, ['added'], 0)

    expect([calls.answersTo('0', 0), calls.answersTo('1', 0)]).toEqual([undefined, ['added']])
  })
})
