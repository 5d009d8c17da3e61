/** Contract cases: the scopes of throttles, the stored part of a throttle, and how its rules are read and changed. */

import assert from 'node:assert/strict'
import { InvalidArgumentError, ThrottleConflictError, UnknownQueueError } from '../../../core/errors.js'
import {
  firstUse,
  groups,
  ordered,
  orderedCase,
  plainCase,
  plainConcern,
  records,
  throttled,
} from '../scenes/contract-case.js'
import { byGroup, denied, elastic, even, grouped, idsOf, jobs, rule, taken, throttle } from '../scenes/limit-words.js'

const api = { scope: 'api', by: 'queue', rules: [rule(2, 10_000)] } as const

export const throttleScopes = plainConcern('scopes of throttles', [throttled], {
  'queues of one scope share its count': plainCase([throttled, firstUse], async (scene) => {
    await scene.openQueue({ throttle: api })
    await scene.openQueue({ name: 'sms', throttle: api })
    await scene.add('a', 'b')
    await scene.enqueue(['a', 'b'], { queue: 'sms' })
    assert.equal(await taken(scene, { limit: 1 }), 1)
    assert.equal(await taken(scene, { queue: 'sms' }), 1)

    assert.equal((await denied(scene))[0]?.forMs, 10_001)
    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 10_001)
  }),

  async 'queues without a scope share nothing'(scene) {
    await scene.openQueue({ throttle: throttle(rule(1, 10_000)) })
    await scene.openQueue({ name: 'sms', throttle: { ...api, scope: 'sms' } })
    await scene.add('a', 'b')
    await scene.enqueue(['a', 'b'], { queue: 'sms' })

    assert.equal(await taken(scene), 1)
    assert.equal(await taken(scene, { queue: 'sms' }), 2)
  },

  'a scope has something to start as long as one of its queues does, and only then restarts its tempo': plainCase(
    [throttled, firstUse],
    async (scene) => {
      const shared = { ...api, rules: [rule(4, 8_000, elastic(0))] }
      await scene.openQueue({ throttle: shared })
      await scene.openQueue({ name: 'sms', throttle: shared })
      await scene.enqueue(jobs(9), { queue: 'sms' })
      for (const id of jobs(4)) {
        await scene.add(id)
        assert.equal(await taken(scene), 1)
        await scene.advance(2_000)
      }

      await scene.advance(5_000)
      assert.equal(await taken(scene, { queue: 'sms' }), 3)
    },
  ),

  'the shards of an ordered queue share its throttle, in one claim and over several': orderedCase(
    [throttled],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3, throttle: { ...api, rules: [rule(4, 10_000)] } })
      await scene.enqueue(jobs(30), { queue: 'many' })
      const shard = (shard: number) => ({ from: [{ queue: 'many', shard, limit: 1 }] })
      assert.equal(await taken(scene, shard(2)), 1)

      assert.equal(await taken(scene, { queue: 'many' }), 3)
      const waits = await denied(scene, { queue: 'many' })
      assert.deepEqual(
        waits.map(({ shard, reason, forMs }) => [shard, reason, forMs]),
        [0, 1, 2].map((shard) => [shard, 'throttled', 10_001]),
      )
    },
  ),

  'a plain queue and an ordered one may share a scope': plainCase([throttled, ordered, firstUse], async (scene) => {
    await scene.openQueue({ throttle: api })
    await scene.openQueue({ name: 'orders', kind: 'ordered', throttle: api })
    await scene.add('a', 'b')
    await scene.enqueue(['a', 'b'], { queue: 'orders' })

    assert.equal(await taken(scene, { queue: 'orders', limit: 1 }), 1)
    assert.equal(await taken(scene), 1)
    await denied(scene, { queue: 'orders' })
  }),

  'a throttle that another process gives a queue is listed with it at once': plainCase(
    [throttled, records],
    async (scene) => {
      const given = throttle(rule(2, 10_000))
      const other = await scene.harness.open()
      await other.open([{ name: scene.queue, kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {}, throttle: given }])

      const told = (await scene.records.queues()).find(({ name }) => name === scene.queue)
      assert.deepEqual(told?.throttle, given)
    },
  ),

  async 'a throttle different from the stored one is refused, and nothing in the call is opened'(scene) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    const plain = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
    const others = [throttle(rule(3, 10_000)), throttle(rule(2, 10_000, even)), byGroup(rule(2, 10_000)), api]
    for (const other of others) {
      const asked = [
        { ...plain, name: 'fresh' },
        { ...plain, name: scene.queue, maxCrashes: 9, throttle: other },
      ]
      await assert.rejects(scene.store.open(asked), ThrottleConflictError)
    }

    await assert.rejects(scene.enqueue(['a'], { queue: 'fresh' }), UnknownQueueError)
    assert.equal((await scene.stored()).maxCrashes, 3)
  },

  'a throttle different from that of the scope is refused to a new queue, even in the same call': plainCase(
    [throttled, firstUse],
    async (scene) => {
      await scene.openQueue({ throttle: api })
      const other = { ...api, rules: [rule(2, 9_000)] }
      await assert.rejects(scene.openQueue({ name: 'sms', throttle: other }), ThrottleConflictError)

      const queue = { kind: 'plain', order: 'fifo', maxCrashes: 3, dead: {} } as const
      const both = [
        { ...queue, name: 'one', throttle: { ...api, scope: 'fresh' } },
        { ...queue, name: 'two', throttle: { ...other, scope: 'fresh' } },
      ]
      await assert.rejects(scene.store.open(both), ThrottleConflictError)
      await assert.rejects(scene.enqueue(['a'], { queue: 'one' }), UnknownQueueError)
    },
  ),

  async 'a queue opened without a throttle keeps the stored one, and every open returns it'(scene) {
    assert.equal((await scene.openQueue()).throttle, undefined)
    const asked = throttle(rule(2, 10_000), rule(9, 60_000, elastic(3)))
    assert.deepEqual((await scene.openQueue({ throttle: asked })).throttle, asked)

    assert.deepEqual((await scene.openQueue()).throttle, asked)
    await scene.add(...jobs(5))
    assert.equal(await taken(scene), 1)
  },

  async 'a queue without a throttle can get one, which then applies to waiting jobs'(scene) {
    await scene.add(...jobs(9))
    assert.equal(await taken(scene, { limit: 3 }), 3)
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })

    assert.equal(await taken(scene), 2)
  },

  'a throttle shows its starts in each window, and when the next may come': plainCase(
    [throttled, firstUse],
    async (scene) => {
      const asked = { ...api, rules: [rule(2, 1_000), rule(5, 10_000)] }
      await scene.openQueue({ name: 'sms', throttle: asked })
      await scene.openQueue({ throttle: asked })
      await scene.add(...jobs(9))
      await taken(scene)
      await scene.advance(1_001)
      await taken(scene, { limit: 1 })

      const told = { throttle: asked, queues: ['mail', 'sms'], quietForMs: 0 }
      assert.deepEqual(await scene.throttles.state('sms'), { ...told, hits: [1, 3], forMs: 0 })
      await taken(scene)
      assert.deepEqual(await scene.throttles.state('mail'), { ...told, hits: [2, 4], forMs: 1_001 })
      await scene.advance(10_001)
      assert.deepEqual(await scene.throttles.state('mail'), { ...told, hits: [0, 0], forMs: 0 })
    },
  ),

  'a throttle by group shows each group separately, and how many there are': plainCase(
    [throttled, groups],
    async (scene) => {
      const asked = byGroup(rule(2, 10_000))
      await scene.openQueue({ throttle: asked })
      await scene.add(...grouped('x1', 'x2', 'x3', 'y1'), 'none')
      await taken(scene)

      const told = { throttle: asked, queues: ['mail'], quietForMs: 0, groups: 3 }
      assert.deepEqual(await scene.throttles.state('mail', 'x'), { ...told, hits: [2], forMs: 10_001 })
      assert.deepEqual(await scene.throttles.state('mail', 'y'), { ...told, hits: [1], forMs: 0 })
      assert.deepEqual(await scene.throttles.state('mail', ''), { ...told, hits: [1], forMs: 0 })
      assert.deepEqual(await scene.throttles.state('mail', 'nobody'), { ...told, hits: [0], forMs: 0 })
      assert.deepEqual(await scene.throttles.state('mail'), { ...told, hits: [0], forMs: 0 })
    },
  ),

  async 'a queue without a throttle has no throttle state and no rules to set, and a missing queue is unknown'(scene) {
    assert.equal(await scene.throttles.state(scene.queue), undefined)
    await assert.rejects(scene.throttles.set(scene.queue, [rule(1, 1_000)]), InvalidArgumentError)

    await assert.rejects(scene.throttles.state('nowhere'), UnknownQueueError)
    await assert.rejects(scene.throttles.set('nowhere', [rule(1, 1_000)]), UnknownQueueError)
  },

  async 'with twice the limit the next start comes after half the spacing'(scene) {
    await scene.openQueue({ throttle: throttle(rule(10, 10_000, even)) })
    await scene.add(...jobs(9))
    await taken(scene)
    assert.equal((await denied(scene))[0]?.forMs, 1_000)
    await scene.throttles.set(scene.queue, [rule(20, 10_000, even)])

    assert.equal((await denied(scene))[0]?.forMs, 500)
    await scene.advance(500)
    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene))[0]?.forMs, 500)
  },

  'earlier starts count under new rules, for all queues of the scope': plainCase(
    [throttled, firstUse],
    async (scene) => {
      await scene.openQueue({ throttle: api })
      await scene.openQueue({ name: 'sms', throttle: api })
      await scene.add(...jobs(3))
      await scene.enqueue(jobs(3), { queue: 'sms' })
      await taken(scene)
      await scene.throttles.set('sms', [rule(3, 10_000)])

      assert.equal(await taken(scene), 1)
      assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 10_001)
      await scene.throttles.set('mail', [rule(1, 10_000)])
      await scene.advance(10_001)
      assert.equal(await taken(scene, { queue: 'sms' }), 1)
    },
  ),

  async 'new rules restart the tempo: what the old ones had earned is gone'(scene) {
    await scene.openQueue({ throttle: throttle(rule(4, 8_000, elastic(0))) })
    await scene.add(...jobs(20))
    for (let i = 0; i < 4; i++) {
      assert.equal(await taken(scene), 1)
      await scene.advance(2_000)
    }
    await scene.throttles.set(scene.queue, [rule(3, 8_000, elastic(0))])

    // Of the four only one is left in the window.
    await scene.advance(5_000)
    assert.equal(await taken(scene), 1)
  },

  async 'after new rules were set the old ones are refused, and an open with the new ones or none returns the new ones'(
    scene,
  ) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    await scene.throttles.set(scene.queue, [rule(4, 10_000), rule(5, 60_000)])

    await assert.rejects(scene.openQueue({ throttle: throttle(rule(2, 10_000)) }), ThrottleConflictError)
    const set = throttle(rule(4, 10_000), rule(5, 60_000))
    assert.deepEqual((await scene.openQueue({ throttle: set })).throttle, set)
    assert.deepEqual((await scene.openQueue()).throttle, set)
  },

  'new rules open what the old ones had shut, group by group': plainCase([throttled, groups], async (scene) => {
    await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
    await scene.add(...grouped('x1', 'x2', 'y1', 'y2'))
    assert.equal(await taken(scene), 2)
    await scene.throttles.set(scene.queue, [rule(2, 10_000)])

    assert.deepEqual(idsOf(await scene.claim()).sort(), ['x2', 'y2'])
  }),

  'groups opened by new rules get their turns in the order in which they would have opened': plainCase(
    [throttled, groups],
    async (scene) => {
      await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
      await scene.add(...grouped('b1', 'b2'))
      await taken(scene)
      await scene.advance(1_000)
      await scene.add(...grouped('a1', 'a2'))
      await taken(scene)
      await scene.throttles.set(scene.queue, [rule(2, 10_000)])

      assert.deepEqual(await scene.claimIds({ limit: 1 }), ['b2'])
      assert.deepEqual(await scene.claimIds({ limit: 1 }), ['a2'])
    },
  ),
})
