/** Joins on Redis, whose parts have transactions of their own: what remains if a process dies between two of them. */

import { defineTask, many } from 'millrace'
import { describe, expect, it } from 'vitest'
import {
  callsOf,
  type JoinScene,
  memberOf,
  members,
  newJoin,
  newSet,
  place,
} from '#src/store-testing/contract/scenes/join-scene.js'
import type { Claim } from '#src/stores/contract/claim.js'
import type { GraphAnswer } from '#src/stores/contract/joins.js'
import type { RedisStore } from '#src/stores/redis/redis-store.js'
import { testMillOn } from '../../test-mill.js'
import { RedisJoins } from './redis-join-scene.js'

const rates = defineTask({ name: 'rates', queue: 'rates', run: async (date: string) => date })
const sum = defineTask({ name: 'sum', queue: 'sums', run: async (n: number) => n })
const report = defineTask({
  name: 'report',
  joins: { rate: rates, sales: many(sum) },
  run: async (month: string) => month,
})
const year = defineTask({
  name: 'year',
  joins: { months: report, rate: rates },
  run: async (of: string) => of,
})
const tasks = [rates, sum, report, year] as const

const millOn = (store: RedisStore) => testMillOn(store, { tasks, queues: { sums: { shards: 3 } } })
type TestMill = ReturnType<typeof millOn>

/** The scripts by which a graph is stored, and its members follow. */
const storing = ['enqueue-graph', 'join-seal']

/** Lets the producer die before each of these scripts in turn, and the call repeat; then all jobs end. */
async function cutEverywhere(
  enqueue: (mill: TestMill) => Promise<unknown>,
  check: (joins: RedisJoins, store: RedisStore, at: number) => Promise<void>,
): Promise<number> {
  for (let at = 1; ; at += 1) {
    const joins = new RedisJoins()
    let seen = 0
    const first = millOn(await joins.open((script) => storing.includes(script) && ++seen === at))
    const isWhole = await enqueue(first).then(
      () => true,
      () => false,
    )
    const store = await joins.open()
    await enqueue(millOn(store))
    await check(joins, store, at)
    if (isWhole) return at - 1
  }
}

/** Completes jobs of these queues until none is ready; their ids. */
async function complete(store: RedisStore, ...queues: string[]): Promise<string[]> {
  const ids: string[] = []
  for (;;) {
    const from = queues.map((queue) => ({ queue, limit: 500 }))
    const { claims } = await store.claim(from, { worker: 'w', leaseMs: 60_000 })
    if (claims.length === 0) return ids
    ids.push(...claims.map(({ id }) => id))
    await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
  }
}

describe('a join whose producer died before it was whole goes on when the call is repeated', () => {
  it.each([
    ['of a few members', 5],
    ['of members that are stored in two steps', 300],
    ['of many members', 1_200],
  ])('%s', { timeout: 60_000 }, async (_, size) => {
    const sales = Array.from({ length: size }, (_, n) => n)
    const cuts = await cutEverywhere(
      (mill) => mill.enqueue(report, 'May', { id: 'may', after: { rate: 'x', sales } }),
      async (_joins, store, at) => {
        const home = { queue: 'default', id: 'may' }
        expect(await store.joins.look(home), `cut ${at}`).toMatchObject({ sets: [{ size: 1 }, { size }] })
        const ended = await complete(store, 'sums')
        expect([ended.length, new Set(ended).size], `cut ${at}`).toEqual([size, size])
        expect((await store.records.get(home.queue, home.id))?.state, `cut ${at}`).toBe('waiting')
        expect(await complete(store, 'rates'), `cut ${at}`).toHaveLength(1)
        expect((await store.records.get(home.queue, home.id))?.state, `cut ${at}`).toBe('ready')
        expect((await store.joins.look(home))?.sets.map(({ counts }) => counts.completed)).toEqual([1, size])
      },
    )
    expect(cuts).toBeGreaterThan(4)
  })
})

