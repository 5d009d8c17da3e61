/** Contract cases: cancelling jobs of an ordered queue, which also drops the payloads that wait behind them. */

import assert from 'node:assert/strict'
import type { Settlement } from '../../sequences/command.js'
import { orderedCase, orderedConcern, records } from '../scenes/contract-case.js'
import { handed, type OrderedScene } from '../scenes/ordered-scene.js'

/** A running job that was cancelled, with v0 in hand. */
async function cancelledClaim(scene: OrderedScene) {
  await scene.push('a', 'v0')
  const claim = await scene.take(Number.POSITIVE_INFINITY, { leaseMs: 5_000 })
  await scene.push('a', 'before')
  assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }, 'stop'), { changed: 1, more: false })
  return claim
}

export const orderedCancels = orderedConcern('cancelling in an ordered queue', [records], {
  async 'rule 9: a waiting job that is cancelled is gone with all its payloads'(scene) {
    await scene.pushAll('a', ['v0', 'v1'])
    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }), { changed: 1, more: false })
    assert.deepEqual(await scene.told(), [])
    assert.equal(await scene.records.get(scene.queue, 'a'), undefined)
  },

  async 'rule 9: a running job that is cancelled is told so, and what waits beside it goes at once'(scene) {
    const claim = await cancelledClaim(scene)
    assert.deepEqual(await scene.told(), ['a running: v0'])
    assert.equal(await scene.extend(claim), 'cancel')
    assert.deepEqual(await scene.records.cancel(scene.queue, { ids: ['a'] }), { changed: 0, more: false })
  },

  ...Object.fromEntries(
    (['retry', 'retry last', 'release', 'release later', 'cancel', 'complete'] as const).map((end) => [
      `rule 9: a cancelled claim that ends by ${end} leaves nothing but what came after the cancel`,
      orderedCase([records], async (scene) => {
        const claim = await cancelledClaim(scene)
        await scene.push('a', 'after')
        const ends: Record<typeof end, Settlement> = {
          retry: { kind: 'retry', delayMs: 0 },
          'retry last': { kind: 'retry', delayMs: 0, last: true, reason: 'exhausted' },
          release: { kind: 'release', delayMs: 0 },
          'release later': { kind: 'release', delayMs: 5_000 },
          cancel: { kind: 'cancel' },
          complete: { kind: 'complete' },
        }
        await scene.end(claim, ends[end])
        assert.deepEqual(await scene.told(), ['a ready: after'])
        assert.equal(await scene.extend(await scene.claimOne()), 'ok')
      }),
    ]),
  ),

  async 'rule 9: a cancelled claim that crashes leaves nothing but what came after the cancel'(scene) {
    await cancelledClaim(scene)
    await scene.push('a', 'after')
    await scene.advance(5_000)
    const { crashed, claims } = await scene.claim()
    assert.equal(crashed.length, 1)
    assert.deepEqual(claims.map(handed), [['after']])
    assert.deepEqual(await scene.told(), ['a running: after'])
  },

  async 'rule 9: a cancelled claim that its handler buries is in the morgue'(scene) {
    const claim = await cancelledClaim(scene)
    await scene.end(claim, { kind: 'bury', reason: 'unrecoverable' })
    assert.deepEqual(await scene.told(), ['a dead: v0'])
  },
})
