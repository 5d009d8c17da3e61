/** Contract cases: rings, each of which wakes one waiter. */

import assert from 'node:assert/strict'
import { plainCase, plainConcern, records, rings, workers } from '../scenes/contract-case.js'
import { Rest } from '../scenes/rest.js'
import { type Scene, soon } from '../scenes/scene.js'

export const ringing = plainConcern('ringing', [rings], {
  async 'one ring wakes one waiter, on any handle'(scene) {
    const rests = [await Rest.begin(scene), await Rest.begin(scene), await Rest.begin(scene)]
    const first = soon(Promise.race(rests.map(({ rung }, i) => rung.then(() => i))))
    await scene.add({ id: 'a', delayMs: 60_000 })

    const woken = await first

    await rests[woken]!.wakes(scene.queue)
    await Promise.all(rests.filter((_, i) => i !== woken).map((rest) => rest.isUndisturbed()))
  },

  async 'one ring wakes one of several waiters on one handle'(scene) {
    const store = await scene.harness.open()
    const rests = [await Rest.begin(scene, undefined, store), await Rest.begin(scene, undefined, store)]
    const first = soon(Promise.race(rests.map(({ rung }, i) => rung.then(() => i))))
    await scene.add({ id: 'a', delayMs: 60_000 })

    const woken = await first

    await rests[1 - woken]!.isUndisturbed()
  },

  async 'a ring is only for those who wait for that queue'(scene) {
    await scene.openQueue({ name: 'other' })
    const here = await Rest.begin(scene)
    const there = await Rest.begin(scene, ['other'])
    await scene.enqueue([{ id: 'a', delayMs: 60_000 }], { queue: 'other' })

    await there.wakes('other')
    await here.isUndisturbed()
  },

  async 'a waiter for several queues learns which was rung'(scene) {
    await scene.openQueue({ name: 'other' })
    const rest = await Rest.begin(scene, [scene.queue, 'other'])
    await scene.enqueue([{ id: 'a', delayMs: 60_000 }], { queue: 'other' })

    await rest.wakes('other')
  },

  async 'a waiter that gave up takes no ring from others'(scene) {
    await (await Rest.begin(scene)).isUndisturbed()
    const rest = await Rest.begin(scene)
    await scene.add({ id: 'a', delayMs: 60_000 })

    await rest.wakes(scene.queue)
  },

  async 'an unheard ring for a delayed job goes to the next waiter'(scene) {
    await scene.add({ id: 'a', delayMs: 60_000 })

    await (await Rest.begin(scene)).wakes(scene.queue)
    await (await Rest.begin(scene)).isUndisturbed()
  },

  async 'an unheard ring is dropped once the queue has a lead'(scene) {
    await scene.add({ id: 'a', delayMs: 60_000 })
    await scene.claim({ worker: 'lead' })

    await (await Rest.begin(scene)).isUndisturbed()
  },

  async 'jobs enqueued in one call wake all waiters, one after the other'(scene) {
    const rests = await Promise.all(Array.from({ length: 4 }, () => Rest.begin(scene)))
    const taken = rests.map(async ({ store, rung }, i) => {
      let names = await rung
      for (;;) {
        assert.deepEqual(names, [scene.queue])
        const from = [{ queue: scene.queue, limit: 1 }]
        const { claims } = await store.claim(from, { worker: `w${i}`, leaseMs: 30_000 })
        if (claims.length > 0) return claims.map(({ id }) => id)
        names = await store.wait([scene.queue], 25_000, new AbortController().signal)
      }
    })
    await scene.add('a', 'b', 'c', 'd')

    assert.deepEqual((await soon(Promise.all(taken))).flat().sort(), ['a', 'b', 'c', 'd'])
  },

  async 'a claim that leaves ready jobs rings the next'(scene) {
    await twoDueForTheLead(scene, async (rest) => {
      assert.equal((await scene.claim({ worker: 'lead', limit: 1 })).claims.length, 1)
      await rest.wakes(scene.queue)
    })
  },

  async 'a claim with a limit of 0 rings for the jobs it promoted'(scene) {
    await twoDueForTheLead(scene, async (rest) => {
      await scene.claim({ worker: 'lead', limit: 0 })
      await rest.wakes(scene.queue)
    })
  },

  async 'a claim that takes all jobs rings nobody'(scene) {
    await twoDueForTheLead(scene, async (rest) => {
      assert.equal((await scene.claim({ worker: 'other', limit: 2 })).claims.length, 2)
      await rest.isUndisturbed()
    })
  },

  'a claim on a paused queue rings nobody': plainCase([rings, records], async (scene) => {
    await twoDueForTheLead(scene, async (rest) => {
      await scene.records.pause(scene.queue)
      await scene.claim({ worker: 'lead' })
      await rest.isUndisturbed()
    })
  }),

  async 'suspects wake nobody: neither when they crash nor when somebody starts to wait'(scene) {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 1_000 })
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.advance(1_000)
    assert.equal((await scene.claim({ worker: 'lead' })).crashed.length, 1)

    await rest.isUndisturbed()
    await (await Rest.begin(scene)).isUndisturbed()
  },

  async 'a delayed job rings only if it is due before the lead asks'(scene) {
    await scene.add({ id: 'a', delayMs: 5_000 })
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.add({ id: 'b', delayMs: 9_000 }, { id: 'c', delayMs: 5_000 })
    await rest.isUndisturbed()

    const next = await Rest.begin(scene)
    await scene.add({ id: 'd', delayMs: 4_999 })
    await next.wakes(scene.queue)
  },

  async 'a delayed job rings if the lead has lapsed'(scene) {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.advance(2_001)
    await scene.add({ id: 'b', delayMs: 60_000 })

    await rest.wakes(scene.queue)
  },

  async 'a job that is put off rings by the same rule as a new one'(scene) {
    await scene.add('a', 'b', 'c')
    const { claims } = await scene.claim({ leaseMs: 20_000 })
    await scene.add({ id: 'd', delayMs: 5_000 })
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.end(claims[0]!, { kind: 'retry', delayMs: 9_000 })
    await scene.end(claims[1]!, { kind: 'release', delayMs: 5_000 })
    await rest.isUndisturbed()

    const next = await Rest.begin(scene)
    await scene.end(claims[2]!, { kind: 'retry', delayMs: 1_000 })
    await next.wakes(scene.queue)
  },

  async 'a retry or release without delay rings, whether the job is suspect or not'(scene) {
    await scene.add('a')
    for (const kind of ['retry', 'release'] as const) {
      const claim = await scene.claimOne()
      await scene.claim({ worker: 'lead' })
      const next = await Rest.begin(scene)
      await scene.end(claim, { kind, delayMs: 0 })
      await next.wakes(scene.queue)
    }
    await scene.end(await scene.claimOne(), { kind: 'complete' })

    await scene.addSuspects('b')
    const claim = await scene.claimOne({ alone: true })
    await scene.claim({ worker: 'lead' })
    const next = await Rest.begin(scene)
    await scene.end(claim, { kind: 'release', delayMs: 0 })
    await next.wakes(scene.queue)
  },

  async 'a job that is completed, buried, cancelled or renewed rings nobody'(scene) {
    await scene.add('a', 'b', 'c', 'd', 'e')
    const { claims } = await scene.claim()
    const rest = await Rest.begin(scene)
    await scene.end(claims[0]!, { kind: 'complete' })
    await scene.end(claims[1]!, { kind: 'complete', result: { payload: '1' } })
    await scene.end(claims[2]!, { kind: 'bury' })
    await scene.end(claims[3]!, { kind: 'cancel' })
    await scene.extend(claims[4]!, { leaseMs: 60_000, beat: { startedMs: 0 } })
    await scene.end(claims[4]!, { kind: 'retry', delayMs: 0, last: true })

    await rest.isUndisturbed()
  },

  async 'refused jobs ring nobody'(scene) {
    await scene.openQueue({ maxPending: 1 })
    await scene.add('a')
    await scene.claimOne()
    const heard = await Rest.begin(scene)
    await scene.add({ id: 'b', delayMs: 60_000 })
    await heard.wakes(scene.queue)
    const rest = await Rest.begin(scene)
    assert.deepEqual(await scene.enqueue(['a', 'b']), ['duplicate', 'duplicate'])
    assert.deepEqual(await scene.enqueue(['c']), ['full'])

    await rest.isUndisturbed()
  },

  'a paused queue rings nobody, whatever becomes ready; its resume does': plainCase([rings, records], async (scene) => {
    await scene.addDead('dead')
    await scene.add('a', 'b')
    const { claims } = await scene.claim()
    await scene.records.pause(scene.queue)
    const rest = await Rest.begin(scene)
    await scene.add('c', { id: 'later', delayMs: 60_000 })
    await scene.end(claims[0]!, { kind: 'release', delayMs: 0 })
    await scene.records.fail(scene.queue, 'b', { delayMs: 0, reason: 'by hand' })
    await scene.records.runNow(scene.queue, 'all')
    await scene.records.morgue.revive(scene.queue, 'all')
    await rest.isUndisturbed()

    const next = await Rest.begin(scene)
    await scene.records.resume(scene.queue)
    await next.wakes(scene.queue)
  }),

  'an operator who removes jobs rings nobody': plainCase([rings, records], async (scene) => {
    await scene.addDead('dead')
    await scene.add('running')
    await scene.claimOne()
    const ids = ['a', 'b', 'c', 'd']
    await scene.add(...ids.map((id) => ({ id, delayMs: 60_000 })))
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.records.cancel(scene.queue, { ids: ['a', 'running'] })
    await scene.records.delete(scene.queue, { ids: ['b'] })
    await scene.records.bury(scene.queue, { ids: ['c'] })
    await scene.records.morgue.delete(scene.queue, { ids: ['dead'] })
    await scene.records.fail(scene.queue, 'running', { delayMs: 0, last: true, reason: 'by hand' })
    await scene.records.clear(scene.queue)

    await rest.isUndisturbed()
  }),

  'a step that reached its limit rings for what it did': plainCase([rings, records], async (scene) => {
    for (let i = 0; i < 5; i++)
      await scene.add(...Array.from({ length: 250 }, (_, n) => ({ id: `job-${i}-${n}`, delayMs: 60_000 })))
    await scene.claim({ worker: 'lead' })
    const rest = await Rest.begin(scene)
    assert.deepEqual(await scene.records.runNow(scene.queue, 'all'), { changed: 1_000, more: true })

    await rest.wakes(scene.queue)
  }),

  'claims ended for a dead worker ring, because somebody must learn of the suspects': plainCase(
    [rings, workers],
    async (scene) => {
      await scene.add('a')
      const { queue, id, fence } = await scene.claimOne({ worker: 'w1' })
      await scene.claim({ worker: 'lead' })
      const rest = await Rest.begin(scene)
      await scene.workers.gone([{ queue, id, fence }], 'w1')

      await rest.wakes(scene.queue)
    },
  ),
})

/** A queue whose lead may now ask for two jobs that fell due, while another worker rests. */
async function twoDueForTheLead(scene: Scene, then: (rest: Rest) => Promise<void>): Promise<void> {
  await scene.add({ id: 'a', delayMs: 1_000 }, { id: 'b', delayMs: 1_000 })
  await scene.claim({ worker: 'lead' })
  const rest = await Rest.begin(scene)
  await scene.advance(1_000)
  await then(rest)
}
