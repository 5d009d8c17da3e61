/** Contract cases: holds that are shown, that are ended before their time, and that come with any end of a claim. */

import assert from 'node:assert/strict'
import type { Hold } from '../../../stores/contract/settle.js'
import type { StoredHold } from '../../../stores/contract/throttles.js'
import { groups, limited, orderedCase, plainConcern, records, throttled } from '../scenes/contract-case.js'
import { byGroup, denied, grouped, longLeaseMs, rule, taken, throttledFor } from '../scenes/limit-words.js'
import { Rest } from '../scenes/rest.js'
import type { Scene } from '../scenes/scene.js'

const release = (of: Hold['of'], forMs: number) => ({ kind: 'release', delayMs: 0, hold: { of, forMs } }) as const

async function holdsOf(scene: Scene, groups?: readonly string[], limit = 100): Promise<readonly StoredHold[]> {
  return (await scene.throttles.holds(scene.queue, { limit, ...(groups === undefined ? {} : { groups }) })).holds
}

/** Holds each group by a job of its own, and ends these jobs. */
async function hold(scene: Scene, forMsByGroup: Readonly<Record<string, number>>, queue = scene.queue): Promise<void> {
  const jobs = Object.keys(forMsByGroup).map((group) => ({ id: `holds-${group}`, group }))
  await scene.enqueue(jobs, { queue })
  for (const _ of jobs) {
    const claim = await scene.claimOne({ queue })
    await scene.end(claim, { kind: 'complete', hold: { of: 'group', forMs: forMsByGroup[claim.group!]! } })
  }
}

