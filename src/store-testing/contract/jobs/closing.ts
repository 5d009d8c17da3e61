/** Contract cases: closing. */

import assert from 'node:assert/strict'
import { hasCode } from '../../../core/error-codes.js'
import { ClosedError } from '../../../core/errors.js'
import { plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'
import { newJob, soon } from '../scenes/scene.js'

export const closing = plainConcern('closing', [], {
  async 'closing twice is harmless'({ store }) {
    await store.close()
    await store.close()
  },

  async 'a closed store refuses every verb'(scene) {
    const { store, queue } = scene
    await scene.add('a')
    const { id, fence } = await scene.claimOne()
    await store.close()

    await assert.rejects(
      store.open([{ name: queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} }]),
      ClosedError,
    )
    await assert.rejects(store.enqueue([{ callId: 'c', queue, jobs: [newJob({ id: 'b' })] }]), ClosedError)
    await assert.rejects(store.claim([{ queue, limit: 1 }], { worker: 'w', leaseMs: 1_000 }), ClosedError)
    await assert.rejects(store.settle([{ queue, id, fence, kind: 'complete' }]), ClosedError)
    await assert.rejects(store.extend([{ queue, id, fence, leaseMs: 1_000 }]), ClosedError)
    await assert.rejects(store.depth([queue]), ClosedError)
  },

  'the records of a closed store refuse too': plainCase([records], async ({ store, records, queue }) => {
    await store.close()

    await assert.rejects(records.get(queue, 'a'), ClosedError)
    await assert.rejects(records.queues(), ClosedError)
    await assert.rejects(records.pause(queue), ClosedError)
  }),

  'the registry of a closed store refuses too': plainCase([workers], async ({ store, workers, queue }) => {
    await store.close()

    await assert.rejects(workers.list(), ClosedError)
    await assert.rejects(workers.held('w1'), ClosedError)
    await assert.rejects(workers.gone([{ queue, id: 'a', fence: 1 }], 'w1'), ClosedError)
  }),

  async 'closing ends a wait under way'({ store, queue }) {
    const waiting = store.wait([queue], 25_000, new AbortController().signal)
    await store.close()

    await finishedOrClosed(soon(waiting), [])
  },

  'closing ends a watch under way': plainCase([records], async (scene) => {
    await scene.add('a')
    const jobs = [{ queue: scene.queue, id: 'a' }]
    const watching = scene.records.watch(jobs, 25_000, new AbortController().signal)
    await scene.store.close()

    await finishedOrClosed(soon(watching), [])
  }),

  async 'an enqueue under way while the store closes is wholly done or rejected'(scene) {
    const { store, queue } = scene
    const other = await scene.harness.open()
    const enqueued = store.enqueue([{ callId: 'c', queue, jobs: [newJob({ id: 'a' }), newJob({ id: 'b' })] }])
    const closed = store.close()

    const isDone = await finishedOrClosed(enqueued, [['added', 'added']])
    await closed

    const { depths } = await other.depth([queue])
    assert.equal(depths[0]?.ready, isDone ? 2 : 0)
  },

  async 'closing one handle leaves the others and the data as they are'(scene) {
    const other = await scene.harness.open()
    await scene.add('a')
    await scene.store.close()

    const { claims } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

    assert.equal(claims[0]?.id, 'a')
  },
})

/** Whether the call finished with this answer, rather than rejected with `ClosedError`. */
async function finishedOrClosed<T>(call: Promise<T>, answer: T): Promise<boolean> {
  try {
    assert.deepEqual(await call, answer)
    return true
  } catch (error) {
    if (hasCode(error, 'closed')) return false
    throw error
  }
}
