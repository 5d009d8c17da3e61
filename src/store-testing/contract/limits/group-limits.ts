/** Contract cases: limits that count by group: a throttle, and `maxRunning`. */

import assert from 'node:assert/strict'
import { groups, limited, orderedCase, plainCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import {
  byGroup,
  denied,
  elastic,
  grouped,
  longLeaseMs,
  rule,
  suspectsTold,
  taken,
  timeline,
} from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'

const onePerGroup = { maxRunning: { perGroup: 1 } } as const

export const groupLimits = plainConcern('limits by group', [groups, limited], {
  'a throttle by group grants each group its limit: a denied group delays no other': plainCase(
    [groups, throttled],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(2, 10_000)) })
      await scene.add(...grouped('x1', 'x2', 'x3', 'x4', 'y1', 'z1', 'z2', 'z3'))

      assert.deepEqual((await scene.claimIds({ leaseMs: longLeaseMs })).sort(), ['x1', 'x2', 'y1', 'z1', 'z2'])
      const { shut } = (await scene.stored()).lanes
      assert.deepEqual(
        shut.map(({ group, inMs }) => `${group} ${inMs}`),
        ['x 10001', 'z 10001'],
      )
      await scene.advance(10_001)
      assert.deepEqual(await scene.claimIds(), ['x3', 'x4', 'z3'])
    },
  ),

  'groups are served in the order in which they reopened': plainCase(
    [groups, throttled],
    timeline(
      byGroup(rule(1, 10_000)),
      grouped('b1', 'b2'),
      'takes b1, +1_000, adds a2, takes a1, +10_001 takes b1 of 1, takes a1 of 1',
    ),
  ),

  'a throttle by group counts jobs without a group together': plainCase(
    [groups, throttled],
    timeline(byGroup(rule(1, 10_000)), ['a', 'b', ...grouped('x1')], 'takes -1 x1 waits 10_001'),
  ),

  'deleted jobs without a group do not affect when a claimer should ask again': plainCase(
    [groups, throttled, records],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add('a', 'b')
      assert.equal(await taken(scene), 1)
      await scene.advance(1_000)
      await scene.add(...grouped('x1', 'x2'))
      assert.equal(await taken(scene), 1)
      await scene.records.delete(scene.queue, { ids: ['b'] })

      assert.equal((await denied(scene))[0]?.forMs, 10_001)
    },
  ),

  'a throttle by group paces each group separately, and an idle one starts over': plainCase(
    [groups, throttled],
    timeline(
      byGroup(rule(3, 6_000, elastic(0))),
      grouped('x1', 'x2', 'x3', 'y1', 'y2', 'y3', 'y4', 'y5', 'y6'),
      // At last two starts of y are overdue, and none of x, of which no job was left.
      'takes 2, +2_000 takes 2, +2_000 takes 2, +2_000, adds x2, +3_000 takes x1 y2',
    ),
  ),

  'a claim alone takes the permit of its suspect from its group': plainCase([groups, throttled], async (scene) => {
    await scene.addSuspects(...grouped('x1'))
    await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
    assert.deepEqual(await scene.claimIds({ alone: true, leaseMs: longLeaseMs }), ['x1'])
    await scene.add(...grouped('x2', 'y1'))

    assert.deepEqual(await scene.claimIds(), ['y1'])
  }),

  async 'at most `perGroup` jobs of a group run at once'(scene) {
    await scene.openQueue(onePerGroup)
    await scene.add(...grouped('x1', 'x2', 'y1'), 'a', 'b')
    const { claims, waits } = await scene.claim({ worker: 'w1' })
    assert.deepEqual(claims.map(({ id }) => id).sort(), ['a', 'x1', 'y1'])
    assert.deepEqual(waits, [{ queue: scene.queue, reason: 'full', forMs: 30_000, lead: true }])

    await scene.end(claims.find(({ id }) => id === 'x1')!, { kind: 'complete' })
    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  async 'a lease that ends makes room in its group'(scene) {
    await scene.openQueue(onePerGroup)
    await scene.add(...grouped('x1', 'x2'))
    await scene.claimOne({ leaseMs: 5_000 })
    assert.equal((await denied(scene))[0]?.forMs, 5_000)
    await scene.advance(5_000)

    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  async 'a job for a full group rings nobody, and an end that makes room in the group rings for it'(scene) {
    await scene.openQueue(onePerGroup)
    await scene.add(...grouped('x1'))
    const claim = await scene.claimOne()
    const rest = await Rest.begin(scene)
    await scene.add(...grouped('x2'))
    await rest.isUndisturbed()

    const next = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })
    await next.wakes(scene.queue)
    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  'with a higher limit for each group, or none, a full group has its turn at once': plainCase(
    [groups, limited, records],
    async (scene) => {
      await scene.openQueue(onePerGroup)
      await scene.add(...grouped('x1', 'x2', 'x3', 'x4', 'x5'))
      const first = await scene.claimOne()
      assert.deepEqual((await scene.stored()).lanes.turns, [])
      await scene.openQueue({ maxRunning: { perGroup: 2 } })
      assert.deepEqual(await scene.claimIds(), ['x2'])
      await scene.end(first, { kind: 'complete' })
      assert.deepEqual(await scene.claimIds(), ['x3'])

      await scene.openQueue({ maxRunning: 'none' })
      assert.deepEqual(await scene.claimIds(), ['x4', 'x5'])
    },
  ),

  'with a lower limit for each group a group starts nothing until enough of its jobs have ended': plainCase(
    [groups, limited, records],
    async (scene) => {
      await scene.openQueue({ maxRunning: { perGroup: 3 } })
      await scene.add(...grouped('x1', 'x2', 'x3', 'x4'))
      const { claims } = await scene.claim({ limit: 2 })
      await scene.openQueue(onePerGroup)
      assert.equal((await denied(scene))[0]?.reason, 'full')
      await scene.end(claims[0]!, { kind: 'complete' })
      assert.equal((await denied(scene))[0]?.reason, 'full')
      await scene.end(claims[1]!, { kind: 'complete' })

      assert.deepEqual(await scene.claimIds(), ['x3'])
    },
  ),

  async 'a claim alone gets another job if its suspect must wait for its group'(scene) {
    await scene.openQueue(onePerGroup)
    await scene.addSuspects(...grouped('x1'))
    await scene.add(...grouped('x2', 'y1'))
    assert.deepEqual(await scene.claimIds({ limit: 1 }), ['x2'])

    assert.deepEqual(await scene.claimIds({ alone: true }), ['y1'])
    await denied(scene, { alone: true })
  },

  async 'a claim alone passes over a suspect of a full group, which is reported once there is room'(scene) {
    await scene.openQueue(onePerGroup)
    await scene.addSuspects(...grouped('x1', 'y1'))
    await scene.add(...grouped('x2'))
    await scene.advance(10_000)
    const claim = await scene.claimOne({ limit: 1, leaseMs: longLeaseMs })
    assert.deepEqual(await scene.claimIds({ alone: true, leaseMs: longLeaseMs }), ['y1'])
    await scene.advance(10_000)
    assert.deepEqual(suspectsTold(await scene.claim()), [])
    const rest = await Rest.begin(scene)
    await scene.end(claim, { kind: 'complete' })

    await rest.wakes(scene.queue)
    assert.deepEqual(suspectsTold(await scene.claim()), ['leads'])
  },

  'a claim alone passes over a suspect of a throttled group, which is reported when that opens': plainCase(
    [groups, throttled],
    async (scene) => {
      await scene.addSuspects(...grouped('x1', 'y1'))
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add(...grouped('x2'))
      assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['x2'])
      await scene.advance(7_000)
      assert.deepEqual(await scene.claimIds({ alone: true, leaseMs: longLeaseMs }), ['y1'])
      assert.deepEqual(await denied(scene, { worker: 'w1' }), [
        { queue: scene.queue, reason: 'empty', forMs: 3_001, lead: true },
      ])
      await scene.advance(3_001)

      assert.deepEqual(suspectsTold(await scene.claim({ worker: 'w1' })), ['leads'])
      assert.deepEqual(await scene.claimIds({ alone: true }), ['x1'])
    },
  ),

  'if some groups are full and others throttled, the claimer gets a time': plainCase(
    [groups, limited, throttled],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(2, 10_000)), ...onePerGroup })
      await scene.add(...grouped('x1', 'x2', 'x3', 'y1', 'y2'))
      const asking = { leaseMs: longLeaseMs }
      const { claims } = await scene.claim(asking)
      await scene.end(claims.find(({ id }) => id === 'x1')!, { kind: 'complete' })
      const second = await scene.claimOne({ limit: 10, ...asking })
      assert.equal((await denied(scene))[0]?.reason, 'full')
      await scene.end(second, { kind: 'complete' })

      const [wait] = await denied(scene)
      assert.deepEqual([wait?.reason, wait?.forMs], ['throttled', 10_001])
    },
  ),

  'the group of an id is that of its first payload, and its shards share the counts by group': orderedCase(
    [groups, throttled],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3, throttle: byGroup(rule(2, 10_000)) })
      const push = (id: string, group: string) => scene.enqueue([{ id, group }], { queue: 'many' })
      for (const id of ['a', 'b', 'c', 'd', 'e']) await push(id, 'x')
      await push('a', 'y')
      await push('f', 'y')

      const { claims } = await scene.claim({ queue: 'many', leaseMs: longLeaseMs })
      assert.deepEqual(claims.map(({ group }) => group).sort(), ['x', 'x', 'y'])
      assert.equal((await scene.throttles.state('many', 'x'))?.forMs, 10_001)
    },
  ),

  'a claim of an ordered queue goes on in its other shards, whatever its payloads weigh': orderedCase(
    [groups, throttled],
    async (scene) => {
      await scene.openQueue({ name: 'wide', shards: 2, throttle: byGroup(rule(1, 10_000)) })
      const shards = [
        [
          { id: 'd', group: 'x', payload: '"v"' },
          { id: 'e', group: 'x', payload: '"vv"' },
        ],
        [{ id: 'a', group: 'y', payload: '"v"' }],
      ]
      for (const jobs of shards) await scene.enqueue(jobs, { queue: 'wide' })

      assert.deepEqual(await scene.claimIds({ queue: 'wide', limit: 5 }), ['d', 'a'])
    },
  ),

  'a claim of no jobs opens the lanes of every shard whose time has come, and reports no wait': orderedCase(
    [groups, throttled],
    async (scene) => {
      await scene.openQueue({ name: 'wide', shards: 2, throttle: byGroup(rule(1, 10_000)) })
      await scene.enqueue(
        ['d', 'e', 'a', 'b'].map((id) => ({ id, group: 'x' })),
        { queue: 'wide' },
      )
      assert.deepEqual(await scene.claimIds({ queue: 'wide', limit: 5, leaseMs: longLeaseMs }), ['d'])
      await scene.advance(10_001)

      const { waits, more } = await scene.claim({ queue: 'wide', limit: 0 })
      assert.deepEqual([waits, more], [[], true])
    },
  ),
})
