/**
 * bunqueue as published, inside the process of Bun that uses it: its queue is in memory, and on the file for what must last. Runs only
 * on Bun.
 */

import { type Bunqueue, loadBunqueue } from '../contenders/bunqueue-package.js'
import type { SqliteContender } from './sqlite-contender.js'

/** The parts of Bun that are used here. */
interface BunSqlite {
  readonly Database: { readonly prototype: BunDatabase }
}

interface BunDatabase {
  run(sql: string, ...values: readonly unknown[]): unknown
  query(sql: string): { get(): { readonly synchronous: number } }
}

const sqlite = 'bun:sqlite'
const [full, normal] = ['synchronous = FULL', 'synchronous = NORMAL']
const fullInNumbers = 2
const name = 'blank'

/**
 * `FULL`: an enqueue is on disk when it is answered, and each commit waits for the disk. `default`: as it begins; a crash takes back up
 * to 10 ms of jobs.
 */
export async function openBunqueue(dataPath: string, durability: 'FULL' | 'default'): Promise<SqliteContender> {
  const bunqueue = await loadBunqueue()
  const isFull = durability === 'FULL'
  const queue = isFull ? await withFullSync(() => openQueue(bunqueue, dataPath)) : openQueue(bunqueue, dataPath)
  // By default it keeps completed jobs, which Millrace does not.
  const opts = { durable: isFull, removeOnComplete: true }
  return {
    enqueue: (data) => queue.add(name, data, opts),
    enqueueMany: (inputs) => queue.addBulk(inputs.map((data) => ({ name, data, opts }))),
    async work(jobs) {
      let completed = 0
      const worker = new bunqueue.Worker(name, async () => {}, {
        embedded: true,
        dataPath,
        concurrency: 100,
        // As its documentation has it for many jobs.
        batchSize: 100,
        pollTimeout: 5_000,
      })
      worker.on('error', (error) => console.error(error))
      await new Promise<void>((resolve) => {
        worker.on('completed', () => {
          completed += 1
          if (completed === jobs) resolve()
        })
      })
      await worker.close()
    },
    async close() {
      await queue.disconnect()
      bunqueue.shutdownManager()
    },
  }
}

function openQueue({ Queue }: Bunqueue, dataPath: string) {
  return new Queue(name, { embedded: true, dataPath })
}

/** bunqueue has no option for it, so what it says to SQLite is replaced while it opens its file. */
async function withFullSync<T>(open: () => T): Promise<T> {
  const { prototype } = ((await import(sqlite)) as BunSqlite).Database
  const { run } = prototype
  let database: BunDatabase | undefined
  prototype.run = function (sql, ...values) {
    if (sql.includes(normal)) database = this
    return run.call(this, sql.replace(normal, full), ...values)
  }
  try {
    const opened = open()
    if (database?.query('PRAGMA synchronous').get().synchronous !== fullInNumbers)
      throw new Error(`bunqueue does not say '${normal}' to SQLite while it opens its file; see its schema.js`)
    return opened
  } finally {
    prototype.run = run
  }
}
