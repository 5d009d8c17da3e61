/** Contract cases: every way in which a member can end, and what is no end. */

import assert from 'node:assert/strict'
import type { SettleItem } from '../../../stores/contract/settle.js'
import type { Settlement } from '../../sequences/command.js'
import { joinConcern } from '../scenes/contract-case.js'
import { type JoinScene, members, newSet, place } from '../scenes/join-scene.js'

type Way = (scene: JoinScene) => Promise<unknown>

const ended =
  (settlement: Settlement): Way =>
  async (scene) =>
    scene.end(await scene.member(), settlement)

const one = { ids: ['join.all.0'] }

/** The ways in which the one member of a join ends, with the fate that is reported. */
const ways: Readonly<Record<string, readonly [fate: string, way: Way]>> = {
  completes: ['completed', ended({ kind: 'complete' })],
  'completes with a result for its joins': [
    'completed "1"',
    ended({ kind: 'complete', result: { payload: '"1"', onlyForJoins: true } }),
  ],
  'completes with a kept result': ['completed "1"', ended({ kind: 'complete', result: { payload: '"1"' } })],
  'completes with a kept nothing': ['completed', ended({ kind: 'complete', result: {} })],
  'fails for the last time': ['dead broken', ended({ kind: 'retry', delayMs: 0, last: true, error: 'broken' })],
  'is buried by its handler': ['dead broken', ended({ kind: 'bury', error: 'broken' })],
  'is cancelled by its handler': ['cancelled', ended({ kind: 'cancel', reason: 'stop' })],
  'is released after its cancellation was asked for': [
    'cancelled',
    async (scene) => {
      const claim = await scene.member()
      await scene.records.cancel(members, one)
      await scene.end(claim, { kind: 'release', delayMs: 0 })
    },
  ],
  'fails after its cancellation was asked for': [
    'cancelled',
    async (scene) => {
      const claim = await scene.member()
      await scene.records.cancel(members, one)
      await scene.end(claim, { kind: 'retry', delayMs: 0, error: 'broken' })
    },
  ],
  'crashes after its cancellation was asked for': [
    'cancelled',
    async (scene) => {
      await scene.member({ leaseMs: 1_000 })
      await scene.records.cancel(members, one)
      await scene.advance(1_000)
      await scene.members(0)
    },
  ],
  'is cancelled while it waits': ['cancelled', (scene) => scene.records.cancel(members, one)],
  'is cancelled among all of its queue': ['cancelled', (scene) => scene.records.cancel(members, 'all')],
  'is buried by an operator': ['dead', (scene) => scene.records.bury(members, one)],
  'fails for the last time, because an operator says so': [
    'dead broken',
    async (scene) => {
      await scene.member()
      await scene.records.fail(members, 'join.all.0', { delayMs: 0, last: true, reason: 'broken' })
    },
  ],
  'is deleted': ['cancelled', (scene) => scene.records.delete(members, one)],
  'is deleted among all of its queue': ['cancelled', (scene) => scene.records.delete(members, 'all')],
  'is cleared': ['cancelled', (scene) => scene.records.clear(members)],
  expires: [
    'expired',
    async (scene) => {
      await scene.advance(5_000)
      await scene.members(0)
    },
  ],
  'crashes too often': [
    'dead',
    async (scene) => {
      for (const _ of [1, 2, 3]) {
        await scene.member({ leaseMs: 1_000, alone: true })
        await scene.advance(1_000)
      }
      await scene.members(0, { alone: true })
    },
  ],
}

