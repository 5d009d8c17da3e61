/** Contract cases: the form of an ordered queue, and shards that run one batch at a time. */

import assert from 'node:assert/strict'
import { ConfigConflictError } from '../../../core/errors.js'
import { type ContractConcern, orderedCase, records } from '../scenes/contract-case.js'
import type { OrderedScene } from '../scenes/ordered-scene.js'
import { Rest } from '../scenes/rest.js'

/** By crc32 a and b are in shard 1 of 2, d and e in shard 0. */
const strict = 'strict'
const openStrict = (scene: OrderedScene) => scene.openQueue({ name: strict, exclusive: 'shard', shards: 2 })
const shard = (shard: number, limit = 10) => ({ from: [{ queue: strict, shard, limit }] })

export const orderedExclusive: ContractConcern = {
  concern: 'the form of an ordered queue',
  cases: [
    orderedCase('open answers with the form of an ordered queue', async (scene) => {
      const stored = await openStrict(scene)
      assert.deepEqual(stored, {
        ...{ name: strict, kind: 'ordered', order: 'fifo', exclusive: 'shard', shards: 2 },
        ...{ paused: false, draining: false, limits: {} },
      })
    }),

    orderedCase('a plain queue is not opened as an ordered one, nor the reverse', async (scene) => {
      await scene.openQueue({ name: 'mail', kind: 'plain' })
      await assert.rejects(scene.openQueue({ name: 'mail' }), ConfigConflictError)
      await assert.rejects(scene.openQueue({ kind: 'plain' }), ConfigConflictError)
    }),

    orderedCase('exclusive is fixed at first use', async (scene) => {
      await assert.rejects(scene.openQueue({ exclusive: 'shard' }), ConfigConflictError)
      await openStrict(scene)
      await assert.rejects(scene.openQueue({ name: strict }), ConfigConflictError)
      await assert.rejects(scene.openQueue({ name: strict, exclusive: 'id' }), ConfigConflictError)
      assert.equal((await openStrict(scene)).exclusive, 'shard')
    }),

    orderedCase('of the number of shards the stored one counts', async (scene) => {
      await openStrict(scene)
      const stored = await scene.openQueue({ name: strict, exclusive: 'shard', shards: 7 })
      assert.equal(stored.shards, 2)
      assert.equal((await scene.shards(strict)).length, 2)
    }),

    orderedCase("two batches of one shard never run at once: a shard in use is 'full'", async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a', 'b', 'd'], { queue: strict })
      assert.deepEqual(await scene.claimIds(shard(1, 1)), ['a'])
      const { claims, waits, more } = await scene.claim(shard(1))
      assert.deepEqual([claims, waits[0]?.reason, waits[0]?.shard, more], [[], 'full', 1, false])
      assert.deepEqual(await scene.claimIds({ ...shard(1), alone: true }), [])
      assert.deepEqual(await scene.claimIds(shard(0)), ['d'])
    }),

    orderedCase('of many who ask for one shard at once one is granted a batch', async (scene) => {
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
    }),

    orderedCase('a batch may have several ids, and a call grants of one shard only', async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a', 'b', 'd', 'e'], { queue: strict })
      assert.deepEqual(await scene.claimIds({ queue: strict }), ['d', 'e'])
      assert.deepEqual(await scene.claimIds({ queue: strict }), ['a', 'b'])
    }),

    orderedCase('a shard is free when the last claim of its batch has ended, however it ends', async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a', 'b'], { queue: strict })
      const [a, b] = (await scene.claim(shard(1))).claims
      await scene.enqueue([{ id: '\uffee' }], { queue: strict })
      await scene.end(a!, { kind: 'complete' })
      assert.deepEqual(await scene.claimIds(shard(1)), [])
      await scene.end(b!, { kind: 'retry', delayMs: 60_000 })
      assert.deepEqual(await scene.claimIds(shard(1)), ['\uffee'])
    }),

    orderedCase('a shard whose batch is lost with its worker is free when the lease has ended', async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a', 'b'], { queue: strict })
      await scene.claim({ ...shard(1, 1), leaseMs: 5_000 })
      const { waits } = await scene.claim(shard(1))
      assert.deepEqual(waits, [{ queue: strict, shard: 1, reason: 'full', forMs: 5_000, lead: true }])
      await scene.advance(5_000)
      assert.deepEqual(await scene.claimIds(shard(1)), ['b'])
    }),

    orderedCase('a ready job in a shard in use rings nobody; the end of its last claim does', async (scene) => {
      await openStrict(scene)
      await scene.enqueue(['a'], { queue: strict })
      const claim = await scene.claimOne({ queue: strict })
      const first = await Rest.begin(scene, [strict])
      await scene.enqueue(['b'], { queue: strict })
      await first.isUndisturbed()
      const second = await Rest.begin(scene, [strict])
      await scene.end(claim, { kind: 'complete' })
      await second.wakes(strict)
    }),

    orderedCase(
      'a failure from outside frees a shard, and rings',
      async (scene) => {
        await openStrict(scene)
        await scene.enqueue(['a', 'b'], { queue: strict })
        await scene.claimOne(shard(1, 1))
        const rest = await Rest.begin(scene, [strict])
        assert.equal(await scene.records.fail(strict, 'a', { delayMs: 60_000, reason: 'operator' }), 'ok')
        await rest.wakes(strict)
        assert.deepEqual(await scene.claimIds(shard(1)), ['b'])
      },
      records,
    ),

    orderedCase('what waited beside the only job of a shard rings when that ends', async (scene) => {
      await scene.push('a', 'v1')
      const claim = await scene.claimOne()
      const rest = await Rest.begin(scene)
      await scene.push('a', 'v2')
      await rest.isUndisturbed()
      const next = await Rest.begin(scene)
      await scene.end(claim, { kind: 'complete' })
      await next.wakes(scene.queue)
    }),
  ],
}
