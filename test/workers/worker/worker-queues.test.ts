import { defineTask, type Selector } from 'millrace'
import { describe, expect, it } from 'vitest'
import { ManualClock } from '#src/store-testing/harness/manual-clock.js'
import { MemoryStore } from '#src/stores/memory/memory-store.js'
import { nextEvent, recorded } from '../../next-event.js'
import { scriptedTask } from '../../scripted-task.js'
import { storeKinds, testMill, testMillOn } from '../../test-mill.js'

describe.each(storeKinds)('choosing queues, on %s', (kind) => {
  it('prefers high over low by highest-first until high is empty', async () => {
    const high = scriptedTask({ name: 'high', queue: 'high' })
    const low = scriptedTask({ name: 'low', queue: 'low' })
    const m = testMill({ tasks: [high, low], queues: { high: { weight: 100 }, low: { weight: 5 } } }, kind)
    const order = recorded(m, 'job.started')
    const jobs = [
      ...(await m.enqueueMany(low, [{ steps: ['ok'] }, { steps: ['ok'] }])),
      ...(await m.enqueueMany(high, [{ steps: ['ok'] }, { steps: ['ok'] }, { steps: ['ok'] }])),
    ]
    const done = Promise.all(jobs.map((job) => job.result({ timeout: '5s' })))
    await m.worker({ concurrency: 1, selector: 'highest-first' }).start()
    await done

    expect(order.map(({ queue }) => queue)).toEqual(['high', 'high', 'high', 'low', 'low'])
  })

  it('stays on a queue for its iterations', async () => {
    const a = scriptedTask({ name: 'a', queue: 'a' })
    const b = scriptedTask({ name: 'b', queue: 'b' })
    const m = testMill({ tasks: [a, b], queues: { a: { iterations: 3, claimSize: 1 }, b: { claimSize: 1 } } }, kind)
    const claims = recorded(m, 'queue.claimed')
    const jobs = [
      ...(await m.enqueueMany(
        a,
        Array.from({ length: 6 }, () => ({ steps: ['ok' as const] })),
      )),
      ...(await m.enqueueMany(
        b,
        Array.from({ length: 2 }, () => ({ steps: ['ok' as const] })),
      )),
    ]
    const done = Promise.all(jobs.map((job) => job.result({ timeout: '5s' })))
    await m.worker({ concurrency: 1, selector: 'sequential' }).start()
    await done

    expect(claims.map(({ queue }) => queue).join('')).toBe('aaabaaab')
  })

  it('gives a group as many turns in a round as its weight says', async () => {
    const task = scriptedTask({ queue: 'pages' })
    const m = testMill({ tasks: [task], queues: { pages: { claimSize: 1, groupWeights: { gold: 2 } } } }, kind)
    const order = recorded(m, 'job.started')
    const jobs = await m.enqueueMany(
      task,
      ['gold', 'gold', 'gold', 'gold', 'gold', 'silver', 'silver'].map(() => ({ steps: ['ok' as const] })),
      (_, i) => ({ group: i < 5 ? 'gold' : 'silver', id: `${i < 5 ? 'gold' : 'silver'}-${i}` }),
    )
    const done = Promise.all(jobs.map((job) => job.result({ timeout: '5s' })))
    await m.worker({ concurrency: 1 }).start()
    await done

    expect(order.map(({ id }) => id.split('-')[0]).join(' ')).toBe('gold gold silver gold gold silver gold')
  })

  it.each(['random', 'lottery', 'lottery-lottery'] as const)(
    'finds the one queue with work by %s, whatever the odds',
    async (selector) => {
      const queues = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`q${i}`, { weight: 100 }]))
      const task = scriptedTask({ queue: 'rare' })
      const m = testMill({ tasks: [task], queues: { ...queues, rare: { weight: 1 } } }, kind)
      const job = await m.enqueue(task, { steps: ['result'], result: 'found' })
      await m.worker({ selector }).start()

      expect(await job.result({ timeout: '5s' })).toBe('found')
    },
  )

  it('does not ask an empty store again and again', async () => {
    const store = new MemoryStore()
    let claims = 0
    const claim = store.claim.bind(store)
    store.claim = (from, by) => {
      claims += 1
      return claim(from, by)
    }
    const waits: number[] = []
    const rested = new Promise<void>((resolve) => {
      const wait = store.wait.bind(store)
      store.wait = (queues, forMs, signal) => {
        waits.push(forMs)
        resolve()
        return wait(queues, forMs, signal)
      }
    })
    const tasks = [defineTask({ name: 'a', queue: 'a', run: () => {} })]
    const m = testMillOn(store, { queues: { a: {}, b: {}, c: {} }, tasks }, new ManualClock(0))
    await m.worker().start()
    await rested

    expect(claims).toBe(1)
    expect(waits).toEqual([5_000])
  })

  it('stops with an error that names a queue which the selector invented', async () => {
    const selector: Selector = () => ['nowhere']
    const m = testMill({ tasks: [defineTask({ name: 'a', queue: 'a', run: () => {} })] }, kind)
    const worker = m.worker({ selector })
    const failed = nextEvent(m, 'worker.failed')
    await worker.start()

    await expect(worker.finished()).rejects.toThrow("named queue 'nowhere'")
    expect((await failed).worker).toBe(worker.id)
  })
})
