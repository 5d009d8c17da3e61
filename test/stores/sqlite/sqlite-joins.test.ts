/** Joins of a SQLite store, as far as their tables are its own: what is left of a large one, and what a sweep writes. */

import { afterEach, expect, it } from 'vitest'
import type { NewJob } from '#src/stores/contract/new-job.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, queue, SqliteScene } from './sqlite-scene.js'
import { watchedConnection } from './thread/watched-connection.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }
const set = { name: 'all', onDead: 'go-on', keepsResults: true } as const
const home = { queue: queue.name, id: 'join' }

async function joinOf(size: number): Promise<SqliteStore> {
  const store = await scene.opened()
  const sets = [{ ...set, queue: queue.name, ids: 'row', isMany: true }]
  await store.joins.enqueue([
    { callId: 'a', queue: queue.name, jobs: [job('join', { join: { sets, sealWithinMs: 60_000 } })] },
  ])
  const member = (number: number): NewJob =>
    job(`row.${number}`, { memberOf: [{ ...set, set: set.name, join: home, number }] })
  for (let from = 0; from < size; from += 500) {
    const jobs = Array.from({ length: Math.min(500, size - from) }, (_, i) => member(from + i))
    await store.enqueue([{ callId: `b${from}`, queue: queue.name, jobs }])
  }
  await store.joins.seal(home, { all: size })
  return store
}

async function complete(store: SqliteStore, payload: string, limit = 400): Promise<number> {
  const { claims } = await store.claim([{ queue: queue.name, limit }], by)
  const result = { payload, onlyForJoins: true } as const
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const, result })))
  return claims.length
}

async function counts(): Promise<Record<string, number>> {
  const db = (await loadDriver())(scene.file)
  const tables = ['join_job', 'join_set', 'join_bits', 'join_end', 'join_page', 'join_failed']
  const sql = tables.map((table) => `(SELECT count(*) FROM ${table}) AS ${table}`)
  const row = db.prepare(`SELECT ${sql.join(', ')}`).get() as Record<string, number>
  db.close()
  return { ...row }
}

it('nothing is left of a join that has ended, and of a large one nothing after some sweeps', async () => {
  const none = { join_job: 0, join_set: 0, join_bits: 0, join_end: 0, join_page: 0, join_failed: 0 }
  for (const size of [20, 2_500]) {
    const store = await joinOf(size)
    for (let left = size; left > 0; ) left -= await complete(store, '"1"')
    expect(await store.joins.ends(home, 'all', size - 1, 10)).toEqual([
      { number: size - 1, fate: 'completed', payload: '"1"' },
    ])
    expect(await complete(store, '"join"')).toBe(1)
    expect(await store.joins.ends(home, 'all', 0, 10)).toEqual([])

    let sweeps = 0
    for (let more = true; more; sweeps += 1) more = (await store.joins.sweep('w')).more

    expect(await counts()).toEqual(none)
    expect(sweeps).toBe(size === 20 ? 1 : 4)
    await scene.close()
  }
})

it('members that two processes settle in turns all count, and each keeps its result', async () => {
  const store = await joinOf(40)
  const other = await scene.opened()
  for (let n = 0; n < 40; n += 5) expect(await complete(n % 2 === 0 ? store : other, `"${n}"`, 5)).toBe(5)

  expect((await store.records.get(queue.name, 'join'))?.state).toBe('ready')
  const ends = await store.joins.ends(home, 'all', 0, 100)
  expect(ends.map(({ payload }) => payload)).toEqual(Array.from({ length: 40 }, (_, n) => `"${n - (n % 5)}"`))
  expect(await faultsOf(store)).toEqual([])
})

it('a member that settles twice counts once, whether alone or with others', async () => {
  const store = await joinOf(12)
  const { claims } = await store.claim([{ queue: queue.name, limit: 12 }], by)
  const items = claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const }))
  await store.settle(items.slice(0, 1))
  await store.settle(items.slice(0, 6))
  expect((await store.joins.look(home))?.sets[0]).toMatchObject({ counts: { completed: 6 }, oldest: 6 })

  await store.settle(items)

  expect((await store.records.get(queue.name, 'join'))?.state).toBe('ready')
  expect(await store.joins.ends(home, 'all', 10, 5)).toEqual([
    { number: 10, fate: 'completed' },
    { number: 11, fate: 'completed' },
  ])
})

