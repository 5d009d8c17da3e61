import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterEach, expect, it, vi } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { enqueueCall, job, queue, SqliteScene } from '../sqlite-scene.js'

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

const never = new AbortController().signal
const by = { worker: 'w', leaseMs: 60_000 }

it('many stores that create one new file at once agree on it', async () => {
  const stores = Array.from({ length: 6 }, () => scene.store())
  await Promise.all(stores.map((store) => store.open([queue])))
  await Promise.all(stores.map((store, i) => store.enqueue([enqueueCall(`job-${i}`)])))
  for (const store of stores) expect((await store.depth([queue.name])).depths[0]!.ready).toBe(6)
})

it('no job is given to two of several stores on one file', async () => {
  const stores = await Promise.all(Array.from({ length: 4 }, () => scene.opened()))
  await stores[0]!.enqueue([enqueueCall(...Array.from({ length: 200 }, (_, i) => `job-${i}`))])
  const claims = await Promise.all(
    Array.from({ length: 40 }, (_, i) => stores[i % 4]!.claim([{ queue: queue.name, limit: 5 }], by)),
  )
  const ids = claims.flatMap((claimed) => claimed.claims.map(({ id }) => id))
  expect(ids).toHaveLength(200)
  expect(new Set(ids).size).toBe(200)
})

it('a call remembered by one store is answered by another, not repeated', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  const call = enqueueCall('a')
  await other.enqueue([enqueueCall('b')])
  expect(await one.enqueue([call])).toEqual([['added']])
  const { claims } = await one.claim([{ queue: queue.name, limit: 9 }], by)
  await one.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
  expect(await other.enqueue([call])).toEqual([['added']])
  expect((await other.depth([queue.name])).depths[0]!.ready).toBe(0)
})

it('each store continues from what the others have written', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  const enqueue = (id: string) => [one, other].map((store, i) => store.enqueue([enqueueCall(`${id}-${i}`)]))
  for (let i = 0; i < 5; i += 1) await Promise.all(enqueue(`job-${i}`))
  expect((await one.depth([queue.name])).depths[0]!.ready).toBe(10)
  await one.enqueue([enqueueCall('of-one')])
  await other.enqueue([enqueueCall('of-other')])
  expect((await one.depth([queue.name])).depths[0]!.ready).toBe(12)
  await one.enqueue([enqueueCall('last')])
  await other.records!.pause(queue.name)
  expect((await one.claim([{ queue: queue.name, limit: 99 }], by)).claims).toEqual([])
  await other.records!.resume(queue.name)
  expect((await one.claim([{ queue: queue.name, limit: 99 }], by)).claims).toHaveLength(13)
})

it('while another process holds the write lock, writes wait their turn and reads go on', async () => {
  const store = await scene.opened()
  const db = (await loadDriver())(scene.file)
  db.exec('BEGIN IMMEDIATE')
  let isAccepted = false
  const accepted = store.enqueue([enqueueCall('a')]).then(() => {
    isAccepted = true
  })
  expect((await store.depth([queue.name])).depths[0]!.ready).toBe(0)
  expect(isAccepted).toBe(false)
  db.exec('COMMIT')
  db.close()
  await accepted
  expect((await store.depth([queue.name])).depths[0]!.ready).toBe(1)
})

