import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { MillraceError, StoreCorruptError, StoreUnavailableError, StoreVersionError } from '#src/core/errors.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { seededRandom } from '../../../seeded-random.js'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
/** Of files that nobody has opened before. */
const opening = new SqliteScene()
afterEach(() => Promise.all([scene.close(), opening.close()]))

/** The error of opening the file, after which not one byte of it may have changed. */
async function refusal(file = scene.file): Promise<MillraceError> {
  const before = readFileSync(file)
  const error = await scene
    .store(file)
    .open([queue])
    .then(
      () => undefined,
      (error: unknown) => error,
    )
  expect(readFileSync(file).equals(before)).toBe(true)
  expect(error).toBeInstanceOf(MillraceError)
  return error as MillraceError
}

async function sql(text: string): Promise<void> {
  const db = (await loadDriver())(scene.file)
  db.exec(text)
  db.close()
}

/** A sound store with a few hundred jobs in it, closed. */
async function filled(): Promise<void> {
  const store = await scene.opened()
  await store.enqueue([enqueueCall(...Array.from({ length: 300 }, (_, i) => `job-${i}`))])
  await store.close()
}

it('a foreign database is refused and stays unchanged', async () => {
  await sql('CREATE TABLE users (name TEXT); INSERT INTO users VALUES (1)')
  const error = await refusal()
  expect(error).toBeInstanceOf(StoreCorruptError)
  expect(error.message).toContain('is not a Millrace store')
})

it('a database with the mark of another application is refused and stays unchanged', async () => {
  await sql('PRAGMA application_id = 77; CREATE TABLE users (name TEXT)')
  expect(await refusal()).toBeInstanceOf(StoreCorruptError)
})

it('a store of a newer version is refused with the advice to update', async () => {
  await filled()
  await sql('PRAGMA user_version = 2; PRAGMA wal_checkpoint(TRUNCATE)')
  const error = await refusal()
  expect(error).toBeInstanceOf(StoreVersionError)
  expect(error.message).toMatch(/version 2.*Update Millrace/s)
})

it('a text file and random bytes are refused', async () => {
  writeFileSync(scene.file, 'Dear diary,\n'.repeat(200))
  expect(await refusal()).toBeInstanceOf(StoreCorruptError)
  const random = seededRandom(7)
  writeFileSync(scene.file, Buffer.from(Array.from({ length: 20_000 }, () => Math.floor(random() * 256))))
  expect(await refusal()).toBeInstanceOf(StoreCorruptError)
})

it('a truncated store is refused with the advice to restore a backup', async () => {
  await filled()
  truncateSync(scene.file, 4_096 * 3)
  const error = await refusal()
  expect(error).toBeInstanceOf(StoreCorruptError)
  expect(error.message).toMatch(/backup.*\.recover/s)
})

it('a damaged page is reported as damage, not as a crash or a wrong answer', async () => {
  await filled()
  const bytes = readFileSync(scene.file)
  // All pages but the first, which holds the header and the table of tables.
  bytes.fill(0xa5, 4_096)
  writeFileSync(scene.file, bytes)
  expect(await refusal()).toBeInstanceOf(StoreCorruptError)
})

it('a store that lacks one of its tables is refused and stays unchanged', async () => {
  await filled()
  await sql('DROP TABLE step')
  const error = await refusal()
  expect(error).toBeInstanceOf(StoreCorruptError)
  expect(error.message).toMatch(/damaged: it has no table step\..*backup/s)
})

it('a call that needs a lost column is refused as damage and changes nothing; other calls go on', async () => {
  await filled()
  await sql('ALTER TABLE job RENAME COLUMN lease_until TO lost')
  const store = await scene.opened()
  const claim = store.claim([{ queue: queue.name, limit: 1 }], { worker: 'w', leaseMs: 1_000 })
  await expect(claim).rejects.toBeInstanceOf(StoreCorruptError)
  await expect(claim).rejects.toThrow(/damaged: no such column: lease_until\..*backup/s)
  expect((await store.depth([queue.name])).depths).toMatchObject([{ ready: 300, running: 0 }])
})

it('after any bytes are flipped, every call answers or throws a typed error', { timeout: 120_000 }, async () => {
  await filled()
  const sound = readFileSync(scene.file)
  const random = seededRandom(60)
  let refused = 0
  for (let round = 0; round < 20; round += 1) {
    const bytes = Buffer.from(sound)
    for (let i = 0; i < 40; i += 1) bytes[Math.floor(random() * bytes.length)] = Math.floor(random() * 256)
    const file = join(scene.folder, `flipped-${round}.db`)
    writeFileSync(file, bytes)
    const store = opening.store(file)
    const calls = [
      () => store.open([queue]),
      () => store.claim([{ queue: queue.name, limit: 250 }], { worker: 'w', leaseMs: 1_000 }),
      () => store.records.list(queue.name, { by: 'id', limit: 200 }),
    ]
    for (const call of calls) {
      const error: unknown = await call().then(
        () => undefined,
        (error: unknown) => error,
      )
      if (error === undefined) continue
      expect(error).toBeInstanceOf(MillraceError)
      refused += 1
    }
    await store.close()
  }
  expect(refused).toBeGreaterThan(5)
})

