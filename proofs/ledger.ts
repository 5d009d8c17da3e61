/**
 * The ledger: a database of the user's own, next to the store. Handlers record the payloads that they got and the
 * writes that they made. A write is made only if no greater fence wrote before.
 */

import { type Database, loadDriver, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'

export interface HandOver {
  readonly id: string
  readonly fence: number
  /** The payloads in the order in which the handler got them. */
  readonly payloads: readonly number[]
}

/** All processes of a run write into this file. */
const lockWithinMs = 30_000

export class Ledger {
  readonly #db: Database
  readonly #handOver: Statement
  readonly #fence: Statement
  readonly #raise: Statement
  readonly #write: Statement

  private constructor(db: Database) {
    this.#db = db
    this.#handOver = db.prepare('INSERT INTO hand_over (id, fence, payloads) VALUES (?, ?, ?)')
    this.#fence = db.prepare('SELECT fence FROM entity WHERE id = ?')
    this.#raise = db.prepare(
      'INSERT INTO entity (id, fence) VALUES (?, ?) ON CONFLICT DO UPDATE SET fence = excluded.fence',
    )
    this.#write = db.prepare('INSERT INTO writing (id, fence) VALUES (?, ?)')
  }

  static async open(file: string): Promise<Ledger> {
    const db = (await loadDriver())(file)
    db.exec(`PRAGMA busy_timeout = ${lockWithinMs}; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;
      CREATE TABLE IF NOT EXISTS hand_over (id TEXT NOT NULL, fence INTEGER NOT NULL, payloads TEXT NOT NULL);
      CREATE TABLE IF NOT EXISTS entity (id TEXT PRIMARY KEY, fence INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE IF NOT EXISTS writing (number INTEGER PRIMARY KEY, id TEXT NOT NULL, fence INTEGER NOT NULL);`)
    return new Ledger(db)
  }

  handedOver({ id, fence, payloads }: HandOver): void {
    this.#handOver.run(id, fence, JSON.stringify(payloads))
  }

  /** Records a write for the id. Returns false, and writes nothing, if a greater fence wrote before. */
  write(id: string, fence: number): boolean {
    this.#db.exec('BEGIN IMMEDIATE')
    const before = this.#fence.get(id) as { fence: number } | undefined
    const isCurrent = before === undefined || before.fence <= fence
    if (isCurrent) {
      this.#raise.run(id, fence)
      this.#write.run(id, fence)
    }
    this.#db.exec('COMMIT')
    return isCurrent
  }

  handOvers(): HandOver[] {
    const rows = this.#db.prepare('SELECT id, fence, payloads FROM hand_over').all() as {
      id: string
      fence: number
      payloads: string
    }[]
    return rows.map((row) => ({ ...row, payloads: JSON.parse(row.payloads) as number[] }))
  }

  /** The accepted writes, in their order. */
  writings(): { readonly id: string; readonly fence: number }[] {
    return this.#db.prepare('SELECT id, fence FROM writing ORDER BY number').all() as { id: string; fence: number }[]
  }

  close(): void {
    this.#db.close()
  }
}
