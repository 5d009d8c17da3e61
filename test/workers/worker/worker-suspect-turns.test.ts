import { defineOrderedTask, defineTask } from 'millrace'
import type { Store } from 'millrace/store'
import { ManualClock } from 'millrace/store-testing'
import { expect, it } from 'vitest'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'

const ids = Array.from({ length: 10 }, (_, i) => `id-${i}`)

/** Has a worker take all that is ready in the queue and die with it in hand. */
async function crash(on: Store, queue: string): Promise<void> {
  const { claims } = await on.claim([{ queue, limit: 100 }], { worker: 'dead', leaseMs: 600_000 })
  expect(claims).toHaveLength(ids.length)
  await on.workers!.gone(claims, 'dead')
}

/** How often a worker has gone to rest. */
function rests(on: Store) {
  let count = 0
  const wait = on.wait.bind(on)
  on.wait = (...args) => {
    count += 1
    return wait(...args)
  }
  return () => count
}

it.each([1, 5, 40])(
  'suspects of an ordered queue of %i shards run one after the other without a rest',
  async (shards) => {
    const on = new MemoryStore()
    const clock = new ManualClock(Date.now())
    const orders = defineOrderedTask({ name: 'orders', id: String, run: () => clock.advance(600) })
    const m = testMillOn(on, { tasks: [orders], queues: { orders: { ordered: true, shards } } }, clock)
    await m.enqueueMany(orders, ids)
    await crash(on, 'orders')
    const rested = rests(on)
    const completed = recorded(m, 'job.completed')
    let restsBefore = -1
    const done = nextEvent(m, 'job.completed', () => {
      restsBefore = rested()
      return completed.length === ids.length
    })
    await m.worker({ concurrency: 4 }).start()
    await done

    expect(restsBefore).toBe(0)
    expect(completed.map(({ id }) => id).toSorted()).toEqual(ids)
  },
)

it('suspects of a plain queue continue after a stretch without a rest if nothing else waits', async () => {
  const on = new MemoryStore()
  const clock = new ManualClock(Date.now())
  const task = defineTask({ name: 'task', run: () => clock.advance(600) })
  const m = testMillOn(on, { tasks: [task] }, clock)
  await m.enqueueMany(task, ids)
  await crash(on, 'default')
  const rested = rests(on)
  const completed = recorded(m, 'job.completed')
  let restsBefore = -1
  const done = nextEvent(m, 'job.completed', () => {
    restsBefore = rested()
    return completed.length === ids.length
  })
  await m.worker().start()
  await done

  expect(restsBefore).toBe(0)
})

it('every other queue gets its turn after a stretch of suspects, however many there are', async () => {
  const on = new MemoryStore()
  const clock = new ManualClock(Date.now())
  const others = Array.from({ length: 40 }, (_, i) => defineTask({ name: `t${i}`, queue: `q${i}`, run: () => {} }))
  const orders = defineOrderedTask({
    name: 'orders',
    id: String,
    run: async () => {
      await m.enqueueMany(others[39]!, [1])
      clock.advance(600)
    },
  })
  // All others are found empty before the suspects are found.
  const queues = { ...Object.fromEntries(others.map(({ queue }) => [queue, {}])), orders: {} }
  const m = testMillOn(on, { tasks: [orders, ...others], queues }, clock)
  await m.enqueueMany(orders, ids)
  await crash(on, 'orders')
  const started = recorded(m, 'job.started')
  const begun = nextEvent(m, 'job.started', () => started.length === 3)
  await m.worker({ selector: (all) => all.map(({ name }) => name) }).start()
  await begun

  expect(started.slice(0, 3).map(({ queue }) => queue)).toEqual(['orders', 'orders', 'q39'])
})
