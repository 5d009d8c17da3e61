/** Contract cases: every way in which a member can end, and what is no end. */

import assert from 'node:assert/strict'
import { InvalidArgumentError } from '../../../core/errors.js'
import type { SettleItem } from '../../../stores/contract/settle.js'
import type { Settlement } from '../../sequences/command.js'
import { joinConcern } from '../scenes/contract-case.js'
import { callsOf, type JoinScene, memberOf, members, newJoin, newSet, place } from '../scenes/join-scene.js'
import { Rest } from '../scenes/rest.js'

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
  'completes and holds its queue': ['completed', ended({ kind: 'complete', hold: { of: 'queue', forMs: 1_000 } })],
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
  'is to be cancelled when its worker is found dead': [
    'cancelled',
    async (scene) => {
      const { queue, id, fence } = await scene.member()
      await scene.records.cancel(members, one)
      await scene.workers.gone([{ queue, id, fence }], 'worker-1')
    },
  ],
  'is cancelled while it waits': ['cancelled', (scene) => scene.records.cancel(members, one)],
  'is cancelled among all of its queue': ['cancelled', (scene) => scene.records.cancel(members, 'all')],
  'is cancelled as a suspect': [
    'cancelled',
    async (scene) => {
      await crashed(scene)
      await scene.records.cancel(members, one)
    },
  ],
  'is cancelled before it is due': [
    'cancelled',
    async (scene) => {
      await scene.end(await scene.member(), { kind: 'release', delayMs: 2_000 })
      await scene.records.cancel(members, one)
    },
  ],
  'is buried by an operator': ['dead', (scene) => scene.records.bury(members, one)],
  'fails for the last time, because an operator says so': [
    'dead broken',
    async (scene) => {
      await scene.member()
      await scene.records.fail(members, 'join.all.0', { delayMs: 0, last: true, reason: 'broken' })
    },
  ],
  'is deleted': ['cancelled', (scene) => scene.records.delete(members, one)],
  'is deleted before it is due': [
    'cancelled',
    async (scene) => {
      await scene.end(await scene.member(), { kind: 'release', delayMs: 2_000 })
      await scene.records.delete(members, one)
    },
  ],
  'is deleted among all of its queue': ['cancelled', (scene) => scene.records.delete(members, 'all')],
  'is cleared': ['cancelled', (scene) => scene.records.clear(members)],
  expires: [
    'expired',
    async (scene) => {
      await scene.advance(5_000)
      await scene.members(0)
    },
  ],
  'expires before it is due again': [
    'expired',
    async (scene) => {
      await scene.end(await scene.member(), { kind: 'release', delayMs: 20_000 })
      await scene.advance(5_000)
      await scene.members(0)
    },
  ],
  'expires as a suspect': [
    'expired',
    async (scene) => {
      await crashed(scene)
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
  'crashes too often, and its worker is found dead each time': [
    'dead',
    async (scene) => {
      for (const _ of [1, 2, 3]) {
        const { queue, id, fence } = await scene.member({ alone: true })
        await scene.workers.gone([{ queue, id, fence }], 'worker-1')
      }
    },
  ],
}

/** The member has crashed once. */
async function crashed(scene: JoinScene): Promise<void> {
  await scene.member({ leaseMs: 1_000 })
  await scene.advance(1_000)
  await scene.members(0)
}

/** What happens to a member that ends nothing. */
const noEnds: Readonly<Record<string, Way>> = {
  'fails and is retried': ended({ kind: 'retry', delayMs: 0, error: 'broken' }),
  'is released': ended({ kind: 'release', delayMs: 0 }),
  'is put off': ended({ kind: 'release', delayMs: 1_000 }),
  crashes: crashed,
  'crashes, and its worker is found dead': async (scene) => {
    const { queue, id, fence } = await scene.member()
    await scene.workers.gone([{ queue, id, fence }], 'worker-1')
  },
  'reports that it is alive': async (scene) => {
    await scene.extend(await scene.member(), { beat: { progress: { fraction: 0.5 }, log: 'half' } })
  },
  'passes to another worker': async (scene) => {
    const { queue, id, fence } = await scene.member()
    assert.equal(await scene.workers.adopt({ queue, id, fence }, 'worker-1', 'worker-2'), true)
  },
  'is to be run now': async (scene) => {
    await scene.end(await scene.member(), { kind: 'release', delayMs: 1_000 })
    await scene.records.runNow(members, one)
  },
  'fails, because an operator says so': async (scene) => {
    await scene.member()
    await scene.records.fail(members, 'join.all.0', { delayMs: 0, reason: 'again' })
  },
  'is to be cancelled while it runs': async (scene) => {
    await scene.member()
    await scene.records.cancel(members, one)
  },
  'is to be moved to another queue, or to another number of shards': async (scene) => {
    await assert.rejects(scene.records.move(members, 'mail'), InvalidArgumentError)
    await assert.rejects(scene.records.reshard(members, 2), InvalidArgumentError)
  },
  'is enqueued again': (scene) => scene.enqueue([{ id: 'join.all.0', ifWaiting: 'replace' }], { queue: members }),
}

const inner = { ids: ['inner'] }

/** The ways in which a join ends that is the one member of another, with the fate that is reported. */
const waysOfJoins: Readonly<Record<string, readonly [fate: string, way: Way]>> = {
  completes: [
    'completed "sum"',
    async (scene) => {
      await scene.completes()
      await scene.end(await scene.claimOne(), { kind: 'complete', result: { payload: '"sum"', onlyForJoins: true } })
    },
  ],
  'fails for the last time': [
    'dead broken',
    async (scene) => {
      await scene.completes()
      await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, last: true, error: 'broken' })
    },
  ],
  'dies with its member': [
    "dead member 'inner.all.0' of set 'all' in queue 'rows' is dead",
    async (scene) => {
      await scene.dies()
    },
  ],
  'is late': [
    'dead 1 of its members had not ended in the time that it was given',
    async (scene) => {
      await scene.advance(5_000)
      await scene.sweep()
    },
  ],
  expires: [
    'expired',
    async (scene) => {
      await scene.completes()
      await scene.advance(5_000)
      await scene.claim({ limit: 0 })
    },
  ],
  'is cancelled while it waits for its own': ['cancelled', (scene) => scene.records.cancel('mail', inner)],
  'is cancelled when it is ready': [
    'cancelled',
    async (scene) => {
      await scene.completes()
      await scene.records.cancel('mail', inner)
    },
  ],
  'is buried while it waits for its own': ['dead', (scene) => scene.records.bury('mail', inner)],
  'is deleted while it waits for its own': ['cancelled', (scene) => scene.records.delete('mail', inner)],
}