describe('a join that two producers enqueue at once under one id is stored once', () => {
  it.each([
    ['of a few members', 3],
    ['of members that are stored in two steps', 300],
    ['of many members', 1_200],
  ])('%s', { timeout: 60_000 }, async (_, size) => {
    const sales = Array.from({ length: size }, (_, n) => n)
    const enqueue = (mill: TestMill) => mill.enqueue(report, 'May', { id: 'may', after: { rate: 'x', sales } })
    let steps = 0
    for (let at = 1; at === 1 || at <= steps; at += 1) {
      const joins = new RedisJoins()
      const second = await joins.open()
      let [seen, isIn] = [0, false]
      // The second producer comes before one of the steps of the first.
      const first = await joins.open(undefined, undefined, async (script) => {
        if (!storing.includes(script) || ++seen !== at || isIn) return
        isIn = true
        await enqueue(millOn(second))
      })
      await enqueue(millOn(first))
      steps = seen

      const home = { queue: 'default', id: 'may' }
      const ended = await complete(second, 'sums', 'rates')
      expect([ended.length, new Set(ended).size], `step ${at}`).toEqual([size + 1, size + 1])
      expect((await second.joins.look(home))?.sets.map(({ counts }) => counts.completed)).toEqual([1, size])
      expect((await second.records.get(home.queue, home.id))?.state, `step ${at}`).toBe('ready')
    }
    expect(steps).toBeGreaterThan(3)
  })
})

describe('a flow whose producer died before it was whole', () => {
  const flow = (mill: TestMill, id?: string) =>
    mill.flow((f) => {
      const rate = f.job(rates, 'x')
      const sales = f.jobs(sum, [1, 2, 3, 4])
      const months = f.job(report, 'May', { after: { rate, sales } })
      return f.job(year, '2026', { ...(id !== undefined && { id }), after: { months, rate } })
    })

  it('goes on when it is repeated with the same id', { timeout: 60_000 }, async () => {
    const cuts = await cutEverywhere(
      (mill) => flow(mill, '2026'),
      async (_joins, store, at) => {
        const ended = await complete(store, 'sums', 'rates')
        expect([ended.length, new Set(ended).size], `cut ${at}`).toEqual([5, 5])
        expect((await store.records.get('default', '2026'))?.state).toBe('waiting')
        expect(await complete(store, 'default'), `cut ${at}`).toHaveLength(2)
        const { depths } = await store.depth(['default', 'sums', 'rates'])
        expect(depths.map(({ waiting, ready, dead }) => waiting + ready + dead)).toEqual([0, 0, 0])
      },
    )
    expect(cuts).toBeGreaterThan(6)
  })

  it('is dead as never sealed if it has no id, and its members run', async () => {
    const joins = new RedisJoins()
    await expect(flow(millOn(await joins.open((script) => script === 'join-seal')))).rejects.toThrow()
    const store = await joins.open()
    expect(await complete(store, 'sums', 'rates')).toHaveLength(5)
    joins.now += 3_600_000
    const { failed } = await store.joins.sweep('w')
    expect(failed.map(({ task, reason }) => `${task} ${reason}`).sort()).toEqual([
      'report join-never-sealed',
      'year join-member-dead',
    ])
  })

  it('gives the handles of the jobs that are there if it is repeated later', async () => {
    const joins = new RedisJoins()
    const mill = millOn(await joins.open())
    const build = (one: TestMill) =>
      one.flow((f) => {
        const rate = f.job(rates, 'x')
        return { rate, month: f.job(report, 'May', { id: 'may', after: { rate, sales: f.jobs(sum, [1]) } }) }
      })
    const [first, again] = [await build(mill), await build(mill)]
    expect([again.month.outcome, again.rate.id]).toEqual(['duplicate', first.rate.id])
  })
})

const by = { worker: 'w', leaseMs: 60_000 }

