/** Contract cases: the rates that single groups have for themselves, in place of the rules of all groups. */

import assert from 'node:assert/strict'
import { InvalidArgumentError, UnknownQueueError } from '../../../core/errors.js'
import type { ThrottleRule } from '../../../core/queue/throttle.js'
import { firstUse, groups, orderedCase, plainCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import {
  byGroup,
  denied,
  even,
  grouped,
  jobs,
  rule,
  taken,
  throttle,
  throttledFor,
  timeline,
} from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'
import type { Scene } from '../scenes/scene.js'

const two = byGroup(rule(2, 10_000))

/** Opens the scene's queue by group, and gives the group `x` rules of its own. */
async function rated(scene: Scene, ...rules: ThrottleRule[]): Promise<void> {
  await scene.openQueue({ throttle: two })
  await scene.throttles.setRate(scene.queue, 'x', rules)
}

const manyOf = (group: string, count: number) => jobs(count).map((id) => ({ id: `${group}-${id}`, group }))

/** How many jobs of each group a claim takes that asks for many. */
async function takenOf(scene: Scene, asking: Parameters<typeof taken>[1] = {}): Promise<Record<string, number>> {
  const { claims } = await scene.claim({ leaseMs: 86_400_000, ...asking })
  const counts: Record<string, number> = {}
  for (const { group = '' } of claims) counts[group] = (counts[group] ?? 0) + 1
  return counts
}

export const groupRates = plainConcern('rates of groups', [throttled, groups], {
  'a group with rules of its own starts by them, and all others by the common rules': timeline(
    async (scene) => {
      await rated(scene, rule(5, 10_000))
      await scene.throttles.setRate(scene.queue, 'y', [rule(1, 20_000)])
    },
    [...manyOf('x', 9), ...manyOf('y', 9), ...manyOf('z', 9), 'none-1', 'none-2', 'none-3'],
    'takes x5 y1 z2 -2, +10_001 takes x4 z2 -1, +10_001 takes y1 z2',
  ),

  async 'jobs without a group may have their own rate'(scene) {
    await scene.openQueue({ throttle: two })
    await scene.throttles.setRate(scene.queue, '', [rule(1, 10_000)])
    await scene.add('a', 'b', ...manyOf('x', 3))

    assert.deepEqual(await takenOf(scene), { '': 1, x: 2 })
  },

  async 'a group whose rate is set starts at once what that allows in addition, counting its earlier starts'(scene) {
    await scene.openQueue({ throttle: two })
    await scene.add(...manyOf('x', 9), ...manyOf('y', 9))
    assert.deepEqual(await takenOf(scene), { x: 2, y: 2 })
    const rest = await Rest.begin(scene)
    await scene.throttles.setRate(scene.queue, 'x', [rule(5, 10_000)])

    await rest.wakes(scene.queue)
    assert.deepEqual(await takenOf(scene), { x: 3 })
    assert.deepEqual((await denied(scene))[0]?.forMs, 10_001)
  },

  async 'a group returns to the common rules, counting its earlier starts'(scene) {
    await rated(scene, rule(5, 10_000))
    await scene.add(...manyOf('x', 9))
    assert.deepEqual(await takenOf(scene), { x: 5 })
    await scene.throttles.setRate(scene.queue, 'x', undefined)

    assert.deepEqual(await denied(scene), [throttledFor(10_001, 'leads')])
    await scene.advance(10_001)
    assert.deepEqual(await takenOf(scene), { x: 2 })
    assert.deepEqual(await scene.throttles.rates(scene.queue, 10), { rates: [], total: 0 })
    assert.equal((await scene.openQueue()).throttle?.own, undefined)
  },

  async 'a window longer than those of all groups holds, however many other groups have started meanwhile'(scene) {
    await rated(scene, rule(1, 600_000))
    await scene.add(...manyOf('x', 2))
    assert.deepEqual(await takenOf(scene), { x: 1 })
    for (let i = 0; i < 5; i += 1) {
      await scene.advance(50_000)
      await scene.add(...grouped(`a${i}1`, `b${i}1`, `c${i}1`))
      assert.equal(await taken(scene), 3)
    }

    assert.deepEqual(await denied(scene), [throttledFor(350_001, 'leads')])
    assert.deepEqual((await scene.throttles.state(scene.queue, 'x'))?.hits, [1])
    await scene.advance(350_001)
    assert.deepEqual(await takenOf(scene), { x: 1 })
  },

  'rules of a group may be even, with several windows, even if the common ones are not': timeline(
    (scene) => rated(scene, rule(10, 10_000, even), rule(3, 60_000)),
    manyOf('x', 9),
    'takes x1 waits 1_000, +1_000 takes x1 waits 1_000, +1_000 takes x1, +1_000 waits 57_001',
  ),

  async 'other common rules, and every configuration, leave the rate of a group unchanged'(scene) {
    await rated(scene, rule(5, 10_000))
    await scene.throttles.set(scene.queue, [rule(1, 10_000)])
    await scene.openQueue({ throttle: byGroup(rule(1, 10_000)) })
    await scene.openQueue()
    await scene.add(...manyOf('x', 9), ...manyOf('y', 9))

    assert.deepEqual(await takenOf(scene), { x: 5, y: 1 })
  },

  'another process applies the rate of a group from its next claim on, and shows it': plainCase(
    [throttled, groups, records],
    async (scene) => {
      await scene.openQueue({ throttle: two })
      await scene.add(...manyOf('x', 9))
      assert.deepEqual(await takenOf(scene, { limit: 1 }), { x: 1 })
      const other = await scene.harness.open()
      await other.throttles!.setRate(scene.queue, 'x', [rule(5, 10_000, { spreadMs: 50 })])

      assert.deepEqual(await takenOf(scene), { x: 4 })
      const told = (await other.records!.queues()).find(({ name }) => name === scene.queue)
      assert.deepEqual(told?.throttle?.own, { groups: 1, longestMs: 10_050, leastSpreadMs: 50 })
    },
  ),

  async 'rates of groups are listed by name, and the state of a group shows its own rules and its starts'(scene) {
    await rated(scene, rule(5, 10_000), rule(9, 60_000))
    for (const group of ['É', 'b']) await scene.throttles.setRate(scene.queue, group, [rule(1, 3_000)])
    await scene.throttles.setRate(scene.queue, 'b', [rule(1, 4_000)])
    await scene.add(...manyOf('x', 3), ...manyOf('y', 1))
    await taken(scene)

    const all = [
      { group: 'b', rules: [rule(1, 4_000)] },
      { group: 'x', rules: [rule(5, 10_000), rule(9, 60_000)] },
      { group: 'É', rules: [rule(1, 3_000)] },
    ]
    assert.deepEqual(await scene.throttles.rates(scene.queue, 10), { rates: all, total: 3 })
    assert.deepEqual(await scene.throttles.rates(scene.queue, 1), { rates: all.slice(0, 1), total: 3 })
    const own = { groups: 3, longestMs: 60_000 }
    const told = { throttle: { ...two, own }, queues: ['mail'], forMs: 0, quietForMs: 0, groups: 2 }
    assert.deepEqual(await scene.throttles.state('mail', 'x'), { ...told, hits: [3, 3], rate: all[1]!.rules })
    assert.deepEqual(await scene.throttles.state('mail', 'y'), { ...told, hits: [1] })
  },

  'the rate of a group applies in all queues of the scope together, and rings each': plainCase(
    [throttled, groups, firstUse],
    async (scene) => {
      const sites = { ...two, scope: 'sites' }
      await scene.openQueue({ throttle: sites })
      await scene.openQueue({ name: 'sms', throttle: sites })
      await scene.add(...manyOf('x', 9))
      await scene.enqueue(manyOf('x', 9), { queue: 'sms' })
      await taken(scene)
      await denied(scene, { queue: 'sms', worker: 'lead' })
      const [mail, sms] = [await Rest.begin(scene), await Rest.begin(scene, ['sms'])]
      await scene.throttles.setRate('sms', 'x', [rule(5, 10_000)])

      await mail.wakes('mail')
      await sms.wakes('sms')
      assert.equal(await taken(scene, { limit: 1 }), 1)
      assert.equal(await taken(scene, { queue: 'sms' }), 2)
    },
  ),

  'the shards of an ordered queue share the rate of a group': orderedCase([throttled, groups], async (scene) => {
    await scene.openQueue({ name: 'many', shards: 3, throttle: { ...two, scope: 'many' } })
    await scene.throttles.setRate('many', 'x', [rule(5, 10_000)])
    await scene.enqueue(manyOf('x', 30), { queue: 'many' })

    assert.equal(await taken(scene, { queue: 'many' }), 5)
  }),

  async 'a hold and a pause of a group outlast its rate'(scene) {
    await scene.openQueue({ throttle: two })
    await scene.add(...manyOf('x', 3), ...manyOf('y', 3))
    const { claims } = await scene.claim({ limit: 1 })
    const held = { kind: 'release', delayMs: 0, hold: { of: 'group', forMs: 60_000 } } as const
    await scene.end(claims[0]!, held)
    await scene.throttles.pause(scene.queue, 'y')
    for (const group of ['x', 'y']) await scene.throttles.setRate(scene.queue, group, [rule(9, 1_000)])

    assert.deepEqual(await denied(scene), [throttledFor(60_000, 'leads')])
  },

  async 'after a restart a group with its own rules is silent for its own short windows too'(scene) {
    await rated(scene, rule(5, 30_000))
    await scene.throttles.setRate(scene.queue, 'y', [rule(5, 1_000)])
    await scene.add(...manyOf('x', 9), ...manyOf('y', 9), ...manyOf('z', 9))
    assert.deepEqual(await takenOf(scene, { limit: 3 }), { x: 1, y: 1, z: 1 })
    await scene.harness.restart()
    assert.deepEqual(await denied(scene), [throttledFor(10_001, 'leads')])

    assert.equal((await scene.throttles.state(scene.queue, 'x'))?.quietForMs, 30_001)
    assert.equal((await scene.throttles.state(scene.queue, 'y'))?.quietForMs, 10_001)
    await scene.advance(10_001)
    assert.deepEqual(await takenOf(scene), { y: 5, z: 2 })
    await scene.advance(20_000)
    assert.deepEqual(await takenOf(scene), { x: 5, y: 3, z: 2 })
  },

  async 'after a restart a long window of a group is charged, even if the common windows are short'(scene) {
    await rated(scene, rule(10, 3_600_000))
    await scene.add(...manyOf('x', 20))
    assert.deepEqual(await takenOf(scene, { limit: 1 }), { x: 1 })
    await scene.advance(1_800_000)
    await scene.harness.restart()
    await denied(scene)
    await scene.advance(10_001)

    assert.deepEqual(await takenOf(scene), { x: 4 })
    assert.deepEqual((await scene.throttles.state(scene.queue, 'x'))?.hits, [10])
  },

  'a rate of a group is refused without a throttle by group, and for a missing queue': plainCase(
    [throttled],
    async (scene) => {
      const set = (queue: string) => scene.throttles.setRate(queue, 'x', [rule(1, 1_000)])
      await assert.rejects(set(scene.queue), InvalidArgumentError)
      await scene.openQueue({ throttle: throttle(rule(1, 1_000)) })
      await assert.rejects(set(scene.queue), InvalidArgumentError)

      assert.deepEqual(await scene.throttles.rates(scene.queue, 10), { rates: [], total: 0 })
      await assert.rejects(set('nowhere'), UnknownQueueError)
      await assert.rejects(scene.throttles.rates('nowhere', 10), UnknownQueueError)
    },
  ),
})
