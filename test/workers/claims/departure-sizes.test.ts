/** Departure sizes: how many jobs of a throttled queue are claimed at once, by what their departures have shown. */

import { type AnyTask, defineTask, type QueueOptions } from 'millrace'
import { describe, expect, it } from 'vitest'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { DepartureSizes, Prefetch } from '#src/workers/claims/claim-plan.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'

const stored = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const none = { jobs: 0, slots: 0 }

interface Given {
  readonly limit?: number
  readonly by?: 'group'
  readonly window?: number
  readonly runMs?: number
  readonly queue?: QueueOptions
  readonly maxRunning?: number
  readonly task?: AnyTask
}

const plain = defineTask({ name: 't', queue: 'q', run: async () => {} })

/** Its spread is 60 ms, so jobs that depart together are to begin within 15. */
async function sizes(given: Given = {}) {
  const { limit = 10_000, by, window = 2_400, runMs = 1, queue = {}, maxRunning, task = plain } = given
  const { registry } = checkOptions({ store: 'memory:', tasks: [task], queues: { q: queue } }, new MemoryStore().traits)
  const throttle = throttleOf('q', { limit, window, ...(by === undefined ? {} : { by }) })
  const limits = { throttle, ...(maxRunning === undefined ? {} : { maxRunning }) }
  const limited = new LimitedQueues(await new MemoryStore().open([{ ...stored, ...limits }]))
  const prefetch = new Prefetch(10)
  if (runMs > 0) prefetch.ran('q', runMs)
  return new DepartureSizes(registry, limited, prefetch)
}

describe('the room for jobs of a throttled queue', () => {
  it('is the free slots, until a departure has shown that twice as many begin in time', async () => {
    const shown = await sizes()
    expect(shown.roomOf('q', 10, none)).toBe(10)
    shown.departed('q', 10, 7, 1)

    expect(shown.roomOf('q', 10, none)).toBe(20)
  })

  it('is kept after a departure that took more than half its time, and halved after one that took too long', async () => {
    const shown = await sizes()
    shown.departed('q', 20, 5, 1)
    shown.departed('q', 40, 8, 1)
    expect(shown.roomOf('q', 10, none)).toBe(40)
    shown.departed('q', 40, 16, 1)
    expect(shown.roomOf('q', 10, none)).toBe(20)
    shown.departed('q', 15, Number.POSITIVE_INFINITY, 1)

    expect(shown.roomOf('q', 10, none)).toBe(10)
  })

  it('is at most what the slots can begin within a quarter of the spread, given the length of the jobs', async () => {
    const shown = await sizes({ runMs: 6 })
    shown.departed('q', 500, 0, 1)
    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 1, none)).toBe(3)
    expect(shown.roomOf('q', 0, none)).toBe(0)
    expect(shown.roomOf('q', -4, none)).toBeLessThanOrEqual(0)
  })

  it('is at most what the slots can begin within 20 ms, however long the spread, because jobs of other queues wait meanwhile', async () => {
    const shown = await sizes({ window: 3_600_000, runMs: 6 })
    shown.departed('q', 500, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(40)
  })

  it('is at most a tenth of the limit, but never less than the free slots', async () => {
    const shown = await sizes({ limit: 300 })
    shown.departed('q', 500, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(30)
    expect(shown.roomOf('q', 40, none)).toBe(40)
  })

  it('is limited by the limit of each group, however small: twice the groups of the last departure may wait', async () => {
    const shown = await sizes({ limit: 1, by: 'group' })
    shown.departed('q', 10, 0, 10)
    expect(shown.roomOf('q', 10, none)).toBe(20)
    shown.departed('q', 20, 0, 20)
    expect(shown.roomOf('q', 10, none)).toBe(40)
    shown.departed('q', 40, 0, 1)

    expect(shown.roomOf('q', 10, none)).toBe(10)
  })

  it('includes the jobs that wait for their instant already', async () => {
    const shown = await sizes()
    shown.departed('q', 50, 0, 1)

    expect(shown.roomOf('q', 6, { jobs: 90, slots: 4 })).toBe(10)
    expect(shown.roomOf('q', 6, { jobs: 100, slots: 4 })).toBe(0)
  })

  it.each([
    ['has not run yet', { runMs: 0 }],
    ['does not renew its leases', { queue: { renewLease: false } }],
    ['limits its running jobs', { maxRunning: 100 }],
    ['has an isolated task', { task: defineTask({ name: 't', queue: 'q', isolate: 'process' }) }],
    ['has batch tasks', { task: defineTask({ name: 't', queue: 'q', batch: { size: 5 }, run: async () => {} }) }],
  ])('is the free slots if the queue %s', async (_, given) => {
    const shown = await sizes(given)
    shown.departed('q', 50, 0, 1)

    expect(shown.roomOf('q', 6, { jobs: 4, slots: 4 })).toBe(6)
    expect(shown.inARow('q')).toBe(1)
  })
})
