import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { StoreUnavailableError } from '#src/core/errors.js'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
let lockers: ChildProcess[]
beforeEach(() => {
  lockers = []
})
afterEach(async () => {
  await unlocked()
  await scene.close()
})

const by = { worker: 'w', leaseMs: 60_000 }
const from = [{ queue: queue.name, limit: 1 }]

/** Another process that holds the write lock until it is killed. */
async function locked(): Promise<void> {
  const locker = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...process.env,
      DRIVER_MODULE: import.meta.resolve('#src/stores/sqlite/file/sqlite-driver.js'),
      STORE_FILE: scene.file,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  lockers.push(locker)
  await once(locker.stdout!, 'data')
}

async function unlocked(): Promise<void> {
  for (const locker of lockers.splice(0)) {
    locker.kill('SIGKILL')
    await once(locker, 'exit')
  }
}

const script = `
  const { loadDriver } = await import(process.env.DRIVER_MODULE)
  // Kept: one that nobody holds is closed by the next collection.
  globalThis.db = (await loadDriver())(process.env.STORE_FILE)
  db.exec('BEGIN IMMEDIATE')
  console.log('locked')
  process.stdin.resume()
`

/** Long before the 30 s for which a call waits for the lock, on however busy a machine. */
const soonMs = 15_000

async function closedWithinMs(store: { close(): Promise<void> }): Promise<number> {
  const startedAt = performance.now()
  await store.close()
  return performance.now() - startedAt
}

it('close does not wait for a process that holds the write lock; calls under way are doubtful', async () => {
  const store = await scene.opened()
  await store.enqueue([enqueueCall('a')])
  const [claim] = (await store.claim(from, by)).claims
  await locked()
  const key = { queue: queue.name, id: 'a', fence: claim!.fence }
  const calls = Promise.allSettled([
    store.settle([{ ...key, kind: 'complete' }]),
    store.claim(from, by),
    store.extend([{ ...key, leaseMs: 1_000 }]),
    store.enqueue([enqueueCall('b')]),
  ])
  // Reads are answered meanwhile: the calls have been waiting for the lock.
  await store.depth([queue.name])
  expect(await closedWithinMs(store)).toBeLessThan(soonMs)
  for (const result of await calls) {
    expect(result.status).toBe('rejected')
    expect((result as PromiseRejectedResult).reason).toBeInstanceOf(StoreUnavailableError)
  }
})

it('close does not wait for the lock either if the store could not open its file', async () => {
  await locked()
  const store = scene.store()
  const opened = store.open([queue]).catch((error: unknown) => error)
  expect(await closedWithinMs(store)).toBeLessThan(soonMs)
  expect(await opened).toBeInstanceOf(StoreUnavailableError)
})

it('a lock that is released in time costs nothing: sent calls are completed', async () => {
  const store = await scene.opened()
  await locked()
  const sent = store.enqueue([enqueueCall('a')])
  await store.depth([queue.name])
  const closed = store.close()
  await unlocked()
  expect(await sent).toEqual([['added']])
  await closed
})

it('a stuck thread does not keep close from returning', async () => {
  const module = join(scene.folder, 'clock.mjs')
  const stuck = join(scene.folder, 'stuck')
  writeFileSync(
    module,
    `import { existsSync } from 'node:fs'
     const now = () => {
       if (existsSync(${JSON.stringify(stuck)})) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
       return 1000
     }
     export const clock = { now, mono: () => 1000, bootId: () => 'boot' }`,
  )
  const store = await scene.opened(pathToFileURL(module).href)
  writeFileSync(stuck, '')
  const claimed = store.claim(from, by).catch((error: unknown) => error)
  expect(await closedWithinMs(store)).toBeLessThan(soonMs)
  expect(await claimed).toBeInstanceOf(StoreUnavailableError)
})
