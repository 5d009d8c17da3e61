/** The SQLite store's registry of workers. */

import type { WorkerRecord } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import { bounded } from './sqlite-queue.js'
import type { SqliteSession } from './sqlite-session.js'

export class SqliteWorkers {
  readonly #session: SqliteSession
  readonly #write: Statement
  readonly #lapse: Statement
  readonly #delete: Statement
  readonly #select: Statement

  constructor(session: SqliteSession) {
    this.#session = session
    const { db } = session
    this.#write = db.prepare('INSERT OR REPLACE INTO worker (id, record, seen_at, until) VALUES (?, ?, ?, ?)')
    this.#lapse = db.prepare('DELETE FROM worker WHERE until <= ?')
    this.#delete = db.prepare('DELETE FROM worker WHERE id = ?')
    this.#select = db.prepare('SELECT record, seen_at FROM worker WHERE until > ? ORDER BY id')
  }

  beat(worker: WorkerRecord, ttlMs: number): void {
    const now = this.#session.clock.now()
    this.#write.run(worker.id, JSON.stringify(worker), now, bounded(now + ttlMs))
    this.#lapse.run(now)
  }

  remove(id: string): void {
    this.#delete.run(id)
  }

  list(): (WorkerRecord & { readonly seenAt: number })[] {
    const rows = this.#select.all(this.#session.clock.now()) as { record: string; seen_at: number }[]
    return rows.map(({ record, seen_at }) => ({ ...(JSON.parse(record) as WorkerRecord), seenAt: seen_at }))
  }
}
