/** The log of a SQLite store is given its full length, so that commits need not lengthen it, and loses nothing by it. */

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, expect, it } from 'vitest'
import { loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'
import { logBytes } from '#src/stores/sqlite/file/sqlite-volume.js'
import type { SqliteStore } from '#src/stores/sqlite/sqlite-store.js'
import { enqueueCall, queue, SqliteScene } from '../sqlite-scene.js'

const full = logBytes(Number.POSITIVE_INFINITY)

const scene = new SqliteScene({ hasOwnThreads: true })
afterEach(() => scene.close())

function length(): number {
  return statSync(`${scene.file}-wal`).size
}

/** Enqueues in as many commits until the log has its full length; returns the ids. */
async function lengthened(store: SqliteStore): Promise<string[]> {
  const ids: string[] = []
  while (length() < full) {
    const id = `job-${ids.length}`
    await store.enqueue([enqueueCall(id)])
    ids.push(id)
  }
  return ids
}

it('the log is extended to its full length at once after some commits of a connection', async () => {
  const store = await scene.opened()
  const ids = await lengthened(store)

  expect(ids.length).toBeGreaterThan(20)
  expect(ids.length).toBeLessThan(40)
  expect(length()).toBe(full)
  for (let n = 0; n < 40; n += 1) await store.enqueue([enqueueCall(`more-${n}`)])
  expect(length()).toBe(full)
})

it('the log is read up to its last commit when the file is opened after a crash', async () => {
  const store = await scene.opened()
  const ids = await lengthened(store)
  await store.enqueue([enqueueCall('last')])
  const file = join(scene.folder, 'crashed', 'jobs.db')
  mkdirSync(join(scene.folder, 'crashed'))
  for (const suffix of ['', '-wal']) copyFileSync(scene.file + suffix, file + suffix)

  const reopened = scene.store(file)
  await reopened.open([queue])
  expect((await reopened.depth([queue.name])).depths[0]!.ready).toBe(ids.length + 1)
  await reopened.enqueue([enqueueCall('another')])
  expect((await reopened.depth([queue.name])).depths[0]!.ready).toBe(ids.length + 2)
})

it("an operator's step is folded into the file at once: no commit of others is slow because of many of them", async () => {
  const store = await scene.opened()
  const ids = Array.from({ length: 60 }, (_, n) => `job-${n}`)
  for (const id of ids) await store.enqueue([enqueueCall(id)])
  await store.records.cancel(queue.name, { ids: ids.slice(0, 50) })
  const copy = join(scene.folder, 'copy.db')
  copyFileSync(scene.file, copy)

  const db = (await loadDriver())(copy)
  expect(db.prepare('SELECT count(*) AS jobs FROM job').get()).toEqual({ jobs: 10 })
  db.close()
})

it('the log loses no commit of another process, however often it is cut and extended', async () => {
  const store = await scene.opened()
  const db = (await loadDriver())(scene.file)
  const producers = ['a', 'b', 'c'].map((name) =>
    spawn(process.execPath, ['--input-type=module', '-e', producer], {
      env: {
        ...process.env,
        STORE_MODULE: import.meta.resolve('#src/stores/sqlite/sqlite-store.js'),
        STORE_FILE: scene.file,
        PRODUCER: name,
      },
      stdio: ['ignore', 'ignore', 'inherit'],
    }),
  )
  let isOver = false
  const ended = Promise.all(producers.map((producer) => once(producer, 'exit'))).finally(() => {
    isOver = true
  })
  let cuts = 0
  while (!isOver) {
    if (length() === full) {
      const { busy } = db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get() as { busy: number }
      if (busy === 0) cuts += 1
    }
    await new Promise((resolve) => setImmediate(resolve))
  }

  expect((await ended).map(([code]) => code)).toEqual([0, 0, 0])
  expect(cuts).toBeGreaterThan(5)
  expect((await store.depth([queue.name])).depths[0]!.ready).toBe(3 * 400)
  expect(Object.values(db.prepare('PRAGMA integrity_check').get() as object)).toEqual(['ok'])
  db.close()
}, 120_000)

const producer = `
  const { SqliteStore } = await import(process.env.STORE_MODULE)
  const store = new SqliteStore({ file: process.env.STORE_FILE })
  await store.open([${JSON.stringify(queue)}])
  for (let n = 0; n < 400; n += 1) {
    const job = { id: process.env.PRODUCER + n, task: 'send', payload: '{}', priority: 0, rememberMs: 0 }
    await store.enqueue([{ callId: job.id, queue: 'work', jobs: [job] }])
  }
  await store.close()
`
