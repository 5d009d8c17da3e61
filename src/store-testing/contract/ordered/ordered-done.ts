/** Contract cases: ends of ordered claims of which the oldest payloads are done. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import { orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, type OrderedScene, stampAt } from '../scenes/ordered-scene.js'

/** The claim of `a` with v0 to v3, which has failed once and crashed once before. */
async function triedTwice(scene: OrderedScene): Promise<Claim> {
  await scene.pushAll('a', ['v0', 'v1', 'v2', 'v3'])
  await scene.end(await scene.take(), { kind: 'retry', delayMs: 0, error: 'before' })
  await scene.take(4, { leaseMs: 3_000, alone: true })
  await scene.advance(10_000)
  await scene.claim()
  return await scene.take(4, { alone: true })
}

export const orderedDone = orderedConcern('ends of which some payloads are done', [], {
  async 'what is done leaves with a failure; for the others it is the first'(scene) {
    const claim = await triedTwice(scene)
    assert.deepEqual([claim.attempt, claim.crashes, claim.error], [2, 1, 'before'])
    const now = await scene.now()
    await scene.end(claim, { kind: 'retry', delayMs: 5_000, error: 'poison', done: 2 })
    assert.deepEqual(await scene.told(), ['a scheduled: v2 v3'])
    const { attempt, crashes, error, stamp } = await scene.live('a')
    assert.deepEqual(
      { attempt, crashes, error, stamp },
      { attempt: 2, crashes: 0, error: 'poison', stamp: stampAt(now + 5_000) },
    )
    await scene.advance(5_000)
    assert.equal((await scene.claimOne()).attempt, 2)
  },

  async 'a last failure buries the payload after those that are done, and the rest begins anew'(scene) {
    const claim = await triedTwice(scene)
    await scene.end(claim, { kind: 'retry', delayMs: 0, last: true, error: 'poison', reason: 'exhausted', done: 2 })
    assert.deepEqual(await scene.told(), ['a ready: v3', 'a dead: v2'])
    const { attempt, error } = await scene.dead('a')
    assert.deepEqual([attempt, error], [2, 'poison'])
    const next = await scene.claimOne()
    assert.deepEqual([next.attempt, next.crashes, next.error], [1, 0, undefined])
  },

  async 'what is done leaves with a release; the others wait in their old place and never failed'(scene) {
    const claim = await triedTwice(scene)
    await scene.push('b', 'w')
    await scene.end(claim, { kind: 'release', delayMs: 0, done: 1 })
    const { attempt, crashes, error } = await scene.live('a')
    assert.deepEqual({ attempt, crashes, error }, { attempt: 1, crashes: 0, error: null })
    assert.equal((await scene.depth()).retries, 0)
    const { claims } = await scene.claim({ alone: true })
    assert.deepEqual([claims[0]!.id, handed(claims[0]!)], ['a', ['v1', 'v2', 'v3']])
  },

  async 'what is done is not buried with the others'(scene) {
    const claim = await triedTwice(scene)
    await scene.end(claim, { kind: 'bury', reason: 'broken', done: 3 })
    assert.deepEqual(await scene.told(), ['a dead: v3'])
    const { attempt, error, reason } = await scene.dead('a')
    assert.deepEqual([attempt, error, reason], [1, null, 'broken'])
  },

  async 'one payload is always left, whatever is said to be done'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    await scene.push('b', 'w')
    const { claims } = await scene.claim({ from: [{ queue: scene.queue, limit: 2 }] })
    for (const claim of claims) await scene.end(claim, { kind: 'retry', delayMs: 0, done: 5 })
    assert.deepEqual(await scene.told(), ['a ready: v1', 'b ready: w'])
  },

  async 'a claim of which nothing is done goes on with its attempts'(scene) {
    await scene.push('a', 'v0')
    for (let i = 0; i < 2; i += 1)
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: `${i}`, done: 0 })
    const { attempt, error } = await scene.claimOne()
    assert.deepEqual([attempt, error], [3, '1'])
  },

  async 'what is left meets what waits beside, and only what waits needs room'(scene) {
    await scene.openQueue({ maxPending: 4 })
    await scene.pushAll('a', ['v0', 'v1', 'v2', 'v3'])
    const claim = await scene.take(2)
    await scene.push('a', 'v4', { score: 0.5 })
    await scene.end(claim, { kind: 'release', delayMs: 0, done: 1 })
    assert.deepEqual(await scene.told(), ['a ready: v4 v1 v2 v3'])
    assert.equal((await scene.depth()).payloads, 4)
    assert.equal(await scene.push('b', 'w'), 'full')
  },

  'of a cancelled job nothing comes back, whatever is done': orderedCase([records], async (scene) => {
    await scene.pushAll('a', ['v0', 'v1'])
    const claim = await scene.take()
    await scene.records.cancel(scene.queue, { ids: ['a'] })
    await scene.end(claim, { kind: 'retry', delayMs: 0, done: 1 })
    assert.deepEqual(await scene.told(), [])
  }),
})
