/** Contract cases: the limits of a queue, said at an open, followed, and changed. */

import assert from 'node:assert/strict'
import { ConfigConflictError, UnknownQueueError } from '../../../core/errors.js'
import type { QueueLimits } from '../../../core/queue/queue-limits.js'
import type { QueueSettings } from '../../../stores/contract/queue-settings.js'
import type { Store } from '../../../stores/contract/store.js'
import { limited, ordered, plainCase, plainConcern, records, rings } from '../scenes/contract-case.js'
import type { Scene } from '../scenes/scene.js'

/** Each limit, and others of it. */
const kinds: Readonly<Record<keyof QueueLimits, readonly [QueueLimits, QueueLimits, QueueLimits]>> = {
  maxRunning: [{ maxRunning: 2 }, { maxRunning: 3 }, { maxRunning: { perGroup: 2 } }],
  maxPending: [{ maxPending: 5 }, { maxPending: 6 }, { maxPending: 'none' }],
  maxCrashes: [{ maxCrashes: 2 }, { maxCrashes: 3 }, { maxCrashes: 9 }],
  resultsCount: [{ resultsCount: 7 }, { resultsCount: 0 }, { resultsCount: 'none' }],
  dead: [{ dead: { ageMs: 5_000 } }, { dead: { ageMs: 5_000, count: 1 } }, { dead: {} }],
}
const said: QueueLimits = {
  maxRunning: { perGroup: 2, total: 3 },
  maxPending: 5,
  maxCrashes: 2,
  resultsCount: 7,
  dead: { ageMs: 5_000, count: 3 },
}

const form = { name: 'mail', kind: 'plain', order: 'fifo' } as const
const open = (store: Store, limits: QueueLimits = {}, more: Partial<QueueSettings> = {}) =>
  store.open([{ ...form, ...more, ...limits }])
const follow = (store: Store, limits: QueueLimits = {}) => store.open([{ ...form, ...limits }], { follows: true })
const limitsOf = async ({ records }: Scene, queue = 'mail') =>
  (await records.queues()).find(({ name }) => name === queue)!.limits

