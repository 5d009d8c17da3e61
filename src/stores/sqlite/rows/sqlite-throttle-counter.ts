/** The counters of a SQLite store: what its throttles have counted, for a queue or for each of its groups. */

import type { CounterRow, CounterShelf } from '../../rows/throttle-row.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

/** The most starts that are dropped at once: more than one claim adds, so that dropping catches up. */
const mostDropped = 300

const columns = ['base', 'total', 'last_at', 'grids', 'epoch', 'recoveries', 'shift_ms'] as const

export class SqliteThrottleCounters implements CounterShelf {
  #held = new Map<string, CounterRow | undefined>()
  readonly #select: Statement
  readonly #insert: Statement
  readonly #update: Statement
  readonly #firstSeen: Statement
  readonly #nth: Statement
  readonly #start: Statement
  readonly #drop: Statement
  readonly #oldest: Statement
  readonly #idle: Statement
  readonly #delete: Statement
  readonly #seenNow: Statement
  readonly #seenBefore: Statement

  constructor(db: Database) {
    this.#select = db.prepare(`SELECT tid, ${columns.join(', ')} FROM throttle_counter WHERE scope = ? AND subject = ?`)
    this.#insert = db.prepare(
      `INSERT INTO throttle_counter (scope, subject, ${columns.join(', ')}) VALUES (?, ?, ${columns.map(() => '?').join(', ')})`,
    )
    this.#update = db.prepare(
      `UPDATE throttle_counter SET ${columns.map((column) => `${column} = ?`).join(', ')} WHERE tid = ?`,
    )
    this.#firstSeen = db.prepare('SELECT nth FROM throttle_start WHERE tid = ? AND at >= ? ORDER BY at LIMIT 1')
    this.#nth = db.prepare('SELECT at FROM throttle_start WHERE tid = ? AND nth <= ? ORDER BY nth DESC LIMIT 1')
    this.#start = db.prepare(
      'INSERT INTO throttle_start (tid, at, nth, count) VALUES (?, ?, ?, ?) ON CONFLICT (tid, at) DO UPDATE SET count = count + excluded.count',
    )
    this.#drop = db.prepare(
      'DELETE FROM throttle_start WHERE tid = ?1 AND at IN (SELECT at FROM throttle_start WHERE tid = ?1 AND at < ?2 ORDER BY at LIMIT ?3)',
    )
    this.#oldest = db.prepare(
      'SELECT recoveries, shift_ms, last_at FROM throttle_counter WHERE scope = ? ORDER BY recoveries, last_at LIMIT 1',
    )
    this.#idle = db.prepare(
      'SELECT tid, subject FROM throttle_counter WHERE scope = ? AND recoveries = ? AND last_at < ? ORDER BY last_at LIMIT ?',
    )
    this.#delete = db.prepare('DELETE FROM throttle_counter WHERE tid = ?')
    this.#seenNow = db.prepare(
      'SELECT count(*) AS n FROM throttle_counter WHERE scope = ? AND recoveries = ? AND last_at >= ? AND subject IS NOT ?',
    )
    this.#seenBefore = db.prepare(
      'SELECT count(*) AS n FROM throttle_counter WHERE scope = ? AND recoveries < ? AND last_at - shift_ms >= ? AND subject IS NOT ?',
    )
  }

  find(scope: string, subject: string): CounterRow | undefined {
    const key = `${scope} ${subject}`
    if (this.#held.has(key)) return this.#held.get(key)
    const row = this.#select.get(scope, subject) as CounterRow | undefined
    this.#held.set(key, row)
    return row
  }

  firstSeen(tid: number, from: number): number | undefined {
    return (this.#firstSeen.get(tid, from) as { nth: number } | undefined)?.nth
  }

  atOf(tid: number, nth: number): number | undefined {
    return (this.#nth.get(tid, nth) as { at: number } | undefined)?.at
  }

  /** Writes the counter and returns its row. `before` is undefined for a new one. */
  write(scope: string, subject: string, row: Omit<CounterRow, 'tid'>, before: CounterRow | undefined): CounterRow {
    const values = columns.map((column) => row[column])
    const tid = before?.tid ?? Number(this.#insert.run(scope, subject, ...values).lastInsertRowid)
    if (before !== undefined) this.#update.run(...values, tid)
    const written = { ...row, tid }
    this.#held.set(`${scope} ${subject}`, written)
    return written
  }

  /** Records `count` starts that come after `total` others. `at` is relative to the `base` of the counter. */
  start(tid: number, at: number, total: number, count: number): void {
    this.#start.run(tid, at, total, count)
  }

  /** Drops starts that no window sees any more, the oldest first. Returns their number, and whether these were all. */
  drop(tid: number, before: number): { readonly dropped: number; readonly isDone: boolean } {
    const dropped = Number(this.#drop.run(tid, before, mostDropped).changes)
    return { dropped, isDone: dropped < mostDropped }
  }

  /** Of the counters that were written under the earliest recovery, the one with the earliest last start. */
  oldest(scope: string): Pick<CounterRow, 'recoveries' | 'shift_ms' | 'last_at'> | undefined {
    return this.#oldest.get(scope) as Pick<CounterRow, 'recoveries' | 'shift_ms' | 'last_at'> | undefined
  }

  /**
   * Drops at most `most` counters of a recovery whose last start was before `before`, and about four times as many
   * starts.
   */
  dropIdle(scope: string, recoveries: number, before: number, most: number): void {
    const idle = this.#idle.all(scope, recoveries, before, most) as { tid: number; subject: string }[]
    let left = most * 4
    for (const { tid, subject } of idle) {
      if (left <= 0) return
      const { dropped, isDone } = this.drop(tid, Number.MAX_SAFE_INTEGER)
      left -= dropped
      if (!isDone) return
      this.#delete.run(tid)
      this.#held.delete(`${scope} ${subject}`)
    }
  }

  /**
   * The number of counters of the scope that were written under this recovery and have a last start at `from` or later.
   * `except`: not counted; null: all are.
   */
  countSince(scope: string, recoveries: number, from: number, except: string | null): number {
    return (this.#seenNow.get(scope, recoveries, from, except) as { n: number }).n
  }

  /**
   * The same for counters of earlier recoveries; last starts and `from` are compared on the clock before any recovery.
   */
  countBefore(scope: string, recoveries: number, from: number, except: string | null): number {
    return (this.#seenBefore.get(scope, recoveries, from, except) as { n: number }).n
  }

  forget(): void {
    this.#held = new Map()
  }
}
