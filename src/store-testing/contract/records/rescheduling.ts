/** Contract cases: another priority and another due time for jobs that wait. */

import assert from 'node:assert/strict'
import type { NewPlace } from '../../../stores/contract/job-records.js'
import {
  groups,
  joinCase,
  ordered,
  orderedCase,
  plainCase,
  plainConcern,
  priority,
  records,
  rings,
  steps,
} from '../scenes/contract-case.js'
import { Rest } from '../scenes/rest.js'
import type { Scene } from '../scenes/scene.js'

const put = (scene: Scene, ids: readonly string[], to: NewPlace) => scene.records.reschedule(scene.queue, ids, to)

export const rescheduling = plainConcern('records: another place', [records, priority], {
  async 'a ready job with a higher priority is claimed first, and keeps its place among those of its new priority'(
    scene,
  ) {
    await scene.add('a', 'b', { id: 'c', priority: 5 }, 'd')
    await scene.advance(5)
    assert.equal(await put(scene, ['d', 'b'], { priority: 5 }), 2)

    assert.deepEqual(await scene.claimIds(), ['b', 'c', 'd', 'a'])
  },

  async 'a lower priority puts a job behind the others, and back again to its place'(scene) {
    await scene.add('a', 'b', 'c')
    await put(scene, ['a'], { priority: -1 })
    assert.deepEqual(await scene.claimIds({ limit: 1 }), ['b'])
    await put(scene, ['a'], { priority: 0 })
    assert.deepEqual(await scene.claimIds(), ['a', 'c'])
  },

  async 'claims and records have the new priority, the extreme ones too'(scene) {
    await scene.add('a', { id: 'b', priority: 7, rememberMs: 5_000, meta: '{"m":1}', codec: 'raw' })
    for (const n of [32_767, -32_768, 0, 12]) {
      assert.equal(await put(scene, ['b'], { priority: n }), 1)
      assert.equal((await scene.records.get(scene.queue, 'b'))?.priority, n)
    }
    const claim = await scene.claimOne()
    const { id, priority: told, payload, meta, codec } = claim
    assert.deepEqual([id, told, payload, meta, codec], ['b', 12, '{"to":"b"}', '{"m":1}', 'raw'])
    await scene.end(claim, { kind: 'complete' })
    assert.deepEqual(await scene.enqueue(['b']), ['duplicate'])
  },

  async 'a ready job with a later due time is scheduled, and claimed then in its priority'(scene) {
    await scene.add('a', 'b')
    const now = await scene.now()
    assert.equal(await put(scene, ['a'], { delayMs: 3_000, priority: 2 }), 1)

    assert.deepEqual(await scene.states(), ['a scheduled', 'b ready'])
    assert.equal((await scene.records.get(scene.queue, 'a'))?.runAt, now + 3_000)
    assert.deepEqual(await scene.claimIds(), ['b'])
    await scene.advance(2_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    await scene.add('c')
    assert.deepEqual(await scene.claimIds(), ['a', 'c'])
  },

  async 'a scheduled job that is due now goes behind the ready ones of its priority'(scene) {
    await scene.add({ id: 'later', delayMs: 60_000 }, { id: 'high', priority: 1, delayMs: 60_000 })
    await scene.advance(1_000)
    await scene.add('ready')
    assert.equal(await put(scene, ['later', 'high'], { delayMs: 0 }), 2)

    assert.deepEqual(await scene.claimIds(), ['high', 'ready', 'later'])
  },

  async 'jobs that are due now come in the order in which they are named'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000 }, { id: 'b', delayMs: 2_000 }, { id: 'c', delayMs: 3_000 })
    assert.equal(await put(scene, ['c', 'a', 'c', 'b'], { delayMs: 0 }), 3)

    assert.deepEqual(await scene.claimIds(), ['c', 'a', 'b'])
  },

  async 'a ready job that is due now keeps its place, and so does one that has become due'(scene) {
    await scene.add({ id: 'due', delayMs: 1_000 }, 'a')
    await scene.advance(500)
    await scene.add('b')
    await scene.advance(600)
    await scene.add('c')
    assert.equal(await put(scene, ['b', 'due', 'a'], { runAt: 5 }), 3)

    assert.deepEqual(await scene.claimIds(), ['a', 'b', 'due', 'c'])
  },

  async 'a scheduled job is due earlier or later, at the instant that was said'(scene) {
    await scene.add({ id: 'a', delayMs: 5_000 }, { id: 'b', delayMs: 6_000 })
    const now = await scene.now()
    await put(scene, ['b'], { runAt: now + 2_000 })
    await put(scene, ['a'], { runAt: now + 9_000 })
    await scene.advance(2_000)
    assert.deepEqual(await scene.claimIds(), ['b'])
    await scene.advance(6_999)
    assert.deepEqual(await scene.claimIds(), [])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds(), ['a'])
  },

  async 'with another priority alone a scheduled job is due as before'(scene) {
    await scene.add({ id: 'a', delayMs: 2_000 }, { id: 'b', delayMs: 1_000 })
    await put(scene, ['a'], { priority: 3 })
    await scene.advance(1_000)
    assert.deepEqual(await scene.claimIds(), ['b'])
    await scene.advance(1_000)
    await scene.add('c')
    assert.deepEqual(await scene.claimIds({ limit: 1 }), ['a'])
  },

  async 'last in is first out among the jobs of a new priority too'(scene) {
    await scene.openQueue({ name: 'stack', order: 'lifo' })
    await scene.enqueue(['a', 'b', 'c'], { queue: 'stack' })
    await scene.records.reschedule('stack', ['a', 'b'], { priority: 1 })
    assert.deepEqual(await scene.claimIds({ queue: 'stack' }), ['b', 'a', 'c'])
  },

  async 'running, dead, completed and unknown jobs stay as they are, and are not counted'(scene) {
    await scene.addDead('dead')
    await scene.addCompleted('done')
    await scene.add('running')
    await scene.claimOne()
    const before = await scene.stored()

    assert.equal(await put(scene, ['running', 'dead', 'done', 'never'], { priority: 3, delayMs: 9_000 }), 0)
    assert.equal(await put(scene, [], { priority: 3 }), 0)
    assert.deepEqual(await scene.stored(), before)
  },

  async 'a suspect stays as it is'(scene) {
    await scene.addSuspects('a', 'b')
    const before = await scene.stored()
    assert.equal(await put(scene, ['a', 'b'], { priority: 3, delayMs: 9_000 }), 0)
    assert.deepEqual(await scene.stored(), before)
  },

  async 'attempts, error, fields, group and times of a job that is to be retried stay'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 9_000, error: 'why' })
    await scene.records.setFields(scene.queue, 'a', { n: 1 })
    const before = (await scene.records.get(scene.queue, 'a'))!
    await scene.advance(7)
    const now = await scene.now()
    await put(scene, ['a'], { priority: 4, delayMs: 3_000 })

    const after = await scene.records.get(scene.queue, 'a')
    assert.deepEqual(after, { ...before, priority: 4, runAt: now + 3_000, updatedAt: now })
    assert.deepEqual((await scene.depth()).retries, 1)
    await scene.advance(3_000)
    assert.equal((await scene.claimOne()).attempt, 2)
  },

  async 'the expiry stays: a job that is put off beyond it is cancelled as expired'(scene) {
    if (!scene.store.traits.expires) return
    await scene.add({ id: 'a', expiresMs: 2_000 })
    await put(scene, ['a'], { delayMs: 5_000 })
    await scene.advance(2_000)
    assert.deepEqual(await scene.claimIds(), [])
    assert.equal((await scene.records.get(scene.queue, 'a'))?.state, 'cancelled')
  },

  'a job that is due earlier is a reason to ring': plainCase([records, priority, rings], async (scene) => {
    await scene.add({ id: 'a', delayMs: 60_000 })
    await scene.claim({ worker: 'lead' })
    for (const to of [{ delayMs: 30_000 }, { delayMs: 0 }]) {
      const rest = await Rest.begin(scene)
      await put(scene, ['a'], to)
      await rest.wakes(scene.queue)
    }
  }),

  'groups take turns as before: a lane whose only job is put off has none': plainCase(
    [records, priority, groups],
    async (scene) => {
      await scene.add(
        { id: 'a1', group: 'a' },
        { id: 'b1', group: 'b' },
        { id: 'a2', group: 'a' },
        { id: 'c1', group: 'c' },
      )
      assert.equal(await put(scene, ['b1'], { delayMs: 1_000 }), 1)
      assert.equal(await put(scene, ['a2'], { priority: 1 }), 1)
      for (const id of ['a2', 'c1', 'a1']) assert.deepEqual(await scene.claimIds({ limit: 1 }), [id])
      await scene.advance(1_000)
      assert.deepEqual(await scene.claimIds(), ['b1'])
      await scene.add({ id: 'd', group: 'b', delayMs: 9_000 })
      assert.equal(await put(scene, ['d'], { delayMs: 0 }), 1)
      assert.deepEqual(await scene.claimIds(), ['d'])
    },
  ),

  'a job that waits for members or a signal stays as it is': joinCase([records, priority, steps], async (scene) => {
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'wait', signal: 'go' } as never)
    assert.equal(await put(scene, ['a'], { priority: 3, delayMs: 0 }), 0)
    assert.equal((await scene.job('a')).state, 'waiting')
  }),

  'the jobs of an ordered queue have no other place': orderedCase([ordered, records], async (scene) => {
    await scene.add({ id: 'a', delayMs: 1_000 })
    const before = await scene.stored()
    await assert.rejects(put(scene, ['a'], { delayMs: 0 }), { code: 'argument-invalid' })
    assert.deepEqual(await scene.stored(), before)
  }),
})