describe('what a process that died has left, a sweep of another does', () => {
  it('delivers the end of a member that its join has not heard', async () => {
    const joins = new RedisJoins()
    const scene = await joins.scene()
    await scene.join({ sets: { all: 1 } })
    const dying = await joins.open((script) => script === 'join-hear')
    const { claims } = await dying.claim([{ queue: members, limit: 1 }], by)
    expect(await dying.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))).toEqual([
      'ok',
    ])
    await dying.close()
    expect(await scene.state()).toBe('waiting')

    await scene.advance(1_000)
    await scene.sweep('other')

    expect(await scene.state()).toBe('ready')
  })

  it('hears the end of a join that is a member itself', async () => {
    const joins = new RedisJoins()
    const scene = await joins.scene()
    const outer = newSet('outer', 'parts', { ids: 'inner', isMany: false, queue: 'mail', size: 1 })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ id: 'outer', sets: { parts: outer } })]],
      ['mail', [{ ...newJoin({ id: 'inner', sets: { all: 1 } }), memberOf: [place('outer', outer, 0)] }]],
      [members, [memberOf('inner', newSet('inner', 'all', 1), 0)]],
    ])
    await scene.joins.enqueue(calls)
    // The death of the inner join is stored, and what follows from it is not.
    let heard = 0
    const dying = await joins.open((script) => script === 'join-hear' && ++heard === 2)
    await dying.records.cancel(members, { ids: ['inner.all.0'] })
    await dying.close()
    expect([await scene.state('inner'), await scene.state('outer')]).toEqual(['dead: join-member-dead', 'waiting'])

    await scene.advance(1_000)
    await scene.sweep('other')

    expect(await scene.state('outer')).toBe('dead: join-member-dead')
  })

  it('cancels the rest of a dead join, which its process had not begun with, or had left half done', async () => {
    for (const stops of [1, 2]) {
      const joins = new RedisJoins()
      const scene = await joins.scene()
      await scene.join({ sets: { all: {}, one: 1 }, cancelsRest: true })
      for (let from = 0; from < 1_500; from += 250) await scene.addMembers(newSet('join', 'all', {}), from, from + 250)
      let cancels = 0
      const dying = await joins.open((script) => script === 'join-cancel-members' && ++cancels === stops)
      await dying.records.bury(members, { ids: ['join.one.0'] })
      expect(await scene.state()).toBe('dead: join-member-dead')
      await dying.joins.sweep('dying').catch(() => {})
      expect((await scene.depth(members)).ready).toBe(stops === 1 ? 1_500 : 500)

      await scene.advance(10_000)
      await scene.sweep('other')

      expect((await scene.depth(members)).ready).toBe(0)
    }
  })

  it('cancels the rest anew if the join was revived meanwhile and has died again', async () => {
    const joins = new RedisJoins()
    let isAway = false
    const sweeper = await joins.open(
      undefined,
      (script, args) => isAway && script === 'join-cancel-members' && /second/.test(String(args[0])),
    )
    const scene = await joins.scene()
    await scene.join({ sets: { first: 1, second: 1 }, cancelsRest: true })
    const [first, second] = await scene.members()
    await scene.end(first!, { kind: 'bury', error: 'broken' })
    isAway = true
    await sweeper.joins.sweep('w')
    await scene.records.morgue.revive(members, 'all')
    await scene.records.morgue.revive('mail', 'all')
    expect([await scene.state(), await scene.state('join.first.0', members)]).toEqual(['waiting', 'ready'])
    isAway = false
    await scene.advance(1)
    await scene.end(second!, { kind: 'bury', error: 'broken' })

    await sweeper.joins.sweep('w')

    expect(await scene.state('join.first.0', members)).toBe('cancelled: join-dead')
  })
})

async function listed({ records }: JoinScene, queue = 'mail'): Promise<string[]> {
  const { jobs } = await records.list(queue, { by: 'id', limit: 100 })
  return jobs.map(({ id, state }) => `${id} ${state}`)
}

it('a join that hears of a dead member while that is revived keeps its end', async () => {
  const redis = new RedisJoins()
  const scene = await redis.scene()
  await scene.join({ sets: { all: { size: 2, onDead: 'go-on' } } })
  await scene.completes('"0"')
  const { queue, id, fence } = await scene.member()
  let heard = 0
  const other = await redis.open(
    () => false,
    () => false,
    async (script) => {
      if (script !== 'join-hear' || ++heard > 1) return
      await scene.records.morgue.revive(members, 'all')
    },
  )

  expect(await other.settle([{ queue, id, fence, kind: 'bury', error: 'broken' }])).toEqual(['ok'])
  expect(heard).toBeGreaterThan(0)

  expect(await scene.state()).toBe('ready')
  expect(await scene.ends()).toEqual(['0 completed "0"', '1 dead broken'])
  const { counts, oldest } = await scene.set()
  expect([counts, oldest]).toEqual([{ completed: 1, dead: 1, cancelled: 0, expired: 0 }, undefined])
})