export const releasing = plainConcern('releases of holds', [groups, limited, throttled], {
  async 'holds are listed: first that of the queue, then those of groups by end and name, without expired ones'(scene) {
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 10 }), { holds: [], total: 0 })
    await hold(scene, { É: 5_000, x: 9_000, b: 5_000, short: 1_000 })
    await scene.add('a')
    await scene.end(await scene.claimOne(), release('queue', 7_000))
    await scene.advance(1_000)

    const all = [
      { forMs: 6_000 },
      { group: 'b', forMs: 4_000 },
      { group: 'É', forMs: 4_000 },
      { group: 'x', forMs: 8_000 },
    ]
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 10 }), { holds: all, total: 4 })
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 2 }), { holds: all.slice(0, 2), total: 4 })
    assert.deepEqual(await holdsOf(scene, ['x', 'short', 'unheard-of']), [all[0], all[3]])
    await scene.advance(7_999)
    assert.deepEqual(await holdsOf(scene), [{ group: 'x', forMs: 1 }])
    await scene.advance(1)
    assert.deepEqual(await scene.throttles.holds(scene.queue, { limit: 0 }), { holds: [], total: 0 })
  },

  async 'a released group gets jobs at once, also in a queue without a throttle, and a waiter is rung'(scene) {
    await hold(scene, { x: 86_400_000, y: 9_000 })
    await scene.add(...grouped('x1', 'x2', 'y1'))
    await denied(scene, { worker: 'lead' })
    const rest = await Rest.begin(scene)

    assert.equal(await scene.throttles.release(scene.queue, 'x'), 1)
    await rest.wakes(scene.queue)
    assert.deepEqual(await holdsOf(scene), [{ group: 'y', forMs: 9_000 }])
    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['x1', 'x2'])
    assert.equal(await scene.throttles.release(scene.queue, 'x'), 0)
    assert.equal((await denied(scene))[0]?.forMs, 9_000)
  },

  async 'a release without a group ends the hold of the queue and of all groups, and says how many'(scene) {
    await hold(scene, { x: 5_000, y: 9_000 })
    await scene.add('a', ...grouped('x1', 'y1'))
    await scene.end(await scene.claimOne(), release('queue', 60_000))
    const rest = await Rest.begin(scene)

    assert.equal(await scene.throttles.release(scene.queue), 3)
    await rest.wakes(scene.queue)
    assert.deepEqual(await holdsOf(scene), [])
    assert.equal(await taken(scene), 3)
    assert.equal(await scene.throttles.release(scene.queue), 0)
  },

  async 'a release of a group leaves the hold of its queue and the denials of its throttle'(scene) {
    await scene.openQueue({ throttle: byGroup(rule(1, 60_000)) })
    await scene.add(...grouped('x1', 'x2'))
    await scene.end(await scene.claimOne({ limit: 2, leaseMs: longLeaseMs }), {
      kind: 'complete',
      hold: { of: 'group', forMs: 90_000 },
    })
    await denied(scene, { worker: 'w1' })
    assert.equal(await scene.throttles.release(scene.queue, 'x'), 1)
    assert.equal((await denied(scene, { worker: 'w1' }))[0]?.forMs, 60_001)

    await scene.add('a')
    await scene.end(await scene.claimOne(), release('queue', 120_000))
    assert.equal(await scene.throttles.release(scene.queue, 'x'), 0)
    assert.equal((await denied(scene))[0]?.forMs, 120_000)
  },

  async 'a job that completes holds its group in the same step, with or without a kept result, and does not run again'(
    scene,
  ) {
    await scene.openQueue({ resultsCount: 10 })
    await scene.add(...grouped('x1', 'x2', 'y1', 'y2'))
    const { claims } = await scene.claim({ limit: 4, leaseMs: longLeaseMs })
    const end = async (id: string, how: object) =>
      scene.end(claims.find((claim) => claim.id === id)!, { kind: 'complete', ...how })
    await end('x1', { hold: { of: 'group', forMs: 5_000 } })
    await end('y1', { hold: { of: 'group', forMs: 3_000 }, result: { payload: '"ok"', keepMs: 60_000 } })
    for (const id of ['x2', 'y2'])
      await scene.end(claims.find((claim) => claim.id === id)!, { kind: 'release', delayMs: 0 })

    assert.deepEqual(await denied(scene), [throttledFor(3_000, 'leads')])
    assert.deepEqual(await scene.states(), ['x2 ready', 'y1 completed', 'y2 ready'])
    await scene.advance(3_000)
    assert.deepEqual(await scene.claimIds({ leaseMs: longLeaseMs }), ['y2'])
    await scene.advance(2_000)
    assert.deepEqual(await scene.claimIds(), ['x2'])
  },

  async 'a hold is possible with every end of a claim, and ignored with a lost one'(scene) {
    const held = { hold: { of: 'group', forMs: 5_000 } } as const
    const ends = {
      a: { kind: 'complete', ...held },
      b: { kind: 'retry', delayMs: 60_000, ...held },
      c: { kind: 'retry', delayMs: 0, last: true, reason: 'max-retries', ...held },
      d: { kind: 'release', delayMs: 60_000, ...held },
      e: { kind: 'bury', ...held },
      f: { kind: 'cancel', ...held },
    } as const
    await scene.add(...Object.keys(ends).map((group) => ({ id: group, group })))
    const { claims } = await scene.claim({ leaseMs: longLeaseMs })
    for (const claim of claims) await scene.end(claim, ends[claim.id as keyof typeof ends])
    assert.deepEqual(
      await holdsOf(scene),
      Object.keys(ends).map((group) => ({ group, forMs: 5_000 })),
    )

    await scene.throttles.release(scene.queue)
    for (const claim of claims) assert.notEqual(await scene.settle(claim, ends[claim.id as keyof typeof ends]), 'ok')
    assert.deepEqual(await holdsOf(scene), [])
  },

  async 'in many completions of one claim only the one with a hold holds its group'(scene) {
    await scene.add(...grouped('a1', 'b1', 'c1', 'd1', 'e1', 'f1'))
    const { claims } = await scene.claim({ leaseMs: longLeaseMs })
    const items = claims.map(({ queue, id, fence }) => ({
      ...{ queue, id, fence, kind: 'complete' as const },
      ...(id === 'c1' ? { hold: { of: 'group' as const, forMs: 5_000 } } : {}),
    }))
    assert.deepEqual(
      await scene.store.settle(items),
      items.map(() => 'ok'),
    )

    assert.deepEqual(await holdsOf(scene), [{ group: 'c', forMs: 5_000 }])
    assert.equal((await scene.depth()).running, 0)
  },

  'a hold of an ordered queue is released in all its shards': orderedCase(
    [groups, limited, throttled, records],
    async (scene) => {
      await scene.openQueue({ name: 'many', shards: 3 })
      const jobs = ['a', 'b', 'c', 'd', 'e', 'f'].map((id) => ({ id, group: 'x' }))
      await scene.enqueue(jobs, { queue: 'many' })
      const claim = await scene.claimOne({ queue: 'many' })
      await scene.end(claim, { kind: 'complete', hold: { of: 'group', forMs: 60_000 } })
      await denied(scene, { queue: 'many' })

      assert.deepEqual(await scene.throttles.holds('many', { limit: 5 }), {
        holds: [{ group: 'x', forMs: 60_000 }],
        total: 1,
      })
      assert.equal(await scene.throttles.release('many'), 1)
      assert.equal(await taken(scene, { queue: 'many' }), 5)
    },
  ),
})
