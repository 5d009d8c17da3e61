/**
 * Contract cases: the answer to a claim besides its jobs: why it was denied, whether there is more, the heads of
 * queues, the time.
 */

import assert from 'node:assert/strict'
import { exactDepth, inOrder, plainCase, plainConcern, records, rings } from '../scenes/contract-case.js'

export const claimAnswers = plainConcern('what a claim tells', [], {
  'a denial says when a scheduled job falls due': plainCase([rings], async (scene) => {
    await scene.add({ id: 'a', delayMs: 9_000 }, { id: 'b', delayMs: 5_000 })
    await scene.advance(1_000)

    const { waits } = await scene.claim()

    assert.deepEqual(waits, [{ queue: scene.queue, reason: 'scheduled', forMs: 4_000, lead: true }])
  }),

  'a denial says when a lease ends': plainCase([rings], async (scene) => {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 8_000 })
    await scene.advance(1_000)

    const { waits } = await scene.claim()

    assert.deepEqual(waits, [{ queue: scene.queue, reason: 'empty', forMs: 7_000, lead: true }])
  }),

  'a denial names the sooner of a due job and an ending lease': plainCase([rings], async (scene) => {
    await scene.add('a')
    await scene.claimOne({ leaseMs: 3_000 })
    await scene.add({ id: 'b', delayMs: 9_000 })

    const { waits } = await scene.claim()

    assert.deepEqual(waits, [{ queue: scene.queue, reason: 'scheduled', forMs: 3_000, lead: true }])
  }),

  'a paused queue grants nothing and says so': plainCase([records], async (scene) => {
    await scene.add('a')
    await scene.records.pause(scene.queue)

    const { claims, waits, more } = await scene.claim()

    assert.deepEqual([claims, waits, more], [[], [{ queue: scene.queue, reason: 'paused' }], false])
  }),

  async 'more says whether ready jobs were left'(scene) {
    await scene.add('a', 'b', 'c')

    assert.equal((await scene.claim({ limit: 2 })).more, true)
    assert.equal((await scene.claim({ limit: 2 })).more, false)
  },

  'a limit of 0 promotes and takes nothing': plainCase([exactDepth], async (scene) => {
    await scene.add({ id: 'a', delayMs: 1_000 })
    await scene.advance(1_000)

    const { claims, more } = await scene.claim({ limit: 0 })

    assert.deepEqual([claims, more], [[], true])
    assert.deepEqual(await scene.states(), ['a ready'])
  }),

  'promotion is limited to 100 a call, and more says that there are others': plainCase(
    [inOrder, exactDepth],
    async (scene) => {
      await scene.add(...Array.from({ length: 150 }, (_, i) => ({ id: `job-${i}`, delayMs: 1_000 + i })))
      await scene.advance(5_000)
      // To such a store a job is ready by its time alone: it promotes none, and has nothing to limit.
      const promotesNone = (await scene.states()).every((state) => state.endsWith(' ready'))

      const first = await scene.claim({ limit: 250 })
      const second = await scene.claim({ limit: 250 })

      if (promotesNone) return assert.equal(first.claims.length, 150)
      assert.deepEqual([first.claims.length, first.more], [100, true])
      assert.deepEqual([second.claims.length, second.more], [50, false])
      assert.equal(first.claims[99]!.id, 'job-99')
    },
  ),

  'heads give the age of the oldest ready job in each queue, only on request': plainCase(
    [exactDepth],
    async (scene) => {
      await scene.openQueue({ name: 'other' })
      await scene.openQueue({ name: 'idle' })
      await scene.enqueue(['x', 'y'], { queue: 'other' })
      await scene.advance(4_000)
      await scene.add('a')
      await scene.advance(1_000)
      const from = ['idle', scene.queue, 'other'].map((queue) => ({ queue, limit: 0 }))

      assert.deepEqual((await scene.claim({ from, heads: true })).heads, [
        { queue: 'idle' },
        { queue: scene.queue, ageMs: 1_000 },
        { queue: 'other', ageMs: 5_000 },
      ])
      assert.equal((await scene.claim({ from })).heads, undefined)
    },
  ),

  'heads are those after the claim': plainCase([exactDepth], async (scene) => {
    await scene.add('a')
    await scene.advance(3_000)
    await scene.add('b')
    await scene.advance(1_000)

    const { heads } = await scene.claim({ limit: 1, heads: true })

    assert.deepEqual(heads, [{ queue: scene.queue, ageMs: 1_000 }])
  }),

  'a plain queue named twice in a call grants to the first entry that asks for jobs': plainCase(
    [inOrder],
    async (scene) => {
      await scene.add('a', 'b', 'c')
      const from = [0, 1, 2].map((limit) => ({ queue: scene.queue, limit }))
      assert.deepEqual(await scene.claimIds({ from }), ['a'])
    },
  ),

  async 'a queue named twice in a call has the same head in both, as the call left it'(scene) {
    await scene.add('a')
    const from = [0, 1].map((limit) => ({ queue: scene.queue, limit }))

    const { heads } = await scene.claim({ from, heads: true })

    assert.deepEqual(heads, [{ queue: scene.queue }, { queue: scene.queue }])
  },

  async 'a claim alone takes one job, whatever its limit'(scene) {
    await scene.add('a', 'b')

    const taken = await scene.claimIds({ limit: 10, alone: true })

    assert.equal(taken.length, 1)
    assert.equal((await scene.job(taken[0]!)).claim?.alone, true)
  },

  async 'now is the store’s clock'(scene) {
    const { now } = await scene.claim()
    await scene.advance(1_234)

    assert.equal((await scene.claim()).now, now + 1_234)
    assert.equal((await scene.harness.dump()).now, now + 1_234)
  },
})
