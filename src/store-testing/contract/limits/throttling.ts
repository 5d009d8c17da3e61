/**
 * Contract cases: throttles, which bound how many jobs start in every window of time, and their rest, which begins anew
 * if no job was left that could start.
 */

import assert from 'node:assert/strict'
import { firstUse, orderedCase, plainCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import {
  denied,
  elastic,
  even,
  idsOf,
  jobs,
  longLeaseMs,
  rule,
  suspectsTold,
  taken,
  throttle,
  throttledFor,
  timeline,
} from '../scenes/limit-words.js'
import type { Scene } from '../scenes/scene.js'

/** Four starts of a throttle of 4 in 8 s, each as soon as it may. The clock ends at 8,000 ms. */
const fourOnTime = 'takes 1, +2_000 takes 1, +2_000 takes 1, +2_000 takes 1, +2_000'

export const throttling = plainConcern('throttling', [throttled], {
  'a throttle grants its limit, and more when the first start is a ms older than the window': timeline(
    throttle(rule(2, 10_000)),
    2,
    'takes 2, adds 3, +10_000 waits 1, +1 takes 2',
  ),

  'a window begins with each start, not with the first of several': timeline(
    throttle(rule(2, 10_000)),
    9,
    'takes 1 of 1, +6_000 takes 1 of 1, +4_001 takes 1, +5_999 waits 1, +1 takes 1',
  ),

  'several windows apply at once': timeline(
    throttle(rule(2, 1_000), rule(3, 10_000)),
    9,
    'takes 2, +1_001 takes 1, +1_001 waits 7_999, +7_999 takes 2',
  ),

  'an even tempo grants one at a time, slot after slot': timeline(
    throttle(rule(5, 10_000, even)),
    9,
    'takes 1, +1_999 waits 1, +1 takes 1, +1_999 waits 1, +1 takes 1, +1_999 waits 1, +1 takes 1, +1_999 waits 1',
  ),

  'after a late start the next comes that much sooner, and later ones on the grid': timeline(
    throttle(rule(5, 10_000, even)),
    9,
    'takes 1, +2_900 takes 1 waits 1_100, +1_100 takes 1 waits 2_000',
  ),

  'missed slots are lost if the tempo is not elastic': timeline(
    throttle(rule(5, 10_000, even)),
    9,
    'takes 1, +9_000 takes 1 waits 1_000',
  ),

  async 'slots less than a ms apart, or not a whole number of them, are kept in µs'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 1_000, even)) })
    await scene.add(...jobs(9))
    const starts: number[] = []
    const from = await scene.now()
    for (let ms = 0; ms <= 1_001; ms++) {
      if ((ms % 333 < 3 || ms > 999) && (await taken(scene)) > 0) starts.push((await scene.now()) - from)
      await scene.advance(1)
    }
    assert.deepEqual(starts, [0, 334, 667, 1_001])
  },

  'if the window holds a start back, the grid restarts with it': timeline(
    throttle(rule(3, 9_000, even)),
    9,
    // The second start comes late, and so the fifth has to wait for it to leave the window.
    'takes 1, +5_900 takes 1, +100 takes 1, +3_001 takes 1 waits 5_900, +5_900 takes 1 waits 3_000',
  ),

  'an even tempo with a limit of 1 is one start in each window': timeline(
    throttle(rule(1, 5_000, even)),
    3,
    'takes 1, +4_000 waits 1_001, +9_000 takes 1 waits 5_001',
  ),

  'an elastic tempo that fell behind despite waiting jobs catches up, less its buffer': timeline(
    throttle(rule(4, 8_000, elastic(1))),
    30,
    // The window holds one start, of 6,000 ms.
    `${fourOnTime}, +5_000 takes 2`,
  ),

  'an elastic tempo catches up only after a full limit of starts': timeline(
    throttle(rule(4, 8_000, elastic(0))),
    30,
    'takes 1, +2_000 takes 1, +2_000 takes 1, +2_000, +5_000 takes 1',
  ),

  'an elastic tempo answers with its catch-up time, even before the next slot': timeline(
    throttle(rule(4, 8_000, elastic(1))),
    30,
    // At last the next slot is two seconds from then; but before it the start of 14,001 ms leaves the window.
    `${fourOnTime}, +5_000 takes 2, +1_001 takes 1, +2_000 takes 1, +5_000 takes 1 waits 1_001, +1_001 takes 1`,
  ),

  'an idle gap earns no credit: a claim that leaves nothing restarts the tempo': timeline(
    throttle(rule(4, 8_000, elastic(0))),
    4,
    `${fourOnTime}, +4_900, adds 3, takes 1 waits 2_000`,
  ),

  'a claim that finds nothing restarts the tempo too': plainCase(
    [throttled, records],
    timeline(throttle(rule(4, 8_000, elastic(0))), 5, `${fourOnTime}, deletes, +1 takes 0, +4_999, adds 3, takes 1`),
  ),

  async 'an elastic throttle of 33 a minute starts 330 ± 3 jobs in ten minutes, and never more than 33 in any'(scene) {
    await scene.openQueue({ throttle: throttle(rule(33, 60_000, elastic(0))) })
    for (const batch of [1, 2]) await scene.add(...jobs(200).map((id) => `${id}-${batch}`))
    const starts: number[] = []
    for (let at = 0, turn = 0; at < 600_000; turn++) {
      const claims = await taken(scene, { worker: `claimer-${turn % 8}`, limit: 3 })
      starts.push(...Array.from({ length: claims }, () => at))
      const pause = 100 + ((turn * 379) % 900)
      await scene.advance(pause)
      at += pause
    }

    assert.ok(Math.abs(starts.length - 330) <= 3, `${starts.length} started in ten minutes`)
    for (const [i, at] of starts.entries())
      assert.ok((starts[i + 33] ?? Number.POSITIVE_INFINITY) > at + 60_000, `34 started within a minute from ${at}`)
  },

  async 'an empty queue that is asked for a whole window costs no permit'(scene) {
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    for (let i = 0; i < 11; i++) {
      assert.deepEqual(await denied(scene), [{ queue: scene.queue, reason: 'empty' }])
      await scene.advance(1_000)
    }
    await scene.add('a', 'b')

    assert.equal(await taken(scene), 2)
  },

  'permits are taken for the granted jobs, not for the requested ones': timeline(
    throttle(rule(3, 10_000)),
    1,
    'takes 1 of 10, adds 3, takes 0 of 0, takes 1 of 1, takes 1 of 10',
  ),

  async 'the permit of a job is never returned, and it takes another when it starts again'(scene) {
    await scene.openQueue({ throttle: throttle(rule(4, 10_000)) })
    await scene.add('a')
    await scene.end(await scene.claimOne(), { kind: 'release', delayMs: 0 })
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0 })
    await scene.end(await scene.claimOne(), { kind: 'complete' })
    await scene.add('b', 'c')

    assert.equal(await taken(scene), 1)
    assert.deepEqual(await denied(scene), [throttledFor(10_001, 'leads')])
  },

  async 'claims alone take permits, for suspects and for others'(scene) {
    await scene.addSuspects('a')
    await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
    await scene.add('b', 'c')
    const alone = { alone: true, leaseMs: longLeaseMs }
    assert.deepEqual(await scene.claimIds(alone), ['a'])
    assert.deepEqual(await scene.claimIds(alone), ['b'])

    assert.deepEqual(await denied(scene, alone), [throttledFor(10_001, 'leads')])
  },

  async 'a claim that takes the last permit shows a suspect, which the next claim alone gets before the backlog'(
    scene,
  ) {
    await scene.addSuspects('a')
    await scene.advance(10_000)
    await scene.openQueue({ throttle: throttle(rule(1, 10_000)) })
    await scene.add('b', 'c')
    const claimed = await scene.claim({ leaseMs: longLeaseMs })
    assert.deepEqual([idsOf(claimed), suspectsTold(claimed)], [['b'], ['leads']])
    await scene.advance(10_001)

    assert.deepEqual(await scene.claimIds({ alone: true }), ['a'])
  },

  async 'enqueues are not throttled, and denied jobs count as ready'(scene) {
    await scene.openQueue({ throttle: throttle(rule(1, 10_000)) })
    await scene.add(...jobs(50))
    await taken(scene)
    await scene.add('one-more')

    const { ready, running } = await scene.depth()
    assert.deepEqual({ ready, running }, { ready: 50, running: 1 })
  },

  async 'a job that crashes takes a permit when it starts again'(scene) {
    await scene.openQueue({ throttle: throttle(rule(1, 10_000)) })
    await scene.add('a')
    await scene.claimOne({ leaseMs: 4_000 })
    await scene.advance(4_000)

    const waits = await denied(scene, { alone: true })
    assert.deepEqual(waits[0], throttledFor(6_001, 'leads'))
  },

  async 'two handles share the counts of a throttle'(scene) {
    await scene.openQueue({ throttle: throttle(rule(3, 10_000)) })
    await scene.add(...jobs(9))
    const other = await scene.harness.open()
    assert.equal(await taken(scene, { limit: 2 }), 2)

    const { claims } = await other.claim([{ queue: scene.queue, limit: 9 }], { worker: 'w2', leaseMs: 30_000 })
    assert.equal(claims.length, 1)
  },

  'an id of an ordered queue takes one permit, whatever its payloads': orderedCase(
    [throttled, firstUse],
    async (scene) => {
      await scene.openQueue({ throttle: throttle(rule(2, 10_000)) })
      for (const id of ['a', 'b', 'c']) await scene.pushAll(id, ['1', '2', '3'])

      const { claims } = await scene.claim()
      assert.deepEqual(
        claims.map(({ id, payloads }) => `${id} ${payloads?.length}`),
        ['a 3', 'b 3'],
      )
    },
  ),
})

