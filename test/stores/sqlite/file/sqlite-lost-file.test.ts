import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

const by = { worker: 'w', leaseMs: 60_000 }

async function failure(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error: unknown) => error,
  )
}

async function readyIn(store: SqliteStore): Promise<number> {
  return (await store.depth([queue.name])).depths[0]!.ready
}

/** The log and the index are looked at within a quarter of a second; what is accepted until then counts. */
async function acceptedUntilLost(store: SqliteStore): Promise<number> {
  for (let accepted = 0; ; accepted += 1) {
    const error = await failure(store.enqueue([enqueueCall(`job-${accepted}`)]))
    if (error === undefined) continue
    expect(error).toBeInstanceOf(StoreUnavailableError)
    return accepted
  }
}

/** What a process that comes later finds. */
async function readyAnew(): Promise<number> {
  return readyIn(await scene.opened())
}

function removeAll(): void {
  for (const name of readdirSync(scene.folder)) rmSync(join(scene.folder, name), { recursive: true })
}

/** A restore without care: the log of the former file stays. */
async function replaceByBackup(): Promise<void> {
  const backup = join(scene.folder, 'backup.db')
  const db = (await loadDriver())(scene.file)
  db.exec(`VACUUM INTO '${backup}'`)
  db.close()
  renameSync(backup, scene.file)
}

it('no enqueue is accepted into a removed file; the next one goes into a new file', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  removeAll()
  const error = await failure(store.enqueue([enqueueCall('b')]))
  expect(error).toBeInstanceOf(StoreUnavailableError)
  expect(error).toMatchObject({ inDoubt: false, message: expect.stringContaining('removed or replaced') })
  expect(await store.enqueue([enqueueCall('c')])).toEqual([['added']])
  expect(await readyAnew()).toBe(1)
})

it('no enqueue is accepted into a file replaced by a backup, and nothing from the old log gets into that', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  await replaceByBackup()
  expect(await failure(store.enqueue([enqueueCall('b')]))).toBeInstanceOf(StoreUnavailableError)
  expect(await store.enqueue([enqueueCall('c')])).toEqual([['added']])
  expect(await readyAnew()).toBe(2)
  const db = (await loadDriver())(scene.file)
  expect(db.prepare('PRAGMA integrity_check').get()).toEqual({ integrity_check: 'ok' })
  db.close()
})

it('a file that was moved away keeps every accepted job', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a', 'b', 'c')])
  const moved = join(scene.folder, 'moved.db')
  renameSync(scene.file, moved)
  expect(await failure(store.enqueue([enqueueCall('d')]))).toBeInstanceOf(StoreUnavailableError)
  await store.close()
  const other = scene.store(moved)
  await other.open([queue])
  expect(await readyIn(other)).toBe(3)
})

it('neither claims nor settles are answered from a removed file', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a', 'b')])
  const { claims } = await store.claim([{ queue: queue.name, limit: 1 }], by)
  removeAll()
  const settle = () => store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
  expect(await failure(settle())).toBeInstanceOf(StoreUnavailableError)
  // In the new file nothing is known of that claim.
  expect(await settle()).toEqual(['gone'])
  removeAll()
  expect(await failure(store.claim([{ queue: queue.name, limit: 1 }], by))).toBeInstanceOf(StoreUnavailableError)
})

it('a waiter is woken by a job in the new file', async () => {
  const store = await scene.opened()
  const waited = () => store.wait([queue.name], 20_000, new AbortController().signal)
  // The wait may be told of the loss first, as any call may.
  const found = waited().catch(waited)
  await store.depth([queue.name])
  removeAll()
  const other = await scene.opened()
  await other.enqueue([enqueueCall('a')])
  expect(await found).toEqual([queue.name])
})

it.each(['-wal', '-shm'])('no accepted job is lost if only %s is removed', async (suffix) => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  rmSync(`${scene.file}${suffix}`)
  const accepted = 1 + (await acceptedUntilLost(store))
  await store.close()
  expect(await readyAnew()).toBe(accepted)
})

it('a removed log is created again', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  rmSync(`${scene.file}-wal`)
  const accepted = 1 + (await acceptedUntilLost(store))
  expect(await store.enqueue([enqueueCall('c')])).toEqual([['added']])
  expect(await readyAnew()).toBe(accepted + 1)
})

it('a log that another process created instead is left alone', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  removeAll()
  const other = await scene.opened()
  await other.enqueue([enqueueCall('b')])
  expect(await failure(store.enqueue([enqueueCall('c')]))).toBeInstanceOf(StoreUnavailableError)
  expect(existsSync(`${scene.file}-wal`)).toBe(true)
  await store.enqueue([enqueueCall('d')])
  expect(await readyIn(other)).toBe(2)
})
