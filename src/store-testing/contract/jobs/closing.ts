/** Contract cases: closing. */

import assert from 'node:assert/strict'
import { hasCode } from '../../../core/error-codes.js'
import { ClosedError } from '../../../core/errors.js'
import { type ContractConcern, contractCase, records, workers } from '../scenes/contract-case.js'
import { newJob, soon } from '../scenes/scene.js'

export const closing: ContractConcern = {
  concern: 'closing',
  cases: [
    contractCase('closing twice is harmless', async ({ store }) => {
      await store.close()
      await store.close()
    }),

    contractCase('a closed store refuses every verb', async (scene) => {
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
    }),

    contractCase(
      'the records of a closed store refuse too',
      async ({ store, records, queue }) => {
        await store.close()

        await assert.rejects(records.get(queue, 'a'), ClosedError)
        await assert.rejects(records.queues(), ClosedError)
        await assert.rejects(records.pause(queue), ClosedError)
      },
      records,
    ),

    contractCase(
      'the registry of a closed store refuses too',
      async ({ store, workers, queue }) => {
        await store.close()

        await assert.rejects(workers.list(), ClosedError)
        await assert.rejects(workers.held('w1'), ClosedError)
        await assert.rejects(workers.gone([{ queue, id: 'a', fence: 1 }], 'w1'), ClosedError)
      },
      workers,
    ),

    contractCase('closing ends a wait under way', async ({ store, queue }) => {
      const waiting = store.wait([queue], 25_000, new AbortController().signal)
      await store.close()

      await finishedOrClosed(soon(waiting), [])
    }),

    contractCase(
      'closing ends a watch under way',
      async (scene) => {
        await scene.add('a')
        const jobs = [{ queue: scene.queue, id: 'a' }]
        const watching = scene.records.watch(jobs, 25_000, new AbortController().signal)
        await scene.store.close()

        await finishedOrClosed(soon(watching), [])
      },
      records,
    ),

    contractCase('an enqueue under way while the store closes is wholly done or rejected', async (scene) => {
      const { store, queue } = scene
      const other = await scene.harness.open()
      const enqueued = store.enqueue([{ callId: 'c', queue, jobs: [newJob({ id: 'a' }), newJob({ id: 'b' })] }])
      const closed = store.close()

      const isDone = await finishedOrClosed(enqueued, [['added', 'added']])
      await closed

      const { depths } = await other.depth([queue])
      assert.equal(depths[0]?.ready, isDone ? 2 : 0)
    }),

    contractCase('closing one handle leaves the others and the data as they are', async (scene) => {
      const other = await scene.harness.open()
      await scene.add('a')
      await scene.store.close()

      const { claims } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

      assert.equal(claims[0]?.id, 'a')
    }),
  ],
}

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