/** What happens to a member that ends nothing. */
const noEnds: Readonly<Record<string, Way>> = {
  'fails and is retried': ended({ kind: 'retry', delayMs: 0, error: 'broken' }),
  'is released': ended({ kind: 'release', delayMs: 0 }),
  'is put off': ended({ kind: 'release', delayMs: 1_000 }),
  crashes: async (scene) => {
    await scene.member({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.members(0)
  },
  'fails, because an operator says so': async (scene) => {
    await scene.member()
    await scene.records.fail(members, 'join.all.0', { delayMs: 0, reason: 'again' })
  },
  'is to be cancelled while it runs': async (scene) => {
    await scene.member()
    await scene.records.cancel(members, one)
  },
  'is enqueued again': (scene) => scene.enqueue([{ id: 'join.all.0', ifWaiting: 'replace' }], { queue: members }),
}

export const joinEnds = joinConcern('the ends of members', [], {
  ...Object.fromEntries(
    Object.entries(ways).map(([title, [fate, way]]) => [
      `if a member ${title}, its join goes on`,
      async (scene: JoinScene) => {
        await scene.openQueue({ name: members, maxCrashes: 3 })
        await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } }, member: { expiresMs: 5_000 } })
        assert.equal(await scene.state(), 'waiting')

        await way(scene)

        assert.equal(await scene.state(), 'ready')
        assert.deepEqual(await scene.ends(), [`0 ${fate}`])
        const { counts, added, size, oldest } = await scene.set()
        assert.deepEqual({ added, size, oldest }, { added: 1, size: 1, oldest: undefined })
        const none = { completed: 0, dead: 0, cancelled: 0, expired: 0 }
        assert.deepEqual(counts, { ...none, [fate.split(' ')[0]!]: 1 })
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(ways).map(([title, [fate, way]]) => [
      `if a member ${title}, a join that waits for completion ${fate.startsWith('completed') ? 'is ready' : 'is dead'}`,
      async (scene: JoinScene) => {
        await scene.openQueue({ name: members, maxCrashes: 3 })
        await scene.join({ sets: { all: 1 }, member: { expiresMs: 5_000 } })

        await way(scene)

        assert.equal(await scene.state(), fate.startsWith('completed') ? 'ready' : 'dead: join-member-dead')
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(noEnds).map(([title, way]) => [
      `if a member ${title}, nothing is reported`,
      async (scene: JoinScene) => {
        await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })

        await way(scene)

        assert.equal(await scene.state(), 'waiting')
        assert.deepEqual(await scene.ends(), [])
        assert.equal((await scene.set()).oldest, 0)
      },
    ]),
  ),

  async 'a late end of a claim that was lost reports nothing'(scene) {
    await scene.join({ sets: { all: 1 } })
    const late = await scene.member({ leaseMs: 1_000 })
    await scene.advance(1_000)
    await scene.members(0)
    const now = await scene.member({ alone: true })

    assert.equal(await scene.settle(late, { kind: 'bury', error: 'late' }), 'lost')
    assert.equal(await scene.state(), 'waiting')
    await scene.end(now, { kind: 'complete' })
    assert.equal(await scene.state(), 'ready')
  },

  async 'the ends of members that are settled in one call are all reported'(scene) {
    await scene.join({ sets: { all: 8 } })
    await scene.enqueue(['other'], { queue: members })
    const claims = await scene.members()
    const results = [{ payload: '"0"' }, { payload: 'ü\0🎈' }, {}, { payload: Uint8Array.of(1, 2) }]
    const items = claims.map(({ queue, id, fence }, i): SettleItem => {
      const result = results[i % results.length]
      return { queue, id, fence, kind: 'complete', ...(i < 6 ? { result: { ...result, onlyForJoins: true } } : {}) }
    })

    assert.deepEqual(
      await scene.store.settle(items),
      items.map(() => 'ok'),
    )

    assert.equal(await scene.state(), 'ready')
    assert.equal((await scene.set()).counts.completed, 8)
    const ends = await scene.joins.ends({ queue: 'mail', id: 'join' }, 'all', 0, 10)
    const payloads = ends.map(({ payload }) => (typeof payload === 'object' ? [...payload] : payload))
    assert.deepEqual(payloads, ['"0"', 'ü\0🎈', undefined, [1, 2], '"0"', 'ü\0🎈', undefined, undefined])
    assert.deepEqual(await scene.states(members), [])
  },

  async 'members that complete together without results are all reported'(scene) {
    await scene.join({ sets: { all: 6 } })
    const claims = await scene.members()
    await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
    assert.equal(await scene.state(), 'ready')
    assert.deepEqual(
      await scene.ends(),
      [0, 1, 2, 3, 4, 5].map((n) => `${n} completed`),
    )
  },

  async 'the end of a member is reported to each of its joins'(scene) {
    const sets = ['first', 'second'].map((id) => newSet(id, 'all', { ids: 'shared', isMany: false }))
    for (const [i, id] of ['first', 'second'].entries()) await scene.join({ id, sets: { all: sets[i]! } })
    const memberOf = ['first', 'second'].map((id, i) => place(id, sets[i]!, 0))
    assert.deepEqual(await scene.enqueue([{ id: 'shared', memberOf }], { queue: members }), ['added'])
    for (const id of ['first', 'second']) assert.equal(await scene.seal({ all: 1 }, id), 'ok')
    assert.equal(await scene.state('second'), 'waiting')

    await scene.completes('"both"')

    assert.deepEqual([await scene.state('first'), await scene.state('second')], ['ready', 'ready'])
    assert.deepEqual(await scene.ends('all', 0, 10, 'second'), ['0 completed "both"'])
  },
})
