/** Departure sizes: how many jobs of a throttled queue are claimed at once, by what their departures have shown. */

import { defineTask, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { Prefetch } from '#src/runtime/prefetch.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { DepartureSizes } from '#src/workers/departures/departure-sizes.js'
import { LimitedQueues } from '#src/workers/departures/limited-queues.js'

const stored = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const none = { jobs: 0, slots: 0 }

/** Its spread is 100 ms, so jobs that depart together are to begin within 25. */
async function sizes(given: { limit?: number; runMs?: number; queue?: QueueOptions; maxRunning?: number } = {}) {
  const { limit = 10_000, runMs = 1, queue = {}, maxRunning } = given
  const task = defineTask({ name: 't', queue: 'q', run: async () => {} })
  const { registry } = checkOptions({ store: 'memory:', tasks: [task], queues: { q: queue } }, new MemoryStore().traits)
  const throttle = throttleOf('q', { limit, window: 4_000 })
  const limits = { throttle, ...(maxRunning === undefined ? {} : { maxRunning }) }
  const limited = new LimitedQueues(await new MemoryStore().open([{ ...stored, ...limits }]))
  const prefetch = new Prefetch(10)
  if (runMs > 0) prefetch.ran('q', runMs)
  return new DepartureSizes({ limited, registry, prefetch })
}

describe('the room for jobs of a throttled queue', () => {
  it('is the free slots, until a departure has shown that twice as many begin in time', async () => {
    const shown = await sizes()
    expect(shown.roomOf('q', 10, none)).toBe(10)
    shown.departed('q', 10, 12)

    expect(shown.roomOf('q', 10, none)).toBe(20)
  })

  it('stays as it is after a departure that took more than half of its time, and falls to half of one that took more than all', async () => {
    const shown = await sizes()
    shown.departed('q', 20, 5)
    shown.departed('q', 40, 13)
    expect(shown.roomOf('q', 10, none)).toBe(40)
    shown.departed('q', 40, 26)
    expect(shown.roomOf('q', 10, none)).toBe(20)
    shown.departed('q', 15, Number.POSITIVE_INFINITY)

    expect(shown.roomOf('q', 10, none)).toBe(10)
  })

  it('is no more than the slots begin within a quarter of the spread, by how long the jobs run', async () => {
    const shown = await sizes({ runMs: 10 })
    shown.departed('q', 500, 0)
    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 1, none)).toBe(3)
    expect(shown.roomOf('q', 0, none)).toBe(0)
    expect(shown.roomOf('q', -4, none)).toBeLessThanOrEqual(0)
  })

  it('is a tenth of the limit at most, but never less than the free slots', async () => {
    const shown = await sizes({ limit: 300 })
    shown.departed('q', 500, 0)

    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 40, none)).toBe(40)
  })

  it('counts what waits for its instant already', async () => {
    const shown = await sizes()
    shown.departed('q', 50, 0)

    expect(shown.roomOf('q', 6, { jobs: 90, slots: 4 })).toBe(10)
    expect(shown.roomOf('q', 6, { jobs: 100, slots: 4 })).toBe(0)
  })

  it.each([
    ['has not run yet', { runMs: 0 }],
    ['does not renew its leases', { queue: { renewLease: false } }],
    ['limits its running jobs', { maxRunning: 100 }],
  ])('is the free slots if the queue %s', async (_, given) => {
    const shown = await sizes(given)
    shown.departed('q', 50, 0)

    expect(shown.roomOf('q', 6, { jobs: 4, slots: 4 })).toBe(6)
    expect(shown.inARow('q')).toBe(1)
  })
})
