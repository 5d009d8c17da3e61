import { defineTask, many } from 'millrace'
import { afterEach, expect, it } from 'vitest'
import type { NewJob } from '#src/stores/contract/new-job.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { testMillOn } from '../../test-mill.js'
import { job, queue, SqliteScene } from './sqlite-scene.js'

const scene = new SqliteScene()
afterEach(() => scene.close())

/** A join that waits for two of three members: one has completed. */
async function waiting(): Promise<SqliteStore> {
  const store = await scene.opened()
  const of = { name: 'all', onDead: 'go-on', keepsResults: true } as const
  const sets = [{ ...of, queue: queue.name, ids: 'row', isMany: true, size: 3 }]
  const member = (number: number): NewJob =>
    job(`row.${number}`, {
      memberOf: [{ ...of, set: of.name, join: { queue: queue.name, id: 'join' }, number }],
    })
  const jobs = [job('join', { join: { sets, sealWithinMs: 60_000 } }), member(0), member(1), member(2)]
  expect(await store.joins.enqueue([{ callId: 'a', queue: queue.name, jobs }])).toEqual({ outcome: 'added' })
  const { claims } = await store.claim([{ queue: queue.name, limit: 1 }], { worker: 'w', leaseMs: 60_000 })
  await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' as const })))
  return store
}

async function sql(text: string): Promise<void> {
  const db = (await loadDriver())(scene.file)
  db.exec(text)
  db.close()
}

async function faults(store: SqliteStore): Promise<string[]> {
  return (await store.health.check()).filter(({ level }) => level !== 'ok').map(({ text }) => text)
}

async function stateOf(store: SqliteStore): Promise<string | undefined> {
  return (await store.records.get(queue.name, 'join'))?.state
}

it('a join that waits passes the check, and repair leaves it as it is', async () => {
  const store = await waiting()

  expect(await faults(store)).toEqual([])
  expect((await store.health.repair!()).mended).toEqual([])
  expect(await stateOf(store)).toBe('waiting')
})

it('a check beside a worker that settles members finds nothing', { timeout: 60_000 }, async () => {
  const row = defineTask({
    name: 'row',
    retry: { max: 0 },
    run: async (n: number) => {
      if (n % 9 === 8) throw new Error('broken')
      return n
    },
  })
  const going = defineTask({ name: 'going', joins: { rows: many(row, { onDead: 'go-on' }) }, run: async () => {} })
  const strict = defineTask({ name: 'strict', joins: { rows: many(row, { cancelRest: true }) }, run: async () => {} })
  const mill = testMillOn(scene.store(), { tasks: [row, going, strict] })
  const checker = scene.store()
  await checker.open([])
  const rows = Array.from({ length: 40 }, (_, n) => n)
  const joins = [going, strict, going, strict, going, strict]
  await mill.worker({ concurrency: 4 }).start()
  const jobs = await Promise.all(joins.map((task) => mill.enqueue(task, undefined, { after: { rows } })))
  let isOver = false
  const over = Promise.allSettled(jobs.map((job) => job.result({ timeout: '40s' }))).then((ends) => {
    isOver = true
    return ends.map(({ status }) => status)
  })
  const found: string[] = []
  let checks = 0
  for (; !isOver; checks += 1) found.push(...(await faults(checker)))

  expect(found).toEqual([])
  expect(checks).toBeGreaterThan(1)
  expect(await over).toEqual(joins.map((task) => (task === going ? 'fulfilled' : 'rejected')))
})

it.each([
  ['whose members have vanished', 'DELETE FROM job WHERE id IN ("row.1", "row.2")', /not there, or have ended: join\./],
  [
    'whose members have ended without a report',
    'UPDATE job SET state = 4, finished_at = 1 WHERE id IN ("row.1", "row.2")',
    /not there, or have ended: join\./,
  ],
  [
    'that has not noticed the last end',
    'UPDATE join_set SET bits = x"07", completed = 3',
    /all of their members have ended: join\./,
  ],
  [
    'that counts wrongly, and would wait for ever',
    'UPDATE join_set SET bits = x"07"',
    /count the ends of their members wrongly: join\./,
  ],
])('a join %s is found, and ready after a repair', async (_, damage, text) => {
  const store = await waiting()
  await sql(damage.replaceAll('"', "'"))
  expect(await faults(store)).toEqual(expect.arrayContaining([expect.stringMatching(text)]))

  const { mended, left } = await store.health.repair!()

  expect(mended.length).toBeGreaterThan(0)
  expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
  expect(await stateOf(store)).toBe('ready')
})

it.each([
  ['a join of which nothing else is stored', 'DELETE FROM join_job', /does not say for which jobs they wait: join\./],
  ['marks of no join', "INSERT INTO join_bits VALUES (1000, 1, x'01')", /^1 belong to nothing/],
  ['a join without a job', 'UPDATE join_job SET rid = 1000', /^1 belong to nothing/],
])('%s is found', async (_, damage, text) => {
  const store = await waiting()
  await sql(damage)

  expect(await faults(store)).toEqual(expect.arrayContaining([expect.stringMatching(text)]))
})
