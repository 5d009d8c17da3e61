/** What one claim does at most in a queue of very many groups; what it leaves, the next goes on with. */
import { describe, expect, it } from 'vitest'
import type { Throttle } from '#src/core/queue/throttle.js'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryData, MemoryStore } from '#src/stores/memory/memory-store.js'

const oneEach: Throttle = {
  scope: 'sites',
  by: 'group',
  rules: [{ limit: 1, windowMs: 10_000, moderate: false }],
}

/** A queue of so many groups, with so many jobs each. */
async function sites(groups: number, each: number, throttle = oneEach) {
  const clock = new ManualClock(1_000_000)
  const data = new MemoryData()
  const store = new MemoryStore(clock, data)
  await store.open([{ name: 'sites', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle }])
  const jobs = Array.from({ length: groups * each }, (_, i) => ({
    id: `job-${i}`,
    task: 'fetch',
    payload: '',
    priority: 0,
    rememberMs: 0,
    group: `group-${i % groups}`,
  }))
  await store.enqueue([{ callId: 'call', queue: 'sites', jobs }])
  const claim = (limit: number) => store.claim([{ queue: 'sites', limit }], { worker: 'w', leaseMs: 3_600_000 })
  return { clock, data, claim }
}

describe('a claim in the memory store', () => {
  it('opens at most 100 due lanes, and says that there are more', async () => {
    const { clock, claim } = await sites(150, 2)
    expect((await claim(150)).claims.length).toBe(150)
    clock.advance(10_001)

    const first = await claim(250)
    expect([first.claims.length, first.more]).toEqual([100, true])
    // The others are still among the shut, though their time has come.
    expect(first.waits).toEqual([{ queue: 'sites', reason: 'throttled', forMs: 0, lead: true }])
    const second = await claim(250)
    expect([second.claims.length, second.more]).toEqual([50, false])
  })

  it('examines at most 1,000 lanes, and the next claim continues with the others', async () => {
    const { data, claim } = await sites(1_200, 1)
    expect((await claim(1)).claims.length).toBe(1)
    // From now on all groups are silent, and each lane is found to be shut by looking into it.
    data.run = 'another'

    const first = await claim(1)
    expect([first.claims.length, first.more, first.waits]).toEqual([0, true, []])
    const second = await claim(1)
    expect([second.claims.length, second.more]).toEqual([0, false])
    expect(second.waits).toEqual([{ queue: 'sites', reason: 'throttled', forMs: 10_001, lead: true }])
  })
})
