import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { UnknownQueueError } from '#src/core/errors.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { absenceOf } from '#src/stores/sqlite/sqlite-examine.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene()
/** Whose file nobody has open any more when its stores are closed. */
const shut = new SqliteScene({ hasOwnThreads: true })
afterEach(() => Promise.all([scene.close(), shut.close()]))

const by = { worker: 'w', leaseMs: 60_000 }
const orders = { name: 'orders', kind: 'ordered', order: 'fifo', shards: 2, maxCrashes: 3, dead: {} } as const

/** Jobs of all kinds, in groups and without, waiting, running, completed and dead. */
async function filled(on = scene): Promise<SqliteStore> {
  const store = await on.opened()
  await store.open([queue, orders])
  const jobs = Array.from({ length: 12 }, (_, i) => job(`job-${i}`, i % 2 === 0 ? {} : { group: `g-${i % 3}` }))
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs: [...jobs, job('later', { delayMs: 60_000 })] }])
  const ordered = ['x', 'y', 'z'].map((id) => job(id, { score: 1 }))
  await store.enqueue([{ callId: 'b', queue: orders.name, jobs: ordered }])
  const { claims } = await store.claim([{ queue: queue.name, limit: 5 }], by)
  await store.settle([
    { queue: queue.name, id: claims[0]!.id, fence: claims[0]!.fence, kind: 'complete' },
    { queue: queue.name, id: claims[1]!.id, fence: claims[1]!.fence, kind: 'bury', error: 'x' } as never,
  ])
  return store
}

async function sql(text: string): Promise<void> {
  const db = (await loadDriver())(scene.file)
  db.exec(text)
  db.close()
}

it('a sound store passes every check, and repair leaves it unchanged', async () => {
  const store = await filled()
  const found = await store.health.check()
  expect(found.map(({ level, what }) => [level, what])).toEqual([
    ['ok', 'file'],
    ['ok', 'queue orders'],
    ['ok', 'queue work'],
  ])
  expect(await store.health.repair!()).toEqual({ mended: [], left: found })
  expect(await store.health.check('work')).toHaveLength(2)
  await expect(store.health.check('nowhere')).rejects.toBeInstanceOf(UnknownQueueError)
})

it('a store in the middle of a reshard passes every check', async () => {
  const store = await scene.opened()
  await store.open([orders])
  const jobs = Array.from({ length: 1_500 }, (_, i) => job(`id-${i}`, { score: 1 }))
  await store.enqueue([{ callId: 'a', queue: orders.name, jobs }])
  // A step moves at most a thousand.
  expect(await store.records.reshard('orders', 5)).toEqual({ changed: 1_000, more: true })

  expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok', 'ok'])
  expect(await store.records.queues()).toMatchObject([{ name: 'orders', shards: 5, resharding: 5 }, {}])
})

it('a store in which the last lane has another turn of its round is sound', async () => {
  const store = await scene.opened()
  const jobs = [job('a', { group: 'g' }), job('b', { group: 'g' })]
  await store.enqueue([{ callId: 'a', queue: queue.name, jobs }])
  await store.claim([{ queue: queue.name, limit: 1, weights: { g: 2 } }], by)

  expect((await store.health.check()).map(({ level }) => level)).toEqual(['ok', 'ok'])
})

it.each([
  ['counters that drifted', 'UPDATE queue SET ready = ready + 3, retries = 9', /ready \d+ instead of \d+/],
  ['lanes that count wrongly', "UPDATE lane SET ready = 40 WHERE grp = 'g-2'", /lanes of groups count wrongly: g-2/],
  [
    'a count in the lane of jobs without a group',
    "UPDATE lane SET ready = 3 WHERE grp = ''",
    /lanes .* count wrongly: ''\./,
  ],
  ['a group without a turn', "UPDATE lane SET turn = NULL WHERE grp = 'g-2'", /no turn: g-2/],
  ['a running job that no worker has', 'UPDATE job SET worker = NULL WHERE state = 2', /without a worker/],
  ['a ready job in a pool of others', 'UPDATE job SET pool = 1 WHERE state = 1 AND grp IS NULL', /in the wrong pool/],
  ['a count of turns that drifted', 'UPDATE queue SET open_lanes = open_lanes + 2', /open_lanes \d+ instead of \d+/],
  ['a last fence that is too low', 'UPDATE queue SET last_fence = 0', /fences are higher/],
])('%s are found and repaired', async (_, damage, text) => {
  const store = await filled()
  await sql(damage)
  const found = await store.health.check()
  expect(found.filter(({ level }) => level === 'error').map((one) => one.text)).toEqual(
    expect.arrayContaining([expect.stringMatching(text)]),
  )
  const { mended, left } = await store.health.repair!()
  expect(mended.length).toBeGreaterThan(0)
  expect(left.filter(({ level }) => level !== 'ok')).toEqual([])
  expect((await store.health.repair!()).mended).toEqual([])
})

