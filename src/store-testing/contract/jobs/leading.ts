/** Contract cases: leads, the one claimer of each queue that asks again when something changes by itself. */

import assert from 'node:assert/strict'
import type { Wait } from '../../../stores/contract/claim.js'
import { type ContractConcern, contractCase, needing, records, rings, workers } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

export const leading: ContractConcern = {
  concern: 'leading',
  cases: needing(
    [rings],
    [
      contractCase('the first who is denied leads, and nobody after', async (scene) => {
        await scene.add({ id: 'a', delayMs: 9_000 })

        assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 9_000, true)])
        assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 9_000)])
        assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
      }),

      contractCase('who leads goes on leading when it asks again', async (scene) => {
        await scene.add({ id: 'a', delayMs: 9_000 })
        await waitsOf(scene, 'w1')
        await scene.advance(1_000)
        await waitsOf(scene, 'w2')

        assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 8_000, true)])
      }),

      contractCase('a lead holds for every handle', async (scene) => {
        const other = await scene.harness.open()
        await scene.add({ id: 'a', delayMs: 9_000 })
        await waitsOf(scene, 'w1')

        const { waits } = await other.claim([{ queue: scene.queue, limit: 1 }], { worker: 'w2', leaseMs: 30_000 })

        assert.deepEqual(waits, [scheduled(scene, 9_000)])
      }),

      contractCase('nobody leads where nothing will change by itself', async (scene) => {
        assert.deepEqual(await waitsOf(scene, 'w1'), [{ queue: scene.queue, reason: 'empty' }])
        assert.equal((await scene.stored()).lead, null)
      }),

      contractCase('a lead is waited for until a second after its time, and then replaced', async (scene) => {
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
      }),

      contractCase('who learns of an earlier change leads from then on', async (scene) => {
        await scene.add({ id: 'late', delayMs: 60_000 })
        await waitsOf(scene, 'w1')
        await scene.add({ id: 'soon', delayMs: 5_000 })

        assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 5_000, true)])
        assert.deepEqual(await waitsOf(scene, 'w1'), [scheduled(scene, 5_000)])
        assert.deepEqual((await scene.stored()).lead, { worker: 'w2', inMs: 5_000 })
      }),

      contractCase('an earlier change that the lead itself learns of moves its time', async (scene) => {
        await scene.add({ id: 'late', delayMs: 60_000 })
        await waitsOf(scene, 'w1')
        await scene.add({ id: 'soon', delayMs: 5_000 })
        await waitsOf(scene, 'w1')

        assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 5_000 })
        assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 5_000)])
      }),

      contractCase('a lease that will end has a lead too', async (scene) => {
        await scene.add('a')
        await scene.claimOne({ worker: 'w1', leaseMs: 8_000 })

        assert.deepEqual(await waitsOf(scene, 'w2'), [
          { queue: scene.queue, reason: 'empty', forMs: 8_000, lead: true },
        ])
        assert.deepEqual(await waitsOf(scene, 'w3'), [{ queue: scene.queue, reason: 'empty', forMs: 8_000 }])
      }),

      contractCase('who takes the last jobs and has asked for more leads', async (scene) => {
        await scene.add('a', 'b')

        const { claims, waits } = await scene.claim({ limit: 3, worker: 'w1', leaseMs: 8_000 })

        assert.deepEqual(
          [claims.length, waits],
          [2, [{ queue: scene.queue, reason: 'empty', forMs: 8_000, lead: true }]],
        )
        assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty', forMs: 8_000 }])
      }),

      contractCase(
        'who takes the last ready jobs and has asked for more learns when the next is due',
        async (scene) => {
          await scene.add('a', { id: 'later', delayMs: 5_000 })

          const { waits } = await scene.claim({ limit: 2, worker: 'w1', leaseMs: 8_000 })

          assert.deepEqual(waits, [scheduled(scene, 5_000, true)])
        },
      ),

      contractCase('who takes the last jobs and has asked for no more is told nothing', async (scene) => {
        await scene.add('a', 'b')

        const { claims, waits } = await scene.claim({ limit: 2, worker: 'w1', leaseMs: 8_000 })

        assert.deepEqual([claims.length, waits], [2, []])
        assert.equal((await scene.stored()).lead, null)
      }),

      contractCase('a claim that is granted names no lead and leaves it', async (scene) => {
        await scene.add({ id: 'a', delayMs: 9_000 })
        await waitsOf(scene, 'w1')
        await scene.add('b')

        assert.deepEqual((await scene.claim({ limit: 1, worker: 'w2' })).waits, [])
        assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
      }),

      contractCase('a claim with a limit of 0 that leaves a job names no lead and leaves it', async (scene) => {
        await scene.add({ id: 'a', delayMs: 9_000 })
        await waitsOf(scene, 'w1')
        await scene.add('b')

        assert.deepEqual(await waitsOf(scene, 'w2', { limit: 0 }), [])
        assert.deepEqual((await scene.stored()).lead, { worker: 'w1', inMs: 9_000 })
      }),

      contractCase(
        'a lead that finds nothing to come leads no more; somebody else who finds it takes nothing from it',
        async (scene) => {
          await scene.add({ id: 'a', delayMs: 9_000 })
          await waitsOf(scene, 'w1')
          await scene.records.delete(scene.queue, 'all')
          assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty' }])
          assert.equal((await scene.stored()).lead?.worker, 'w1')

          assert.deepEqual(await waitsOf(scene, 'w1'), [{ queue: scene.queue, reason: 'empty' }])
          assert.equal((await scene.stored()).lead, null)
        },
        records,
      ),

      contractCase(
        'a lead that is told of a pause leads no more, for it was not told to come back',
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
        records,
      ),

      contractCase(
        'a lead that is granted a job at its time leads no more, and somebody who waits is rung',
        async (scene) => {
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
      ),

      contractCase('a lead for what comes later is not relied on for what is due now', async (scene) => {
        await scene.add({ id: 'late', delayMs: 600_000 })
        await waitsOf(scene, 'w1')
        await scene.add('a')
        await scene.claimOne({ worker: 'w2', leaseMs: 3_000 })
        await scene.advance(3_000)

        assert.deepEqual(await scene.store.wait([scene.queue], 5_000, new AbortController().signal), [scene.queue])
      }),

      contractCase(
        'a worker that is removed, or found dead, leads no more',
        async (scene) => {
          await scene.addSuspects('a')
          await scene.add({ id: 'b', delayMs: 9_000 })
          await waitsOf(scene, 'finder', { limit: 0 })
          await scene.workers.remove('finder')
          assert.deepEqual([(await scene.stored()).lead, (await scene.stored()).suspectLead], [null, null])
          await waitsOf(scene, 'w2', { limit: 0 })
          await scene.workers.gone([], 'w2')

          assert.deepEqual([(await scene.stored()).lead, (await scene.stored()).suspectLead], [null, null])
        },
        workers,
      ),

      contractCase('every queue has a lead of its own', async (scene) => {
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
      }),

      contractCase('suspects left behind are told of, and whoever is told first leads', async (scene) => {
        await scene.add('a')
        await scene.claimOne({ worker: 'w1', leaseMs: 1_000 })
        await scene.advance(1_000)

        assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'empty' }, suspect(scene, true)])
        assert.deepEqual(await waitsOf(scene, 'w3'), [{ queue: scene.queue, reason: 'empty' }, suspect(scene)])
        assert.deepEqual((await scene.stored()).suspectLead, { worker: 'w2', inMs: 5_000 })
      }),

      contractCase('the lead of the suspects may ask again and leads on; it lapses like any other', async (scene) => {
        await scene.addSuspects('a')
        await scene.advance(3_000)
        assert.deepEqual((await scene.claim({ worker: 'finder', limit: 0 })).waits[1], suspect(scene, true))
        await scene.advance(6_000)
        assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene))
        await scene.advance(1)

        assert.equal((await scene.stored()).suspectLead, null)
        assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene, true))
      }),

      contractCase(
        'a lead of the suspects that goes on claiming in company is not told again, and lapses',
        async (scene) => {
          await scene.addSuspects('a')
          await scene.advance(3_000)
          assert.deepEqual((await waitsOf(scene, 'finder'))[1], suspect(scene))
          assert.deepEqual((await scene.stored()).suspectLead, { worker: 'finder', inMs: 2_000 })
          await scene.advance(3_001)
          assert.deepEqual((await waitsOf(scene, 'w2'))[1], suspect(scene, true))
        },
      ),

      contractCase('suspects are told of also where the queue granted', async (scene) => {
        await scene.addSuspects('a')
        await scene.add('b')

        const { claims, waits } = await scene.claim({ limit: 1, worker: 'w2' })

        assert.deepEqual([claims.map(({ id }) => id), waits], [['b'], [suspect(scene)]])
      }),

      contractCase(
        'a claim alone that leaves suspects is told of them, one that takes the last is not',
        async (scene) => {
          await scene.addSuspects('a', 'b')

          assert.deepEqual((await scene.claim({ worker: 'finder', alone: true })).waits, [suspect(scene, true)])
          assert.deepEqual((await scene.claim({ worker: 'w2', alone: true })).waits, [])
        },
      ),

      contractCase('to a claim alone a queue with suspects is not empty', async (scene) => {
        await scene.addSuspects('a')

        assert.deepEqual(await waitsOf(scene, 'w2', { alone: true, limit: 0 }), [suspect(scene)])
        assert.deepEqual(await waitsOf(scene, 'w2', { limit: 0 }), [
          { queue: scene.queue, reason: 'empty' },
          suspect(scene),
        ])
      }),

      contractCase('where no suspect is left nobody leads them', async (scene) => {
        await scene.addSuspects('a')
        assert.equal((await scene.stored()).suspectLead?.worker, 'finder')
        await scene.claimOne({ worker: 'w2', alone: true })

        assert.equal((await scene.stored()).suspectLead, null)
      }),

      contractCase(
        'the lead of suspects that are gone is found out by any claim',
        async (scene) => {
          await scene.addSuspects('a')
          await scene.records.delete(scene.queue, 'all')
          await waitsOf(scene, 'w2')

          assert.equal((await scene.stored()).suspectLead, null)
        },
        records,
      ),

      contractCase(
        'a paused queue tells of no suspects, and their lead stays',
        async (scene) => {
          await scene.addSuspects('a')
          await scene.records.pause(scene.queue)

          assert.deepEqual(await waitsOf(scene, 'w2'), [{ queue: scene.queue, reason: 'paused' }])
          assert.deepEqual(await waitsOf(scene, 'w2', { alone: true }), [{ queue: scene.queue, reason: 'paused' }])
          assert.deepEqual((await scene.stored()).suspectLead, { worker: 'finder', inMs: 5_000 })
        },
        records,
      ),

      contractCase('the lead of what falls due and the lead of the suspects may be two', async (scene) => {
        await scene.addSuspects('a')
        await scene.add({ id: 'b', delayMs: 9_000 })

        assert.deepEqual(await waitsOf(scene, 'w2'), [scheduled(scene, 9_000, true), suspect(scene)])
        assert.deepEqual(await waitsOf(scene, 'finder', { limit: 0 }), [scheduled(scene, 9_000), suspect(scene, true)])
      }),
    ],
  ),
}

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
