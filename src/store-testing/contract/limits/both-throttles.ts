/** Contract cases: rules for all jobs of a queue together beside rules for the jobs of each group. Both hold. */

import assert from 'node:assert/strict'
import { InvalidArgumentError, ThrottleConflictError } from '../../../core/errors.js'
import type { Throttle, ThrottleRule } from '../../../core/queue/throttle.js'
import { firstUse, groups, orderedCase, plainCase, plainConcern, throttled } from '../scenes/contract-case.js'
import { denied, even, grouped, jobs, rule, taken, throttle, throttledFor, timeline } from '../scenes/limit-words.js'
import type { Scene } from '../scenes/scene.js'

function both(all: ThrottleRule, each: ThrottleRule, scope = 'mail'): Throttle {
  return { scope, by: 'queue', rules: [all], eachGroup: [each] }
}

const manyOf = (group: string, count: number) => jobs(count).map((id) => ({ id: `${group}-${id}`, group }))

async function groupsOf(scene: Scene, limit = 100): Promise<string> {
  const { claims } = await scene.claim({ leaseMs: 86_400_000, limit })
  return claims.map(({ group = '' }) => group).join('')
}

export const bothThrottles = plainConcern('throttles of a queue and of its groups', [throttled, groups], {
  'the smaller permit counts: a group is limited by its own rules, and all together by theirs': timeline(
    both(rule(3, 10_000), rule(2, 20_000)),
    manyOf('x', 9),
    'takes x2 leads 20_001, adds y9, takes y1 leads 10_001, +10_001 takes y1, +10_000 takes x1 y1',
  ),

  'jobs without a group are one group, and count together with all others': timeline(
    both(rule(3, 10_000), rule(2, 10_000)),
    3,
    'takes 2, adds x3, takes x1 leads 10_001',
  ),

  'a group that waits for the common rules gets its turn when these permit': timeline(
    both(rule(1, 1_000), rule(1, 10_000)),
    grouped('a1', 'a2', 'b1', 'b2', 'c1', 'c2'),
    // The last: 10,001 ms after the first start of a.
    'takes a1, +1_001 takes b1, +1_001 takes c1, +1_001 leads 6_998',
  ),

  async 'shut groups found by a claim cost no permit of the common rules'(scene) {
    await scene.openQueue({ throttle: both(rule(5, 60_000), rule(1, 60_000)) })
    await scene.add(...grouped('a1', 'a2', 'a3', 'b1', 'b2', 'b3'))
    assert.equal(await groupsOf(scene), 'ab')
    assert.equal(await groupsOf(scene), '')

    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [2])
  },

  'even common rules and even group rules apply together': timeline(
    both(rule(10, 10_000, even), rule(2, 10_000, even)),
    [...manyOf('x', 3), ...manyOf('y', 3)],
    'takes x1, +1_000 takes y1, +1_000 takes 0, +1_000 takes 0, +1_000 takes 0, +1_000 takes x1',
  ),

  async 'a suspect takes a permit of both'(scene) {
    await scene.openQueue({ throttle: both(rule(3, 10_000), rule(2, 10_000)) })
    await scene.add(...grouped('x1'))
    await scene.claim({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.claim({ limit: 0 })
    assert.equal((await scene.claim({ alone: true, limit: 1, leaseMs: 60_000 })).claims.length, 1)

    const told = await scene.throttles.state(scene.queue, 'x')
    assert.deepEqual([told?.hits, told?.groupHits], [[2], [2]])
  },

  async 'the state shows the starts of all, and those of the requested group'(scene) {
    const given = both(rule(5, 10_000), rule(2, 20_000))
    await scene.openQueue({ throttle: given })
    await scene.add(...manyOf('x', 3), ...manyOf('y', 1))
    assert.equal(await taken(scene), 3)

    const told = { throttle: given, queues: ['mail'], hits: [3], quietForMs: 0, groups: 2 }
    assert.deepEqual(await scene.throttles.state('mail'), { ...told, forMs: 0 })
    assert.deepEqual(await scene.throttles.state('mail', 'x'), { ...told, groupHits: [2], forMs: 20_001 })
    assert.deepEqual(await scene.throttles.state('mail', ''), { ...told, groupHits: [0], forMs: 0 })
  },

  async 'common and group rules can be set separately, together with those of one group'(scene) {
    await scene.openQueue({ throttle: both(rule(3, 10_000), rule(1, 10_000)) })
    await scene.add(...manyOf('x', 9), ...manyOf('y', 9))
    assert.equal(await groupsOf(scene), 'xy')
    await scene.throttles.set(scene.queue, [rule(2, 10_000)], 'group')
    assert.equal(await taken(scene), 1)
    await scene.throttles.set(scene.queue, [rule(9, 10_000)])
    assert.equal(await taken(scene), 1)
    await scene.throttles.setRate(scene.queue, 'x', [rule(4, 10_000)])

    assert.equal(await groupsOf(scene), 'xx')
    const now = { ...both(rule(9, 10_000), rule(2, 10_000)), own: { groups: 1, longestMs: 10_000 } }
    assert.deepEqual((await scene.openQueue()).throttle, now)
  },

  async 'a throttle with other or incomplete rules is refused, and so is a change of rules that it does not have'(
    scene,
  ) {
    const given = both(rule(3, 10_000), rule(1, 10_000))
    await scene.openQueue({ throttle: given })
    for (const other of [throttle(rule(3, 10_000)), both(rule(3, 10_000), rule(2, 10_000))])
      await assert.rejects(scene.openQueue({ throttle: other }), ThrottleConflictError)
    assert.deepEqual((await scene.openQueue({ throttle: given })).throttle, given)

    await scene.openQueue({ name: 'sms', throttle: { ...throttle(rule(1, 1_000)), scope: 'sms' } })
    await assert.rejects(scene.throttles.set('sms', [rule(2, 1_000)], 'group'), InvalidArgumentError)
  },

  'queues of one scope share both counts': plainCase([throttled, groups, firstUse], async (scene) => {
    const sites = both(rule(3, 10_000), rule(2, 10_000), 'sites')
    await scene.openQueue({ throttle: sites })
    await scene.openQueue({ name: 'sms', throttle: sites })
    await scene.add(...manyOf('x', 9))
    await scene.enqueue([...manyOf('x', 9), ...manyOf('y', 9)], { queue: 'sms' })
    assert.equal(await taken(scene, { limit: 1 }), 1)

    assert.equal(await taken(scene, { queue: 'sms' }), 2)
    assert.equal((await denied(scene))[0]?.forMs, 10_001)
  }),

  'the shards of an ordered queue share both counts': orderedCase([throttled, groups], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3, throttle: both(rule(5, 10_000), rule(3, 10_000), 'many') })
    await scene.enqueue([...manyOf('x', 20), ...manyOf('y', 20)], { queue: 'many' })

    assert.equal(await taken(scene, { queue: 'many' }), 5)
    assert.equal((await scene.throttles.state('many'))?.hits[0], 5)
  }),

  async 'after a restart both are silent, for as long as the longest short window of either'(scene) {
    await scene.openQueue({ throttle: both(rule(3, 1_000), rule(2, 20_000)) })
    await scene.add(...manyOf('x', 9))
    await taken(scene)
    await scene.harness.restart()

    assert.deepEqual(await denied(scene), [throttledFor(20_001, 'leads')])
    await scene.advance(20_001)
    assert.equal(await taken(scene), 2)
  },
})
