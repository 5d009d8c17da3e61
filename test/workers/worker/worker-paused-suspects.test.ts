/** Suspects of groups that may start none: a worker neither goes alone for them nor passes over others that may run. */
import { defineTask } from 'millrace'
import { expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { nextEvent, recorded } from '../../next-event.js'
import { testMillOn } from '../../test-mill.js'
import { CountingStore } from './counting-store.js'

const risky = defineTask({ name: 'risky', queue: 'q', run: async () => {} })

async function crashed(...suspects: readonly { readonly id: string; readonly group: string }[]) {
  const store = new CountingStore(new ManualClock(1_000_000))
  const m = testMillOn(store, { tasks: [risky], queues: { q: {} } })
  for (const { id, group } of suspects) await m.enqueue(risky, 1, { id, group })
  const { claims } = await store.claim([{ queue: 'q', limit: 10 }], { worker: 'dead', leaseMs: 600_000 })
  await store.workers!.gone(claims, 'dead')
  await store.throttles!.pause('q', 'paused')
  const alone = () => store.counted.filter(({ by }) => by.alone).length
  return { m, alone }
}

it('a worker runs the jobs of other groups together while the group of a suspect is paused', async () => {
  const { m, alone } = await crashed({ id: 'suspect', group: 'paused' })
  await m.enqueueMany(risky, Array(100).fill(1), () => ({ group: 'other' }))
  const completed = recorded(m, 'job.completed')
  const first = nextEvent(m, 'job.completed', () => completed.length === 100)
  await m.worker({ concurrency: 2 }).start()
  await first
  for (let i = 1; i <= 10; i += 1) {
    const next = nextEvent(m, 'job.completed', () => completed.length === 100 + i)
    await m.enqueue(risky, 1, { group: 'other' })
    await next
  }
  expect(alone()).toBe(0)

  const done = nextEvent(m, 'job.completed', ({ id }) => id === 'suspect')
  await m.queue('q').resume({ group: 'paused' })
  await done
  expect(alone()).toBeGreaterThan(0)
})

it('a worker runs a suspect behind those of a paused group', async () => {
  const { m } = await crashed(
    { id: 'paused-1', group: 'paused' },
    { id: 'paused-2', group: 'paused' },
    { id: 'free', group: 'g' },
  )
  const done = nextEvent(m, 'job.completed', ({ id }) => id === 'free')
  await m.worker({ concurrency: 2 }).start()

  await done
  expect(await m.queue('q').depth()).toMatchObject({ suspects: 2 })
})
