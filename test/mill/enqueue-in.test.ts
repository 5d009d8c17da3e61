import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import {
  bury,
  type Death,
  defineOrderedTask,
  defineTask,
  type JobHandle,
  type Mill,
  type MillOptions,
  millrace,
  type Schema,
} from 'millrace'
import { beforeEach, expect, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { isSound } from '#src/stores/sqlite/file/sqlite-driver.js'
import { nextEvent } from '../next-event.js'

const bill = defineTask({ name: 'bill', queue: 'bills' })
const sync = defineOrderedTask({
  name: 'sync',
  queue: 'syncs',
  input: z.object({ id: z.string(), rev: z.number() }),
  id: ({ id }) => id,
})
const queues = { bills: {}, syncs: { shards: 2 } }

/** Where Node's own SQLite is sound the store uses that, and so must its users. */
const Connection: typeof DatabaseSync = isSound(process.versions['sqlite'])
  ? createRequire(import.meta.url)('node:sqlite').DatabaseSync
  : DatabaseSync

type UserDatabase = InstanceType<typeof DatabaseSync>

let folder: string
let file: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'millrace-in-'))
  file = join(folder, 'jobs.db')
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
})

function closedMill(options: Partial<MillOptions> = {}): Mill {
  const mill = millrace({ store: `sqlite:${file}`, tasks: [bill, sync], queues, ...options })
  onTestFinished(() => mill.close())
  return mill
}

async function readyMill(options: Partial<MillOptions> = {}): Promise<Mill> {
  const mill = closedMill(options)
  await mill.ready()
  return mill
}

function connection(path = file, options: ConstructorParameters<typeof DatabaseSync>[1] = {}): UserDatabase {
  const db = new Connection(path, { timeout: 5_000, ...options })
  onTestFinished(() => {
    if (db.isOpen) db.close()
  })
  if (path === file) db.exec('CREATE TABLE IF NOT EXISTS invoice (id TEXT PRIMARY KEY)')
  return db
}

async function waiting(mill: Mill, queue = 'bills'): Promise<number> {
  const [depth] = await mill.depths([queue])
  return depth!.ready + depth!.scheduled
}

const invoices = (db: UserDatabase) => (db.prepare('SELECT count(*) AS n FROM invoice').get() as { n: number }).n

it('a job of a task with onDead has its death reported as any', async () => {
  const told: unknown[] = []
  const report = defineTask({ name: 'report', run: async ({ job }: Death) => void told.push(job) })
  const send = defineTask({ name: 'send', onDead: report, run: async () => bury('refused') })
  const mill = await readyMill({ tasks: [send, report] })
  const db = connection()
  db.exec('BEGIN IMMEDIATE')
  const { id } = mill.enqueueIn(db, send, 1) as JobHandle
  db.exec('COMMIT')
  const done = nextEvent(mill, 'job.completed')
  await mill.worker().start()
  await done

  expect(told).toEqual([id])
})

it('a job is committed with the rows of its transaction, and invisible before', async () => {
  const mill = await readyMill()
  const db = connection()

  db.exec("BEGIN IMMEDIATE; INSERT INTO invoice VALUES ('a')")
  const options = { id: 'job-a', priority: 3, meta: { by: 'test' }, fields: { order: '4711' } }
  const handle = mill.enqueueIn(db, bill, { invoice: 'a' }, options)
  expect(handle).toMatchObject({ id: 'job-a', queue: 'bills', outcome: 'added' })
  expect(await handle.status()).toBeUndefined()
  db.exec('COMMIT')

  expect(await handle.record()).toMatchObject({
    state: 'ready',
    priority: 3,
    meta: { by: 'test' },
    fields: { order: '4711' },
    input: { invoice: 'a' },
  })
})

it('a job that is rolled back, wholly or to a savepoint, was never enqueued', async () => {
  const mill = await readyMill()
  const db = connection()

  db.exec("BEGIN; INSERT INTO invoice VALUES ('a')")
  mill.enqueueIn(db, bill, 1, { id: 'a' })
  db.exec('ROLLBACK')
  db.exec('BEGIN; SAVEPOINT one')
  mill.enqueueIn(db, bill, 2, { id: 'b' })
  mill.enqueueIn(db, sync, { id: 'x', rev: 1 })
  db.exec('ROLLBACK TO one')
  mill.enqueueIn(db, bill, 3, { id: 'c' })
  db.exec('COMMIT')

  const { jobs } = await mill.queue('bills').jobs.list({ state: 'ready' })
  expect(jobs.map(({ id }) => id)).toEqual(['c'])
  expect(await waiting(mill, 'syncs')).toBe(0)
  // What was taken back leaves no trace either: the id is free again.
  expect(mill.enqueueIn(db, bill, 1, { id: 'a' }).outcome).toBe('added')
})

it('without a transaction the job is stored when the call returns', async () => {
  const mill = await readyMill()
  const db = connection()
  const handle = mill.enqueueIn(db, bill, 1, { delay: '1h' })
  expect(db.isTransaction).toBe(false)
  expect(await handle.status()).toBe('scheduled')
})