async function faultsOf(store: SqliteStore): Promise<string[]> {
  return (await store.health.check()).filter(({ level }) => level !== 'ok').map(({ text }) => text)
}

it('a sweep that finds nothing to do writes nothing', async () => {
  const store = await joinOf(3)
  const db = (await loadDriver())(scene.file)
  const version = () => db.prepare('PRAGMA data_version').get()
  const before = version()

  expect(await store.joins.sweep('w')).toEqual({ failed: [], more: false })

  expect(version()).toEqual(before)
  db.close()
})

it('joins that cannot be revived do not stand in the way of others', async () => {
  const store = await scene.opened()
  const sets = [{ ...set, onDead: 'fail' as const, queue: queue.name, isMany: false, size: 1 }]
  const graph = (n: number): NewJob[] => [
    job(`join-${n}`, { join: { sets: [{ ...sets[0]!, ids: `row-${n}` }], sealWithinMs: 60_000 } }),
    job(`row-${n}`, {
      memberOf: [{ ...set, onDead: 'fail', set: 'all', join: { queue: queue.name, id: `join-${n}` }, number: 0 }],
    }),
  ]
  for (let n = 0; n < 1_001; n += 1) void store.joins.enqueue([{ callId: `${n}`, queue: queue.name, jobs: graph(n) }])
  await store.records.bury(queue.name, { ids: ['join-0'] })
  await store.records.cancel(queue.name, { ids: Array.from({ length: 1_000 }, (_, n) => `row-${n + 1}`) })
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ dead: 1_001, waiting: 0 })

  expect(await store.records.morgue.revive(queue.name, 'all')).toEqual({ changed: 1, more: false })

  expect((await store.records.get(queue.name, 'join-0'))?.state).toBe('waiting')
})

it('a sweep sees to a thousand members of a dead join, and the next goes on behind them', async () => {
  const store = await scene.opened()
  const fails = { ...set, onDead: 'fail' as const }
  const sets = [{ ...fails, queue: queue.name, ids: 'row', isMany: true, size: 3_500 }]
  const join = job('join', { join: { sets, sealWithinMs: 60_000, cancelsRest: true } })
  await store.joins.enqueue([{ callId: 'join', queue: queue.name, jobs: [join] }])
  for (let first = 0; first < 3_500; first += 500) {
    const jobs = Array.from({ length: 500 }, (_, i) =>
      job(`row.${first + i}`, { memberOf: [{ ...fails, set: set.name, join: home, number: first + i }] }),
    )
    await store.enqueue([{ callId: `${first}`, queue: queue.name, jobs }])
  }
  const { claims } = await store.claim([{ queue: queue.name, limit: 1_500 }], by)
  await store.settle(
    claims.slice(0, 1).map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'bury' as const, error: 'x' })),
  )

  let asked: number[] = []
  let commits = 0
  const connection = await watchedConnection(scene.file, (sql, [, ids]) => {
    if (sql.includes('noted &') && sql.includes('json_each'))
      asked.push((JSON.parse(ids as string) as unknown[]).length)
    if (sql === 'COMMIT' && ++commits === 1) throw Object.assign(new Error('full'), { errcode: 13 })
  })
  const sweeps: number[][] = []
  for (let more = true; more; ) {
    asked = []
    const { answers } = connection.write(
      () => [[1, 'sweep', []]],
      () => {},
    )
    const [, answer, error] = answers[0]!
    expect(error).toBeUndefined()
    sweeps.push(asked)
    ;({ more } = answer as { more: boolean })
  }
  connection.close()

  expect(sweeps).toEqual([[1_000, 1_000], [1_000], [1_000], [499]])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ running: 1_499, ready: 0, dead: 2 })
  const beats = claims.slice(1).map(({ queue, id, fence }) => ({ queue, id, fence, leaseMs: 60_000 }))
  expect(new Set(await store.extend(beats))).toEqual(new Set(['cancel']))
})
