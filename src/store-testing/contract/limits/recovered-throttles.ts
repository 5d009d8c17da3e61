/** Contract cases: the recovery of throttles, after the store may have forgotten starts. */

import assert from 'node:assert/strict'
import { firstUse, groups, plainCase, plainConcern, throttled } from '../scenes/contract-case.js'
import { byGroup, denied, even, grouped, jobs, rule, taken, throttle, timeline } from '../scenes/limit-words.js'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export const recoveredThrottles = plainConcern('recovered throttles', [throttled], {
  'after a restart a short window is silent for its length, and reports it': timeline(
    throttle(rule(3, 10_000)),
    9,
    'takes 1 of 1, +4_000, restarts, leads 10_001 opens 10_001 quiet 10_001, +10_000 leads 1, +1 takes 3',
  ),

  'a spread lengthens the silence, and makes no window a long one': timeline(
    throttle(rule(3, 600_000, { spreadMs: 1_000 })),
    9,
    'takes 1 of 1, restarts, leads 601_001',
  ),

  async 'the silence begins when the restart is noticed, at the first claim that could take something'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000)) })
    await scene.add('a')
    await taken(scene)
    await scene.harness.restart()
    await scene.advance(5_000)
    assert.equal((await denied(scene))[0]?.reason, 'empty')
    await scene.add('b')

    assert.equal((await denied(scene))[0]?.forMs, 10_001)
  },

  'without starts nothing is forgotten: a restart causes no silence': timeline(
    throttle(rule(3, 10_000)),
    3,
    'restarts, takes 1 of 1, takes 2 quiet 0',
  ),

  'a restart within a silence is noticed after it, and causes another': timeline(
    throttle(rule(3, 10_000)),
    9,
    'takes 1 of 1, restarts, takes 0, +6_000, restarts, waits 4_001, +4_001 waits 10_001',
  ),

  'a long window is not silent: known starts count, and possible ones too': timeline(
    throttle(rule(10, hourMs)),
    20,
    // 3 have started, and 2 may: that many fit into 12 minutes.
    'takes 3 of 3, +720_000, restarts, takes 5 waits 2_880_001 hits 10',
  ),

  'charged starts count when the opening of a full window is predicted': timeline(
    throttle(rule(10, hourMs)),
    20,
    // 9 have started and 2 may have: the end of the first makes no room yet, the end of the others does.
    'takes 1 of 1, +360_000 takes 8 of 8, +720_000, restarts, waits 2_880_001',
  ),

  'a claimer denied by a silence and by a full window learns the longer wait': timeline(
    throttle(rule(20, 10_000), rule(10, hourMs)),
    20,
    'takes 9 of 9, +720_000, restarts, waits 2_880_001',
  ),

  'a long window is charged a whole start for a part of one, and nothing after a longer idle time': timeline(
    throttle(rule(10, hourMs)),
    20,
    'takes 1 of 1, +1, restarts, takes 8, +144_000_000, restarts, takes 10',
  ),

  async 'ten minutes are a short window, and one ms more is a long one'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10 * minuteMs)) })
    await scene.openQueue({ name: 'long', throttle: { ...throttle(rule(3, 10 * minuteMs + 1)), scope: 'long' } })
    for (const queue of [scene.queue, 'long']) {
      await scene.enqueue(jobs(9), { queue })
      await taken(scene, { queue, limit: 1 })
    }
    await scene.harness.restart()

    assert.equal((await denied(scene))[0]?.forMs, 10 * minuteMs + 1)
    assert.equal(await taken(scene, { queue: 'long' }), 2)
  },

  'with windows of both kinds the short one is silent and the long one charged': timeline(
    throttle(rule(3, 10_000), rule(10, hourMs)),
    30,
    'takes 1 of 1, +360_000, restarts, waits 10_001 hits 1 2, +10_001 takes 3 hits 3 5',
  ),

  'the silence applies to the whole scope, in all its queues': plainCase([throttled, firstUse], async (scene) => {
    const api = { scope: 'api', by: 'queue', rules: [rule(5, 10_000)] } as const
    await scene.openQueue({ throttle: api })
    await scene.openQueue({ name: 'sms', throttle: api })
    await scene.add('a', 'b')
    await scene.enqueue(['a', 'b'], { queue: 'sms' })
    await taken(scene, { limit: 1 })
    await scene.harness.restart()

    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 10_001)
    await scene.advance(2_000)
    assert.equal((await denied(scene))[0]?.forMs, 8_001)
  }),

  'the silence applies to all groups, including those without starts': plainCase(
    [throttled, groups],
    timeline(
      byGroup(rule(5, 10_000)),
      grouped('x1', 'x2'),
      'takes 1 of 1, restarts, adds y1, waits 10_001 opens 10_001, +10_001 takes 2',
    ),
  ),

  async 'a restart is reported once, and changes nothing for queues without a throttle'(scene) {
    await scene.openQueue({ name: 'free' })
    await scene.openQueue({ throttle: throttle(rule(3, 10_000, even)) })
    await scene.add(...jobs(5))
    await scene.enqueue(['a'], { queue: 'free' })
    await taken(scene)
    await scene.advance(4_000)
    await scene.harness.restart()
    assert.equal(await taken(scene, { queue: 'free' }), 1)
    await denied(scene)
    await denied(scene, { worker: 'w2' })

    const [told] = (await scene.harness.dump()).throttles
    assert.deepEqual([told?.recoveries, told?.quietInMs], [1, 10_001])
  },
})
