/** Suspects that limits deny even to a claim alone: they are not asked for again and again, and nothing stops for them. */
import { defineTask, type Mill, type QueueOptions } from 'millrace'
import { expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { CountingStore } from './counting-store.js'

const risky = defineTask({ name: 'risky', queue: 'q', run: async () => {} })
const other = defineTask({ name: 'other', queue: 'other', run: async () => {} })
const long = defineTask({
  name: 'long',
  queue: 'other',
  run: (_, { signal }) => new Promise<void>((end) => signal.addEventListener('abort', () => end())),
})
const dead = { worker: 'dead', leaseMs: 600_000 }

async function scene(options: QueueOptions) {
  const clock = new ManualClock(1_000_000)
  const store = new CountingStore(clock)
  const m = testMillOn(store, { tasks: [risky, other, long], queues: { q: options } })
  await m.enqueue(risky, 1, { id: 'suspect', group: 'g' })
  const { claims } = await store.claim([{ queue: 'q', limit: 1 }], dead)
  await store.workers!.gone(claims, 'dead')
  return { clock, store, m, alone: () => store.counted.filter(({ by }) => by.alone) }
}

/** So many jobs of the other queue, one after the other where there is one slot. */
async function busyWith(m: Mill, count: number): Promise<void> {
  const completed = recorded(m, 'job.completed')
  const done = nextEvent(m, 'job.completed', () => completed.length === count)
  await m.enqueueMany(other, Array(count).fill(1))
  await done
}

it('suspects denied by a throttle are asked for once, and again as soon as it opens', async () => {
  const { store, m, alone } = await scene({ throttle: { limit: 1, window: '1h' } })
  const denied = store.next(({ by }) => by.alone === true)
  await m.worker({ concurrency: 2 }).start()
  expect((await denied).answer).toMatchObject({ claims: [], waits: [{ queue: 'q', reason: 'throttled' }] })
  await busyWith(m, 100)

  expect(alone()).toHaveLength(1)
  const done = nextEvent(m, 'job.completed', ({ id }) => id === 'suspect')
  await m.queue('q').throttle.set({ limit: 9, window: '1h' })
  await done
})

it('suspects in a held group are asked for by no claim alone, and running jobs are not drained for them', async () => {
  const { clock, store, m, alone } = await scene({})
  await m.enqueue(risky, 1, { id: 'asks for a hold', group: 'g' })
  const [claim] = (await store.claim([{ queue: 'q', limit: 1 }], dead)).claims
  const hold = { of: 'group', forMs: 3_600_000 } as const
  await store.settle([{ queue: 'q', id: claim!.id, fence: claim!.fence, kind: 'release', delayMs: 0, hold }])
  await m.worker({ concurrency: 2, grace: 0 }).start()
  for (let i = 0; i < 5; i += 1) await busyWith(m, 20)

  await m.enqueue(long, 1)
  clock.advance(7_000)
  for (let i = 0; i < 3; i += 1) await busyWith(m, 1)

  expect(alone()).toEqual([])
  expect(await m.queue('q').depth()).toMatchObject({ suspects: 1, ready: 2 })
})
