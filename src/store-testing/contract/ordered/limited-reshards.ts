/** Contract cases: the limits of an ordered queue during a reshard and after it. */

import assert from 'node:assert/strict'
import { ConfigConflictError, InvalidArgumentError } from '../../../core/errors.js'
import { stepLimit } from '../../../stores/rules/bounds.js'
import { firstUse, groups, limited, orderedCase, orderedConcern, records, throttled } from '../scenes/contract-case.js'
import { byGroup, denied, elastic, even, grouped, jobs, longLeaseMs, rule, taken } from '../scenes/limit-words.js'
import type { OrderedScene } from '../scenes/ordered-scene.js'

const throttle = (...rules: ReturnType<typeof rule>[]) => ({ scope: 'api', by: 'queue', rules }) as const

/** Reshards to the end; nothing is granted between its steps. */
async function reshard(scene: OrderedScene, shards: number): Promise<void> {
  for (let step = 0; step < 100; step++) {
    if (!(await scene.records.reshard(scene.queue, shards)).more) return
    await grantsNothing(scene)
  }
  throw new Error('it comes to no end')
}

async function grantsNothing(scene: OrderedScene): Promise<void> {
  for (const alone of [false, true]) {
    const waits = await denied(scene, { alone })
    assert.deepEqual([...new Set(waits.map(({ reason }) => reason))], ['paused'])
  }
}

/** Why, and for how long, every shard of the queue is denied; the same for all. */
async function deniedAll(scene: OrderedScene, shards: number): Promise<unknown> {
  const waits = (await denied(scene)).map(({ reason, forMs }) => ({ reason, forMs }))
  assert.deepEqual(waits, Array(shards).fill(waits[0]))
  return waits[0]
}

/** The jobs that a claim takes; all of them complete. */
async function completed(scene: OrderedScene, limit: number): Promise<number> {
  const { claims } = await scene.claim({ limit })
  for (const claim of claims) await scene.end(claim, { kind: 'complete' })
  return claims.length
}