describe('a join hears of the death of a member whose shard has lost later ends by a failover', () => {
  const lost = ['join.all.7', 'join.all.8', 'join.all.9']
  it.each([
    ['that dies first of those that run again', 0],
    ['that dies second', 1],
    ['that dies last, so that there are as many ends as before', 2],
  ])('%s', async (_, at) => {
    const joins = new RedisJoins()
    const scene = await joins.scene()
    await scene.join({ sets: { all: {} } })
    await scene.addMembers(newSet('join', 'all', {}), 0, 10)
    const claims = new Map((await scene.members()).map((claim) => [claim.id, claim]))
    for (const [id, claim] of claims) if (!lost.includes(id)) await scene.end(claim, { kind: 'complete' })
    const bring = await joins.saved(members)
    for (const id of lost) await scene.end(claims.get(id)!, { kind: 'complete' })
    expect(await scene.state()).toBe('waiting')
    await bring()

    for (const [i, id] of lost.entries())
      await scene.end(claims.get(id)!, i === at ? { kind: 'bury', error: 'broken' } : { kind: 'complete' })
    await scene.advance(1_000)
    await scene.sweep('other')

    expect(await scene.state()).toBe('dead: join-member-dead')
    expect(await joins.command('ZRANGE', joins.key(members, 'join-tasks'), '0', '-1')).toEqual([])
  })
})

describe('a graph that is refused after some of it was stored', () => {
  /** Another member of the id comes when the graph has been looked at, and before its members are stored. */
  async function refusedLate() {
    const joins = new RedisJoins()
    const scene = await joins.scene()
    let graphs = 0
    const store = await joins.open(undefined, undefined, async (script) => {
      if (script === 'enqueue-graph' && ++graphs === 4) await scene.enqueue(['join.all.1'], { queue: members })
    })
    const calls = callsOf('graph', [
      ['mail', [newJoin({ sets: { all: 3 } })]],
      [members, [0, 1, 2].map((n) => memberOf('join', newSet('join', 'all', 3), n))],
    ])
    const refused = { queue: members, id: 'join.all.1' }
    expect(await store.joins.enqueue(calls)).toEqual({ outcome: 'refused', refused, as: 'duplicate' })
    return { scene, store, calls }
  }

  it('leaves nothing', async () => {
    const { scene } = await refusedLate()
    expect([await listed(scene), await listed(scene, members)]).toEqual([[], ['join.all.1 ready']])
  })

  it('is stored as a whole if it is sent again', async () => {
    for (const isResent of [false, true]) {
      const { scene, store, calls } = await refusedLate()
      await scene.completes()
      expect(await store.joins.enqueue(calls.map((call) => ({ ...call, isResent })))).toEqual({ outcome: 'added' })
      expect(await scene.state()).toBe('waiting')
      for (let n = 0; n < 3; n += 1) await scene.completes()
      expect(await scene.state()).toBe('ready')
    }
  })
})

it('a queue that has had no joins for an hour is swept no more, until it has some', async () => {
  const joins = new RedisJoins()
  const scene = await joins.scene()
  const places = async () => (await joins.command('HKEYS', `{${joins.namespace}}:join-places`)).sort()
  await scene.join({ sets: { all: 1 } })
  await scene.sweep()
  await scene.advance(3_600_000)
  await scene.sweep()
  await scene.completes()
  await scene.end(await scene.claimOne(), { kind: 'complete' })
  await scene.sweep()
  await scene.advance(3_599_999)
  await scene.sweep()
  expect(await places()).toEqual(['mail', 'rows'])

  await scene.advance(1)
  await scene.sweep()

  expect(await places()).toEqual([])
  await scene.join({ sets: { all: 1 }, withinMs: 1_000 })
  await scene.advance(1_000)
  await scene.sweep()
  expect(await scene.state()).toBe('dead: join-late')
})

it('joins that cannot be revived do not stand in the way of others', async () => {
  const joins = new RedisJoins()
  const scene = await joins.scene()
  await scene.openQueue({ dead: {} })
  await scene.join({ id: 'oldest', sets: { all: 1 } })
  await scene.records.bury('mail', { ids: ['oldest'] })
  await scene.advance(1)
  for (let from = 0; from < 1_100; from += 100)
    await Promise.all(Array.from({ length: 100 }, (_, i) => scene.join({ id: `join-${from + i}`, sets: { all: 1 } })))
  await scene.records.cancel(members, { ids: Array.from({ length: 1_000 }, (_, n) => `join-${n}.all.0`) })
  await scene.records.cancel(members, { ids: Array.from({ length: 100 }, (_, n) => `join-${n + 1_000}.all.0`) })
  expect(await scene.depth()).toMatchObject({ dead: 1_101, waiting: 0 })

  expect(await scene.records.morgue.revive('mail', 'all')).toEqual({ changed: 1, more: false })

  expect(await scene.state('oldest')).toBe('waiting')
})

