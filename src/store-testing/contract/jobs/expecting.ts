/** Contract cases: results that somebody waits for, which retention leaves. */

import assert from 'node:assert/strict'
import { plainConcern, records } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

const [me, you] = ['waiter01', 'waiter02']

/** Says that somebody waits for these jobs. */
function expectEnds(scene: Scene, ids: readonly string[], by = me, forMs = 10_000): Promise<void> {
  return scene.records.expect(
    ids.map((id) => ({ queue: scene.queue, id })),
    by,
    forMs,
  )
}

/** Completes each with a result, one ms after the other. */
async function completeAll(scene: Scene, ids: readonly string[], keepMs?: number): Promise<void> {
  for (const id of ids) {
    const claim = await scene.claimOne()
    assert.equal(claim.id, id)
    const result = { payload: `"${id}"`, ...(keepMs === undefined ? {} : { keepMs }) }
    await scene.end(claim, { kind: 'complete', result })
    await scene.advance(1)
  }
}

export const expecting = plainConcern('results that somebody waits for', [records], {
  async 'an awaited result stays, however many follow; others are trimmed as if it were not there'(scene) {
    await scene.openQueue({ resultsCount: 2 })
    const ids = ['a', 'b', 'c', 'd', 'e']
    await scene.add(...ids)
    await expectEnds(scene, ['a', 'b'])
    await completeAll(scene, ids)

    assert.deepEqual(await scene.states(), ['a completed', 'b completed', 'd completed', 'e completed'])
    assert.deepEqual((await scene.records.get(scene.queue, 'a'))?.result, { payload: '"a"' })
  },

  async 'a queue that keeps no results keeps awaited ones'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.add('a', 'b')
    await expectEnds(scene, ['a'])
    await completeAll(scene, ['a', 'b'])

    assert.deepEqual(await scene.states(), ['a completed'])
  },

  async 'a result that is no longer awaited goes with the next settle, like one whose waiter has not reported in time'(
    scene,
  ) {
    await scene.openQueue({ resultsCount: 1 })
    await scene.add('a', 'b', 'c', 'd')
    await expectEnds(scene, ['a'])
    await expectEnds(scene, ['b'], me, 5_000)
    await completeAll(scene, ['a', 'b', 'c'])
    assert.deepEqual(await scene.states(), ['a completed', 'b completed', 'c completed', 'd ready'])
    await scene.advance(4_990)
    await expectEnds(scene, ['a'], me, 0)
    await scene.advance(10)
    await completeAll(scene, ['d'])

    assert.deepEqual(await scene.states(), ['d completed'])
  },

  async 'if two wait for a result, it stays until neither does'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.add('a', 'b', 'c', 'd')
    await expectEnds(scene, ['a'])
    await expectEnds(scene, ['a'], you)
    await completeAll(scene, ['a'])
    await expectEnds(scene, ['a'], me, 0)
    await completeAll(scene, ['b'])
    assert.deepEqual(await scene.states(), ['a completed', 'c ready', 'd ready'])
    await expectEnds(scene, ['a'], you, 0)
    await completeAll(scene, ['c'])

    assert.deepEqual(await scene.states(), ['d ready'])
  },

  async 'a waiter that reports again is counted from then on'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.add('a', 'b')
    await expectEnds(scene, ['a'], me, 5_000)
    await scene.advance(4_000)
    await expectEnds(scene, ['a'], me, 5_000)
    await completeAll(scene, ['a'])
    await scene.advance(3_000)
    await completeAll(scene, ['b'])

    assert.deepEqual(await scene.states(), ['a completed'])
  },

  async 'a result lasts at least as long as its waiters, whether they came before or after its end'(scene) {
    await scene.add('a', 'b', 'c')
    await expectEnds(scene, ['a'], me, 5_000)
    await completeAll(scene, ['a', 'b', 'c'], 1_000)
    await expectEnds(scene, ['b'], me, 5_000)
    await scene.advance(1_000)
    const shown = async () =>
      (await scene.records.list(scene.queue, { state: 'completed', by: 'id', limit: 10 })).jobs.map(({ id }) => id)
    assert.deepEqual(await shown(), ['a', 'b'])
    await scene.advance(4_000)

    assert.deepEqual(await shown(), [])
  },

  async 'one call keeps results for at most a minute, and nothing for ids without a job'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await expectEnds(scene, ['b', 'never was'])
    await scene.add('a', 'b', 'c')
    await expectEnds(scene, ['a'], me, 3_600_000)
    await completeAll(scene, ['a', 'b'])
    assert.deepEqual(await scene.states(), ['a completed', 'c ready'])
    await scene.advance(60_000)
    await completeAll(scene, ['c'])

    assert.deepEqual(await scene.states(), [])
  },

  async 'nobody waits longer because the clock is set back'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.add('a', 'b')
    await expectEnds(scene, ['a'], me, 60_000)
    await completeAll(scene, ['a'])
    await scene.harness.step(-3_600_000)
    await scene.advance(60_000)
    await completeAll(scene, ['b'])

    assert.deepEqual(await scene.states(), [])
  },

  async 'a result deleted by hand is gone even if it is awaited, and other ends are unaffected'(scene) {
    await scene.openQueue({ resultsCount: 0 })
    await scene.add('a', 'b', 'c')
    await expectEnds(scene, ['a', 'b', 'c'])
    await completeAll(scene, ['a'])
    await scene.records.delete(scene.queue, { ids: ['a'] })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.end(await scene.claimOne(), { kind: 'bury', reason: 'unrecoverable' })

    assert.deepEqual(await scene.states(), ['c dead'])
  },
})
