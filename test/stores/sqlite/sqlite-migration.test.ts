import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { machineClock } from '#src/stores/sqlite/file/sqlite-clock.js'
import { type Database, loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { migrations } from '#src/stores/sqlite/file/sqlite-migrations.js'
import { enqueueCall, queue, SqliteScene } from './sqlite-scene.js'

let scene: SqliteScene
beforeEach(() => {
  scene = new SqliteScene()
})
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }

async function database(file = scene.file): Promise<Database> {
  return (await loadDriver())(file)
}

/** A file as version 1 left it: ready jobs of two priorities, one of them failed once, a running, a scheduled and a dead one. */
async function versionOne(): Promise<void> {
  const db = await database()
  db.exec(
    `BEGIN; ${tables} PRAGMA application_id = 0x4d4c5243; PRAGMA user_version = 1; COMMIT; PRAGMA journal_mode = WAL`,
  )
  const now = Date.now()
  db.exec(
    `INSERT INTO queue (name, kind, ord, max_crashes, scheduled, ready, running, dead, retries, processed, failed, stamp, fence)
     VALUES ('${queue.name}', 'plain', 'fifo', 3, 1, 3, 1, 1, 1, 7, 2, ${now * 1_000}, ${now * 1_000});
     INSERT INTO meta VALUES ('boot', '${machineClock.bootId()}');
     INSERT INTO worker VALUES ('old', '{}', ${now}, ${now + 60_000})`,
  )
  const insert = db.prepare(
    `INSERT INTO job (qid, id, task, state, rank, place, stamp, attempt, fence, lease_until, worker, remember_ms, created_at, updated_at, finished_at, payload)
     VALUES (1, ?1, 'send', ?2, ?3, ?4, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?9, ?10, ?11)`,
  )
  const rows: [string, number, number, number, number][] = [
    ['second', 1, 0, now - 900, 1],
    ['third', 1, 0, now - 800, 2],
    ['first', 1, -5, now - 700, 1],
    ['running', 2, 0, now - 600, 1],
    ['later', 0, 0, now + 3_600_000, 1],
    ['dead', 4, 0, now - 500, 5],
  ]
  for (const [id, state, rank, at, attempt] of rows) {
    const [fence, lease, worker] = state === 2 ? [now * 1_000, Number.MAX_SAFE_INTEGER, 'old'] : [0, 0, null]
    const payload = id.padEnd(20_000, '.')
    insert.run(id, state, rank, at * 1_000, attempt, fence, lease, worker, now, state === 4 ? now : null, payload)
  }
  db.close()
}

/** What the tables are, whatever the order of their columns. */
async function shape(file: string): Promise<unknown> {
  const db = await database(file)
  const indexes = db.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'index' ORDER BY name").all()
  const names = (
    db.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all() as { name: string }[]
  ).map(({ name }) => name)
  const columns = names.map((name) =>
    db.prepare(`SELECT name, type, "notnull", dflt_value, pk FROM pragma_table_info('${name}') ORDER BY name`).all(),
  )
  const version = db.prepare('PRAGMA user_version').get()
  db.close()
  return { indexes, names, columns, version }
}

it('a process of version 1 that is still at work on the file is refused from then on, and miscounts nothing', async () => {
  await versionOne()
  const old = await database()
  // Every write of version 1 wrote its queue back.
  const write = old.prepare('UPDATE queue SET ready = ready - 1, fence = ? WHERE qid = 1')
  const store = await scene.opened()
  const counts = async () => ({ ...(await store.depth([queue.name])).depths[0], lagMs: 0 })
  const before = await counts()

  expect(() => write.run(1)).toThrow(/fence/)
  expect(await counts()).toEqual(before)
  old.close()
})

it('a process of version 2 that is still at work on the file is refused too, and an ordered queue of it is safe', async () => {
  await versionOne()
  const old = await database()
  old.exec(`${migrations[1]} PRAGMA user_version = 2`)
  // Every write of version 2 wrote its queue back.
  const write = old.prepare('UPDATE queue SET ready = ready - 1, stamp = ? WHERE name = ?')
  const store = await scene.opened()
  await store.open([{ ...queue, name: 'orders', kind: 'ordered', shards: 2 }])
  const counts = async () => ({ ...(await store.depth([queue.name])).depths[0], lagMs: 0 })
  const before = await counts()

  for (const name of [queue.name, 'orders']) expect(() => write.run(1, name)).toThrow(/stamp/)
  expect(await counts()).toEqual(before)
  old.close()
})