it.each([
  ['a turn that was never given', 'UPDATE lane SET turn = 1000000 WHERE turn IS NOT NULL', /turn that was never given/],
  ['an open lane that is paused', 'UPDATE lane SET paused = 1 WHERE turn IS NOT NULL', /open and shut or paused/],
  ['an idle lane', "INSERT INTO lane SELECT qid, 'z', 0, 0, NULL, NULL, NULL, 0 FROM queue LIMIT 1", /left over: z/],
  ['lanes that are not known', 'UPDATE queue SET laned = 0', /marked as having no lanes/],
  [
    'a payload twice in a set',
    'INSERT INTO payload (rid, part, score, digest, payload) SELECT rid, part, score, digest, payload FROM payload',
    /twice in one set/,
  ],
  ['payloads of no successor', 'UPDATE payload SET part = 1 - part', /successor that does not exist/],
  ['a throttle that is missing', "UPDATE queue SET throttle = 'gone'", /throttle is not stored: gone/],
])('%s is found', async (_, damage, text) => {
  const store = await filled()
  await sql(damage)

  const found = await store.health.check()
  expect(found.map((one) => one.text)).toEqual(expect.arrayContaining([expect.stringMatching(text)]))
})

it('a running job without a worker is taken back by the next claim after a repair', async () => {
  const store = await filled()
  await sql('UPDATE job SET worker = NULL, host = NULL, pid = NULL WHERE state = 2')
  await store.health.repair!()
  await store.claim([{ queue: queue.name, limit: 0 }], by)
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ running: 0 })
})

it('payloads without a job are reported and kept', async () => {
  const store = await filled()
  await sql("DELETE FROM job WHERE id = 'x'")
  const { left } = await store.health.repair!()
  expect(left).toContainEqual({
    level: 'warning',
    what: 'payloads',
    text: expect.stringMatching(/^1 belong to no job/),
  })
})

it('a damaged file is reported as damaged, and repair does not touch it', async () => {
  const store = await filled(shut)
  await store.close()
  const bytes = readFileSync(shut.file)
  bytes.fill(0xa5, 8 * 4_096, 10 * 4_096)
  writeFileSync(shut.file, bytes)
  const other = shut.store()
  const { mended, left } = await other.health.repair!()
  expect(mended).toEqual([])
  expect(left[0]).toMatchObject({ level: 'error', what: 'file', text: expect.stringContaining('damaged') })
  expect(readFileSync(shut.file).equals(bytes)).toBe(true)
})

it('examine reports version, permissions, journal, room, log and ballast, and creates nothing', async () => {
  const none = scene.store()
  expect(await none.health.examine()).toMatchObject([{ level: 'ok', what: 'file' }])
  expect(existsSync(scene.file)).toBe(false)
  const store = await filled()
  const found = await store.health.examine()
  expect(found.map(({ what }) => what)).toEqual(['version', 'file', 'journal', 'room', 'log', 'ballast'])
  chmodSync(scene.file, 0o666)
  expect(await store.health.examine()).toContainEqual(
    expect.objectContaining({ level: 'error', what: 'file', text: expect.stringContaining('chmod 600') }),
  )
})

it('a missing file that cannot be created, because its parent is not a folder, is reported as an error', async () => {
  const file = join(scene.folder, 'file')
  writeFileSync(file, '')

  expect(absenceOf(join(file, 'below', 'jobs.db'))).toEqual({
    ...{ level: 'error', what: 'file' },
    text: `there is no file yet, and none can be made: '${file}' is no folder. Name another path by 'store'.`,
  })
  expect(absenceOf(join(scene.folder, 'new', 'folder', 'jobs.db')).level).toBe('ok')
})
