/**
 * The lease amnesty of a SQLite file: spares leases that ended while somebody held the write lock for long, because
 * nobody could renew them. The process that gets the lock first would otherwise take the jobs from holders that wait for it too.
 */

import type { Database, Statement } from '../file/sqlite-driver.js'

/** A write that waited for so long was not delayed by the usual traffic. */
const longWaitMs = 1_000
/** How long holders then have to renew their leases. So long after that there is no other amnesty. */
const sparedMs = 2_000

export class SqliteAmnesty {
  readonly #select: Statement
  readonly #write: Statement

  constructor(db: Database) {
    this.#select = db.prepare("SELECT value FROM meta WHERE name = 'spares-until'")
    this.#write = db.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('spares-until', ?)")
  }

  /** A write got the lock at `mono`, for which it had waited since `since`. */
  waited(since: number, mono: number): void {
    if (mono - since >= longWaitMs && this.until(mono) + sparedMs <= mono) this.#write.run(String(mono + sparedMs))
  }

  /** Until when ended leases are left alone; in the past if there is no amnesty. */
  until(mono: number): number {
    const row = this.#select.get() as { value: string } | undefined
    const until = row === undefined ? Number.NEGATIVE_INFINITY : Number(row.value)
    // The machine was started anew: the monotonic clock began again.
    return until > mono + sparedMs ? Number.NEGATIVE_INFINITY : until
  }
}
