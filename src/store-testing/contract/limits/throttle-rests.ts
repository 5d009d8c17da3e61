/** Contract cases: the rest of a throttle, which begins anew if no job was left that could start. */

import assert from 'node:assert/strict'
import { firstUse, orderedCase, plainCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import { denied, even, jobs, longLeaseMs, rule, taken } from '../scenes/limit-words.js'
import type { Scene } from '../scenes/scene.js'

const api = { scope: 'api', by: 'queue', rules: [rule(5, 10_000, even)] } as const

export const throttleRests = plainConcern('the rest of a throttle', [throttled, records, firstUse], {
  async 'where the last ready job was cancelled and a claim found nothing, a new one starts at once and the grid begins with it'(
    scene,
  ) {
    await scene.openQueue({ throttle: api })
    await oneCancelled(scene)
    await denied(scene)
    await beginsAnew(scene)
  },

  'so it is with an ordered queue, once all of its shards are empty': orderedCase(
    [throttled, records, firstUse],
    async (scene) => {
      await scene.openQueue({ shards: 3, throttle: api })
      await oneCancelled(scene)
      await denied(scene)
      await beginsAnew(scene)
    },
  ),

  'a claim in company that finds nothing but suspects makes the tempo begin anew too': plainCase(
    [throttled, records],
    async (scene) => {
      await scene.addSuspects('suspect')
      await scene.openQueue({ throttle: { ...api, scope: scene.queue } })
      await oneCancelled(scene)
      await denied(scene)
      await beginsAnew(scene)
    },
  ),

  async 'where the last ready job was cancelled and nobody has asked since, the grid goes on'(scene) {
    await scene.openQueue({ throttle: api })
    await oneCancelled(scene)
    await scene.advance(6_500)
    await scene.add(...jobs(3))

    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene))[0]?.forMs, 1_500)
  },

  async 'a queue of the scope that is paused has nothing that could start, one that is shut has'(scene) {
    await scene.openQueue({ throttle: api })
    await scene.openQueue({ name: 'sms', throttle: api })
    await scene.enqueue(['text'], { queue: 'sms' })
    await scene.add('a')
    assert.equal(await taken(scene), 1)
    await scene.advance(1_000)
    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 1_000)
    await denied(scene)
    await scene.advance(1_900)
    await scene.add('b')
    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 1_100)

    await scene.records.pause('sms')
    await scene.advance(5_600)
    await denied(scene)
    await scene.add(...jobs(3))
    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene))[0]?.forMs, 2_000)
  },
})

/** Of two jobs one starts, and the other is cancelled; then the time comes at which that one might have started. */
async function oneCancelled(scene: Scene): Promise<void> {
  await scene.enqueue(['a', 'b'])
  const { id } = await scene.claimOne({ limit: 10, leaseMs: longLeaseMs })
  await scene.records.cancel(scene.queue, { ids: [id === 'a' ? 'b' : 'a'] })
  await scene.advance(2_000)
}

/** After a rest a start comes at once, and the next a whole slot later, wherever it would have been on the old grid. */
async function beginsAnew(scene: Scene): Promise<void> {
  await scene.advance(6_500)
  await scene.enqueue(jobs(3))
  assert.equal(await taken(scene), 1)
  const waits = await denied(scene)
  assert.ok(waits.some(({ reason, forMs }) => reason === 'throttled' && forMs === 2_000))
}
