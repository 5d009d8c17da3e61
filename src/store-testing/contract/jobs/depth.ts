/** Contract cases: depth. */

import assert from 'node:assert/strict'
import { exactDepth, plainCase, plainConcern, records } from '../scenes/contract-case.js'

export const depth = plainConcern('depth', [], {
  async 'an empty queue has no depth'(scene) {
    assert.deepEqual(await scene.depth(), {
      queue: scene.queue,
      ready: 0,
      payloads: 0,
      suspects: 0,
      scheduled: 0,
      waiting: 0,
      running: 0,
      dead: 0,
      fresh: 0,
      retries: 0,
      lagMs: 0,
      processed: 0,
      failed: 0,
      crashed: 0,
      expired: 0,
      paused: false,
      draining: false,
    })
  },

  'jobs are counted by state, and waiting ones by whether they failed': plainCase([exactDepth], async (scene) => {
    await scene.addDead('dead')
    await scene.add('again')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 50_000 })
    await scene.add('running')
    await scene.claimOne()
    await scene.add('a', 'b', { id: 'c', delayMs: 1_000 })

    const { ready, scheduled, running, dead, fresh, retries } = await scene.depth()

    assert.deepEqual(
      { ready, scheduled, running, dead, fresh, retries },
      { ready: 2, scheduled: 2, running: 1, dead: 1, fresh: 3, retries: 1 },
    )
  }),

  'kept results count nowhere in the depth': plainCase([exactDepth], async (scene) => {
    await scene.addCompleted('a')

    const { ready, scheduled, running, dead, processed } = await scene.depth()

    assert.deepEqual([ready, scheduled, running, dead, processed], [0, 0, 0, 0, 1])
  }),

  'lag is how long the oldest due job has been due': plainCase([exactDepth], async (scene) => {
    await scene.add('a')
    await scene.advance(10_000)
    await scene.add('b')
    assert.equal((await scene.depth()).lagMs, 10_000)
    await scene.advance(1_000)
    assert.equal((await scene.depth()).lagMs, 11_000)
  }),

  async 'future and running jobs cause no lag'(scene) {
    await scene.add('a')
    await scene.claimOne()
    await scene.add({ id: 'b', delayMs: 60_000 })
    await scene.advance(30_000)

    assert.equal((await scene.depth()).lagMs, 0)
  },

  'a due scheduled job causes lag before any claim has promoted it': plainCase([exactDepth], async (scene) => {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.advance(4_000)

    assert.equal((await scene.depth()).lagMs, 3_000)
  }),

  'jobs run by hand cause no absurd lag': plainCase([records], async (scene) => {
    await scene.add({ id: 'a', delayMs: 60_000 })
    await scene.advance(100)
    await scene.records.runNow(scene.queue, 'all')

    assert.equal((await scene.depth()).lagMs, 0)
  }),

  async 'several queues are answered in the given order, with the time of the store'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add('a')

    const { now, depths } = await scene.store.depth(['other', scene.queue])

    assert.equal(now, (await scene.harness.dump()).now)
    assert.deepEqual(
      depths.map(({ queue, ready }) => [queue, ready]),
      [
        ['other', 0],
        [scene.queue, 1],
      ],
    )
  },

  'depth reports a pause and a drain': plainCase([records], async (scene) => {
    await scene.records.pause(scene.queue)
    await scene.records.drain(scene.queue)
    const { paused, draining } = await scene.depth()

    assert.deepEqual({ paused, draining }, { paused: true, draining: true })
  }),

  async 'asking for a depth changes nothing'(scene) {
    await scene.add('a', { id: 'b', delayMs: 1_000 })
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.advance(2_000)
    const before = await scene.harness.dump()

    await scene.depth()

    assert.deepEqual(await scene.harness.dump(), before)
  },
})