it('a process of version 3 that is still at work on the file is refused too, and lanes and limits are safe', async () => {
  await versionOne()
  const old = await database()
  old.exec(`${migrations[1]} ${migrations[2]} PRAGMA user_version = 3`)
  // Every write of version 3 wrote its queue back.
  const write = old.prepare('UPDATE queue SET ready = ready - 1, max_crashes = ? WHERE qid = 1')
  const store = scene.store()
  await store.open([{ ...queue, maxRunning: 1 }])
  const counts = async () => ({ ...(await store.depth([queue.name])).depths[0], lagMs: 0 })
  const before = await counts()

  expect(() => write.run(1)).toThrow(/max_crashes/)
  expect(await counts()).toEqual(before)
  old.close()
})

it('a process of version 4 that is still at work on the file is refused too, and leaves no notes of a job behind', async () => {
  await versionOne()
  const old = await database()
  old.exec(`${migrations[1]} ${migrations[2]} ${migrations[3]} PRAGMA user_version = 4`)
  // Every write of version 4 wrote its queue back.
  const write = old.prepare('UPDATE queue SET running = running - 1, results_count = ? WHERE qid = 1')
  const end = old.prepare("DELETE FROM job WHERE qid = 1 AND id = 'running'")
  const store = await scene.opened()
  const [held] = await store.workers.held('old')
  await store.extend([{ ...held!, leaseMs: 60_000, beat: { log: 'one\n' } }])

  old.exec('BEGIN IMMEDIATE')
  end.run()
  expect(() => write.run(1)).toThrow(/results_count/)
  old.exec('ROLLBACK')
  expect((await store.records.get(queue.name, 'running'))?.log).toBe('one\n')
  old.close()
})

it('a file of version 4 goes on where it was left, with its bounds, and takes processes, checkpoints and logs', async () => {
  await versionOne()
  const db = await database()
  db.exec(`${migrations[1]} ${migrations[2]} ${migrations[3]} PRAGMA user_version = 4`)
  db.exec(`UPDATE queue SET results_count = 7; UPDATE job SET host = 'mill-1', pid = 17 WHERE id = 'running'`)
  const store = scene.store()
  const [held] = await store.workers.held('old')
  const results = db.prepare('SELECT results_limit, last_score - last_stamp AS ahead, weighed FROM queue').get()
  db.close()
  await store.open([queue])
  const checkpoint = { payload: '{"done":0.5}' }
  const beat = { boot: 'boot-1', pidns: '7', ticks: 3, checkpoint, log: 'half way\n' }

  expect(held).toMatchObject({ id: 'running', host: 'mill-1', pid: 17 })
  // Its jobs may weigh anything.
  expect(results).toEqual({ results_limit: 7, ahead: 0, weighed: 1 })
  expect(await store.extend([{ ...held!, leaseMs: 60_000, beat }])).toEqual(['ok'])
  expect(await store.records.get(queue.name, 'running')).toMatchObject({ ...beat, host: 'mill-1', pid: 17 })
  await store.settle([{ ...held!, kind: 'retry', delayMs: 0 }])
  const { claims } = await store.claim([{ queue: queue.name, limit: 9 }], by)
  expect(claims.map(({ id, checkpoint }) => [id, checkpoint])).toEqual([
    ['first', undefined],
    ['second', undefined],
    ['third', undefined],
    ['running', checkpoint],
  ])
})

it('a file of version 3 goes on where it was left, and takes groups and limits', async () => {
  await versionOne()
  const db = await database()
  db.exec(`${migrations[1]} ${migrations[2]} PRAGMA user_version = 3`)
  db.exec("UPDATE job SET suspect = 1 WHERE id = 'second'; UPDATE queue SET suspects = 1")
  db.close()
  const rules = [{ limit: 2, windowMs: 60_000, moderate: false }]
  const store = scene.store()
  const [stored] = await store.open([{ ...queue, throttle: { scope: 'api', by: 'group', rules } }])
  const { jobs } = enqueueCall('x1', 'y1', 'x2')
  await store.enqueue([
    { callId: 'c', queue: queue.name, jobs: jobs.map((one) => ({ ...one, group: one.id.slice(0, 1) })) },
  ])
  const asked = [{ queue: queue.name, limit: 9 }]

  const alone = (await store.claim(asked, { ...by, alone: true })).claims
  const { claims, waits } = await store.claim(asked, by)

  expect(stored).toMatchObject({ throttle: { scope: 'api', by: 'group', rules } })
  expect(alone.map(({ id, group }) => [id, group])).toEqual([['second', undefined]])
  expect(claims.map(({ id, group }) => [id, group])).toEqual([
    ['x1', 'x'],
    ['x2', 'x'],
    ['y1', 'y'],
    ['first', undefined],
  ])
  expect(waits).toMatchObject([{ reason: 'throttled' }])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ ready: 1, suspects: 0, running: 6 })
})

