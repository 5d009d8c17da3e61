/** Contract cases: leads, the one claimer of each queue that asks again when something changes by itself. */

import assert from 'node:assert/strict'
import type { Wait } from '../../../stores/contract/claim.js'
import { plainCase, plainConcern, records, rings, workers } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const leading = plainConcern('leading', [rings], {
  async 'the first denied claimer leads, and no later one'(scene) {
    await scene.add({ id: 'a', delayMs: 9_000 })

    assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 9_000, true)])
    assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 9_000)])
    assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
  },

  async 'the lead stays the lead when it asks again'(scene) {
    await scene.add({ id: 'a', delayMs: 9_000 })
    await waitsOf(scene, 'w1')
    await scene.advance(1_000)
    await waitsOf(scene, 'w2')

    assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 8_000, true)])
  },

  async 'a lead holds for every handle'(scene) {
    const other = await scene.harness.open()
    await scene.add({ id: 'a', delayMs: 9_000 })
    await waitsOf(scene, 'w1')

    const { waits } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

    assert.deepEqual(waits, [scheduled(scene, 9_000)])
  },

  async 'nobody leads if nothing will change by itself'(scene) {
    assert.deepEqual(await waitsOf(scene, 'w1'), [{ queue: scene.queue, reason: 'empty' }])
    assert.equal((await scene.stored()).lead, null)
  },

  async 'a lead has until a second after its time, and is then replaced'(scene) {
    await scene.add({ id: 'soon', delayMs: 5_000 }, { id: 'late', delayMs: 60_000 })
    await waitsOf(scene, 'w1')
    await scene.advance(6_000)
    assert.deepEqual(await scene.claimIds({ worker: 'w2', leaseMs: 90_000 }), ['soon'])
    assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: -1_000 })
    assert.equal((await waitsOf(scene, 'w2'))[0]?.lead, undefined)

    await scene.advance(1)

    assert.equal((await scene.stored()).lead, null)
    assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 53_999, true)])
    assert.equal((await waitsOf(scene, 'w1'))[0]?.lead, undefined)
  },

  async 'a claimer that learns of an earlier change becomes the lead'(scene) {
    await scene.add({ id: 'late', delayMs: 60_000 })
    await waitsOf(scene, 'w1')
    await scene.add({ id: 'soon', delayMs: 5_000 })

    assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 5_000, true)])
    assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 5_000)])
    assert.deepEqual((await scene.stored()).lead, { worker: 'w2', inMs: 5_000 })
  },

  async 'an earlier change that the lead itself learns of moves its time'(scene) {
    await scene.add({ id: 'late', delayMs: 60_000 })
    await waitsOf(scene, 'w1')
    await scene.add({ id: 'soon', delayMs: 5_000 })
    await waitsOf(scene, 'w1')

    assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 5_000 })
    assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 5_000)])
  },

  async 'a lease that will end has a lead too'(scene) {
    await scene.add('a')
    await scene.claimOne({ worker: 'w1', leaseMs: 8_000 })

    assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty', forMs: 8_000, lead: true }])
    assert.deepEqual(await waitsOf(scene, 'w3'), [{ queue: scene.queue, reason: 'empty', forMs: 8_000 }])
  },

  async 'a claimer that takes the last jobs and asked for more leads'(scene) {
    await scene.add('a', 'b')

    const { claims, waits } = await scene.claim({ limit: 3, worker: 'w1', leaseMs: 8_000 })

    assert.deepEqual([claims.length, waits], [2, [{ queue: scene.queue, reason: 'empty', forMs: 8_000, lead: true }]])
    assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty', forMs: 8_000 }])
  },

  async 'a claimer that takes the last ready jobs and asked for more learns when the next is due'(scene) {
    await scene.add('a', { id: 'later', delayMs: 5_000 })

    const { waits } = await scene.claim({ limit: 2, worker: 'w1', leaseMs: 8_000 })

    assert.deepEqual(waits, [scheduled(scene, 5_000, true)])
  },

  async 'a claimer that takes the last jobs and asked for no more gets no wait'(scene) {
    await scene.add('a', 'b')

    const { claims, waits } = await scene.claim({ limit: 2, worker: 'w1', leaseMs: 8_000 })

    assert.deepEqual([claims.length, waits], [2, []])
    assert.equal((await scene.stored()).lead, null)
  },

  async 'a claim with a grant names no lead and keeps it'(scene) {
    await scene.add({ id: 'a', delayMs: 9_000 })
    await waitsOf(scene, 'w1')
    await scene.add('b')

    assert.deepEqual((await scene.claim({ limit: 1, worker: 'w2' })).waits, [])
    assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
  },

  async 'a claim with a limit of 0 that leaves a job names no lead and keeps it'(scene) {
    await scene.add({ id: 'a', delayMs: 9_000 })
    await waitsOf(scene, 'w1')
    await scene.add('b')

    assert.deepEqual(await waitsOf(scene, 'w2', { limit: 0 }), [])
    assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
  },

  'a lead that finds nothing ahead stops leading; another claimer that finds nothing changes nothing': plainCase(
    [rings, records],
    async (scene) => {
      await scene.add({ id: 'a', delayMs: 9_000 })
      await waitsOf(scene, 'w1')
      await scene.records.delete(scene.queue, 'all')
      assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty' }])
      assert.equal((await scene.stored()).lead?.worker, 'w1')

      assert.deepEqual(await waitsOf(scene, 'w1'), [{ queue: scene.queue, reason: 'empty' }])
      assert.equal((await scene.stored()).lead, null)
    },
  ),

  'a lead that finds the queue paused stops leading, because it will not come back': plainCase(
    [rings, records],
    async (scene) => {
      await scene.add({ id: 'a', delayMs: 9_000 })
      await waitsOf(scene, 'w1')
      await scene.records.pause(scene.queue)
      const paused = [{ queue: scene.queue, reason: 'paused' }]
      assert.deepEqual(await waitsOf(scene, 'w2'), paused)
      assert.equal((await scene.stored()).lead?.worker, 'w1')

      assert.deepEqual(await waitsOf(scene, 'w1'), paused)
      assert.equal((await scene.stored()).lead, null)
    },
  ),

  async 'a lead that gets a job at its time stops leading, and a waiter is rung'(scene) {
    await scene.add({ id: 'soon', delayMs: 5_000 }, { id: 'late', delayMs: 60_000 })
    await waitsOf(scene, 'w1')
    await scene.advance(5_000)
    assert.deepEqual(
      (await scene.claim({ worker: 'w1', limit: 1 })).claims.map(({ id }) => id),
      ['soon'],
    )

    assert.equal((await scene.stored()).lead, null)
    assert.deepEqual(await waitsOf(scene, 'w2', { limit: 0 }), [scheduled(scene, 30_000, true)])
  },

  async 'a lead for a future job does not delay a due one'(scene) {
    await scene.add({ id: 'late', delayMs: 600_000 })
    await waitsOf(scene, 'w1')
    await scene.add('a')
    await scene.claimOne({ worker: 'w2', leaseMs: 3_000 })
    await scene.advance(3_000)

    assert.deepEqual(await scene.store.wait([scene.queue], 5_000, new AbortController().signal), [scene.queue])
  },

  'a removed or dead worker stops leading': plainCase([rings, workers], async (scene) => {
    await scene.addSuspects('a')
    await scene.add({ id: 'b', delayMs: 9_000 })
    await waitsOf(scene, 'finder', { limit: 0 })
    await scene.workers.remove('finder')
    assert.deepEqual([(await scene.stored()).lead, (await scene.stored()).suspectLead], [null, null])
    await waitsOf(scene, 'w2', { limit: 0 })
    await scene.workers.gone([], 'w2')

    assert.deepEqual([(await scene.stored()).lead, (await scene.stored()).suspectLead], [null, null])
  }),

  async 'every queue has its own lead'(scene) {
    await scene.openQueue({ name: 'other' })
    await scene.add({ id: 'a', delayMs: 9_000 })
    await scene.enqueue([{ id: 'b', delayMs: 5_000 }], { queue: 'other' })
    await waitsOf(scene, 'w1')

    const { waits } = await scene.claim({
      worker: 'w2',
      from: [scene.queue, 'other'].map((queue) => ({ queue, limit: 1 })),
    })

    assert.deepEqual(waits, [scheduled(scene, 9_000), { ...scheduled(scene, 5_000, true), queue: 'other' }])
    assert.deepEqual((await scene.stored('other')).lead, { worker: 'w2', inMs: 5_000 })
  },

  async 'remaining suspects are reported, and the first claimer that learns of them leads'(scene) {
    await scene.add('a')
    await scene.claimOne({ worker: 'w1', leaseMs: 1_000 })
    await scene.advance(1_000)

    assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty' }, suspect(scene, true)])
    assert.deepEqual(await waitsOf(scene, 'w3'), [{ queue: scene.queue, reason: 'empty' }, suspect(scene)])
    assert.deepEqual((await scene.stored()).suspectLead, { worker: 'w2', inMs: 5_000 })
  },

  async 'the lead of the suspects may ask again and stays the lead; it lapses like any other'(scene) {
    await scene.addSuspects('a')
    await scene.advance(3_000)
    assert.deepEqual((await scene.claim({ worker: 'finder', limit: 0 })).waits[1], suspect(scene, true))
    await scene.advance(6_000)
    assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene))
    await scene.advance(1)

    assert.equal((await scene.stored()).suspectLead, null)
    assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene, true))
  },

  async 'a lead of the suspects that keeps claiming in company is not chosen again, and lapses'(scene) {
    await scene.addSuspects('a')
    await scene.advance(3_000)
    assert.deepEqual((await waitsOf(scene, 'finder'))[1], suspect(scene))
    assert.deepEqual((await scene.stored()).suspectLead, { worker: 'finder', inMs: 2_000 })
    await scene.advance(3_001)
    assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene, true))
  },

  async 'suspects are reported even if the queue granted'(scene) {
    await scene.addSuspects('a')
    await scene.add('b')

    const { claims, waits } = await scene.claim({ limit: 1, worker: 'w2' })

    assert.deepEqual([claims.map(({ id }) => id), waits], [['b'], [suspect(scene)]])
  },

  async 'a claim alone that leaves suspects reports them, and one that takes the last does not'(scene) {
    await scene.addSuspects('a', 'b')

    assert.deepEqual((await scene.claim({ worker: 'finder', alone: true })).waits, [suspect(scene, true)])
    assert.deepEqual((await scene.claim({ worker: 'w2', alone: true })).waits, [])
  },

  async 'a queue that is named twice has no lead for a suspect that is taken at the second time'(scene) {
    await scene.addSuspects('a')
    const { claims: before } = await scene.claim({ worker: 'w1', alone: true })
    await scene.end(before[0]!, { kind: 'release', delayMs: 0 })
    assert.equal((await scene.stored()).suspectLead, null)
    const handle = await scene.harness.open()
    const from = [0, 1].map((limit) => ({ queue: scene.queue, limit }))

    const { claims } = await handle.claim(from, { worker: 'w2', leaseMs: 30_000, alone: true })

    assert.deepEqual([claims.map(({ id }) => id), (await scene.stored()).suspectLead], [['a'], null])
  },

  async 'a queue with suspects is not empty for a claim alone'(scene) {
    await scene.addSuspects('a')

    assert.deepEqual(await waitsOf(scene, 'w2', { alone: true, limit: 0 }), [suspect(scene)])
    assert.deepEqual(await waitsOf(scene, 'w2', { limit: 0 }), [
      { queue: scene.queue, reason: 'empty' },
      suspect(scene),
    ])
  },

  async 'if no suspect is left nobody leads them'(scene) {
    await scene.addSuspects('a')
    assert.equal((await scene.stored()).suspectLead?.worker, 'finder')
    await scene.claimOne({ worker: 'w2', alone: true })

    assert.equal((await scene.stored()).suspectLead, null)
  },

  'any claim ends the lead of suspects that are gone': plainCase([rings, records], async (scene) => {
    await scene.addSuspects('a')
    await scene.records.delete(scene.queue, 'all')
    await waitsOf(scene, 'w2')

    assert.equal((await scene.stored()).suspectLead, null)
  }),

  'a paused queue reports no suspects, and their lead stays': plainCase([rings, records], async (scene) => {
    await scene.addSuspects('a')
    await scene.records.pause(scene.queue)

    assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'paused' }])
    assert.deepEqual(await waitsOf(scene, 'w2', { alone: true }), [{ queue: scene.queue, reason: 'paused' }])
    assert.deepEqual((await scene.stored()).suspectLead, { worker: 'finder', inMs: 5_000 })
  }),

  async 'the lead for due jobs and the lead of the suspects may be two claimers'(scene) {
    await scene.addSuspects('a')
    await scene.add({ id: 'b', delayMs: 9_000 })

    assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 9_000, true), suspect(scene)])
    assert.deepEqual(await waitsOf(scene, 'finder', { limit: 0 }), [scheduled(scene, 9_000), suspect(scene, true)])
  },
})

/** The waits in the answer to a worker that asks and is granted nothing. */
async function waitsOf(scene: Scene, worker: string, how: { limit?: number; alone?: boolean } = {}): Promise<Wait[]> {
  const { claims, waits } = await scene.claim({ worker, ...how })
  assert.deepEqual(claims, [])
  return waits
}

function scheduled(scene: Scene, forMs: number, leads = false): Wait {
  return { queue: scene.queue, reason: 'scheduled', forMs, ...(leads ? { lead: true } : {}) }
}

function suspect(scene: Scene, leads = false): Wait {
  return { queue: scene.queue, reason: 'suspect', forMs: 5_000, ...(leads ? { lead: true } : {}) }
}
