/** Contract cases: groups that are paused, until somebody resumes them. */

import assert from 'node:assert/strict'
import {
  groups,
  limited,
  ordered,
  orderedCase,
  plainCase,
  plainConcern,
  records,
  throttled,
} from '../scenes/contract-case.js'
import { byGroup, denied, grouped, idsOf, longLeaseMs, rule, suspectsTold, taken } from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'

export const pausedGroups = plainConcern('pauses of groups', [groups, limited, throttled], {
  async 'a paused group is granted nothing and keeps its jobs; other groups go on'(scene) {
    await scene.add(...grouped('x1', 'x2', 'y1'), 'a')
    await scene.throttles.pause(scene.queue, 'x')

    assert.deepEqual((await scene.claimIds({ leaseMs: longLeaseMs })).sort(), ['a', 'y1'])
    await scene.advance(86_400_000 - 1)
    assert.equal(await taken(scene), 0)
    await scene.throttles.resume(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds(), ['x1', 'x2'])
  },

  async 'a paused group costs nothing: a claim gets no time to ask again, and new jobs of the group ring nobody'(
    scene,
  ) {
    await scene.throttles.pause(scene.queue, 'x')
    await scene.add(...grouped('x1'))
    assert.deepEqual(await denied(scene), [{ queue: 'mail', reason: 'full' }])
    const rest = await Rest.begin(scene)
    await scene.add(...grouped('x2', 'x3'))

    await rest.isUndisturbed()
  },

  async 'a claim of one job passes over paused groups, however many there are'(scene) {
    const groups = Array.from({ length: 300 }, (_, i) => `x${i}`)
    for (const group of groups) await scene.throttles.pause(scene.queue, group)
    await scene.enqueue(groups.map((group) => ({ id: `${group}-1`, group })))
    await scene.add(...grouped('y1'))

    assert.deepEqual(await scene.claimIds({ limit: 1 }), ['y1'])
  },

  async 'a resumed group rings a waiter'(scene) {
    await scene.throttles.pause(scene.queue, 'x')
    await scene.add(...grouped('x1'))
    await denied(scene)
    const rest = await Rest.begin(scene)
    await scene.throttles.resume(scene.queue, 'x')

    await rest.wakes(scene.queue)
    assert.deepEqual(await scene.claimIds(), ['x1'])
  },

  async 'a running job of a paused group goes on, and one that comes back waits'(scene) {
    await scene.add(...grouped('x1', 'x2', 'x3'))
    const { claims } = await scene.claim({ leaseMs: longLeaseMs, limit: 3 })
    await scene.throttles.pause(scene.queue, 'x')
    await scene.end(claims[0]!, { kind: 'complete' })
    await scene.end(claims[1]!, { kind: 'release', delayMs: 0 })
    await scene.end(claims[2]!, { kind: 'retry', delayMs: 1_000 })
    await scene.advance(1_000)

    await denied(scene)
    assert.equal((await scene.depth()).ready, 2)
  },

  async 'a suspect of a paused group waits, and a claim alone gets another job'(scene) {
    await scene.addSuspects(...grouped('x1'))
    await scene.add(...grouped('y1'))
    await scene.throttles.pause(scene.queue, 'x')

    assert.deepEqual(await scene.claimIds({ alone: true }), ['y1'])
    await scene.throttles.resume(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds({ alone: true }), ['x1'])
  },

  async 'a claim alone passes over suspects of paused groups, and gets the first of another'(scene) {
    const inX = Array.from({ length: 98 }, (_, i) => `x${String(i).padStart(2, '0')}`)
    await scene.addSuspects(...inX.map((id) => ({ id, group: 'x' })), ...grouped('y1'), 'a')
    await scene.throttles.pause(scene.queue, 'x')
    const alone = { alone: true, leaseMs: longLeaseMs }
    assert.deepEqual([await scene.claimIds(alone), await scene.claimIds(alone)], [['y1'], ['a']])

    await scene.throttles.resume(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds(alone), ['x00'])
  },

  async 'no claim reports suspects of a paused group while no other suspect waits'(scene) {
    await scene.addSuspects(...grouped('x1', 'y1'))
    await scene.throttles.pause(scene.queue, 'x')
    await scene.advance(10_000)
    assert.deepEqual(suspectsTold(await scene.claim()), ['leads'])
    const only = await scene.claim({ alone: true, leaseMs: longLeaseMs })
    assert.deepEqual([idsOf(only), suspectsTold(only)], [['y1'], []])
    await scene.add(...grouped('y2', 'y3'))
    assert.deepEqual(suspectsTold(await scene.claim({ limit: 1, leaseMs: longLeaseMs })), [])
    assert.deepEqual(suspectsTold(await scene.claim({ alone: true, leaseMs: longLeaseMs })), [])
    assert.deepEqual(suspectsTold(await scene.claim({ alone: true })), [])
    assert.deepEqual(suspectsTold(await scene.claim({ limit: 0 })), [])
  },

  async 'a resumed group of which only a suspect waits rings a waiter, whose claim reports it'(scene) {
    await scene.addSuspects(...grouped('x1'))
    await scene.throttles.pause(scene.queue, 'x')
    await scene.advance(10_000)
    await denied(scene)
    const rest = await Rest.begin(scene)
    await scene.throttles.resume(scene.queue, 'x')

    await rest.wakes(scene.queue)
    assert.deepEqual(suspectsTold(await scene.claim()), ['leads'])
  },

  async 'pauses are listed before holds, by name; a group with both is listed twice'(scene) {
    await scene.add(...grouped('x1', 'y1'))
    const { claims } = await scene.claim({ leaseMs: longLeaseMs })
    for (const claim of claims)
      await scene.end(claim, {
        kind: 'complete',
        hold: { of: 'group', forMs: claim.group === 'x' ? 2_000 : 5_000 },
      })
    for (const group of ['É', 'x', 'b']) await scene.throttles.pause(scene.queue, group)

    const all = [
      ...[{ group: 'b' }, { group: 'x' }, { group: 'É' }],
      ...[
        { group: 'x', forMs: 2_000 },
        { group: 'y', forMs: 5_000 },
      ],
    ]
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 9 }), { holds: all, total: 5 })
    assert.deepEqual(await scene.throttles.holds(scene.queue, { groups: ['x'], limit: 9 }), {
      holds: [all[1], all[3]],
      total: 2,
    })
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 2 }), { holds: all.slice(0, 2), total: 5 })
  },

  async 'a release leaves a pause, and a resume leaves a hold'(scene) {
    await scene.add(...grouped('x1', 'x2'))
    await scene.end(await scene.claimOne({ leaseMs: longLeaseMs }), {
      kind: 'complete',
      hold: { of: 'group', forMs: 5_000 },
    })
    await scene.throttles.pause(scene.queue, 'x')
    assert.equal(await scene.throttles.release(scene.queue, 'y'), 0)
    await scene.throttles.resume(scene.queue, 'x')
    assert.equal((await denied(scene))[0]?.forMs, 5_000)

    await scene.throttles.pause(scene.queue, 'x')
    assert.equal(await scene.throttles.release(scene.queue), 1)
    await denied(scene)
    await scene.throttles.resume(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  async 'a second pause changes nothing, and neither does a resume without a pause'(scene) {
    await scene.add(...grouped('x1', 'y1'))
    await scene.throttles.resume(scene.queue, 'x')
    for (let i = 0; i < 2; i += 1) await scene.throttles.pause(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['y1'])
    for (let i = 0; i < 2; i += 1) await scene.throttles.resume(scene.queue, 'x')

    assert.deepEqual(await scene.claimIds(), ['x1'])
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 9 }), { holds: [], total: 0 })
  },

  async 'new rules of the throttle open no paused group'(scene) {
    await scene.openQueue({ throttle: byGroup(rule(1, 60_000)) })
    await scene.add(...grouped('x1', 'x2', 'y1'))
    assert.equal(await taken(scene), 2)
    await scene.throttles.pause(scene.queue, 'x')
    await scene.throttles.set(scene.queue, [rule(5, 60_000)])

    await denied(scene)
    await scene.throttles.resume(scene.queue, 'x')
    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  'a pause and a resume of the queue leave a group paused': plainCase(
    [groups, limited, throttled, records],
    async (scene) => {
      await scene.add(...grouped('x1', 'y1'))
      await scene.throttles.pause(scene.queue, 'x')
      await scene.records.pause(scene.queue)
      await scene.records.resume(scene.queue)

      assert.deepEqual(await scene.claimIds(), ['y1'])
    },
  ),

  async 'a restarted store keeps its groups paused'(scene) {
    await scene.add(...grouped('x1'))
    await scene.throttles.pause(scene.queue, 'x')
    await scene.harness.restart()

    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 9 }), { holds: [{ group: 'x' }], total: 1 })
    assert.equal(await taken(scene), 0)
  },

  'a group of an ordered queue is paused in all its shards, even over a reshard': orderedCase(
    [groups, limited, throttled, ordered, records],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3 })
      const jobs = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, group: 'x' }))
      await scene.enqueue([...jobs, { id: 'other', group: 'y' }], { queue: 'many' })
      await scene.throttles.pause('many', 'x')
      const ids = async () => {
        const found: string[] = []
        for (let i = 0; i < 3; i += 1) found.push(...(await scene.claimIds({ queue: 'many', limit: 40 })))
        return found.sort()
      }
      assert.deepEqual(await ids(), ['other'])
      const claim = (await scene.store.workers!.held('worker-1'))[0]!
      await scene.end(claim, { kind: 'complete' })
      await scene.records.reshard('many', 2)

      assert.deepEqual(await ids(), [])
      assert.deepEqual(await scene.throttles.holds('many', { limit: 9 }), { holds: [{ group: 'x' }], total: 1 })
      await scene.throttles.resume('many', 'x')
      assert.deepEqual(
        await ids(),
        jobs.map(({ id }) => id),
      )
    },
  ),
})