it('a count that is wrong is taken anew, and stops nobody', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  const db = await database()
  db.exec('UPDATE queue SET suspects = 1')
  db.close()
  const from = [{ queue: queue.name, limit: 1 }]

  expect((await store.claim(from, { ...by, alone: true })).claims).toEqual([])
  expect((await store.claim(from, by)).claims.map(({ id }) => id)).toEqual(['a'])
})

it('a file of version 1 goes on where it was left', async () => {
  await versionOne()
  const store = await scene.opened()
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({
    ready: 3,
    suspects: 0,
    scheduled: 1,
    running: 1,
    dead: 1,
    retries: 1,
    processed: 7,
    failed: 2,
    crashed: 0,
  })
  expect(await store.workers.list()).toEqual([])
  expect((await store.workers.held('old')).map(({ id }) => id)).toEqual(['running'])
  const { claims } = await store.claim([{ queue: queue.name, limit: 9 }], by)
  expect(claims.map(({ id, attempt, payload }) => [id, attempt, payload.length])).toEqual([
    ['first', 1, 20_000],
    ['second', 1, 20_000],
    ['third', 2, 20_000],
  ])
  expect(
    await store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' }))),
  ).toEqual(['ok', 'ok', 'ok'])
  const held = await store.workers.held('old')
  expect((await store.workers.gone(held, 'old')).crashed).toMatchObject([
    { id: 'running', worker: 'old', charged: false },
  ])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ ready: 1, suspects: 1, crashed: 1 })
})

it('a file that was migrated has the tables of a new one', async () => {
  await versionOne()
  const [old, fresh] = [scene.store(), scene.store(`${scene.file}-new`)]
  for (const store of [old, fresh]) {
    await store.open([queue])
    await store.close()
  }
  expect(await shape(scene.file)).toEqual(await shape(`${scene.file}-new`))
})