it('every rule of an enqueue applies: duplicates, merging payloads, groups, limits', async () => {
  const mill = await readyMill({ queues: { bills: { maxPending: 3 }, syncs: { shards: 2 } } })
  const db = connection()

  db.exec('BEGIN IMMEDIATE')
  expect(mill.enqueueIn(db, bill, 1, { id: 'a', group: 'g' }).outcome).toBe('added')
  expect(mill.enqueueIn(db, bill, 2, { id: 'a' }).outcome).toBe('duplicate')
  expect(mill.enqueueIn(db, sync, { id: 'x', rev: 1 }).outcome).toBe('added')
  expect(mill.enqueueIn(db, sync, { id: 'x', rev: 2 }).outcome).toBe('merged')
  mill.enqueueIn(db, bill, 3)
  mill.enqueueIn(db, bill, 4, { runAt: new Date(Date.now() + 60_000) })
  expect(() => mill.enqueueIn(db, bill, 5)).toThrow(expect.objectContaining({ code: 'queue-full' }))
  db.exec("INSERT INTO invoice VALUES ('a'); COMMIT")

  // The refusal ended no transaction.
  expect(invoices(db)).toBe(1)
  expect(await waiting(mill)).toBe(3)
  expect(await mill.job(sync, 'x').record()).toMatchObject({
    payloads: [{ input: { id: 'x', rev: 1 } }, { input: { id: 'x', rev: 2 } }],
  })
  mill
    .queue('bills')
    .drain()
    .catch(() => {})
  await mill.queue('bills').look()
  expect(() => mill.enqueueIn(db, bill, 6)).toThrow(expect.objectContaining({ code: 'queue-draining' }))
})

it('jobs of a connection and jobs of the store share one order', async () => {
  const mill = await readyMill()
  const db = connection()
  const ids: string[] = []
  for (let i = 0; i < 20; i += 1) ids.push((i % 2 === 0 ? mill.enqueueIn(db, bill, i) : await mill.enqueue(bill, i)).id)
  const { jobs } = await mill.queue('bills').jobs.list({ state: 'ready', by: 'time' })
  expect(jobs.map(({ id }) => id)).toEqual(ids)
})

it("enqueues of the store wait while a user's transaction is open, and then go on", async () => {
  const mill = await readyMill()
  const db = connection()
  db.exec('BEGIN IMMEDIATE')
  mill.enqueueIn(db, bill, 1)
  const others = mill.enqueueMany(bill, [2, 3])
  expect(await waiting(mill)).toBe(0)
  db.exec('COMMIT')
  await others
  expect(await waiting(mill)).toBe(3)
})

it('the commit wakes an idle worker', async () => {
  const started: unknown[] = []
  const task = defineTask({ name: 'bill', queue: 'bills', run: async (n) => void started.push(n) })
  const mill = await readyMill({ tasks: [task, sync] })
  const worker = mill.worker()
  await worker.start()
  const db = connection()
  for (let n = 0; n < 5; n += 1) {
    db.exec('BEGIN IMMEDIATE')
    const handle = mill.enqueueIn(db, task, n)
    // A transaction that stays open for some turns of the loop is noticed as well.
    if (n % 2 === 1) await new Promise((resolve) => setImmediate(resolve))
    db.exec('COMMIT')
    await handle.result().catch(() => undefined)
  }
  expect(started).toEqual([0, 1, 2, 3, 4])
})

it("the user's settings for statements change nothing", async () => {
  const mill = await readyMill()
  const db = connection(file, { readBigInts: true, returnArrays: true } as object)
  mill.enqueueIn(db, bill, 1, { id: 'a' })
  expect(mill.enqueueIn(db, bill, 1, { id: 'a' }).outcome).toBe('duplicate')
  mill.enqueueIn(db, sync, { id: 'x', rev: 1 })
  expect(await waiting(mill)).toBe(1)
})

it('a transaction that read before another one wrote fails with advice to begin differently', async () => {
  const mill = await readyMill()
  const db = connection()
  db.exec('BEGIN')
  invoices(db)
  await mill.enqueue(bill, 1)
  expect(() => mill.enqueueIn(db, bill, 2)).toThrow(
    expect.objectContaining({
      code: 'store-unavailable',
      inDoubt: false,
      message: expect.stringContaining('BEGIN IMMEDIATE'),
    }),
  )
  db.exec('ROLLBACK')
  mill.enqueueIn(db, bill, 2)
  expect(await waiting(mill)).toBe(2)
})

function refused(act: () => unknown, text: string | RegExp, code = 'argument-invalid'): void {
  expect(act).toThrow(expect.objectContaining({ code, message: expect.stringMatching(text) }))
}