it('the ends of more members than one call drops are dropped by sweeps', { timeout: 60_000 }, async () => {
  const joins = new RedisJoins()
  const scene = await joins.scene()
  const all = { onDead: 'go-on' as const }
  await scene.join({ sets: { all } })
  const set = newSet('join', 'all', all)
  for (let from = 0; from < 11_500; from += 500) await scene.addMembers(set, from, from + 500)
  for (let more = true; more; ) more = (await scene.records.delete(members, 'all')).more
  await scene.seal({ all: 11_500 })
  await scene.end(await scene.claimOne(), { kind: 'complete' })

  await scene.advance(1_000)
  expect(await scene.joins.sweep('worker-1')).toEqual({ failed: [], more: false })

  expect(await joins.command('HKEYS', joins.key(members, 'joins'))).toEqual(['#'])
  expect(await joins.command('HKEYS', joins.key(members, 'joined'))).toEqual([])
})

it('members that were claimed by a version whose claims name no place are reported, alone and together', async () => {
  const joins = new RedisJoins()
  const scene = await joins.scene()
  await scene.join({ sets: { all: 6 } })
  const [first, ...others] = await scene.members()
  for (const { id } of [first!, ...others]) {
    const endOf = (claim: Buffer) => 28 + claim[14]! + id.length
    await joins.spoil(members, 'claims', id, (claim) => {
      expect(claim.length).toBeGreaterThan(endOf(claim))
      return claim.subarray(0, endOf(claim))
    })
  }
  const left = { kind: 'complete', result: { payload: 'x', onlyForJoins: true } } as const
  await scene.end(first!, left)
  expect(await scene.set()).toMatchObject({ counts: { completed: 1 } })
  const store = await joins.open()
  const items = others.map(({ queue, id, fence }) => ({ queue, id, fence, ...left }))
  expect(await store.settle(items)).toEqual(items.map(() => 'ok'))
  expect(await scene.ends()).toEqual(Array.from({ length: 6 }, (_, n) => `${n} completed x`))
  expect(await scene.state()).toBe('ready')
})

describe('a join whose members are in several shards', () => {
  it('knows who is outstanding, in the order of the members', async () => {
    const joins = new RedisJoins()
    const scene = await joins.scene(undefined, 3)
    await scene.join({ sets: { all: 20 } })
    const claims = new Map<string, Claim>()
    for (const claim of await scene.members()) claims.set(claim.id, claim)
    for (const n of [19, 0, 2, 1, 7])
      await scene.end(claims.get(`join.all.${n}`)!, {
        kind: 'complete',
        result: { payload: `${n}`, onlyForJoins: true },
      })
    expect(await scene.set()).toMatchObject({ added: 20, size: 20, oldest: 3, counts: { completed: 5 } })
    expect(await scene.ends('all', 1, 18)).toEqual(['1 completed 1', '2 completed 2', '7 completed 7'])
    for (let n = 0; n < 20; n += 1)
      if (![19, 0, 2, 1, 7].includes(n)) {
        expect(await scene.state()).toBe('waiting')
        await scene.end(claims.get(`join.all.${n}`)!, { kind: 'complete' })
      }
    expect(await scene.state()).toBe('ready')
  })

  it('cancels the rest in all of them, and leaves nothing behind', async () => {
    const joins = new RedisJoins()
    const scene = await joins.scene(undefined, 3)
    await scene.join({ sets: { all: 20 }, cancelsRest: true })
    await scene.dies()
    await scene.sweep()
    expect((await scene.depth(members)).ready).toBe(0)
    await scene.records.morgue.delete('mail', 'all')
    for (const shard of [0, 1, 2]) {
      expect(await joins.command('HKEYS', joins.key(members, 'joins', shard, 3))).toEqual(['#'])
      expect(await joins.command('HKEYS', joins.key(members, 'joined', shard, 3))).toEqual([])
    }
  })
})

