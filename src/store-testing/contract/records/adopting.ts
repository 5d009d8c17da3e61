/** Contract cases: the adoption of claims, by which another worker takes over the running jobs of a dead one. */

import assert from 'node:assert/strict'
import { UnknownQueueError } from '../../../core/errors.js'
import { orderedCase, plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'

export const adopting = plainConcern('adoption', [workers], {
  async 'an adopted claim is held by the one who adopted it, with the same fence, lease and beats'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead', alone: true })
    const startedAt = await scene.now()
    const process = { host: 'mill-1', boot: 'boot-1', pidns: '7', pid: 4_711, ticks: 17 }
    await scene.extend(claim, { beat: { startedMs: 0, ...process, progress: { fraction: 0.5 } } })
    await scene.advance(10_000)
    const before = await scene.job('a')

    assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
    assert.deepEqual(await scene.workers.held('dead'), [])
    const { queue, id, fence } = claim
    assert.deepEqual(await scene.workers.held('heir'), [
      { queue, id, fence, task: 'send-mail', alone: true, startedAt, ...process, progress: { fraction: 0.5 } },
    ])
    assert.deepEqual(await scene.job('a'), { ...before, worker: 'heir' })
  },

  async 'of all who adopt a claim one is told that it did'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead' })
    const heirs = ['heir-1', 'heir-2', 'heir-3']
    const other = await scene.harness.open()
    const told = await Promise.all(
      heirs.map((heir, i) => (i % 2 === 0 ? scene.store : other).workers!.adopt(claim, 'dead', heir)),
    )

    assert.equal(told.filter(Boolean).length, 1)
    assert.equal((await scene.workers.held(heirs[told.indexOf(true)]!)).length, 1)
  },

  async 'nobody adopts from a worker that does not hold the claim, nor a claim that is settled or superseded'(scene) {
    await scene.add('a', 'b')
    const a = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
    const b = await scene.claimOne({ worker: 'dead' })
    assert.equal(await scene.workers.adopt(a, 'somebody', 'heir'), false)
    await scene.end(b, { kind: 'complete' })
    assert.equal(await scene.workers.adopt(b, 'dead', 'heir'), false)
    await scene.advance(1_000)
    await scene.claimOne({ worker: 'dead', alone: true })

    assert.equal(await scene.workers.adopt(a, 'dead', 'heir'), false)
    assert.deepEqual(await scene.workers.held('heir'), [])
  },

  async 'whoever runs the job goes on with it whoever has adopted the claim'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
    await scene.workers.adopt(claim, 'dead', 'heir')
    assert.equal(await scene.extend(claim, { leaseMs: 30_000 }), 'ok')
    await scene.advance(20_000)

    await scene.end(claim, { kind: 'complete' })
  },

  async 'what is adopted does not end with the worker that had it, and does with the one that has it'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead' })
    await scene.workers.adopt(claim, 'dead', 'heir')
    assert.deepEqual((await scene.workers.gone([claim], 'dead')).crashed, [])

    const { crashed } = await scene.workers.gone([claim], 'heir')
    assert.deepEqual(
      crashed.map(({ id, worker }) => [id, worker]),
      [['a', 'heir']],
    )
  },

  'a lease that has ended and that nobody has recovered is adopted too, and a cancelled job stays cancelled': plainCase(
    [workers, records],
    async (scene) => {
      await scene.add('a')
      const claim = await scene.claimOne({ worker: 'dead', leaseMs: 1_000 })
      await scene.records.cancel(scene.queue, { ids: ['a'] })
      await scene.advance(5_000)

      assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
      assert.equal(await scene.extend(claim), 'cancel')
    },
  ),

  'claims of an ordered queue are adopted likewise': orderedCase([workers], async (scene) => {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne({ worker: 'dead' })

    assert.equal(await scene.workers.adopt(claim, 'dead', 'heir'), true)
    assert.equal((await scene.live('a')).worker, 'heir')
    await scene.end(claim, { kind: 'complete' })
  }),

  async 'a claim of a queue that is not there is refused'(scene) {
    const claim = { queue: 'nowhere', id: 'a', fence: 1 }
    await assert.rejects(scene.workers.adopt(claim, 'dead', 'heir'), UnknownQueueError)
  },
})