export const saidLimits = plainConcern('who says the limits of a queue', [records, limited], {
  async 'an open without limits leaves every stored limit unchanged'(scene) {
    await open(scene.store, said)
    const before = await scene.harness.dump()
    const [stored] = await open(await scene.harness.open())

    assert.deepEqual(stored!.limits, said)
    assert.deepEqual(stored!.maxRunning, { perGroup: 2, total: 3 })
    assert.deepEqual(await scene.harness.dump(), before)
  },

  async 'the first open with a limit sets it'(scene) {
    for (const [first] of Object.values(kinds)) await open(scene.store, first)

    assert.deepEqual(await limitsOf(scene), Object.assign({}, ...Object.values(kinds).map(([first]) => first)))
    const { maxPending, maxCrashes, resultsCount, deadAgeMs, deadCount } = await scene.stored()
    assert.deepEqual(
      { maxPending, maxCrashes, resultsCount, deadAgeMs, deadCount },
      { maxPending: 5, maxCrashes: 2, resultsCount: 7, deadAgeMs: 5_000, deadCount: null },
    )
  },

  ...Object.fromEntries(
    Object.entries(kinds).map(([limit, [first, ...others]]) => [
      `an open with another ${limit} than the stored one is refused, and opens nothing`,
      plainCase([records, limited], async (scene) => {
        await open(scene.store, first)
        const before = await scene.harness.dump()
        for (const other of others) {
          const fresh = { ...form, name: 'fresh' }
          await assert.rejects(scene.store.open([fresh, { ...form, ...other }]), ConfigConflictError)
          await assert.rejects(scene.store.depth(['fresh']), UnknownQueueError)
        }
        assert.deepEqual(await scene.harness.dump(), before)
        await open(scene.store, first)
      }),
    ]),
  ),

  async 'limits with their parts in another order are the same'(scene) {
    await open(scene.store, { maxRunning: { perGroup: 2, total: 3 }, dead: { ageMs: 5_000, count: 3 } })

    await open(scene.store, { dead: { count: 3, ageMs: 5_000 }, maxRunning: { total: 3, perGroup: 2 } })
  },

  async 'a follower is not refused, and changes nothing in a stored queue'(scene) {
    await open(scene.store, { maxRunning: 2 })
    const before = await scene.harness.dump()
    const [stored] = await follow(await scene.harness.open(), { maxRunning: 9, maxPending: 1, maxCrashes: 1 })

    assert.deepEqual(stored!.limits, { maxRunning: 2 })
    assert.deepEqual(await scene.harness.dump(), before)
    await scene.add('a', 'b', 'c')
    assert.deepEqual(await scene.claimIds(), ['a', 'b'])
  },

  async 'a follower creates a missing queue, with its limits'(scene) {
    await scene.store.open([{ ...form, name: 'fresh', maxPending: 1 }], { follows: true })

    assert.deepEqual(await limitsOf(scene, 'fresh'), { maxPending: 1 })
    await assert.rejects(open(scene.store, { maxPending: 2 }, { name: 'fresh' }), ConfigConflictError)
  },

  async 'a change applies at once in every handle; then the earlier limit is refused'(scene) {
    await open(scene.store, { maxRunning: 2, maxPending: 9 })
    const other = await scene.harness.open()
    await open(other)

    assert.deepEqual(await other.records!.setLimits('mail', { maxRunning: 3 }), { maxRunning: 3, maxPending: 9 })

    await scene.add('a', 'b', 'c', 'd')
    assert.deepEqual(await scene.claimIds(), ['a', 'b', 'c'])
    await assert.rejects(open(scene.store, { maxRunning: 2 }), ConfigConflictError)
    await open(scene.store, { maxRunning: 3 })
    await follow(scene.store, { maxRunning: 2 })
    assert.deepEqual(await limitsOf(scene), { maxRunning: 3, maxPending: 9 })
  },

  async 'another maxCrashes applies at once in every handle, to jobs that run already too'(scene) {
    await open(scene.store, { maxCrashes: 3 })
    const other = await scene.harness.open()
    await open(other)
    await scene.add('a')
    await scene.claim({ leaseMs: 1_000, alone: true })

    await other.records!.setLimits('mail', { maxCrashes: 1 })
    await scene.advance(1_000)

    const { buried } = await scene.claim({ alone: true })
    assert.deepEqual(
      buried.map(({ id, reason }) => [id, reason]),
      [['a', 'crashed']],
    )
  },

  async 'opening a queue does not restore a limit that an operator removed'(scene) {
    await open(scene.store, said)
    const none = { maxRunning: 'none', maxPending: 'none', resultsCount: 'none', dead: {} } as const
    await scene.records.setLimits('mail', none)

    for (const limit of ['maxRunning', 'maxPending', 'resultsCount', 'dead'] as const)
      await assert.rejects(open(scene.store, { [limit]: said[limit] }), ConfigConflictError)
    await open(scene.store)
    assert.deepEqual(await limitsOf(scene), { ...none, maxCrashes: 2 })
    const { maxPending, resultsCount, deadAgeMs, deadCount } = await scene.stored()
    assert.deepEqual(
      { maxPending, resultsCount, deadAgeMs, deadCount },
      Object.fromEntries(['maxPending', 'resultsCount', 'deadAgeMs', 'deadCount'].map((name) => [name, null])),
    )
    await scene.add('a', 'b', 'c', 'd', 'e', 'f')
    assert.equal((await scene.claimIds()).length, 6)
  },

  async 'if two opens set different limits at the same time, one is refused'(scene) {
    const other = await scene.harness.open()
    const opened = await Promise.allSettled([open(scene.store, { maxRunning: 2 }), open(other, { maxRunning: 3 })])

    assert.equal(opened.filter(({ status }) => status === 'fulfilled').length, 1)
    const first = opened[0].status === 'fulfilled' ? 2 : 3
    assert.deepEqual(await limitsOf(scene), { maxRunning: first })
  },

  async 'two changes of different limits at the same time both apply'(scene) {
    const other = await scene.harness.open()
    await open(other)
    await Promise.all([
      scene.records.setLimits('mail', { maxRunning: 2 }),
      other.records!.setLimits('mail', { maxPending: 4 }),
    ])

    assert.deepEqual(await limitsOf(scene), { maxRunning: 2, maxPending: 4 })
  },

  'a change of the limits wakes a waiting worker': plainCase([records, limited, rings], async (scene) => {
    await open(scene.store, { maxRunning: 1 })
    await scene.add('a', 'b')
    await scene.claimOne()
    const other = await scene.harness.open()
    await open(other)
    assert.deepEqual((await scene.claim()).claims, [])
    const woken = scene.store.wait(['mail'], 60_000, new AbortController().signal)
    await other.records!.setLimits('mail', { maxRunning: 2 })

    assert.deepEqual(await woken, ['mail'])
    assert.deepEqual(await scene.claimIds(), ['b'])
  }),

  async 'a total and a number for each group apply together'(scene) {
    await open(scene.store, { maxRunning: { total: 3, perGroup: 2 } })
    await scene.add(...['x1', 'x2', 'x3', 'y1', 'y2', 'z1'].map((id) => ({ id, group: id[0]! })))
    const { claims } = await scene.claim()
    assert.deepEqual(claims.map(({ id }) => id).sort(), ['x1', 'y1', 'z1'])

    for (const claim of claims.slice(1)) await scene.end(claim, { kind: 'complete' })
    const next = await scene.claim({ limit: 1 })
    assert.deepEqual(
      next.claims.map(({ id }) => id),
      ['x2'],
    )
    const last = await scene.claimIds()
    assert.deepEqual(last, ['y2'])
  },

  async 'an unknown queue cannot get limits'(scene) {
    await assert.rejects(scene.records.setLimits('nowhere', { maxRunning: 2 }), UnknownQueueError)
  },

  'all shards of an ordered queue have the limits, and keep them in a reshard': plainCase(
    [records, limited, ordered],
    async (scene) => {
      const shape = { name: 'many', kind: 'ordered', shards: 3 } as const
      await open(scene.store, { maxPending: 9, dead: { count: 6 } }, shape)
      await scene.records.setLimits('many', { maxPending: 6, maxRunning: 2 })
      for (;;) if (!(await scene.records.reshard('many', 2)).more) break

      assert.deepEqual(await limitsOf(scene, 'many'), { maxRunning: 2, maxPending: 6, dead: { count: 6 } })
      await assert.rejects(open(scene.store, { maxPending: 9 }, shape), ConfigConflictError)
      await open(scene.store, { maxPending: 6 }, shape)
      await assert.rejects(scene.records.setLimits('many', { maxRunning: { perGroup: 1 } }), ConfigConflictError)
    },
  ),
})
