/** Contract cases: waiting for a ring, and watching jobs end. */

import assert from 'node:assert/strict'
import { plainCase, plainConcern, records, rings, workers } from '../scenes/contract-case.js'
import { soon } from '../scenes/scene.js'

/** Longer than any case may take: a wait that ends sooner ended for another reason. */
const longMs = 25_000

export const waiting = plainConcern('waiting', [], {
  async 'wait resolves at once if a job is ready'(scene) {
    await scene.add('a')

    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, never())), [scene.queue])
  },

  async 'wait resolves at once if a job is due'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.advance(1_000)
    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, never())), [scene.queue])
  },

  async 'wait resolves at once if a lease ended'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(1_000)
    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, never())), [scene.queue])
  },

  'wait resolves at once for a due change only if nobody leads': plainCase([rings], async (scene) => {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.claim({ worker: 'lead' })
    await scene.advance(2_000)
    assert.deepEqual(await scene.store.wait([scene.queue], 50, never()), [])
    await scene.advance(1)

    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, never())), [scene.queue])
  }),

  async 'wait resolves at once if a job is ready, whether or not there is a lead'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.claim({ worker: 'lead' })
    await scene.add('b')

    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, never())), [scene.queue])
  },

  'wait resolves at once with all queues that hold a job, and not with paused ones': plainCase(
    [records],
    async (scene) => {
      for (const name of ['second', 'paused', 'empty']) await scene.openQueue({ name })
      await scene.add('a')
      await scene.enqueue(['b'], { queue: 'second' })
      await scene.enqueue(['c'], { queue: 'paused' })
      await scene.records.pause('paused')

      const found = await soon(scene.store.wait(['empty', 'paused', 'second', scene.queue], longMs, never()))

      assert.deepEqual(found.sort(), [scene.queue, 'second'])
      assert.deepEqual(await scene.store.wait(['paused'], 50, never()), [])
    },
  ),

  async 'an enqueue rings a waiter'(scene) {
    const rung = scene.store.wait([scene.queue], longMs, never())
    await scene.add('a')

    assert.deepEqual(await soon(rung), [scene.queue])
  },

  async 'an enqueue on another handle is noticed'(scene) {
    const other = await scene.harness.open()
    const rung = other.wait([scene.queue], longMs, never())
    await scene.add('a')

    assert.deepEqual(await soon(rung), [scene.queue])
  },

  async 'wait names one of its queues'(scene) {
    await scene.openQueue({ name: 'other' })
    const rung = scene.store.wait(['other', scene.queue], longMs, never())
    await scene.enqueue(['a'], { queue: 'other' })

    assert.ok((await soon(rung)).includes('other'))
  },

  async 'wait resolves with no queue when its time is over'(scene) {
    assert.deepEqual(await soon(scene.store.wait([scene.queue], 20, never())), [])
    assert.deepEqual(await soon(scene.store.wait([scene.queue], 0, never())), [])
  },

  async 'wait resolves with no queue when it is aborted, before or meanwhile'(scene) {
    assert.deepEqual(await soon(scene.store.wait([scene.queue], longMs, AbortSignal.abort())), [])
    const abort = new AbortController()
    const rung = scene.store.wait([scene.queue], longMs, abort.signal)
    abort.abort()

    assert.deepEqual(await soon(rung), [])
  },

  async 'a released job rings a waiter'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    const rung = scene.store.wait([scene.queue], longMs, never())
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await soon(rung), [scene.queue])
  },

  'resume, runNow, revive and a failure from outside ring a waiter': plainCase([records], async (scene) => {
    const rings = async (change: () => Promise<unknown>) => {
      const rung = scene.store.wait([scene.queue], longMs, never())
      await change()
      assert.deepEqual(await soon(rung), [scene.queue])
      for (const claim of (await scene.claim()).claims) await scene.end(claim, { kind: 'complete' })
    }
    await scene.add('a')
    await scene.records.pause(scene.queue)
    await rings(() => scene.records.resume(scene.queue))
    await scene.add({ id: 'a', delayMs: 60_000 })
    await rings(() => scene.records.runNow(scene.queue, 'all'))
    await scene.addDead('a')
    await rings(() => scene.records.morgue.revive(scene.queue, 'all'))
    await scene.add('a')
    await scene.claimOne()
    await rings(() => scene.records.fail(scene.queue, 'a', { delayMs: 0, reason: 'by hand' }))
  }),

  'watch resolves at once with ended and missing jobs': plainCase([records], async (scene) => {
    await scene.addDead('dead')
    await scene.addCompleted('done')
    await scene.add('running')
    await scene.claimOne()
    await scene.add('ready')
    const jobs = ['ready', 'gone', 'running', 'dead', 'done'].map((id) => ({ queue: scene.queue, id }))

    const ended = await scene.records.watch(jobs, longMs, never())

    assert.deepEqual(ended.map(({ id }) => id).sort(), ['dead', 'done', 'gone'])
  }),

  'watch resolves when a job completes, is buried or is cancelled, on any handle': plainCase(
    [records],
    async (scene) => {
      const other = await scene.harness.open()
      const ends = [
        { kind: 'complete' },
        { kind: 'complete', result: { payload: '1' } },
        { kind: 'bury' },
        { kind: 'cancel' },
      ] as const
      for (const [i, end] of ends.entries()) {
        const job = { queue: scene.queue, id: `job-${i}` }
        await scene.add(job.id)
        const claim = await scene.claimOne()
        const watched = other.records!.watch([job], longMs, never())
        await scene.end(claim, end)

        assert.deepEqual(await watched, [job])
      }
    },
  ),

  'every watcher of a job learns of its end': plainCase([records], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne()
    const job = { queue: scene.queue, id: 'a' }
    const handles = [scene.store, scene.store, await scene.harness.open()]
    const watched = handles.map((store) => store.records!.watch([job], longMs, never()))
    await scene.end(claim, { kind: 'complete' })

    assert.deepEqual(await soon(Promise.all(watched)), [[job], [job], [job]])
  }),

  'watch resolves when a job is buried because its worker is gone': plainCase([records, workers], async (scene) => {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.add('a')
    const { queue, id, fence } = await scene.claimOne({ worker: 'w1', alone: true })
    const watched = scene.records.watch([{ queue, id }], longMs, never())
    await scene.workers.gone([{ queue, id, fence }], 'w1')

    assert.deepEqual(await soon(watched), [{ queue, id }])
  }),

  'watch resolves with the first job that ends, and reports no other': plainCase([records], async (scene) => {
    await scene.add('a', 'b')
    const { claims } = await scene.claim()
    const jobs = ['a', 'b'].map((id) => ({ queue: scene.queue, id }))
    const watched = scene.records.watch(jobs, longMs, never())
    await scene.end(claims[1]!, { kind: 'complete' })

    assert.deepEqual(await watched, [{ queue: scene.queue, id: 'b' }])
  }),

  'watch resolves when a job is buried for its crashes': plainCase([records], async (scene) => {
    await scene.openQueue({ maxCrashes: 1 })
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000, alone: true })
    await scene.advance(1_000)
    const job = { queue: scene.queue, id: 'a' }
    const watched = scene.records.watch([job], longMs, never())
    await scene.claim()

    assert.deepEqual(await watched, [job])
  }),

  'watch resolves with no job when its time is over or it is aborted': plainCase([records], async (scene) => {
    await scene.add('a')
    const jobs = [{ queue: scene.queue, id: 'a' }]
    const abort = new AbortController()

    assert.deepEqual(await scene.records.watch(jobs, 20, never()), [])
    const watched = scene.records.watch(jobs, longMs, abort.signal)
    abort.abort()
    assert.deepEqual(await watched, [])
  }),
})

function never(): AbortSignal {
  return new AbortController().signal
}
