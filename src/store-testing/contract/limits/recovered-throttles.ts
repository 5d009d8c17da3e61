/** Contract cases: the recovery of throttles, after the store may have forgotten starts. */

import assert from 'node:assert/strict'
import { firstUse, groups, plainCase, plainConcern, throttled } from '../scenes/contract-case.js'
import { byGroup, denied, even, grouped, jobs, rule, taken, throttle, throttledFor } from '../scenes/limit-words.js'

const minuteMs = 60_000
const hourMs = 60 * minuteMs

export const recoveredThrottles = plainConcern('recovered throttles', [throttled], {
  async 'after a restart a short window is silent for its length, and reports it'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000)) })
    await scene.add(...jobs(9))
    assert.equal(await taken(scene, { limit: 1 }), 1)
    await scene.advance(4_000)
    await scene.harness.restart()

    assert.deepEqual(await denied(scene), [throttledFor(10_001, 'leads')])
    const { forMs, quietForMs } = (await scene.throttles.state(scene.queue))!
    assert.deepEqual({ forMs, quietForMs }, { forMs: 10_001, quietForMs: 10_001 })
    await scene.advance(10_000)
    assert.deepEqual(await denied(scene), [throttledFor(1, 'leads')])
    await scene.advance(1)
    assert.equal(await taken(scene), 3)
  },

  async 'a spread lengthens the silence, and makes no window a long one'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 600_000, { spreadMs: 1_000 })) })
    await scene.add(...jobs(9))
    assert.equal(await taken(scene, { limit: 1 }), 1)
    await scene.harness.restart()

    assert.deepEqual(await denied(scene), [throttledFor(601_001, 'leads')])
  },

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

  async 'without starts nothing is forgotten: a restart causes no silence'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000)) })
    await scene.add(...jobs(3))
    await scene.harness.restart()
    assert.equal(await taken(scene, { limit: 1 }), 1)

    assert.equal(await taken(scene), 2)
    assert.equal((await scene.throttles.state(scene.queue))?.quietForMs, 0)
  },

  async 'a restart within a silence is noticed after it, and causes another'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000)) })
    await scene.add(...jobs(9))
    await taken(scene, { limit: 1 })
    await scene.harness.restart()
    await denied(scene)
    await scene.advance(6_000)
    await scene.harness.restart()

    assert.equal((await denied(scene))[0]?.forMs, 4_001)
    await scene.advance(4_001)
    assert.equal((await denied(scene))[0]?.forMs, 10_001)
  },

  async 'a long window is not silent: known starts count, and possible ones too'(scene) {
    await scene.openQueue({ throttle: throttle(rule(10, hourMs)) })
    await scene.add(...jobs(20))
    assert.equal(await taken(scene, { limit: 3 }), 3)
    await scene.advance(12 * minuteMs)
    await scene.harness.restart()

    // 3 have started, and 2 may: that many fit into 12 minutes.
    assert.equal(await taken(scene), 5)
    assert.equal((await denied(scene))[0]?.forMs, 48 * minuteMs + 1)
    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [10])
  },

  async 'charged starts count when the opening of a full window is predicted'(scene) {
    await scene.openQueue({ throttle: throttle(rule(10, hourMs)) })
    await scene.add(...jobs(20))
    await taken(scene, { limit: 1 })
    await scene.advance(6 * minuteMs)
    assert.equal(await taken(scene, { limit: 8 }), 8)
    await scene.advance(12 * minuteMs)
    await scene.harness.restart()

    // 9 have started and 2 may have: the end of the first makes no room yet, the end of the others does.
    assert.equal((await denied(scene))[0]?.forMs, 48 * minuteMs + 1)
  },

  async 'a claimer denied by a silence and by a full window learns the longer wait'(scene) {
    await scene.openQueue({ throttle: throttle(rule(20, 10_000), rule(10, hourMs)) })
    await scene.add(...jobs(20))
    assert.equal(await taken(scene, { limit: 9 }), 9)
    await scene.advance(12 * minuteMs)
    await scene.harness.restart()

    assert.equal((await denied(scene))[0]?.forMs, 48 * minuteMs + 1)
  },

  async 'a long window is charged a whole start for a part of one, and nothing after a longer idle time'(scene) {
    await scene.openQueue({ throttle: throttle(rule(10, hourMs)) })
    await scene.add(...jobs(20))
    await taken(scene, { limit: 1 })
    await scene.advance(1)
    await scene.harness.restart()
    assert.equal(await taken(scene), 8)

    await scene.advance(40 * hourMs)
    await scene.harness.restart()
    assert.equal(await taken(scene), 10)
  },

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

  async 'with windows of both kinds the short one is silent and the long one charged'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000), rule(10, hourMs)) })
    await scene.add(...jobs(30))
    await taken(scene, { limit: 1 })
    await scene.advance(6 * minuteMs)
    await scene.harness.restart()

    assert.equal((await denied(scene))[0]?.forMs, 10_001)
    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [1, 2])
    await scene.advance(10_001)
    assert.equal(await taken(scene), 3)
    assert.deepEqual((await scene.throttles.state(scene.queue))?.hits, [3, 5])
  },

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

  'the silence applies to all groups, including those without starts': plainCase([throttled, groups], async (scene) => {
    await scene.openQueue({ throttle: byGroup(rule(5, 10_000)) })
    await scene.add(...grouped('x1', 'x2'))
    await taken(scene, { limit: 1 })
    await scene.harness.restart()
    await scene.add(...grouped('y1'))

    assert.equal((await denied(scene))[0]?.forMs, 10_001)
    assert.equal((await scene.throttles.state(scene.queue))?.forMs, 10_001)
    await scene.advance(10_001)
    assert.equal(await taken(scene), 2)
  }),

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