describe('a join that was to run, and waits again with its revived member,', () => {
  /** Before this script of the first process the second lets the join die, and revives both. */
  async function waitingAgainBefore(script: string) {
    const joins = new RedisJoins()
    const other = await joins.scene()
    let seen = 0
    const scene = await joins.scene(undefined, 1, async (name) => {
      if (name !== script || ++seen > 1) return
      await other.records.bury('mail', { ids: ['join'] })
      await other.records.morgue.revive(members, 'all')
      await other.records.morgue.revive('mail', 'all')
    })
    await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })
    return scene
  }

  it('hears of its end, though a slow process freezes its fragments only now', async () => {
    const scene = await waitingAgainBefore('join-freeze')
    await scene.dies()
    expect(await scene.state()).toBe('waiting')
    await scene.completes('"again"')
    expect([await scene.state(), await scene.ends()]).toEqual(['ready', ['0 completed "again"']])
  })

  it('hears of its end, though a slow process thaws its fragments a second time', async () => {
    const joins = new RedisJoins()
    const other = await joins.scene()
    let [seen, isThawing] = [0, false]
    const scene = await joins.scene(undefined, 1, async (name) => {
      if (!isThawing || name !== 'join-freeze' || ++seen !== 1) return
      joins.now += 2_000
      await other.sweep('other')
      await other.records.morgue.revive(members, 'all')
      await other.records.morgue.revive('mail', 'all')
      // Its process dies before it has told of the end.
      const dying = await joins.scene((script) => script === 'join-reports')
      await dying.completes('"again"')
    })
    await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })
    await scene.dies()
    isThawing = true
    await scene.records.bury('mail', { ids: ['join'] })
    joins.now += 4_000
    await other.sweep('other')
    expect([seen, await scene.state(), await scene.ends()]).toEqual([1, 'ready', ['0 completed "again"']])
  })
})

it('a join that died again is thawed, though a slow process is done with the thaw of its death before', async () => {
  const joins = new RedisJoins()
  const other = await joins.scene()
  let [seen, isThawing] = [0, false]
  const scene = await joins.scene(undefined, 1, async (name) => {
    if (!isThawing || name !== 'join-done' || ++seen !== 1) return
    await other.records.morgue.revive('mail', 'all')
    const dying = await joins.scene((script) => script === 'join-reports')
    await dying.records.bury('mail', { ids: ['join'] })
  })
  await scene.join({ sets: { all: { size: 1, onDead: 'go-on' } } })
  await scene.dies()
  isThawing = true
  await scene.records.bury('mail', { ids: ['join'] })
  joins.now += 2_000
  await other.sweep('other')
  await other.records.morgue.revive(members, 'all')
  await other.records.morgue.revive('mail', 'all')
  expect([seen, await other.state()]).toEqual([1, 'waiting'])
})

describe('a join of a later life, whose members have the ids of those of the earlier one,', () => {
  /** Before a script of the first process the second deletes the join and stores it anew. */
  async function replacedBefore(script: string) {
    const joins = new RedisJoins()
    const other = await joins.scene()
    const answers: GraphAnswer[] = []
    let isIn = false
    const scene = await joins.scene(undefined, 1, async (name) => {
      if (name !== script || isIn) return
      isIn = true
      await other.records.delete('mail', { ids: ['join'] })
      joins.now += 2_000
      await other.sweep('other')
      answers.push(await other.graph({ sets: { all: 1 } }, 'anew'))
    })
    await scene.join({ sets: { all: 1 } })
    return { scene, answers }
  }

  it('does not hear the report of an earlier member that was on its way', async () => {
    const { scene, answers } = await replacedBefore('join-hear')
    await scene.completes('"old"')
    expect(answers).toEqual([{ outcome: 'added' }])
    expect(await scene.state()).toBe('waiting')
    await scene.completes('"new"')
    expect([await scene.state(), await scene.ends()]).toEqual(['ready', ['0 completed "new"']])
  })

  it('is stored before what is left of the earlier one was dropped', async () => {
    const joins = new RedisJoins()
    const scene = await joins.scene((script) => script === 'join-drop')
    await scene.join({ sets: { all: 1 } })
    await scene.completes('"old"')
    await scene.records.delete('mail', { ids: ['join'] })
    const other = await joins.scene()
    expect(await other.graph({ sets: { all: 1 } }, 'anew')).toEqual({ outcome: 'added' })
    await other.completes('"new"')
    expect([await other.state(), await other.ends()]).toEqual(['ready', ['0 completed "new"']])
  })

  it('loses no member because what is left of the earlier one is dropped late', async () => {
    const { scene, answers } = await replacedBefore('join-drop')
    await scene.completes('"old"')
    await scene.records.delete('mail', { ids: ['join'] })
    expect(answers).toEqual([{ outcome: 'added' }])
    expect(await scene.state()).toBe('waiting')
    await scene.completes('"new"')
    expect([await scene.state(), await scene.ends()]).toEqual(['ready', ['0 completed "new"']])
  })
})