it('an enqueue of another process ends a wait, which reports the queue', async () => {
  const store = await scene.opened()
  await store.open([{ ...queue, name: 'other' }])
  const child = spawn(process.execPath, ['--input-type=module', '-e', producer], {
    env: {
      ...process.env,
      STORE_MODULE: import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
      STORE_FILE: scene.file,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  try {
    const lines = createInterface(child.stdout)
    await once(lines, 'line')
    // No look comes by itself: only the bell can end the wait.
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    for (let round = 0; round < 30; round += 1) {
      const waiting = store.wait(['other', queue.name], 20_000, never)
      // Answered after the look of the wait, which was sent before it: from here on the wait hangs on the bell alone.
      await store.depth([queue.name])
      child.stdin.write(`${round}\n`)
      expect(await waiting).toEqual([queue.name])
      const { claims } = await store.claim([{ queue: queue.name, limit: 9 }], by)
      expect(claims.map(({ id }) => id)).toEqual([`job-${round}`])
      await store.settle(claims.map(({ id, fence }) => ({ queue: queue.name, id, fence, kind: 'complete' })))
    }
  } finally {
    vi.useRealTimers()
    child.stdin.end()
    await once(child, 'exit')
  }
})

it('a watch ends when another store ends the job', async () => {
  const [one, other] = [await scene.opened(), await scene.opened()]
  await one.enqueue([enqueueCall('a')])
  const watching = one.records.watch([{ queue: queue.name, id: 'a' }], 20_000, never)
  const { claims } = await other.claim([{ queue: queue.name, limit: 1 }], by)
  await other.settle([{ queue: queue.name, id: 'a', fence: claims[0]!.fence, kind: 'complete' }])
  expect(await watching).toEqual([{ queue: queue.name, id: 'a' }])
})

it('an operator hears that other processes write to the file, whose writers its steps keep waiting', async () => {
  const store = await scene.opened()
  const other = await scene.opened()
  await store.enqueue([enqueueCall('a', 'b', 'c')])
  await other.enqueue([enqueueCall('d')])
  expect(await store.records.cancel(queue.name, { ids: ['a'] })).toEqual({ changed: 1, more: false, isAwaited: true })
  expect(await store.records.cancel(queue.name, { ids: ['b'] })).toEqual({ changed: 1, more: false })
})

it('an idle store keeps no process alive', async () => {
  const script = `
    const { SqliteStore } = await import(process.env.STORE_MODULE)
    const store = new SqliteStore({ file: process.env.STORE_FILE })
    await store.open([${JSON.stringify(queue)}])
    await store.wait(['work'], 10, new AbortController().signal)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: {
      ...process.env,
      STORE_MODULE: import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
      STORE_FILE: scene.file,
    },
    stdio: ['ignore', 'inherit', 'inherit'],
  })
  expect(await once(child, 'exit')).toEqual([0, null])
})

/** Enqueues one job for each line it reads, and says when it began to. */
const producer = `
  import { createInterface } from 'node:readline'
  const { SqliteStore } = await import(process.env.STORE_MODULE)
  const store = new SqliteStore({ file: process.env.STORE_FILE })
  await store.open([${JSON.stringify(queue)}])
  console.log('ready')
  for await (const line of createInterface(process.stdin)) {
    const job = { id: 'job-' + line, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: line, queue: 'work', jobs: [job] }])
  }
  await store.close()
`

it('a file with an interrupted checkpoint can be opened: the log still has the missing pages', async () => {
  const store = await scene.opened()
  const big = 'x'.repeat(50_000)
  await store.enqueue([{ callId: 'c', queue: queue.name, jobs: ['a', 'b'].map((id) => job(id, { payload: big })) }])
  const before = readFileSync(scene.file)
  const log = readFileSync(`${scene.file}-wal`)
  const db = (await loadDriver())(scene.file)
  db.exec('PRAGMA wal_checkpoint(PASSIVE)')
  db.close()
  const after = readFileSync(scene.file)
  expect(after.length).toBeGreaterThan(before.length)
  // As if only the first page, which says how long the file is, had been written.
  const file = join(scene.folder, 'cut', 'jobs.db')
  mkdirSync(join(scene.folder, 'cut'))
  writeFileSync(file, Buffer.concat([after.subarray(0, 4_096), before.subarray(4_096)]))
  writeFileSync(`${file}-wal`, log)

  const reopened = scene.store(file)
  expect((await reopened.depth([queue.name])).depths[0]!.ready).toBe(2)
  const { claims } = await reopened.claim([{ queue: queue.name, limit: 2 }], by)
  expect(claims.map(({ payload }) => payload)).toEqual([big, big])
})
