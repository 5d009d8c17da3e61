/** Contract cases: the answers to claims that a throttle denies, and the rings for shut jobs. */

import assert from 'node:assert/strict'
import {
  firstUse,
  groups,
  orderedCase,
  plainCase,
  plainConcern,
  records,
  throttled,
  workers,
} from '../scenes/contract-case.js'
import {
  byGroup,
  denied,
  even,
  grouped,
  idsOf,
  jobs,
  longLeaseMs,
  rule,
  taken,
  throttle,
  throttledFor,
} from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'
import type { Scene } from '../scenes/scene.js'

export const throttleWaits = plainConcern('waiting for throttles', [throttled], {
  async 'a denied claimer learns for how long, and the first of them leads'(scene) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    await scene.add('a', 'b')
    assert.deepEqual((await scene.claim({ limit: 2, leaseMs: longLeaseMs })).waits, [])
    await scene.add('c')

    assert.deepEqual(await denied(scene, { worker: 'w1' }), [throttledFor(10_001, 'leads')])
    await scene.advance(4_000)
    assert.deepEqual(await denied(scene, { worker: 'w2' }), [throttledFor(6_001)])
    assert.deepEqual(await denied(scene, { worker: 'w1' }), [throttledFor(6_001, 'leads')])
  },

  async 'a claim that takes everything the throttle permits and leaves jobs gets the wait with its grant, and leads'(
    scene,
  ) {
    await shut(scene)
    assert.deepEqual((await scene.stored()).lead, { worker: 'lead', inMs: 10_001 })
    assert.equal((await scene.stored()).shutInMs, 10_001)
  },

  async 'a start counts for the window plus the spread of its rule, which lengthens the slots of an even tempo too'(
    scene,
  ) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000, { spreadMs: 250 })) })
    await scene.openQueue({
      name: 'even',
      throttle: { scope: 'even', by: 'queue', rules: [rule(5, 2_000, { ...even, spreadMs: 50 })] },
    })
    await scene.add('a', 'b', 'c')
    await scene.enqueue(['d', 'e'], { queue: 'even' })
    assert.equal(await taken(scene), 2)
    assert.deepEqual(await denied(scene), [throttledFor(10_251, 'leads')])
    assert.equal(await taken(scene, { queue: 'even' }), 1)

    await scene.advance(410)
    assert.equal(await taken(scene, { queue: 'even' }), 1)
    await scene.advance(9_840)
    assert.equal((await denied(scene))[0]?.forMs, 1)
  },

  async 'starts that may be late count for that much longer, and so do later ones; those of other groups do not'(
    scene,
  ) {
    await scene.openQueue({
      throttle: { scope: 'hosts', by: 'group', rules: [rule(2, 10_000, { spreadMs: 250 })] },
    })
    await scene.enqueue(['a', 'b', 'c'].map((id) => ({ id, group: 'x' })))
    await scene.enqueue(['d', 'e', 'f'].map((id) => ({ id, group: 'y' })))
    const from = (limit: number, lateMs?: number) => [{ queue: scene.queue, limit, ...(lateMs && { lateMs }) }]
    assert.deepEqual(await scene.claimIds({ from: from(1, 400), leaseMs: longLeaseMs }), ['a'])
    assert.equal(await taken(scene), 3)
    assert.deepEqual(await denied(scene), [throttledFor(10_251, 'leads')])

    await scene.advance(10_251)
    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['f'])
    await scene.advance(399)
    assert.equal((await denied(scene))[0]?.forMs, 1)
    await scene.advance(1)
    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['c'])
  },

  'if a claim asks an ordered queue twice, the starts of each ask count as long as that ask says': orderedCase(
    [groups, throttled],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 1, throttle: byGroup(rule(1, 10_000)) })
      const xy = ['x', 'y'].map((group) => ({ id: group, group }))
      await scene.enqueue(xy, { queue: 'many' })

      const from = [
        { queue: 'many', limit: 1, lateMs: 400 },
        { queue: 'many', limit: 2 },
      ]
      assert.deepEqual((await scene.claimIds({ from, leaseMs: longLeaseMs })).sort(), ['x', 'y'])

      const waits = await Promise.all(xy.map(({ group }) => scene.throttles.state('many', group)))
      assert.deepEqual(waits.map((state) => state?.forMs).sort(), [10_001, 10_401])
    },
  ),

  async 'a claim that leaves jobs which may start gets no wait, and learns that there are more'(scene) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    await scene.add('a', 'b', 'c')

    const { waits, more } = await scene.claim({ limit: 1 })
    assert.deepEqual({ waits, more }, { waits: [], more: true })
  },

  'a shut queue reports that it is empty, or when its next delayed job is due': plainCase(
    [throttled, records],
    async (scene) => {
      await shut(scene)
      await scene.records.delete(scene.queue, 'all')
      assert.deepEqual(await denied(scene, { worker: 'w2' }), [
        { queue: scene.queue, reason: 'empty', forMs: longLeaseMs },
      ])
      await scene.add({ id: 'later', delayMs: 3_000 })
      assert.deepEqual(await denied(scene, { worker: 'w2' }), [
        { queue: scene.queue, reason: 'scheduled', forMs: 3_000, lead: true },
      ])
    },
  ),

  async 'a shut queue does not end a wait'(scene) {
    await shut(scene)
    await (await Rest.begin(scene)).isUndisturbed()
  },

  async 'a queue that has opened ends a wait once its lead is late'(scene) {
    await shut(scene)
    await scene.advance(10_001 + 1_001)

    await (await Rest.begin(scene)).wakes(scene.queue)
  },

  async 'an enqueue into a shut queue that is led rings nobody'(scene) {
    await shut(scene)
    const rest = await Rest.begin(scene)
    await scene.add('another')

    await rest.isUndisturbed()
  },

  'an enqueue into a shut queue that nobody leads rings': plainCase([throttled, workers], async (scene) => {
    await shut(scene)
    await scene.workers.remove('lead')
    const rest = await Rest.begin(scene)
    await scene.add('another')

    await rest.wakes(scene.queue)
    assert.deepEqual(await denied(scene, { worker: 'w2' }), [throttledFor(10_001, 'leads')])
  }),

  async 'the lead that cannot take all jobs at its time rings the next; if it takes nothing it rings too'(scene) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    await scene.add(...jobs(9))
    await taken(scene, { worker: 'lead' })
    await scene.advance(10_001)
    const rests = [await Rest.begin(scene), await Rest.begin(scene)]
    assert.equal(await taken(scene, { worker: 'lead', limit: 0 }), 0)
    await Promise.race(rests.map((rest) => rest.wakes(scene.queue)))

    assert.equal(await taken(scene, { worker: 'lead', limit: 1 }), 1)
    await Promise.all(rests.map((rest) => rest.wakes(scene.queue)))
  },

  'the lead without room when a group opens rings another once, and stops leading': plainCase(
    [throttled, groups],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add(...grouped('x1', 'x2', 'y1', 'y2', 'z1', 'z2'))
      for (const gap of [20, 20, 9_961]) {
        assert.equal(await taken(scene, { worker: 'lead', limit: 1 }), 1)
        await scene.advance(gap)
      }
      const { claims, waits } = await scene.claim({ worker: 'lead', limit: 1, leaseMs: longLeaseMs })
      assert.deepEqual({ taken: claims.length, waits }, { taken: 1, waits: [throttledFor(20, 'leads')] })
      const rest = await Rest.begin(scene)
      await scene.advance(20)

      const asked = await scene.claim({ worker: 'lead', limit: 0 })
      assert.deepEqual({ waits: asked.waits, more: asked.more }, { waits: [], more: true })
      await rest.wakes(scene.queue)
      const next = await scene.claim({ worker: 'w2', leaseMs: longLeaseMs })
      assert.deepEqual(
        { taken: next.claims.length, waits: next.waits },
        { taken: 1, waits: [throttledFor(20, 'leads')] },
      )
    },
  ),

  'new rules ring every queue of the scope that has jobs': plainCase([throttled, firstUse], async (scene) => {
    const api = { scope: 'api', by: 'queue', rules: [rule(1, 10_000)] } as const
    await scene.openQueue({ name: 'sms', throttle: api })
    await shut(scene, api)
    await scene.enqueue(jobs(2), { queue: 'sms' })
    await denied(scene, { queue: 'sms', worker: 'lead' })
    const [mail, sms] = [await Rest.begin(scene), await Rest.begin(scene, ['sms'])]
    await scene.throttles.set('mail', [rule(5, 10_000)])

    await mail.wakes('mail')
    await sms.wakes('sms')
  }),

  async 'a claim skips a shut queue, and reports it with the grant of the next'(scene) {
    await shut(scene)
    await scene.openQueue({ name: 'sms' })
    await scene.enqueue(['text'], { queue: 'sms' })
    const from = [
      { queue: 'mail', limit: 5 },
      { queue: 'sms', limit: 1 },
    ]

    const claimed = await scene.claim({ from, worker: 'w2' })
    assert.equal(claimed.queue, 'sms')
    assert.deepEqual(idsOf(claimed), ['text'])
    assert.deepEqual(claimed.waits, [throttledFor(10_001)])
  },

  async 'jobs of a shut queue do not count as more ready jobs until it opens'(scene) {
    await shut(scene)
    assert.equal((await scene.claim({ worker: 'w2' })).more, false)
    await scene.advance(10_001)

    assert.equal((await scene.claim({ worker: 'lead', limit: 0 })).more, true)
  },

  async 'a job that falls due before the throttle opens is promoted at its time, and then waits with the others'(
    scene,
  ) {
    await shut(scene)
    await scene.add({ id: 'due', delayMs: 3_000 })
    assert.equal((await denied(scene, { worker: 'w2' }))[0]?.forMs, 3_000)
    await scene.advance(3_000)

    assert.equal((await denied(scene, { worker: 'w2' }))[0]?.forMs, 7_001)
    assert.equal((await scene.job('due')).state, 'ready')
  },

  'a paused queue reports that it is paused, whether or not it is shut': plainCase(
    [throttled, records],
    async (scene) => {
      await shut(scene)
      await scene.records.pause(scene.queue)
      assert.deepEqual(await denied(scene), [{ queue: scene.queue, reason: 'paused' }])
    },
  ),

  async 'a claim alone that is denied a suspect learns that, and when it may have it'(scene) {
    await scene.addSuspects('a')
    await scene.openQueue({ throttle: throttle(rule(1, 10_000)) })
    await scene.add('b')
    assert.equal(await taken(scene), 1)

    assert.deepEqual((await denied(scene, { worker: 'w2', alone: true }))[0], throttledFor(10_001, 'leads'))
    await scene.advance(10_001)
    assert.deepEqual(await scene.claimIds({ worker: 'w2', alone: true }), ['a'])
  },

  'if every group is shut the claimer learns which opens first; if one is open it gets no wait': plainCase(
    [throttled, groups],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add(...grouped('x1', 'x2', 'y1', 'y2'))
      assert.equal(await taken(scene, { worker: 'lead', limit: 1 }), 1)
      await scene.advance(3_000)
      const { claims, waits } = await scene.claim({ worker: 'lead', leaseMs: longLeaseMs })

      assert.equal(claims.length, 1)
      assert.deepEqual(waits, [throttledFor(7_001, 'leads')])
      assert.deepEqual(await denied(scene, { worker: 'w2' }), [throttledFor(7_001)])
    },
  ),

  'a job for a led and shut group rings nobody, and one for another group does': plainCase(
    [throttled, groups],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add(...grouped('x1', 'x2'))
      await taken(scene, { worker: 'lead' })
      const rest = await Rest.begin(scene)
      await scene.add(...grouped('x3'))
      await rest.isUndisturbed()

      const next = await Rest.begin(scene)
      await scene.add(...grouped('y1'))
      await next.wakes(scene.queue)
    },
  ),
})

/** A claim of `lead` takes the jobs that a throttle of 1 in 10 s permits, and learns of the job that is left. */
async function shut(scene: Scene, to = throttle(rule(1, 10_000))): Promise<void> {
  await scene.openQueue({ throttle: to })
  await scene.add('a', 'b')
  const { claims, waits } = await scene.claim({ worker: 'lead', leaseMs: longLeaseMs })
  assert.equal(claims.length, 1)
  assert.deepEqual(waits, [throttledFor(10_001, 'leads')])
}
