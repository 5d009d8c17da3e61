/**
 * The ledger: a database of the user's own, beside the store, in which handlers write down what they were handed over and
 * what they did; what they did only where their fence is not smaller than one that wrote before.
 */

import { type Database, loadDriver, type Statement } from '#src/stores/sqlite/file/sqlite-driver.js'

export interface HandOver {
  readonly id: string
  readonly fence: number
  /** In the order in which the handler was given them. */
  readonly payloads: readonly number[]
}

/** All processes of a run write into it. */
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

  /** Writes what was done for the id; false, and nothing is written, where a greater fence was here before. */
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

  /** What was accepted, in the order in which it was. */
  writings(): { readonly id: string; readonly fence: number }[] {
    return this.#db.prepare('SELECT id, fence FROM writing ORDER BY number').all() as { id: string; fence: number }[]
  }

  close(): void {
    this.#db.close()
  }
}
