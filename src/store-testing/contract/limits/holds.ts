/** Contract cases: holds, by which a released job keeps its queue or its group from starting jobs for a while. */

import assert from 'node:assert/strict'
import type { Hold } from '../../../stores/contract/settle.js'
import { groups, limited, orderedCase, plainCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import {
  byGroup,
  denied,
  grouped,
  longLeaseMs,
  rule,
  suspectsTold,
  taken,
  throttle,
  throttledFor,
} from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'

const release = (of: Hold['of'], forMs: number) => ({ kind: 'release', delayMs: 0, hold: { of, forMs } }) as const

export const holds = plainConcern('holds', [limited], {
  async 'a held queue is granted nothing until the hold ends'(scene) {
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), release('queue', 5_000))

    assert.deepEqual(await denied(scene, { worker: 'w1' }), [throttledFor(5_000, 'leads')])
    await scene.advance(4_999)
    assert.deepEqual(await denied(scene, { worker: 'w2' }), [throttledFor(1)])
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds(), ['a', 'b'])
  },

  async 'a hold counts no attempt, and the job keeps its place'(scene) {
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne(), release('queue', 1_000))
    await scene.advance(1_000)

    const claim = await scene.claimOne()
    assert.deepEqual([claim.id, claim.attempt], ['a', 1])
  },

  async 'the longer of two holds stays, whichever came first'(scene) {
    await scene.add('a', 'b', 'c')
    const { claims } = await scene.claim()
    for (const [i, forMs] of [3_000, 9_000, 5_000].entries()) await scene.end(claims[i]!, release('queue', forMs))

    assert.equal((await denied(scene))[0]?.forMs, 9_000)
  },

  async 'a lost claim holds nothing'(scene) {
    await scene.add('a', 'b')
    const claim = await scene.claimOne()
    await scene.end(claim, { kind: 'release', delayMs: 0 })
    assert.equal(await scene.settle(claim, release('queue', 5_000)), 'lost')

    assert.equal(await taken(scene), 2)
  },

  async 'a hold also keeps suspects from claims alone'(scene) {
    await scene.addSuspects('a')
    await scene.add('b')
    await scene.end(await scene.claimOne(), release('queue', 5_000))

    assert.equal((await denied(scene, { alone: true }))[0]?.forMs, 5_000)
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'jobs arrive in a held queue as usual, and ring nobody if it is led'(scene) {
    await scene.add('a')
    await scene.end(await scene.claimOne(), release('queue', 5_000))
    await denied(scene, { worker: 'lead' })
    const rest = await Rest.begin(scene)
    await scene.add('b')

    await rest.isUndisturbed()
    assert.equal((await scene.depth()).ready, 2)
  },

  async 'a job that holds a queue without a lead rings, because somebody must come back'(scene) {
    await scene.add('a')
    const claim = await scene.claimOne()
    const rest = await Rest.begin(scene)
    await scene.end(claim, release('queue', 5_000))

    await rest.wakes(scene.queue)
  },

  async 'a hold of a queue affects no other queue'(scene) {
    await scene.openQueue({ name: 'sms' })
    await scene.enqueue(['text'], { queue: 'sms' })
    await scene.add('a')
    await scene.end(await scene.claimOne(), release('queue', 5_000))

    assert.deepEqual(await scene.claimIds({ queue: 'sms' }), ['text'])
  },

  'a hold goes on while the queue is paused, and ends with its time': plainCase([limited, records], async (scene) => {
    await scene.add('a')
    await scene.end(await scene.claimOne(), release('queue', 5_000))
    await scene.records.pause(scene.queue)
    await scene.advance(3_000)
    await scene.records.resume(scene.queue)

    assert.equal((await denied(scene))[0]?.forMs, 2_000)
  }),

  'a held group is granted nothing; other groups go on': plainCase([groups, limited], async (scene) => {
    await scene.add(...grouped('x1', 'x2', 'y1', 'y2'), 'a')
    await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), release('group', 5_000))

    assert.deepEqual((await scene.claimIds({ leaseMs: longLeaseMs })).sort(), ['a', 'y1', 'y2'])
    assert.deepEqual(await denied(scene), [throttledFor(5_000, 'leads')])
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds(), ['x1', 'x2'])
  }),

  'a group stays held while it has no job, and the longer hold stays': plainCase([groups, limited], async (scene) => {
    await scene.add(...grouped('x1', 'x2'))
    const { claims } = await scene.claim({ leaseMs: longLeaseMs })
    await scene.end(claims[0]!, { kind: 'release', delayMs: 60_000, hold: { of: 'group', forMs: 9_000 } })
    await scene.end(claims[1]!, { kind: 'release', delayMs: 60_000, hold: { of: 'group', forMs: 2_000 } })
    await scene.add(...grouped('x3', 'y1'))

    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['y1'])
    assert.equal((await denied(scene))[0]?.forMs, 9_000)
    await scene.advance(9_000)
    assert.deepEqual(await scene.claimIds(), ['x3'])
  }),

  'a group whose last waiting job is deleted stays held': plainCase([groups, limited, records], async (scene) => {
    await scene.add(...grouped('x1', 'x2'))
    await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), {
      kind: 'complete',
      hold: { of: 'group', forMs: 5_000 },
    })
    await scene.records.delete(scene.queue, { ids: ['x2'] })
    await scene.add(...grouped('x3'))

    assert.equal((await denied(scene))[0]?.forMs, 5_000)
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds(), ['x3'])
  }),

  'a group that is throttled for longer than its hold is not asked before the throttle opens': plainCase(
    [groups, limited, throttled],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 60_000)) })
      await scene.add(...grouped('x1', 'x2'))
      await scene.end(await scene.claimOne({ limit: 2, leaseMs: longLeaseMs }), release('group', 3_000))

      assert.equal((await denied(scene))[0]?.forMs, 60_001)
    },
  ),

  'the state of a throttle shows how long its queue or a group is held': plainCase(
    [groups, limited, throttled],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(10, 60_000)) })
      await scene.openQueue({ name: 'whole', throttle: { ...throttle(rule(10, 60_000)), scope: 'whole' } })
      await scene.add(...grouped('x1'))
      await scene.end(await scene.claimOne(), release('group', 5_000))
      await scene.enqueue(['text'], { queue: 'whole' })
      await scene.end(await scene.claimOne({ queue: 'whole' }), release('queue', 7_000))

      const forMs = async (...subject: [queue: string, group?: string]) =>
        (await scene.throttles.state(...subject))?.forMs
      const told = () => Promise.all([forMs(scene.queue, 'x'), forMs(scene.queue, 'y'), forMs('whole')])
      assert.deepEqual(await told(), [5_000, 0, 7_000])
      assert.equal(await forMs(scene.queue), 0)
      await scene.advance(4_999)
      assert.deepEqual(await told(), [1, 0, 2_001])
      await scene.advance(1)
      assert.deepEqual(await told(), [0, 0, 2_000])
    },
  ),

  'a job without a group that holds its group holds the queue': plainCase([groups, limited], async (scene) => {
    await scene.add('a', 'b')
    await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), release('group', 5_000))
    await scene.add(...grouped('x1'))
    assert.equal((await denied(scene))[0]?.forMs, 5_000)
    assert.equal((await scene.stored()).heldInMs, 5_000)

    await scene.advance(5_000)
    assert.deepEqual((await scene.claimIds()).sort(), ['a', 'b', 'x1'])
  }),

  'new rules of a throttle end no hold, of a queue or of a group': plainCase(
    [groups, limited, throttled],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(5, 10_000)) })
      await scene.add(...grouped('x1', 'y1'))
      const { claims } = await scene.claim({ leaseMs: longLeaseMs })
      await scene.end(claims[0]!, release('group', 5_000))
      await denied(scene)
      await scene.throttles.set(scene.queue, [rule(6, 10_000)])
      assert.equal((await denied(scene))[0]?.forMs, 5_000)

      await scene.end(claims[1]!, release('queue', 9_000))
      await scene.throttles.set(scene.queue, [rule(7, 10_000)])
      assert.equal((await denied(scene))[0]?.forMs, 9_000)
    },
  ),

  'a suspect of a held group waits, and a claim alone gets another job': plainCase([groups, limited], async (scene) => {
    await scene.addSuspects(...grouped('x1'))
    await scene.add(...grouped('x2', 'y1'))
    await scene.end(await scene.claimOne(), release('group', 5_000))

    assert.deepEqual(await scene.claimIds({ alone: true }), ['y1'])
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['x1'])
  }),

  'a claim alone passes over a suspect of a held group': plainCase([groups, limited], async (scene) => {
    await scene.addSuspects(...grouped('x1', 'y1'))
    await scene.add(...grouped('x2'))
    await scene.end(await scene.claimOne(), release('group', 5_000))

    assert.deepEqual(await scene.claimIds({ alone: true, leaseMs: longLeaseMs }), ['y1'])
    await scene.advance(5_000)
    assert.deepEqual(await scene.claimIds({ alone: true }), ['x1'])
  }),

  'suspects of a held group are reported when the hold ends, and a lead asks then': plainCase(
    [groups, limited],
    async (scene) => {
      await scene.add(...grouped('x1', 'x2'))
      await scene.claim({ worker: 'victim', leaseMs: 1_000, limit: 1 })
      await scene.advance(1_000)
      await scene.end(await scene.claimOne(), { kind: 'complete', hold: { of: 'group', forMs: 8_000 } })
      await scene.advance(7_000)
      for (const alone of [false, true])
        assert.deepEqual(await denied(scene, { worker: 'w1', alone }), [
          { queue: scene.queue, reason: 'empty', forMs: 1_000, lead: true },
        ])
      await scene.advance(1_000)

      assert.deepEqual(suspectsTold(await scene.claim({ worker: 'w1' })), ['leads'])
    },
  ),

  'a hold of a group in a queue of several shards affects no other group in any shard': plainCase(
    [groups, limited],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 4 })
      const held = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, group: 'x' }))
      const others = ['g', 'h', 'i', 'j', 'k', 'l'].map((id) => ({ id, group: 'y' }))
      await scene.enqueue(held, { queue: 'many' })
      await scene.end(await scene.claimOne({ queue: 'many' }), release('group', 5_000))
      await scene.enqueue(others, { queue: 'many' })

      const ids = async () => {
        const found: string[] = []
        for (let i = 0; i < 4; i += 1)
          found.push(...(await scene.claimIds({ queue: 'many', limit: 40, leaseMs: longLeaseMs })))
        return found.sort()
      }
      assert.deepEqual(
        await ids(),
        others.map(({ id }) => id),
      )
      await scene.advance(5_000)
      assert.deepEqual(
        await ids(),
        held.map(({ id }) => id),
      )
    },
  ),

  'a hold of an ordered queue applies in all its shards': orderedCase([limited], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3 })
    await scene.enqueue(
      ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id })),
      { queue: 'many' },
    )
    await scene.end(await scene.claimOne({ queue: 'many' }), release('queue', 5_000))
    await denied(scene, { queue: 'many' })
    await scene.advance(5_000)

    assert.equal(await taken(scene, { queue: 'many' }), 6)
  }),

  'if one call ends a claim twice, only the first end counts, and the second holds nothing': orderedCase(
    [limited],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3 })
      await scene.enqueue(
        ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id })),
        { queue: 'many' },
      )
      const claim = await scene.claimOne({ queue: 'many' })
      const [{ queue, id, fence }, held] = [claim, release('queue', 5_000)]
      const ends = [
        { queue, id, fence, kind: 'complete' },
        { queue, id, fence, ...held },
      ] as const
      assert.deepEqual(await scene.store.settle(ends), ['ok', 'gone'])

      assert.equal(await taken(scene, { queue: 'many' }), 5)
    },
  ),

  'a hold of a group in an ordered queue applies in all its shards, and outlasts a reshard': orderedCase(
    [groups, limited, records],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3 })
      await scene.enqueue(
        ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, group: 'x' })),
        { queue: 'many' },
      )
      await scene.enqueue([{ id: 'other', group: 'y' }], { queue: 'many' })
      const { claims } = await scene.claim({ queue: 'many', leaseMs: longLeaseMs })
      const [first, ...others] = claims.filter(({ group }) => group === 'x')
      for (const claim of others) await scene.end(claim, { kind: 'release', delayMs: 0 })
      await scene.end(claims.find(({ id }) => id === 'other')!, { kind: 'release', delayMs: 0 })
      await scene.end(first!, release('group', 5_000))
      await scene.records.reshard('many', 2)

      assert.deepEqual(await scene.claimIds({ queue: 'many', leaseMs: longLeaseMs }), ['other'])
      await scene.advance(5_000)
      assert.equal(await taken(scene, { queue: 'many' }), 6)
    },
  ),
})