it("anything but a connection to the store's file is refused, with a remedy", async () => {
  const mill = closedMill()
  const other = connection(join(folder, 'other.db'))
  refused(() => mill.enqueueIn(other, bill, 1), /await mill\.ready\(\)/)
  await mill.ready()
  refused(() => mill.enqueueIn(other, bill, 1), /is open on '.*other\.db', and the store lies in '.*jobs\.db'/)
  refused(() => mill.enqueueIn(connection(':memory:'), bill, 1), /has no file/)
  other.exec(`ATTACH '${file}' AS jobs`)
  refused(() => mill.enqueueIn(other, bill, 1), /attached to the connection as 'jobs'/)
  refused(
    () => mill.enqueueIn(undefined as never, bill, 1),
    /expects an open connection.* the mill's store must be a Postgres/,
  )
  refused(
    () => mill.enqueueIn({ prepare: () => ({}), exec: () => {} }, bill, 1),
    /Two copies of SQLite.*driver=better-sqlite3/,
  )
  const db = connection()
  db.exec('CREATE TEMP TABLE job (x)')
  refused(() => mill.enqueueIn(db, bill, 1), /temporary table 'job'/)
  refused(
    () => mill.enqueueIn(connection(file, { readOnly: true }), bill, 1),
    /cannot be written to/,
    'store-unavailable',
  )
  expect(await waiting(mill)).toBe(0)
})

it('stores without user transactions refuse enqueueIn, and name an alternative', async () => {
  const mill = await readyMill({ store: 'memory:' })
  refused(() => mill.enqueueIn(connection(), bill, 1), /outbox/, 'unsupported-by-store')
})

it('an asynchronous schema or middleware is refused', async () => {
  const later = defineTask({ name: 'later', input: z.string().refine(async () => true) as unknown as Schema<string> })
  const mill = await readyMill({ tasks: [later, bill, sync] })
  const db = connection()
  refused(() => mill.enqueueIn(db, later, 'x'), /asynchronous schema/, 'job-invalid')
  refused(() => mill.enqueueIn(db, sync, { id: 'x' } as never), /rev/, 'job-invalid')

  let isLate = false
  const told: unknown[] = []
  const layered = await readyMill({
    middleware: [
      {
        async enqueue(items, next) {
          if (isLate) await undefined
          items[0]!.options = { ...items[0]!.options, meta: { tenant: 't' } }
          await next()
        },
      },
    ],
  })
  layered.on('hook.failed', (event) => told.push(event))
  expect(await layered.enqueueIn(db, bill, 1).record()).toMatchObject({ meta: { tenant: 't' } })
  isLate = true
  refused(() => layered.enqueueIn(db, bill, 2), /call next\(\) at once/, 'job-invalid')
  await new Promise((resolve) => setImmediate(resolve))
  expect(told).toHaveLength(1)
  expect(await waiting(layered)).toBe(1)
})

it('a middleware that takes the job out is refused', async () => {
  const mill = await readyMill({
    middleware: [
      {
        async enqueue(items, next) {
          items.length = 0
          await next()
        },
      },
    ],
  })
  refused(() => mill.enqueueIn(connection(), bill, 1), /^a middleware took jobs out/, 'enqueue-many-refused')
  expect(await waiting(mill)).toBe(0)
})

it('a middleware may put another item in the place of the job', async () => {
  const mill = await readyMill({
    middleware: [
      {
        async enqueue(items, next) {
          items[0] = { ...items[0]!, options: { ...items[0]!.options, meta: { tenant: 't' } } }
          await next()
        },
      },
    ],
  })
  expect(await mill.enqueueIn(connection(), bill, 1).record()).toMatchObject({ meta: { tenant: 't' } })
  expect(await waiting(mill)).toBe(1)
})

it('a replaced file gets no more jobs through a connection to the old one', async () => {
  const mill = await readyMill()
  const db = connection()
  mill.enqueueIn(db, bill, 1)
  for (const suffix of ['', '-wal', '-shm']) rmSync(file + suffix, { force: true })
  refused(() => mill.enqueueIn(db, bill, 2), /removed or replaced/, 'store-unavailable')
  expect(existsSync(file)).toBe(false)
})

it("ANALYZE keeps statistics of the user's tables, and those of the store's tables are removed", async () => {
  const mill = await readyMill()
  const db = connection()
  db.exec("INSERT INTO invoice VALUES ('a')")
  mill.enqueueIn(db, bill, 1)
  db.exec('ANALYZE')
  const told = () =>
    new Set(
      db
        .prepare('SELECT tbl FROM sqlite_stat1')
        .all()
        .map((row) => (row as { tbl: string }).tbl),
    )
  expect(told()).toContain('job')
  await mill.close()
  await readyMill()
  expect(told()).toEqual(new Set(['invoice']))
})

it('the address names the driver, and only a known one', async () => {
  expect(() => millrace({ store: `sqlite:${file}?driver=sqlite3` })).toThrow(
    /node:sqlite, @photostructure\/sqlite, better-sqlite3; got 'sqlite3'/,
  )
  const mill = await readyMill({ store: `sqlite:${file}?driver=@photostructure/sqlite` })
  const db = new DatabaseSync(file)
  expect(mill.enqueueIn(db, bill, 1).outcome).toBe('added')
  db.close()
})
