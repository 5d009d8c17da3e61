/** Contract cases: a server that was restarted, while lease holders could not renew. */

import assert from 'node:assert/strict'
import { orderedCase, plainCase, plainConcern, remote, workers } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const restarting = plainConcern('starting anew', [remote], {
  async 'expired leases are spared until the server has been up for one lease, and can be renewed meanwhile'(scene) {
    await scene.add('a', 'b')
    const { claims } = await scene.claim({ worker: 'survivor' })
    await scene.advance(60_000)
    await scene.harness.restart()

    assert.deepEqual(await found(scene), [])
    assert.equal(await scene.extend(claims[0]!), 'ok')
    await scene.advance(29_999)
    assert.deepEqual(await found(scene), [])
    assert.equal(await scene.extend(claims[0]!), 'ok')
    await scene.advance(1)
    assert.deepEqual(await found(scene), ['b'])
    await scene.end(claims[0]!, { kind: 'complete' })
  },

  async 'a claimer learns when spared leases will be checked, and one leads until then'(scene) {
    await scene.add('a')
    await scene.claim({ worker: 'survivor', leaseMs: 5_000 })
    await scene.advance(60_000)
    await scene.harness.restart()
    await scene.advance(4_000)

    const [told] = (await scene.claim({ worker: 'first' })).waits
    assert.deepEqual([told?.forMs, told?.lead], [26_000, true])
    const [next] = (await scene.claim({ worker: 'second' })).waits
    assert.deepEqual([next?.forMs, next?.lead], [26_000, undefined])
  },

  async 'a lease that ends while others are spared is spared as long'(scene) {
    await scene.add('a', 'b')
    await scene.claim({ worker: 'survivor', limit: 1, leaseMs: 5_000 })
    await scene.claim({ worker: 'survivor', limit: 1, leaseMs: 12_000 })
    await scene.advance(10_000)
    await scene.harness.restart()
    assert.deepEqual(await found(scene), [])
    await scene.advance(2_000)
    assert.deepEqual(await found(scene), [])
    await scene.advance(28_000)

    assert.deepEqual(await found(scene), ['a', 'b'])
  },

  async 'a start longer ago than a lease spares nothing'(scene) {
    await scene.harness.restart()
    await scene.add('a')
    await scene.claim({ worker: 'victim' })
    await scene.advance(30_000)

    assert.deepEqual(await found(scene), ['a'])
  },

  async 'a start counts once: later crashes are not spared'(scene) {
    await scene.add('a', 'b')
    await scene.claim({ worker: 'survivor', limit: 1 })
    await scene.advance(60_000)
    await scene.harness.restart()
    await found(scene)
    await scene.advance(30_000)
    assert.deepEqual(await found(scene), ['a'])
    await scene.claim({ worker: 'victim', limit: 1, leaseMs: 1_000 })
    await scene.advance(1_000)

    assert.deepEqual(await found(scene), ['b'])
  },

  async 'each start has its own time, and only those of the claimed queues count'(scene) {
    await scene.add('a')
    await scene.claim({ worker: 'survivor', leaseMs: 1_000 })
    await scene.advance(60_000)
    await scene.harness.restart()
    await found(scene)
    await scene.advance(20_000)
    await scene.harness.restart()
    assert.deepEqual(await found(scene), [])
    await scene.advance(29_000)
    assert.deepEqual(await found(scene), [])
    await scene.advance(1_000)

    assert.deepEqual(await found(scene), ['a'])
  },

  'the lease of a worker known to be dead is not spared': plainCase([remote, workers], async (scene) => {
    await scene.add('a')
    const claim = await scene.claimOne({ worker: 'dead' })
    await scene.advance(60_000)
    await scene.harness.restart()

    assert.equal((await scene.workers.gone([claim], 'dead')).crashed.length, 1)
  }),

  'the shards of an ordered queue spare leases too': orderedCase([remote], async (scene) => {
    await scene.push('a', 'v1')
    await scene.claim({ worker: 'survivor', leaseMs: 5_000 })
    await scene.advance(60_000)
    await scene.harness.restart()
    assert.deepEqual(await found(scene), [])
    await scene.advance(30_000)

    assert.deepEqual(await found(scene), ['a'])
  }),
})

/** The ids of the jobs whose leases a claim, with a lease of 30 s, finds expired. */
async function found(scene: Pick<Scene, 'claim'>): Promise<string[]> {
  const { crashed } = await scene.claim({ worker: 'finder', limit: 0 })
  return crashed.map(({ id }) => id).sort()
}
