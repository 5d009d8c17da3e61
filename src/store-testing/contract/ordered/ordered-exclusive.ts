/** Contract cases: the form of an ordered queue, and shards that run one batch at a time. */

import assert from 'node:assert/strict'
import { ConfigConflictError } from '../../../core/errors.js'
import { orderedCase, orderedConcern, records, tellsCrashes } from '../scenes/contract-case.js'
import { idsOf, suspectsTold } from '../scenes/limit-words.js'
import type { OrderedScene } from '../scenes/ordered-scene.js'
import { Rest } from '../scenes/rest.js'

/** By crc32 a and b are in shard 1 of 2, d and e in shard 0. */
const strict = 'strict'
const openStrict = (scene: OrderedScene) => scene.openQueue({ name: strict, exclusive: 'shard', shards: 2 })
const shard = (shard: number, limit = 10) => ({ from: [{ queue: strict, shard, limit }] })

export const orderedExclusive = orderedConcern('the form of an ordered queue', [], {
  async 'open answers with the form of an ordered queue'(scene) {
    const stored = await openStrict(scene)
    assert.deepEqual(stored, {
      ...{ name: strict, kind: 'ordered', order: 'fifo', exclusive: 'shard', shards: 2 },
      ...{ paused: false, draining: false, limits: {} },
    })
  },

  async 'a plain queue is not opened as an ordered one, nor the reverse'(scene) {
    await scene.openQueue({ name: 'mail', kind: 'plain' })
    await assert.rejects(scene.openQueue({ name: 'mail' }), ConfigConflictError)
    await assert.rejects(scene.openQueue({ kind: 'plain' }), ConfigConflictError)
  },

  async 'exclusive is fixed at first use'(scene) {
    await assert.rejects(scene.openQueue({ exclusive: 'shard' }), ConfigConflictError)
    await openStrict(scene)
    await assert.rejects(scene.openQueue({ name: strict }), ConfigConflictError)
    await assert.rejects(scene.openQueue({ name: strict, exclusive: 'id' }), ConfigConflictError)
    assert.equal((await openStrict(scene)).exclusive, 'shard')
  },

  async 'the stored number of shards counts'(scene) {
    await openStrict(scene)
    const stored = await scene.openQueue({ name: strict, exclusive: 'shard', shards: 7 })
    assert.equal(stored.shards, 2)
    assert.equal((await scene.shards(strict)).length, 2)
  },

  async "two batches of one shard never run at once: a shard in use is 'full'"(scene) {
    await openStrict(scene)
    await scene.enqueue(['a', 'b', 'd'], { queue: strict })
    assert.deepEqual(await scene.claimIds(shard(1, 1)), ['a'])
    const { claims, waits, more } = await scene.claim(shard(1))
    assert.deepEqual([claims, waits[0]?.reason, waits[0]?.shard, more], [[], 'full', 1, false])
    assert.deepEqual(await scene.claimIds({ ...shard(1), alone: true }), [])
    assert.deepEqual(await scene.claimIds(shard(0)), ['d'])
  },

  async 'if many claim one shard at once, one gets a batch'(scene) {
    await openStrict(scene)
    await scene.enqueue(['a', 'b'], { queue: strict })
    const store = await scene.harness.open()
    const answers = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        (i % 2 ? store : scene.store).claim([{ queue: strict, limit: 1 }], {
          worker: `worker-${i}`,
          leaseMs: 30_000,
        }),
      ),
    )
    assert.deepEqual(
      answers.flatMap(({ claims }) => claims.map(({ id }) => id)),
      ['a'],
    )
  },

  async 'a batch may have several ids, and a call grants from one shard only'(scene) {
    await openStrict(scene)
    await scene.enqueue(['a', 'b', 'd', 'e'], { queue: strict })
    assert.deepEqual(await scene.claimIds({ queue: strict }), ['d', 'e'])
    assert.deepEqual(await scene.claimIds({ queue: strict }), ['a', 'b'])
  },

  async 'a shard is free when the last claim of its batch has ended, however it ends'(scene) {
    await openStrict(scene)
    await scene.enqueue(['a', 'b'], { queue: strict })
    const [a, b] = (await scene.claim(shard(1))).claims
    await scene.enqueue([{ id: '\uffee' }], { queue: strict })
    await scene.end(a!, { kind: 'complete' })
    assert.deepEqual(await scene.claimIds(shard(1)), [])
    await scene.end(b!, { kind: 'retry', delayMs: 60_000 })
    assert.deepEqual(await scene.claimIds(shard(1)), ['\uffee'])
  },

  async 'a shard whose batch is lost with its worker is free when the lease has ended'(scene) {
    await openStrict(scene)
    await scene.enqueue(['a', 'b'], { queue: strict })
    await scene.claim({ ...shard(1, 1), leaseMs: 5_000 })
    const { waits } = await scene.claim(shard(1))
    assert.deepEqual(waits, [{ queue: strict, shard: 1, reason: 'full', forMs: 5_000, lead: true }])
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds(shard(1)), ['b'])
  },

  'a batch that leaves its shard in use shows a suspect, which the next claim alone gets before the backlog':
    orderedCase([tellsCrashes], async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a'], { queue: strict })
      assert.deepEqual(await scene.claimIds({ ...shard(1), leaseMs: 1_000 }), ['a'])
      await scene.advance(1_000)
      await scene.claim({ ...shard(1, 0), worker: 'finder' })
      await scene.advance(10_000)
      await scene.enqueue(['b', '\uffee'], { queue: strict })
      const claimed = await scene.claim(shard(1, 1))
      assert.deepEqual([idsOf(claimed), suspectsTold(claimed)], [['b'], ['leads']])
      await scene.end(claimed.claims[0]!, { kind: 'complete' })

      assert.deepEqual(await scene.claimIds({ ...shard(1), alone: true }), ['a'])
    }),

  async 'a ready job in a shard in use rings nobody; the end of its last claim does'(scene) {
    await openStrict(scene)
    await scene.enqueue(['a'], { queue: strict })
    const claim = await scene.claimOne({ queue: strict })
    const first = await Rest.begin(scene, [strict])
    await scene.enqueue(['b'], { queue: strict })
    await first.isUndisturbed()
    const second = await Rest.begin(scene, [strict])
    await scene.end(claim, { kind: 'complete' })
    await second.wakes(strict)
  },

  'a failure from outside frees a shard, and rings': orderedCase([records], async (scene) => {
    await openStrict(scene)
    await scene.enqueue(['a', 'b'], { queue: strict })
    await scene.claimOne(shard(1, 1))
    const rest = await Rest.begin(scene, [strict])
    assert.equal(await scene.records.fail(strict, 'a', { delayMs: 60_000, reason: 'operator' }), 'ok')
    await rest.wakes(strict)
    assert.deepEqual(await scene.claimIds(shard(1)), ['b'])
  }),

  async 'payloads waiting next to the only job of a shard ring when that ends'(scene) {
    await scene.push('a', 'v1')
    const claim = await scene.claimOne()
    const rest = await Rest.begin(scene)
    await scene.push('a', 'v2')
    await rest.isUndisturbed()
    const next = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })
    await next.wakes(scene.queue)
  },
})
