/** Contract cases: opening queues, and closing handles. */

import assert from 'node:assert/strict'
import { ClosedError, ConfigConflictError, hasCode, UnknownQueueError } from '../../../core/errors.js'
import { inOrder, plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'
import { newJob, soon } from '../scenes/scene.js'

const settings = { kind: 'plain', order: 'fifo' } as const

export const opening = plainConcern('opening', [], {
  'open answers for each queue in the given order': plainCase([inOrder], async ({ store }) => {
    const stored = await store.open([
      { ...settings, name: 'z' },
      { ...settings, name: 'a', order: 'lifo' },
    ])

    const rest = { exclusive: 'id', shards: 1, paused: false, draining: false, limits: {} }
    assert.deepEqual(stored, [
      { name: 'z', kind: 'plain', order: 'fifo', ...rest },
      { name: 'a', kind: 'plain', order: 'lifo', ...rest },
    ])
  }),

  async 'opening a queue again keeps its jobs'(scene) {
    await scene.add('a')

    await scene.openQueue()

    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  'an order different from the stored one is refused': plainCase([inOrder], async (scene) => {
    await assert.rejects(scene.openQueue({ order: 'lifo' }), ConfigConflictError)
    assert.equal((await scene.stored()).order, 'fifo')
  }),

  'a refused open opens nothing, even queues named before the refused one': plainCase([inOrder], async (scene) => {
    const open = scene.store.open([
      { ...settings, name: 'fresh' },
      { ...settings, name: scene.queue, order: 'lifo', maxPending: 1 },
    ])

    await assert.rejects(open, ConfigConflictError)

    await assert.rejects(scene.store.depth(['fresh']), UnknownQueueError)
    assert.equal((await scene.stored()).maxPending, null)
  }),

  'open reports whether the queue is paused and draining, and changes neither': plainCase([records], async (scene) => {
    await scene.records.pause(scene.queue)
    await scene.records.drain(scene.queue)

    const { paused, draining } = await scene.openQueue()

    assert.deepEqual({ paused, draining }, { paused: true, draining: true })
  }),

  async 'every verb refuses a queue that was never opened'({ store }) {
    const key = { queue: 'nowhere', id: 'a', fence: 1 }
    const call = { callId: 'c', queue: 'nowhere', jobs: [newJob({ id: 'a' })] }

    await assert.rejects(store.enqueue([call]), UnknownQueueError)
    await assert.rejects(
      store.claim([{ queue: 'nowhere', limit: 1 }], { worker: 'w', leaseMs: 1_000 }),
      UnknownQueueError,
    )
    await assert.rejects(store.settle([{ ...key, kind: 'complete' }]), UnknownQueueError)
    await assert.rejects(store.extend([{ ...key, leaseMs: 1_000 }]), UnknownQueueError)
    await assert.rejects(store.depth(['nowhere']), UnknownQueueError)
    await assert.rejects(store.wait(['nowhere'], 0, new AbortController().signal), UnknownQueueError)
  },

  async 'a call that names an unknown queue changes nothing in known ones'(scene) {
    await scene.add('a', 'b')
    const { claims } = await scene.claim()
    const before = await scene.harness.dump()
    const unknown = { queue: 'nowhere', id: 'a', fence: 1 }
    const known = claims[0]!

    await assert.rejects(
      scene.store.settle([
        { queue: known.queue, id: known.id, fence: known.fence, kind: 'complete' },
        { ...unknown, kind: 'complete' },
      ]),
      UnknownQueueError,
    )
    await assert.rejects(
      scene.store.extend([
        { queue: known.queue, id: known.id, fence: known.fence, leaseMs: 90_000 },
        { ...unknown, leaseMs: 90_000 },
      ]),
      UnknownQueueError,
    )
    await assert.rejects(
      scene.store.enqueue([
        { callId: 'x', queue: scene.queue, jobs: [newJob({ id: 'c' })] },
        { callId: 'x', queue: 'nowhere', jobs: [newJob({ id: 'c' })] },
      ]),
      UnknownQueueError,
    )

    assert.deepEqual(await scene.harness.dump(), before)
  },

  'the records refuse a queue that was never opened': plainCase([records], async ({ records }) => {
    await assert.rejects(records.get('nowhere', 'a'), UnknownQueueError)
    await assert.rejects(records.list('nowhere', { by: 'id', limit: 1 }), UnknownQueueError)
    await assert.rejects(records.cancel('nowhere', 'all'), UnknownQueueError)
    await assert.rejects(records.pause('nowhere'), UnknownQueueError)
    await assert.rejects(records.morgue.revive('nowhere', 'all'), UnknownQueueError)
  }),

  'queues() lists every queue by name, with its switches': plainCase([records], async ({ store, records, queue }) => {
    await store.open([
      { ...settings, name: 'zebra', order: 'lifo' },
      { ...settings, name: 'ant' },
    ])
    await records.pause('zebra')

    const listed = await records.queues()

    assert.deepEqual(
      listed.map(({ name, order, paused }) => ({ name, order, paused })),
      [
        { name: 'ant', order: 'fifo', paused: false },
        { name: queue, order: 'fifo', paused: false },
        { name: 'zebra', order: 'lifo', paused: true },
      ],
    )
  }),
})

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
    const waiting = finishedOrClosed(soon(store.wait([queue], 25_000, new AbortController().signal)), [])
    await store.close()

    await waiting
  },

  'closing ends a watch under way': plainCase([records], async (scene) => {
    await scene.add('a')
    const jobs = [{ queue: scene.queue, id: 'a' }]
    const watching = finishedOrClosed(soon(scene.records.watch(jobs, 25_000, new AbortController().signal)), [])
    await scene.store.close()

    await watching
  }),

  async 'an enqueue under way while the store closes is carried out completely or rejected'(scene) {
    const { store, queue } = scene
    const other = await scene.harness.open()
    const enqueued = store.enqueue([{ callId: 'c', queue, jobs: [newJob({ id: 'a' }), newJob({ id: 'b' })] }])
    const closed = store.close()

    const isDone = await finishedOrClosed(enqueued, [['added', 'added']])
    await closed

    const { depths } = await other.depth([queue])
    assert.equal(depths[0]?.ready, isDone ? 2 : 0)
  },

  async 'closing one handle leaves the others and the data unchanged'(scene) {
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
