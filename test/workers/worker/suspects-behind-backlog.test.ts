/** Suspects of queues that each claim fills: a backlog of ordinary jobs does not keep them waiting. */
import { defineTask, type QueueOptions } from 'millrace'
import { expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const risky = defineTask({ name: 'risky', queue: 'q', run: async () => {} })

async function idsInOrder(options: QueueOptions, clock?: ManualClock): Promise<string[]> {
  const store = new MemoryStore(clock)
  const m = testMillOn(store, { tasks: [risky], queues: { q: options } })
  await m.enqueue(risky, 1, { id: 'suspect' })
  const { claims } = await store.claim([{ queue: 'q', limit: 1 }], { worker: 'dead', leaseMs: 600_000 })
  await store.workers!.gone(claims, 'dead')
  await m.enqueueMany(risky, Array(20).fill(1))
  const completed = recorded(m, 'job.completed')
  const done = nextEvent(m, 'job.completed', () => completed.length === 21)
  await m.worker({ concurrency: 1 }).start()
  await done
  return completed.map(({ id }) => id)
}

it('the worker of a queue that runs one job at a time runs a suspect before its backlog', async () => {
  expect((await idsInOrder({ maxRunning: 1 }, new ManualClock(1_000_000))).indexOf('suspect')).toBeLessThan(5)
})

it('the worker of a throttled queue runs a suspect before its backlog', async () => {
  expect((await idsInOrder({ throttle: { limit: 1, window: '100ms' } })).indexOf('suspect')).toBeLessThan(5)
})