export const limitedReshards = orderedConcern('limits over a reshard', [throttled, records, firstUse], {
  ...Object.fromEntries(
    [1, 2, 5].map((count) => [
      `starts from before a reshard from 3 shards to ${count} count until they have left the window`,
      orderedCase([throttled, records, firstUse], async (scene) => {
        await scene.openQueue({ shards: 3, throttle: throttle(rule(4, 10_000)) })
        await scene.enqueue(jobs(20))
        assert.equal(await completed(scene, 3), 3)
        await scene.advance(4_000)
        await reshard(scene, count)

        assert.equal(await taken(scene), 1)
        assert.deepEqual(await deniedAll(scene, count), { reason: 'throttled', forMs: 6_001 })
        assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [4])
        await scene.advance(6_001)
        assert.equal(await taken(scene), 3)
        await scene.advance(4_000)
        assert.equal(await taken(scene), 1)
      }),
    ]),
  ),

  async 'running jobs keep their permits when a reshard begins, and nothing starts until all jobs are moved'(scene) {
    await scene.openQueue({ shards: 2, throttle: throttle(rule(3, 10_000)) })
    const ids = Array.from({ length: stepLimit + 100 }, (_, i) => `id-${i}`)
    await scene.enqueue(ids)
    const running = await scene.claimOne({ leaseMs: longLeaseMs })
    assert.equal((await scene.records.reshard(scene.queue, 3)).more, true)
    await grantsNothing(scene)
    await scene.end(running, { kind: 'release', delayMs: 0 })
    await grantsNothing(scene)
    await scene.advance(1_000)
    await reshard(scene, 3)

    assert.equal(await taken(scene), 2)
    assert.deepEqual(await deniedAll(scene, 3), { reason: 'throttled', forMs: 9_001 })
    await scene.advance(9_001)
    assert.equal(await taken(scene), 1)
    assert.equal((await scene.depth()).running, 3)
  },

  async 'an even tempo keeps its grid over a reshard, and an elastic one its backlog'(scene) {
    await scene.openQueue({ shards: 3, throttle: throttle(rule(4, 8_000, elastic(0))) })
    await scene.enqueue(jobs(20))
    for (let i = 0; i < 4; i++) {
      assert.equal(await completed(scene, 10), 1)
      await scene.advance(i < 3 ? 2_000 : 500)
    }
    await reshard(scene, 2)
    assert.deepEqual(await deniedAll(scene, 2), { reason: 'throttled', forMs: 1_501 })
    await reshard(scene, 4)

    // Behind its tempo by now: the window holds only the start of 6,000 ms.
    await scene.advance(6_500)
    assert.equal(await taken(scene), 3)
  },

  async 'rules set during a reshard apply afterwards, with the earlier starts'(scene) {
    await scene.openQueue({ shards: 3, throttle: throttle(rule(2, 10_000)) })
    await scene.enqueue(jobs(20))
    const running = await scene.claimOne({ leaseMs: longLeaseMs })
    await scene.records.reshard(scene.queue, 2)
    await scene.throttles.set(scene.queue, [rule(4, 10_000, even)])
    await grantsNothing(scene)
    await scene.advance(1_000)
    await scene.end(running, { kind: 'complete' })
    await reshard(scene, 2)

    assert.deepEqual(await deniedAll(scene, 2), { reason: 'throttled', forMs: 1_500 })
    await scene.advance(1_500)
    assert.equal(await taken(scene), 1)
    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [2])
  },

  async 'during a reshard the other queues of the scope go on within the limit, which is shared again afterwards'(
    scene,
  ) {
    const shared = throttle(rule(5, 10_000))
    await scene.openQueue({ shards: 3, throttle: shared })
    await scene.openQueue({ name: 'mail', kind: 'plain', throttle: shared })
    await scene.enqueue(jobs(20))
    await scene.enqueue(jobs(20), { queue: 'mail' })
    const running = await scene.claimOne({ leaseMs: longLeaseMs })
    await scene.records.reshard(scene.queue, 2)
    assert.equal(await taken(scene, { queue: 'mail', limit: 2 }), 2)
    await scene.end(running, { kind: 'complete' })
    await scene.openQueue({ name: 'sms', kind: 'plain', throttle: shared })
    await scene.enqueue(jobs(20), { queue: 'sms' })
    assert.equal(await taken(scene, { queue: 'sms', limit: 1 }), 1)
    await reshard(scene, 2)

    assert.equal(await taken(scene), 1)
    for (const queue of ['mail', 'sms', scene.queue]) {
      const waits = await denied(scene, { queue })
      assert.ok(waits.every(({ reason, forMs }) => reason === 'throttled' && forMs === 10_001))
    }
    assert.deepEqual((await scene.throttles.state('mail'))?.queues, ['mail', scene.queue, 'sms'])
    await scene.advance(10_001)
    assert.equal(await taken(scene), 5)
  },

  'a handle that knew the queue before the reshard meets the same limits after it, in all queues of the scope':
    orderedCase([throttled, limited, records, firstUse], async (scene) => {
      const shared = throttle(rule(5, 10_000))
      await scene.openQueue({ shards: 3, throttle: shared, maxRunning: 2 })
      await scene.openQueue({ name: 'mail', kind: 'plain', throttle: shared })
      await scene.enqueue(jobs(20))
      await scene.enqueue(jobs(20), { queue: 'mail' })
      const other = await scene.harness.open()
      const others = async (queue: string, limit: number) =>
        (await other.claim([{ queue, limit }], { worker: 'w2', leaseMs: longLeaseMs })).claims
      const [claim] = await others(scene.queue, 1)
      assert.equal((await others('mail', 1)).length, 1)
      await scene.end(claim!, { kind: 'complete' })
      await reshard(scene, 4)

      assert.equal((await others(scene.queue, 10)).length, 2)
      assert.equal((await others('mail', 10)).length, 1)
      assert.equal((await others('mail', 10)).length, 0)
    }),

  ...Object.fromEntries(
    [1, 2, 5].map((count) => [
      `from 3 shards to ${count}: at most \`maxRunning\` jobs run at any time, and all of it is free afterwards`,
      orderedCase([limited, records, firstUse], async (scene) => {
        await scene.openQueue({ shards: 3, maxRunning: 3 })
        await scene.enqueue(jobs(20))
        const { claims } = await scene.claim({ leaseMs: longLeaseMs, limit: 2 })
        const lost = await scene.claimOne({ leaseMs: 5_000 })
        assert.equal((await scene.records.reshard(scene.queue, count)).more, true)
        await grantsNothing(scene)
        await scene.end(claims[0]!, { kind: 'complete' })
        await grantsNothing(scene)
        await scene.end(claims[1]!, { kind: 'retry', delayMs: 0 })
        await scene.advance(5_000)
        const { crashed, claims: none } = await scene.claim()
        assert.deepEqual([crashed.map(({ id }) => id), none], [[lost.id], []])
        await reshard(scene, count)

        assert.equal(await scene.settle(lost, { kind: 'complete' }), 'lost')
        assert.equal(await taken(scene, { limit: 2 }), 2)
        const last = await scene.claimOne({ limit: 10, leaseMs: longLeaseMs })
        assert.deepEqual([...new Set((await denied(scene)).map(({ reason }) => reason))], ['full'])
        await scene.end(last, { kind: 'complete' })
        assert.equal(await taken(scene), 1)
      }),
    ]),
  ),

  'another `maxRunning` that is set during a reshard applies afterwards': orderedCase(
    [limited, records, firstUse],
    async (scene) => {
      await scene.openQueue({ shards: 3, maxRunning: 2 })
      await scene.enqueue(jobs(20))
      const running = await scene.claimOne({ leaseMs: longLeaseMs })
      await scene.records.reshard(scene.queue, 2)
      await scene.openQueue({ maxRunning: 4 })
      await scene.end(running, { kind: 'complete' })
      await reshard(scene, 2)

      assert.equal(await taken(scene), 4)
      assert.equal((await scene.openQueue({ maxRunning: 4 })).maxRunning, 4)
    },
  ),

  'starts of a group before a reshard count for that group afterwards, and for no other': orderedCase(
    [groups, throttled, records, firstUse],
    async (scene) => {
      await scene.openQueue({ shards: 3, throttle: { ...byGroup(rule(2, 10_000)), scope: 'api' } })
      await scene.enqueue(grouped('x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'y1'))
      assert.equal(await completed(scene, 10), 3)
      await scene.enqueue(grouped('y2', 'y3'))
      await scene.advance(3_000)
      await reshard(scene, 5)
      await scene.enqueue(grouped('z1', 'x7'))

      const { claims } = await scene.claim({ leaseMs: longLeaseMs })
      assert.deepEqual(claims.map(({ group }) => group).sort(), ['y', 'z'])
      assert.deepEqual((await scene.throttles.state(scene.queue, 'x'))?.hits, [2])
      assert.deepEqual((await scene.throttles.state(scene.queue, 'y'))?.hits, [2])
      await scene.advance(7_001)
      const later = await scene.claim({ leaseMs: longLeaseMs })
      assert.deepEqual(later.claims.map(({ group }) => group).sort(), ['x', 'x', 'y'])
    },
  ),

  'a queue that limits running jobs per group cannot be resharded to several shards, and a sharded one cannot get such a limit':
    orderedCase([groups, limited, records, firstUse], async (scene) => {
      await scene.openQueue({ maxRunning: { perGroup: 1 } })
      await scene.enqueue(grouped('x1', 'x2', 'x3'))
      await assert.rejects(scene.records.reshard(scene.queue, 4), InvalidArgumentError)
      assert.equal((await scene.shards()).length, 1)
      assert.equal(await taken(scene), 1)

      await scene.openQueue({ name: 'spread', shards: 3, maxRunning: 5 })
      const bounded = scene.openQueue({ name: 'spread', maxRunning: { perGroup: 1 } })
      await assert.rejects(bounded, ConfigConflictError)
      await scene.records.reshard('spread', 1)
      await scene.openQueue({ name: 'spread', maxRunning: { perGroup: 1 } })
    }),
})