/** Things that may happen to an inner join and do not end it. */
const noEndsOfJoins: Readonly<Record<string, Way>> = {
  'becomes ready': (scene) => scene.completes(),
  fails: async (scene) => {
    await scene.completes()
    await scene.end(await scene.claimOne(), { kind: 'retry', delayMs: 0, error: 'broken' })
  },
  crashes: async (scene) => {
    await scene.completes()
    const { queue, id, fence } = await scene.claimOne()
    await scene.workers.gone([{ queue, id, fence }], 'worker-1')
  },
}

/** A join that waits for another, whatever becomes of this. */
async function joinOfJoin(scene: JoinScene): Promise<void> {
  const parts = newSet('outer', 'parts', { ids: 'inner', isMany: false, queue: 'mail', size: 1, onDead: 'go-on' })
  const own = { sets: { all: 1 }, withinMs: 5_000, job: { expiresMs: 5_000 } }
  const calls = callsOf('graph', [
    ['mail', [newJoin({ id: 'outer', sets: { parts } })]],
    ['mail', [{ ...newJoin({ id: 'inner', ...own }), memberOf: [place('outer', parts, 0)] }]],
    [members, [memberOf('inner', newSet('inner', 'all', 1), 0)]],
  ])
  assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
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

  async 'members that complete in one call, and keep their results, are heard by each of their joins'(scene) {
    const set = (id: string) => newSet(id, 'all', { size: 5, ids: 'shared' })
    const joins = ['one', 'other'].map((id) => newJoin({ id, sets: { all: set(id) } }))
    const shared = [0, 1, 2, 3, 4].map((n) => ({
      ...memberOf('one', set('one'), n),
      memberOf: [place('one', set('one'), n), place('other', set('other'), n)],
    }))
    const calls = callsOf('graph', [...joins.map((join) => ['mail', [join]] as const), [members, shared] as const])
    assert.deepEqual(await scene.joins.enqueue(calls), { outcome: 'added' })
    const items = (await scene.members()).map(({ queue, id, fence }): SettleItem => {
      return { queue, id, fence, kind: 'complete', result: { payload: '"kept"', keepMs: 60_000 } }
    })
    assert.equal(items.length, 5)

    await scene.store.settle(items)

    for (const id of ['one', 'other']) {
      assert.equal(await scene.state(id), 'ready')
      assert.deepEqual(
        await scene.ends('all', 0, 10, id),
        [0, 1, 2, 3, 4].map((n) => `${n} completed "kept"`),
      )
    }
  },

  ...Object.fromEntries(
    Object.entries(waysOfJoins).map(([title, [fate, way]]) => [
      `if a join ${title}, the join that waits for it goes on`,
      async (scene: JoinScene) => {
        await joinOfJoin(scene)

        await way(scene)

        assert.equal(await scene.state('outer'), 'ready')
        assert.deepEqual(await scene.ends('parts', 0, 10, 'outer'), [`0 ${fate}`])
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.entries(noEndsOfJoins).map(([title, way]) => [
      `if a join ${title}, nothing is reported to the join that waits for it`,
      async (scene: JoinScene) => {
        await joinOfJoin(scene)

        await way(scene)

        assert.equal(await scene.state('outer'), 'waiting')
        assert.deepEqual(await scene.ends('parts', 0, 10, 'outer'), [])
      },
    ]),
  ),

  async 'a member that a dead join cancels is reported to its other joins'(scene) {
    const sets = ['first', 'second'].map((id) => newSet(id, 'all', { ids: 'shared', isMany: false, onDead: 'go-on' }))
    const own = newSet('first', 'own', { size: 1 })
    await scene.join({ id: 'first', sets: { all: sets[0]!, own }, cancelsRest: true })
    await scene.join({ id: 'second', sets: { all: sets[1]! } })
    const memberOf = ['first', 'second'].map((id, i) => place(id, sets[i]!, 0))
    await scene.enqueue([{ id: 'shared', memberOf }], { queue: members })
    for (const id of ['first', 'second']) await scene.seal({ all: 1 }, id)
    const dying = await scene.member()
    assert.equal(dying.id, 'first.own.0')
    await scene.end(dying, { kind: 'bury', error: 'broken' })
    assert.equal(await scene.state('second'), 'waiting')

    await scene.sweep()

    assert.equal(await scene.state('shared', members), 'cancelled: join-dead')
    assert.equal(await scene.state('second'), 'ready')
    assert.deepEqual(await scene.ends('all', 0, 10, 'second'), ['0 cancelled'])
  },

  async 'members of groups that complete together are all reported'(scene) {
    await scene.join({ sets: { all: 6 }, member: { group: 'g' } })
    const claims = await scene.members()
    await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
    assert.equal(await scene.state(), 'ready')
    assert.equal((await scene.set()).counts.completed, 6)
  },

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

  async 'the ids of members that complete are remembered as long as those of other jobs'(scene) {
    await scene.join({ sets: { all: 6 }, member: { rememberMs: 60_000 } })
    await scene.completes()
    const claims = await scene.members()
    await scene.store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
    assert.equal(await scene.state(), 'ready')
    const { remembered } = await scene.stored(members)
    assert.deepEqual(
      remembered.map(({ id }) => id),
      [0, 1, 2, 3, 4, 5].map((n) => `join.all.${n}`),
    )
  },

  async 'a claim grants no join whose last member it finds to have ended, and rings for it'(scene) {
    const sets = { all: { size: 1, onDead: 'go-on' as const } }
    await scene.join({ id: 'apart', sets, member: { expiresMs: 5_000 } })
    const beside = newSet('beside', 'all', { ...sets.all, queue: 'mail' })
    const jobs = [newJoin({ id: 'beside', sets: { all: beside } }), memberOf('beside', beside, 0, { expiresMs: 5_000 })]
    await scene.joins.enqueue(callsOf('beside', [['mail', jobs]]))
    await scene.advance(5_000)
    const rest = await Rest.begin(scene)

    const from = [members, 'mail'].map((queue) => ({ queue, limit: 5 }))
    const { claims, expired } = await scene.store.claim(from, { worker: 'worker-1', leaseMs: 30_000 })

    assert.deepEqual(claims, [])
    assert.deepEqual(expired?.map(({ id }) => id).sort(), ['apart.all.0', 'beside.all.0'])
    assert.deepEqual([await scene.state('apart'), await scene.state('beside')], ['ready', 'ready'])
    await rest.wakes('mail')
    assert.deepEqual(await scene.claimIds(), ['apart', 'beside'])
  },

  async 'the end of a member is reported to each of its joins'(scene) {
    const sets = ['first', 'second'].map((id) => newSet(id, 'all', { ids: 'shared', isMany: false }))
    for (const [i, id] of ['first', 'second'].entries()) await scene.join({ id, sets: { all: sets[i]! } })
    const memberOf = ['first', 'second'].map((id, i) => place(id, sets[i]!, 0))
    assert.deepEqual(await scene.enqueue([{ id: 'shared', memberOf }], { queue: members }), ['added'])
    for (const id of ['first', 'second']) assert.equal(await scene.seal({ all: 1 }, id), 'sealed')
    assert.equal(await scene.state('second'), 'waiting')

    await scene.completes('"both"')

    assert.deepEqual([await scene.state('first'), await scene.state('second')], ['ready', 'ready'])
    assert.deepEqual(await scene.ends('all', 0, 10, 'second'), ['0 completed "both"'])
  },
})
