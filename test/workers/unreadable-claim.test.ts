/** Jobs that nobody can read: how long they are put back. */

import { describe, expect, it } from 'vitest'
import { storedError } from '#src/core/job/job-failures.js'
import { unreadable } from '#src/runtime/run/unreadable-claim.js'

const lack = { reason: 'unknown-key', stored: "sealed by key 'b'", has: "the keys 'a'" } as const
const minute = 60_000
const begin = Date.parse('2026-11-01T00:00:00Z')

/** Put back every so often, for as long; the minute in which it is not put back again. */
function overAfter(everyMinutes: number, { until = 3 * 1_440, pauseAt = Number.NaN, pause = 0 } = {}): number {
  let error: string | undefined
  for (let at = 0; at <= until; at += everyMinutes) {
    if (at === pauseAt) at += pause
    const answer = unreadable(error === undefined ? {} : { error }, lack, begin + at * minute)
    if (answer.isOver) return at
    error = storedError(answer.error, error)
  }
  return Number.POSITIVE_INFINITY
}

describe('a job that a worker cannot read', () => {
  it('is put back with what is missing, since when, and what the worker has', () => {
    expect(unreadable({}, lack, begin)).toEqual({
      isOver: false,
      error:
        "sealed by key 'b', which workers that claimed it lacked from 2026-11-01T00:00:00.000Z to 2026-11-01T00:00:00.000Z. It is put back until a worker has it, for a day at most. The last one has the keys 'a'.",
    })
  })

  it('is put back for a day, however often', () => {
    expect(overAfter(1)).toBe(1_440)
    expect(overAfter(30)).toBe(1_440)
  })

  it('begins another day if nobody has put it back for more than an hour', () => {
    expect(overAfter(30, { pauseAt: 600, pause: 90 })).toBe(690 + 1_440)
  })

  it('begins another day if it has failed meanwhile', () => {
    const { error } = unreadable({}, lack, begin)
    const failed = storedError('no route', error, { attempt: 1, at: begin })
    expect(unreadable({ error: failed }, lack, begin + minute).error).toMatch(/from 2026-11-01T00:01:00.000Z/)
  })
})
