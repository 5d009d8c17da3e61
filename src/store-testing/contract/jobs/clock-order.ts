/** Contract cases: the order of jobs and payloads when the wall clock is set back. */

import assert from 'node:assert/strict'
import { orderedCase, orderedConcern, plainCase, records } from '../scenes/contract-case.js'
import { handed } from '../scenes/ordered-scene.js'

const hourMs = 3_600_000

export const clockOrder = orderedConcern('order when the clock is set', [], {
  async 'payloads without a score are handed over in the order of arrival, however far the clock is set'(scene) {
    await scene.push('a', 'v1')
    await scene.push('a', 'v2')
    for (const [i, ms] of [-3_000, -hourMs, hourMs, 2 * hourMs, -hourMs].entries()) {
      await scene.harness.step(ms)
      await scene.push('a', `v${3 + i}`)
    }

    assert.deepEqual(handed(await scene.take()), ['v1', 'v2', 'v3', 'v4', 'v5', 'v6', 'v7'])
  },

  'payloads keep that order after a reshard': orderedCase([records], async (scene) => {
    await scene.push('a', 'v1')
    await scene.push('a', 'v2')
    await scene.harness.step(-hourMs)
    while ((await scene.records.reshard(scene.queue, 3)).more);
    await scene.push('a', 'v3')

    assert.deepEqual(handed(await scene.take()), ['v1', 'v2', 'v3'])
  }),

  'payloads keep that order after a move to another queue': orderedCase([records], async (scene) => {
    await scene.openQueue({ name: 'other' })
    await scene.push('a', 'v1')
    await scene.push('a', 'v2')
    await scene.harness.step(-hourMs)
    while ((await scene.records.move(scene.queue, 'other')).more);
    await scene.enqueue([{ id: 'a', payload: 'v3' }], { queue: 'other' })

    assert.deepEqual(handed(await scene.claimOne({ queue: 'other' })), ['v1', 'v2', 'v3'])
  }),

  async 'payloads that arrive while their id runs are ready when it ends, however far the clock was set back'(scene) {
    await scene.push('a', 'v1')
    const claim = await scene.take()
    await scene.push('a', 'v2')
    await scene.harness.step(-hourMs)
    await scene.end(claim, { kind: 'complete' })

    assert.deepEqual(handed(await scene.take()), ['v2'])
  },

  async 'payloads that a claim left behind are ready when it ends after the clock was set back'(scene) {
    await scene.pushAll('a', ['v1', 'v2'])
    const claim = await scene.take(1)
    await scene.harness.step(-hourMs)
    await scene.end(claim, { kind: 'complete' })

    assert.deepEqual(handed(await scene.take()), ['v2'])
  },

  'payloads revived while their id runs are ready when it ends after the clock was set back': orderedCase(
    [records],
    async (scene) => {
      await scene.bury('a', ['v1'])
      await scene.push('a', 'v2')
      const claim = await scene.take()
      await scene.push('a', 'v3', { delayMs: 60_000 })
      await scene.records.morgue.revive(scene.queue, { ids: ['a'] })
      await scene.harness.step(-hourMs)
      await scene.end(claim, { kind: 'complete' })

      assert.deepEqual(handed(await scene.take()), ['v1', 'v3'])
    },
  ),

  'payloads that were ready elsewhere and were moved while their id ran are ready when it ends': orderedCase(
    [records],
    async (scene) => {
      await scene.openQueue({ name: 'other' })
      await scene.enqueue([{ id: 'a', payload: 'v1' }], { queue: 'other' })
      const claim = await scene.claimOne({ queue: 'other' })
      await scene.push('a', 'v2')
      while ((await scene.records.move(scene.queue, 'other')).more);
      await scene.harness.step(-hourMs)
      await scene.end(claim, { kind: 'complete' })

      assert.deepEqual(handed(await scene.claimOne({ queue: 'other' })), ['v2'])
    },
  ),

  async 'payloads that arrive with a delay while their id runs wait for their time'(scene) {
    await scene.push('a', 'v1')
    const claim = await scene.take()
    await scene.push('a', 'v2', { delayMs: 60_000 })
    await scene.push('a', 'v3')
    await scene.end(claim, { kind: 'complete' })
    assert.equal((await scene.live('a')).state, 'scheduled')
    await scene.advance(60_000)

    assert.deepEqual(handed(await scene.take()), ['v2', 'v3'])
  },

  'first in is first out if the clock is set back by less than a second': plainCase([], async (scene) => {
    await scene.add('a', 'b')
    await scene.harness.step(-999)
    await scene.add('c')

    assert.deepEqual(await scene.claimIds(), ['a', 'b', 'c'])
  }),

  'if the clock is set back further, later jobs go before waiting ones, and all are ready': plainCase(
    [],
    async (scene) => {
      await scene.add('a', 'b')
      await scene.harness.step(-hourMs)
      await scene.add('c', 'd')

      assert.deepEqual(await scene.claimIds(), ['c', 'd', 'a', 'b'])
    },
  ),
})
