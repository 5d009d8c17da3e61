/**
 * The raw limit: what SQLite does at the same durability and the same jobs per commit, if it does only the least a
 * queue must.
 */

import { join } from 'node:path'
import { type Database, loadDriver } from '#src/stores/sqlite/file/sqlite-driver.js'

const pragmas =
  'PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=0; PRAGMA journal_size_limit=67108864;'

async function rawDatabase(folder: string): Promise<Database> {
  const open = await loadDriver()
  const database = open(join(folder, `raw-${process.hrtime.bigint()}.db`))
  database.exec(`${pragmas} CREATE TABLE job (id INTEGER PRIMARY KEY, state INTEGER NOT NULL, payload TEXT NOT NULL)`)
  return database
}

/** Rows inserted per second, `perCommit` in each transaction. */
export async function rawInserts(folder: string, jobs: number, perCommit: number, payload: string): Promise<number> {
  const database = await rawDatabase(folder)
  const seconds = insert(database, jobs, perCommit, payload)
  database.close()
  return jobs / seconds
}

/** Rows per second that are updated, and deleted one commit later: a claim and a completion that share commits. */
export async function rawTurns(folder: string, jobs: number, perCommit: number, payload: string): Promise<number> {
  const database = await rawDatabase(folder)
  insert(database, jobs, 1_000, payload)
  const update = database.prepare('UPDATE job SET state = 1 WHERE id = ?')
  const remove = database.prepare('DELETE FROM job WHERE id = ?')
  const startedAt = performance.now()
  for (let id = 1; id <= jobs + perCommit; id += perCommit) {
    database.exec('BEGIN IMMEDIATE')
    for (let i = Math.max(1, id - perCommit); i < id; i += 1) remove.run(i)
    for (let i = id; i < id + perCommit; i += 1) update.run(i)
    database.exec('COMMIT')
  }
  const seconds = (performance.now() - startedAt) / 1_000
  database.close()
  return jobs / seconds
}

function insert(database: Database, jobs: number, perCommit: number, payload: string): number {
  const statement = database.prepare('INSERT INTO job (state, payload) VALUES (0, ?)')
  const startedAt = performance.now()
  for (let id = 0; id < jobs; id += perCommit) {
    database.exec('BEGIN IMMEDIATE')
    for (let i = id; i < Math.min(id + perCommit, jobs); i += 1) statement.run(payload)
    database.exec('COMMIT')
  }
  return (performance.now() - startedAt) / 1_000
}