it('who only asks which queues there are, in a file of whatever version, leaves it as it is', async () => {
  await versionOne()
  for (const version of [1, 2, 3, 4, 5, 6]) {
    const db = await database()
    if (version > 1) db.exec(`${migrations[version - 1]} PRAGMA user_version = ${version}`)
    db.exec("UPDATE meta SET value = 'another boot'; PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    const [before, files] = [readFileSync(scene.file), readdirSync(scene.folder)]
    const store = scene.store()
    expect(await store.records.queues()).toEqual([
      { name: queue.name, kind: 'plain', order: 'fifo', exclusive: 'id', shards: 1, paused: false, draining: false },
    ])
    await store.close()
    expect(readFileSync(scene.file).equals(before)).toBe(true)
    expect(files).toEqual(expect.arrayContaining(readdirSync(scene.folder)))
  }
})

it('processes that open a file of version 1 at once agree on it', async () => {
  await versionOne()
  const children = Array.from({ length: 4 }, () =>
    spawn(process.execPath, ['--input-type=module', '-e', opener], {
      env: {
        ...process.env,
        STORE_MODULE: import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
        STORE_FILE: scene.file,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
    }),
  )
  await Promise.all(children.map((child) => once(child.stdout, 'data')))
  const ends = children.map((child) => once(child, 'exit'))
  for (const child of children) child.stdin.end('go')
  expect(await Promise.all(ends)).toEqual(children.map(() => [0, null]))
  const store = await scene.opened()
  await store.enqueue([enqueueCall('new')])
  expect((await store.depth([queue.name])).depths[0]).toMatchObject({ ready: 8, scheduled: 1, running: 1, dead: 1 })
})

it('a migration that fails leaves the file as it was', async () => {
  await versionOne()
  const db = await database()
  db.exec('ALTER TABLE job ADD COLUMN suspect INTEGER')
  await expect(scene.opened()).rejects.toThrow()
  expect(db.prepare('PRAGMA user_version').get()).toEqual({ user_version: 1 })
  expect(db.prepare("SELECT count(*) AS n FROM pragma_table_info('queue') WHERE name = 'suspects'").get()).toEqual({
    n: 0,
  })
  db.close()
})

/** Opens the store when it is told to, and adds a job. */
const opener = `
  import { once } from 'node:events'
  const { SqliteStore } = await import(process.env.STORE_MODULE)
  const store = new SqliteStore({ file: process.env.STORE_FILE })
  console.log('ready')
  await once(process.stdin, 'data')
  await store.open([${JSON.stringify(queue)}])
  const id = 'job-' + process.pid
  const job = { id, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
  await store.enqueue([{ callId: id, queue: 'work', jobs: [job] }])
  await store.close()
`

/** The tables of version 1. */
const tables = `
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE queue (
  qid INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  ord TEXT NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0,
  draining INTEGER NOT NULL DEFAULT 0,
  max_pending INTEGER,
  max_crashes INTEGER NOT NULL,
  results_count INTEGER,
  dead_age_ms INTEGER,
  dead_count INTEGER,
  scheduled INTEGER NOT NULL DEFAULT 0,
  ready INTEGER NOT NULL DEFAULT 0,
  running INTEGER NOT NULL DEFAULT 0,
  completed INTEGER NOT NULL DEFAULT 0,
  dead INTEGER NOT NULL DEFAULT 0,
  retries INTEGER NOT NULL DEFAULT 0,
  remembered INTEGER NOT NULL DEFAULT 0,
  processed INTEGER NOT NULL DEFAULT 0,
  failed INTEGER NOT NULL DEFAULT 0,
  stamp INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE job (
  rid INTEGER PRIMARY KEY,
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  task TEXT NOT NULL,
  state INTEGER NOT NULL,
  rank INTEGER NOT NULL,
  place INTEGER NOT NULL,
  stamp INTEGER NOT NULL,
  attempt INTEGER NOT NULL DEFAULT 1,
  crashes INTEGER NOT NULL DEFAULT 0,
  fence INTEGER NOT NULL DEFAULT 0,
  lease_until INTEGER NOT NULL DEFAULT 0,
  alone INTEGER NOT NULL DEFAULT 0,
  cancelling INTEGER NOT NULL DEFAULT 0,
  remember_ms INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  started_at INTEGER,
  finished_at INTEGER,
  expires_at INTEGER,
  worker TEXT,
  host TEXT,
  pid INTEGER,
  progress TEXT,
  error TEXT,
  reason TEXT,
  codec TEXT,
  result_codec TEXT,
  meta BLOB,
  result BLOB,
  payload BLOB NOT NULL
);
CREATE UNIQUE INDEX job_id ON job (qid, id);
CREATE INDEX job_scheduled ON job (qid, stamp) WHERE state = 0;
CREATE INDEX job_ready ON job (qid, rank, place) WHERE state = 1;
CREATE INDEX job_running ON job (qid, lease_until) WHERE state = 2;
CREATE INDEX job_completed ON job (qid, finished_at) WHERE state = 3;
CREATE INDEX job_expires ON job (qid, expires_at) WHERE state = 3 AND expires_at IS NOT NULL;
CREATE INDEX job_dead ON job (qid, finished_at) WHERE state = 4;
CREATE INDEX job_retries ON job (qid, attempt) WHERE attempt > 1 AND state <= 2;
CREATE TABLE remembered (
  qid INTEGER NOT NULL,
  id TEXT NOT NULL,
  until INTEGER NOT NULL,
  task TEXT NOT NULL,
  state TEXT NOT NULL,
  priority INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  crashes INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  run_at INTEGER NOT NULL,
  finished_at INTEGER NOT NULL,
  reason TEXT,
  PRIMARY KEY (qid, id)
) WITHOUT ROWID;
CREATE INDEX remembered_until ON remembered (qid, until);
CREATE TABLE call (qid INTEGER NOT NULL, cid INTEGER NOT NULL, calls TEXT NOT NULL, PRIMARY KEY (qid, cid)) WITHOUT ROWID;
CREATE TABLE worker (id TEXT PRIMARY KEY, record TEXT NOT NULL, seen_at INTEGER NOT NULL, until INTEGER NOT NULL) WITHOUT ROWID;
`