const api = { scope: 'api', by: 'queue', rules: [rule(5, 10_000, even)] } as const

export const throttleRests = plainConcern('the rest of a throttle', [throttled, records, firstUse], {
  async 'after the last ready job was cancelled and a claim found nothing, a new job starts at once and restarts the grid'(
    scene,
  ) {
    await scene.openQueue({ throttle: api })
    await oneCancelled(scene)
    await denied(scene)
    await beginsAnew(scene)
  },

  'the same holds for an ordered queue, once all of its shards are empty': orderedCase(
    [throttled, records, firstUse],
    async (scene) => {
      await scene.openQueue({ shards: 3, throttle: api })
      await oneCancelled(scene)
      await denied(scene)
      await beginsAnew(scene)
    },
  ),

  'a claim in company that finds only suspects restarts the tempo too': plainCase(
    [throttled, records],
    async (scene) => {
      await scene.addSuspects('suspect')
      await scene.openQueue({ throttle: { ...api, scope: scene.queue } })
      await oneCancelled(scene)
      await denied(scene)
      await beginsAnew(scene)
    },
  ),

  async 'after the last ready job was cancelled without a claim since, the grid continues'(scene) {
    await scene.openQueue({ throttle: api })
    await oneCancelled(scene)
    await scene.advance(6_500)
    await scene.add(...jobs(3))

    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene))[0]?.forMs, 1_500)
  },

  async 'a paused queue of the scope has nothing to start, and a shut one has'(scene) {
    await scene.openQueue({ throttle: api })
    await scene.openQueue({ name: 'sms', throttle: api })
    await scene.enqueue(['text'], { queue: 'sms' })
    await scene.add('a')
    assert.equal(await taken(scene), 1)
    await scene.advance(1_000)
    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 1_000)
    await denied(scene)
    await scene.advance(1_900)
    await scene.add('b')
    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene, { queue: 'sms' }))[0]?.forMs, 1_100)

    await scene.records.pause('sms')
    await scene.advance(5_600)
    await denied(scene)
    await scene.add(...jobs(3))
    assert.equal(await taken(scene), 1)
    assert.equal((await denied(scene))[0]?.forMs, 2_000)
  },
})

/** Of two jobs one starts, and the other is cancelled; then the time comes at which that one might have started. */
async function oneCancelled(scene: Scene): Promise<void> {
  await scene.enqueue(['a', 'b'])
  const { id } = await scene.claimOne({ limit: 10, leaseMs: longLeaseMs })
  await scene.records.cancel(scene.queue, { ids: [id === 'a' ? 'b' : 'a'] })
  await scene.advance(2_000)
}

/** After a rest a start comes at once, and the next a whole slot later, wherever it would have been on the old grid. */
async function beginsAnew(scene: Scene): Promise<void> {
  await scene.advance(6_500)
  await scene.enqueue(jobs(3))
  assert.equal(await taken(scene), 1)
  const waits = await denied(scene)
  assert.ok(waits.some(({ reason, forMs }) => reason === 'throttled' && forMs === 2_000))
}
