/** A thousand followed jobs on each store. */

import { expect, it } from 'vitest'
import { followedMill, followJobs } from './followed-jobs.js'

it.each(['memory', 'sqlite', 'redis', 'postgres'] as const)(
  'each of 1,000 jobs on %s that is followed from a random moment of its life on is seen to end once, as it did',
  { timeout: 300_000 },
  async (kind) => {
    const { wrong, inTime } = await followJobs(await followedMill(kind), 1_000, 2026)

    expect(wrong).toEqual([])
    expect(inTime).toBeGreaterThan(100)
  },
)
