/** Limited queues: what a worker knows of them, and that it keeps up with rules that change while it runs. */

import { defineTask } from 'millrace'
import { describe, expect, it, vi } from 'vitest'
import { throttleOf } from '#src/core/queue/throttle-options.js'
import { checkOptions } from '#src/mill/options/mill-options.js'
import type { StoredQueue } from '#src/stores/contract/queue-settings.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { LimitedQueues } from '#src/workers/claims/limited-queues.js'
import { Punctuality } from '#src/workers/claims/punctuality.js'
import { testMillOn } from '../test-mill.js'

const settings = { name: 'q', kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
const task = defineTask({ name: 't', queue: 'q', run: async () => {} })

async function stored(window: number): Promise<readonly StoredQueue[]> {
  return new MemoryStore().open([{ ...settings, throttle: throttleOf('q', { limit: 1, window }) }])
}

describe('rules that change', () => {
  it('to a shorter window leave the next handler less time to begin', async () => {
    const limited = new LimitedQueues(await stored(40_000))
    const { registry } = checkOptions({ store: 'memory:', tasks: [task], queues: { q: {} } }, new MemoryStore().traits)
    const punctuality = new Punctuality(limited, registry)
    const leftMs = () => {
      const { from, to } = punctuality.startOf('q', { sentAt: 0, answeredAt: 0, now: 0 })!
      return Math.round(to - from)
    }

    // 2.5 % of the window, less what a timer is inexact by.
    expect(leftMs()).toBe(999)
    limited.know(await stored(4_000))
    expect(leftMs()).toBe(99)
  })

  it('of one group to a shorter window leave every handler of the queue less time to begin', async () => {
    const store = new MemoryStore()
    await store.open([{ ...settings, throttle: throttleOf('q', { limit: 1, window: 40_000, by: 'group' }) }])
    const limited = new LimitedQueues(await store.records.queues())
    expect(limited.spreadOf('q')).toBe(1_000)
    await store.throttles.setRate('q', 'x', throttleOf('q', { limit: 1, window: 4_000 }).rules)

    limited.know(await store.records.queues())
    expect(limited.spreadOf('q')).toBe(100)
  })

  it.each([
    ['are looked for by the worker of a throttled queue', { limit: 1, window: '1h' }, 1],
    ['are not looked for by another', undefined, 0],
  ] as const)('%s', async (_, throttle, looks) => {
    const store = new MemoryStore()
    const mill = testMillOn(store, { tasks: [task], queues: { q: throttle === undefined ? {} : { throttle } } })
    const queues = vi.spyOn(store.records, 'queues')
    await mill.worker().start()

    expect(queues).toHaveBeenCalledTimes(looks)
  })
})
