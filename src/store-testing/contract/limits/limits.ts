/** Contract cases: `maxRunning`, counted from claims that are not settled. */

import assert from 'node:assert/strict'
import type { Claim } from '../../../stores/contract/claim.js'
import { shardOf } from '../../../stores/rules/payloads.js'
import type { Settlement } from '../../sequences/command.js'
import { firstUse, limited, orderedCase, plainCase, plainConcern, records, workers } from '../scenes/contract-case.js'
import { denied, idsOf, jobs, longLeaseMs, suspectsTold, taken } from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'

const ends: readonly Settlement[] = [
  { kind: 'complete' },
  { kind: 'complete', result: { payload: '1' } },
  { kind: 'retry', delayMs: 60_000 },
  { kind: 'retry', delayMs: 0, last: true },
  { kind: 'release', delayMs: 60_000 },
  { kind: 'bury' },
  { kind: 'cancel' },
]

export const limits = plainConcern('bounds on what runs', [limited], {
  async 'at most `maxRunning` jobs run at once, over all claims'(scene) {
    await scene.openQueue({ maxRunning: 3 })
    await scene.add(...jobs(9))
    assert.equal(await taken(scene, { limit: 2, worker: 'w1' }), 2)
    assert.equal(await taken(scene, { worker: 'w2' }), 1)

    await denied(scene, { worker: 'w1' })
    await denied(scene, { worker: 'w3', alone: true })
  },

  async 'a denied claimer learns when the next lease ends, and the first of them leads'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a', 'b')
    const full = { queue: scene.queue, reason: 'full', forMs: 30_000 }

    const { claims, waits, more } = await scene.claim({ worker: 'w1' })
    assert.deepEqual([claims.length, waits, more], [1, [{ ...full, lead: true }], false])
    assert.deepEqual(await denied(scene, { worker: 'w2' }), [full])
  },

  async 'a full queue without jobs adds no wait to a grant'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a')
    assert.deepEqual((await scene.claim()).waits, [])
  },

  async 'every end of a claim makes room for another'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add(...jobs(20))
    let [claim] = (await scene.claim()).claims
    for (const end of ends) {
      await denied(scene)
      await scene.end(claim!, end)
      claim = await scene.claimOne({ limit: 10 })
    }
    await scene.end(claim!, { kind: 'release', delayMs: 0 })
    assert.equal((await scene.claimOne()).id, claim!.id)
  },

  'a lease that ends makes room, and so does a failure reported by an operator': plainCase(
    [limited, records],
    async (scene) => {
      await scene.openQueue({ maxRunning: 1 })
      await scene.add('a', 'b', 'c')
      await scene.claimOne({ leaseMs: 5_000 })
      await scene.advance(5_000)
      assert.equal((await scene.claimOne()).id, 'b')
      await denied(scene)

      await scene.records.fail(scene.queue, 'b', { delayMs: 60_000, reason: 'stuck' })
      assert.equal((await scene.claimOne()).id, 'c')
    },
  ),

  'a gone worker makes room': plainCase([limited, workers], async (scene) => {
    await scene.openQueue({ maxRunning: 2 })
    await scene.add('a', 'b', 'c')
    const { claims } = await scene.claim({ worker: 'w1' })
    const rest = await Rest.begin(scene)
    await scene.workers.gone(claims, 'w1')

    await rest.wakes(scene.queue)
    assert.deepEqual(await scene.claimIds(), ['c'])
  }),

  'a claim with a requested cancellation counts until it ends': plainCase([limited, records], async (scene) => {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a', 'b')
    const claim = await scene.claimOne()
    await scene.records.cancel(scene.queue, { ids: ['a'] })
    await denied(scene)
    await scene.end(claim, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await scene.claimIds(), ['b'])
  }),

  async 'an end that makes room rings if there are jobs'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a', 'b')
    const claim = await scene.claimOne({ worker: 'w1' })
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })

    await rest.wakes(scene.queue)
  },

  async 'an end of a claim that was made before the bound was set rings too'(scene) {
    await scene.openQueue()
    await scene.add('a', 'b')
    const claim = await scene.claimOne({ worker: 'w1' })
    await scene.openQueue({ maxRunning: 1 })
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })

    await rest.wakes(scene.queue)
  },

  async 'an end that makes no room for a job rings nobody'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a')
    const claim = await scene.claimOne()
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })

    await rest.isUndisturbed()
  },

  async 'an end that makes room for a suspect rings, because a claim alone would get it'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.addSuspects('a')
    await scene.add('b')
    const claim = await scene.claimOne()
    assert.equal(claim.id, 'b')
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })

    await rest.wakes(scene.queue)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'a claim that fills the queue shows a suspect, which the next claim alone gets before the backlog'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.addSuspects('a')
    await scene.advance(10_000)
    await scene.add('b', 'c')
    const claimed = await scene.claim({ worker: 'w1', leaseMs: longLeaseMs })
    assert.deepEqual([idsOf(claimed), suspectsTold(claimed)], [['b'], ['leads']])
    await scene.advance(5_000)
    assert.deepEqual(suspectsTold(await scene.claim({ worker: 'w2', limit: 0 })), [])
    assert.deepEqual(suspectsTold(await scene.claim({ worker: 'w1', limit: 0 })), ['leads'])
    await scene.end(claimed.claims[0]!, { kind: 'complete' })

    assert.deepEqual(await scene.claimIds({ worker: 'w1', alone: true }), ['a'])
  },

  'a job that an operator fails makes room for a suspect, and rings': plainCase([limited, records], async (scene) => {
    await scene.openQueue({ maxRunning: 1 })
    await scene.addSuspects('a')
    await scene.add('b')
    const claim = await scene.claimOne()
    assert.equal(claim.id, 'b')
    const rest = await Rest.begin(scene)
    await scene.records.fail(scene.queue, 'b', { delayMs: 0, last: true, reason: 'stopped' })

    await rest.wakes(scene.queue)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  }),

  async 'an enqueue into a full queue rings nobody, and does not end a wait'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.add('a', 'b')
    await scene.claimOne({ worker: 'w1' })
    const rest = await Rest.begin(scene)
    await scene.add('c')

    await rest.isUndisturbed()
  },

  'the limit may be changed, and counts jobs that run already': plainCase([limited, records], async (scene) => {
    assert.deepEqual((await scene.openQueue({ maxRunning: 2 })).maxRunning, 2)
    await scene.add(...jobs(9))
    const first: readonly Claim[] = (await scene.claim()).claims
    await scene.openQueue({ maxRunning: 3 })
    assert.equal(await taken(scene), 1)

    await scene.openQueue({ maxRunning: 1 })
    for (const claim of first) await scene.end(claim, { kind: 'complete' })
    await denied(scene)
    assert.equal((await scene.openQueue({ maxRunning: 'none' })).maxRunning, undefined)
    assert.equal(await taken(scene), 6)
  }),

  async 'two queues do not share a limit'(scene) {
    await scene.openQueue({ maxRunning: 1 })
    await scene.openQueue({ name: 'sms', maxRunning: 1 })
    await scene.add('a', 'b')
    await scene.enqueue(['a', 'b'], { queue: 'sms' })

    assert.equal(await taken(scene), 1)
    assert.equal(await taken(scene, { queue: 'sms' }), 1)
  },

  'the shards of an ordered queue share its limit': orderedCase([limited], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3, maxRunning: 2 })
    await scene.enqueue(jobs(30), { queue: 'many' })
    const one = (shard: number) => ({ from: [{ queue: 'many', shard, limit: 1 }] })
    const { claims } = await scene.claim(one(2))
    assert.equal(claims.length, 1)
    assert.equal(await taken(scene, { queue: 'many' }), 1)
    assert.equal((await denied(scene, one(1)))[0]?.reason, 'full')

    await scene.end(claims[0]!, { kind: 'complete' })
    assert.equal(await taken(scene, one(1)), 1)
  }),

  'an end in one shard rings for jobs in another': orderedCase([limited], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3, maxRunning: 1 })
    await scene.enqueue(jobs(1), { queue: 'many' })
    const claim = await scene.claimOne({ queue: 'many' })
    const elsewhere = jobs(30).filter((id) => shardOf(id, 3) !== shardOf(claim.id, 3))
    await scene.enqueue(elsewhere, { queue: 'many' })
    const rest = await Rest.begin(scene, ['many'])
    await scene.end(claim, { kind: 'complete' })

    await rest.wakes('many')
    assert.equal((await scene.claim({ queue: 'many' })).claims.length, 1)
  }),

  'a lease that ends in one shard makes room in the others': orderedCase([limited], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3, maxRunning: 1 })
    await scene.enqueue(jobs(30), { queue: 'many' })
    const one = (shard: number, limit: number) => ({ from: [{ queue: 'many', shard, limit }] })
    await scene.claimOne({ ...one(0, 1), leaseMs: 5_000 })
    assert.equal((await denied(scene, one(1, 1)))[0]?.reason, 'full')
    await scene.advance(5_000)
    assert.equal((await scene.claim(one(0, 0))).crashed.length, 1)

    assert.equal(await taken(scene, one(1, 5)), 1)
  }),

  'a limit of 1 makes an ordered queue run one job at a time, in order': orderedCase(
    [limited, firstUse],
    async (scene) => {
      await scene.openQueue({ maxRunning: 1 })
      for (const id of ['b', 'a', 'c']) await scene.push(id, '1')
      const seen: string[] = []
      for (let i = 0; i < 3; i++) {
        const claimed = await scene.claim()
        seen.push(...idsOf(claimed))
        await scene.end(claimed.claims[0]!, { kind: 'complete' })
      }
      assert.deepEqual(seen, ['b', 'a', 'c'])
    },
  ),
})