it('a directory is refused, and so is a file that cannot be created', async () => {
  mkdirSync(scene.file)
  await expect(scene.store().open([queue])).rejects.toThrow(/is a directory/)
  await expect(scene.store('/dev/null/jobs.db').open([queue])).rejects.toBeInstanceOf(StoreUnavailableError)
})

it("':memory:' is refused at once, and the error names the memory store", () => {
  expect(() => new SqliteStore({ file: ':memory:' })).toThrow(/memory:/)
})

it('nothing is created before the first call; then only its owner can read the file', async () => {
  const file = join(scene.folder, 'deep', 'er', 'jobs.db')
  const store = scene.store(file)
  expect(statSync(join(scene.folder, 'deep'), { throwIfNoEntry: false })).toBeUndefined()
  await store.open([queue])
  expect(statSync(file).mode & 0o777).toBe(0o600)
  expect(statSync(join(scene.folder, 'deep')).mode & 0o777).toBe(0o700)
})

it.skipIf(process.getuid?.() !== 0)(
  'in a folder with the setgid bit, created files belong to its group, under any umask',
  async () => {
    const [shared, group] = [join(scene.folder, 'shared'), 65_534]
    mkdirSync(shared)
    chownSync(shared, 0, group)
    chmodSync(shared, 0o2770)
    const file = join(shared, 'deep', 'jobs.db')
    const umask = process.umask(0o077)
    try {
      const store = scene.store(file)
      await store.open([queue])
      await store.enqueue([enqueueCall('a')])
      const { claims } = await store.claim([{ queue: queue.name, limit: 1 }], { worker: 'a', leaseMs: 60_000 })
      await store.settle(claims.map(({ queue, id, fence }) => ({ queue, id, fence, kind: 'complete' })))
    } finally {
      process.umask(umask)
    }

    const made = readdirSync(shared, { recursive: true, encoding: 'utf8' }).map((name) => {
      const { mode, gid } = statSync(join(shared, name))
      return [name.replace(/.*-bell\/(?!-results)[^/]+$/, 'token'), (mode & 0o7777).toString(8), gid]
    })
    expect(Object.fromEntries(made.map(([name, ...rights]) => [name, rights]))).toMatchObject({
      deep: ['2770', group],
      'deep/jobs.db': ['660', group],
      'deep/jobs.db-wal': ['660', group],
      'deep/jobs.db-shm': ['660', group],
      'deep/jobs.db-bell': ['2770', group],
      'deep/jobs.db-bell/-results': ['2770', group],
      'deep/jobs.db-bell/-results/ended': ['660', group],
    })
  },
)

it('a refused file can be corrected: the next call opens it', async () => {
  writeFileSync(scene.file, 'not a database'.repeat(100))
  const store = scene.store()
  await expect(store.open([queue])).rejects.toBeInstanceOf(StoreCorruptError)
  writeFileSync(scene.file, '')
  await expect(store.open([queue])).resolves.toHaveLength(1)
})

const isRoot = process.getuid?.() === 0

it.skipIf(!isRoot)('an empty file of another user is refused and stays unchanged', async () => {
  writeFileSync(scene.file, '')
  chownSync(scene.file, 4_711, 4_711)
  expect((await refusal()).message).toMatch(/belongs to another user \(uid 4711\)/)
  expect(statSync(scene.file).mode & 0o777).toBe(0o644)
  chownSync(scene.file, 0, 0)
  await expect(scene.store().open([queue])).resolves.toHaveLength(1)
})

it('nothing is created behind a link in the place of the bell', async () => {
  const target = join(scene.folder, 'target')
  mkdirSync(target)
  symlinkSync(target, `${scene.file}-bell`)
  const store = await scene.opened()
  expect(await store.enqueue([enqueueCall('a')])).toEqual([['added']])
  const { claims } = await store.claim([{ queue: queue.name, limit: 1 }], { worker: 'w', leaseMs: 60_000 })
  await store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
  expect(existsSync(join(target, '-results'))).toBe(false)
  expect(readdirSync(target)).toEqual([])
})

it('an error outside SQLite is reported as a failure of the code, never as damage', async () => {
  const store = await scene.opened()
  const unbindable = { ...enqueueCall('a'), jobs: [{ ...enqueueCall('a').jobs[0]!, payload: {} as never }] }
  const error = await store.enqueue([unbindable]).catch((error: unknown) => error)
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error).toMatchObject({ inDoubt: false, message: expect.stringMatching(/its own code failed .*fsck/s) })
  expect((error as Error).message).not.toMatch(/damaged|backup/)
  expect((error as Error).cause).toBeInstanceOf(Error)
})

it('a file of another user is refused with the remedy', async () => {
  await filled()
  chmodSync(scene.folder, 0o000)
  const program = `const { SqliteStore } = await import(process.argv[1])
const error = await new SqliteStore({ file: process.argv[2] }).open([]).catch((error) => error)
console.log(error.code, error.message)
process.exit()`
  const args = [
    '--input-type=module',
    '-e',
    program,
    import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
    scene.file,
  ]
  // Root may open everything.
  const as = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534, cwd: '/' } : {}
  const { stdout } = spawnSync(process.execPath, args, { ...as, encoding: 'utf8' })
  chmodSync(scene.folder, 0o700)

  expect(stdout).toMatch(
    /^store-unavailable .*the user of this process may not read or write it .*EACCES.*“Several users”/,
  )
})
