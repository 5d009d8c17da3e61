/** Contract cases: equal payloads of an ordered id, with each rule of merging. */

import assert from 'node:assert/strict'
import { orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, type OrderedScene, scored } from '../scenes/ordered-scene.js'

/** `payload` of everything that waits for `a`. */
const waiting = async (scene: OrderedScene) => (await scene.told()).map((told) => told.replace('a ready: ', ''))
const last = { kind: 'retry', delayMs: 0, last: true, reason: 'exhausted' } as const

export const orderedEqualPayloads = orderedConcern('equal payloads in an ordered queue', [], {
  async 'a change and its reverse are both kept: the later one is handed over last'(scene) {
    for (const state of ['active', 'paused', 'active']) await scene.push('a', state)
    assert.deepEqual(handed(await scene.claimOne()), ['active', 'paused', 'active'])
  },

  async 'equal payloads without a score are all kept, in one call and in several'(scene) {
    await scene.push('a', 'sold')
    assert.deepEqual(await scene.enqueue(Array(3).fill({ id: 'a', payload: 'sold' })), ['merged', 'merged', 'merged'])
    const { payloads } = await scene.claimOne()
    assert.equal(new Set(payloads!.map(({ score }) => score)).size, 4)
  },

  async 'equal payloads with different given scores are all kept'(scene) {
    for (const score of [2, 1, 3]) await scene.push('a', 'v', { score })
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v 1', 'v 2', 'v 3'])
  },

  async 'an equal payload with the same given score adds nothing, and the first stays unchanged'(scene) {
    await scene.push('a', 'v', { score: 0, meta: 'first' })
    assert.equal(await scene.push('a', 'v', { score: -0, meta: 'second' }), 'merged')
    await scene.push('a', 'w', { score: 0 })
    await scene.push('a', 'w', { score: 0 })
    const { payloads } = await scene.live('a')
    assert.deepEqual([scored(payloads), payloads![0]!.meta], [['v 0', 'w 0'], 'text:first'])
  },

  async 'a score of arrival is not a given score, even if the numbers are equal'(scene) {
    await scene.push('a', 'v')
    const [{ score } = assert.fail()] = (await scene.live('a')).payloads!
    await scene.push('a', 'v', { score })
    await scene.push('a', 'v', { score })
    assert.equal((await scene.claimOne()).payloads?.length, 2)
  },

  async 'a payload repeated with the same arrival name is one with the first, if it is equal'(scene) {
    await scene.push('a', 'v', { arrival: 'line 7' })
    await scene.push('a', 'v', { arrival: 'line 7' })
    await scene.push('a', 'w', { arrival: 'line 7' })
    await scene.push('a', 'v', { arrival: 'line 8' })
    assert.deepEqual(handed(await scene.claimOne()), ['v', 'w', 'v'])
  },

  async 'payloads with the same codec and the same bytes are equal, text and bytes apart'(scene) {
    const score = 1
    for (const payload of ['x', Buffer.from('x'), 'X']) await scene.push('a', payload, { score })
    await scene.push('a', 'x', { score, codec: 'raw' })
    for (const payload of ['x', Buffer.from('x'), 'X']) await scene.push('a', payload, { score })
    await scene.push('a', 'x', { score, codec: 'raw' })
    assert.equal((await scene.claimOne()).payloads?.length, 4)
  },

  async 'payloads equal to claimed ones wait next to them, and meet them after a failure'(scene) {
    await scene.push('a', 'arrived')
    await scene.push('a', 'given', { score: 1 })
    const claim = await scene.claimOne()
    await scene.push('a', 'arrived')
    await scene.push('a', 'given', { score: 1 })
    await scene.push('a', 'given', { score: 2 })
    assert.deepEqual(await scene.told(), ['a running: given arrived + given given arrived'])
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    assert.deepEqual(await waiting(scene), ['given given arrived arrived'])
  },

  async 'a claim takes as many equal payloads as it may, and the others come next'(scene) {
    for (let i = 0; i < 5; i += 1) await scene.push('a', 'v')
    const claim = await scene.take(2)
    assert.deepEqual(await scene.told(), ['a running: v v + v v v'])
    await scene.end(claim, { kind: 'release', delayMs: 0 })
    assert.deepEqual(await waiting(scene), ['v v v v v'])
    await scene.end(await scene.take(2), { kind: 'complete' })
    assert.deepEqual(await waiting(scene), ['v v v'])
    await scene.end(await scene.take(3), last)
    assert.deepEqual(await scene.told(), ['a ready: v v', 'a dead: v'])
  },

  'equal payloads stay apart in the morgue and when they are revived': orderedCase([records], async (scene) => {
    for (let i = 0; i < 2; i += 1) {
      await scene.enqueue(Array(2).fill({ id: 'a', payload: 'v' }))
      await scene.end(await scene.take(), { kind: 'bury' })
    }
    assert.deepEqual(await scene.told(), ['a dead: v v v v'])
    await scene.push('a', 'v')
    await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
    assert.deepEqual(await waiting(scene), ['v v v v v'])
  }),

  'equal payloads of two queues stay separate when they are moved together, and those that are one by rule meet':
    orderedCase([records], async (scene) => {
      await scene.openQueue({ name: 'other' })
      for (const queue of [scene.queue, 'other']) {
        await scene.enqueue([{ id: 'a', payload: 'arrived' }], { queue })
        await scene.enqueue([{ id: 'a', payload: 'given', score: 1 }], { queue })
      }
      await scene.records.move(scene.queue, 'other')
      assert.deepEqual(await scene.told('other'), ['a ready: given arrived arrived'])
    }),

  'equal payloads stay apart through a reshard': orderedCase([records], async (scene) => {
    await scene.openQueue({ name: 'wide', shards: 3 })
    const jobs = ['a', 'b', 'd'].flatMap((id) => Array(3).fill({ id, payload: 'v' }))
    await scene.enqueue(jobs, { queue: 'wide' })
    await scene.records.reshard('wide', 2)
    assert.deepEqual(await scene.told('wide'), ['d ready: v v v', 'a ready: v v v', 'b ready: v v v'])
  }),

  'a repeated call adds nothing to waiting payloads, even if a reshard made its shard forget it': orderedCase(
    [records],
    async (scene) => {
      await scene.openQueue({ name: 'wide', shards: 3 })
      const jobs = ['b', 'a', 'd', 'a', 'e', 'a'].map((id) => ({ id, payload: 'v' }))
      const send = () => scene.enqueue(jobs, { callId: 'once', queue: 'wide' })
      await send()
      await scene.records.reshard('wide', 2)
      const before = await scene.told('wide')
      await send()
      assert.deepEqual(await scene.told('wide'), before)
    },
  ),

  async 'equal payloads each need room, unless they are one'(scene) {
    await scene.openQueue({ maxPending: 3 })
    await scene.push('a', 'v')
    const jobs = [
      { id: 'a', payload: 'v' },
      { id: 'a', payload: 'v', score: 1 },
      { id: 'a', payload: 'v', score: 1 },
    ]
    assert.deepEqual(await scene.enqueue([...jobs, { id: 'a', payload: 'v' }]), Array(4).fill('full'))
    assert.deepEqual(await scene.enqueue(jobs), ['merged', 'merged', 'merged'])
    assert.equal(await scene.push('a', 'v', { score: 1 }), 'merged')
    assert.equal(await scene.push('a', 'v'), 'full')
  },

  async "merge 'latest': the highest score of equal payloads counts"(scene) {
    await scene.openQueue({ merge: 'latest' })
    await scene.push('a', 'v1', { score: 5 })
    await scene.push('a', 'v1', { score: 7 })
    await scene.push('a', 'v2', { score: 6 })
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v1 7'])
  },

  async "payloads from before merge was 'distinct' stay as they are; later ones do not"(scene) {
    for (let i = 0; i < 2; i += 1) await scene.push('a', 'v')
    await scene.openQueue({ merge: 'distinct' })
    for (let i = 0; i < 2; i += 1) await scene.push('a', 'v')
    assert.deepEqual(await waiting(scene), ['v v v'])
    await scene.openQueue({ merge: 'all' })
    for (let i = 0; i < 2; i += 1) await scene.push('a', 'v')
    assert.deepEqual(await waiting(scene), ['v v v v v'])
  },

  async "merge 'distinct': a payload pushed again with a lower score gets that one"(scene) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('a', 'v1', { score: 10 })
    await scene.push('a', 'v1', { score: 5 })
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v1 5'])
  },

  async "merge 'distinct': payloads with the same codec and the same bytes are equal, text and bytes apart"(scene) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('a', 'x', { score: 1 })
    await scene.push('a', Buffer.from('x'), { score: 2 })
    await scene.push('a', 'x', { score: 3, codec: 'raw' })
    await scene.push('a', 'X', { score: 4 })
    await scene.push('a', 'x', { score: 5 })
    await scene.push('a', Buffer.from('x'), { score: 6 })
    await scene.push('a', 'x', { score: 7, codec: 'raw' })
    assert.deepEqual(
      (await scene.claimOne()).payloads?.map(({ score }) => score),
      [1, 2, 3, 4],
    )
  },

  async "merge 'distinct': the equal payload with the lower score stays unchanged, with its meta"(scene) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('a', 'v1', { score: 5, meta: 'five' })
    await scene.push('a', 'v1', { score: 6, meta: 'six' })
    assert.deepEqual((await scene.live('a')).payloads?.[0]?.meta, 'text:five')
    await scene.push('a', 'v1', { score: 4 })
    assert.deepEqual((await scene.claimOne()).payloads, [{ score: 4, payload: 'v1' }])
  },

  async "merge 'distinct': a payload equal to a claimed one still waits next to it"(scene) {
    await scene.openQueue({ merge: 'distinct' })
    await scene.push('a', 'v1', { score: 1 })
    const claim = await scene.claimOne()
    await scene.push('a', 'v1', { score: 2 })
    assert.deepEqual(await scene.told(), ['a running: v1 + v1'])
    await scene.end(claim, { kind: 'retry', delayMs: 0 })
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v1 1'])
  },

  async "merge 'distinct': a payload equal to a waiting one needs no room, and a call that is too large changes nothing"(
    scene,
  ) {
    await scene.openQueue({ merge: 'distinct', maxPending: 2 })
    await scene.pushAll('a', ['v0', 'v1'])
    assert.equal(await scene.push('a', 'v1', { score: 0.5 }), 'merged')
    const jobs = [{ id: 'a', payload: 'v0' }, { id: 'b' }]
    assert.deepEqual(await scene.enqueue(jobs), ['full', 'full'])
    assert.deepEqual(scored((await scene.live('a')).payloads), ['v0 0', 'v1 0.5'])
  },

  async "merge 'distinct': equal payloads in one call take the room of one"(scene) {
    await scene.openQueue({ merge: 'distinct', maxPending: 1 })
    const jobs = [
      { id: 'a', payload: 'v' },
      { id: 'a', payload: 'v' },
    ]
    assert.deepEqual(await scene.enqueue(jobs), ['added', 'merged'])
  },
})
