/**
 * plainjob as published, on better-sqlite3: a queue in one SQLite file without a thread. Its calls block until SQLite
 * has answered.
 */

import { existsSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { SqliteContender } from './sqlite-contender.js'

/** No dependency of this package, because its own dependency compiles for minutes when it is installed. */
const folder = join(import.meta.dirname, '../../node_modules/.cache/plainjob')
export const plainjobInstall = 'npm install --prefix node_modules/.cache/plainjob plainjob@0.0.14 better-sqlite3@12'

/** The parts of both packages that are used here. */
interface Plainjob {
  better(database: Connection): object
  defineQueue(options: { connection: object; logger: object }): {
    add(type: string, data: unknown): unknown
    addMany(type: string, data: readonly unknown[]): unknown
    close(): void
  }
  defineWorker(
    type: string,
    run: () => Promise<void>,
    options: { queue: object; logger: object; onCompleted: () => void },
  ): { start(): Promise<void>; stop(): Promise<void> }
}

interface Connection {
  pragma(words: string): unknown
}

const type = 'blank'
const ignore = () => {}
const logger = { debug: ignore, info: ignore, warn: ignore, error: console.error }

export function hasPlainjob(): boolean {
  return existsSync(join(folder, 'node_modules/plainjob'))
}

/** Opens plainjob and sets `synchronous` after it has set its own, which is NORMAL. */
export async function openPlainjob(file: string, synchronous: 'FULL' | 'NORMAL'): Promise<SqliteContender> {
  const require = createRequire(join(folder, 'package.json'))
  const Database = require('better-sqlite3') as new (file: string) => Connection
  const { better, defineQueue, defineWorker } = (await import(
    pathToFileURL(require.resolve('plainjob')).href
  )) as Plainjob
  const database = new Database(file)
  const queue = defineQueue({ connection: better(database), logger })
  database.pragma(`synchronous = ${synchronous}`)
  return {
    enqueue: (input) => queue.add(type, input),
    enqueueMany: (inputs) => queue.addMany(type, inputs),
    async work(jobs) {
      let completed = 0
      const worker = defineWorker(type, async () => {}, {
        queue,
        logger,
        onCompleted() {
          completed += 1
          if (completed === jobs) void worker.stop()
        },
      })
      await worker.start()
    },
    close: async () => queue.close(),
  }
}
