/**
 * Live messages in the file of a SQLite store: the watchers of each queue, each with the end of its watch unless it is
 * renewed, and the last messages. Nothing is written while nobody watches.
 */

import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** The most messages, of all queues, that are kept for watchers that have not read them yet. */
const mostMessages = 1_000
/** The most messages that are read at once. */
const mostRead = 100

export class SqliteLive {
  readonly #transaction: SqliteTransaction
  readonly #watcher: Statement
  readonly #enter: Statement
  readonly #renew: Statement
  readonly #leave: Statement
  readonly #lapse: Statement
  readonly #anyWatcher: Statement
  readonly #insert: Statement
  readonly #trim: Statement
  readonly #first: Statement
  readonly #last: Statement
  readonly #read: Statement

  constructor(transaction: SqliteTransaction) {
    const { db } = transaction
    this.#transaction = transaction
    this.#watcher = db.prepare('SELECT 1 FROM live_watch WHERE queue = ? AND until > ? LIMIT 1')
    this.#enter = db.prepare('INSERT INTO live_watch (queue, watcher, until) VALUES (?, ?, ?)')
    this.#renew = db.prepare('UPDATE live_watch SET until = ?3 WHERE queue = ?1 AND watcher = ?2')
    this.#leave = db.prepare('DELETE FROM live_watch WHERE queue = ? AND watcher = ?')
    this.#lapse = db.prepare('DELETE FROM live_watch WHERE until <= ?')
    this.#anyWatcher = db.prepare('SELECT min(until) AS until FROM live_watch')
    this.#insert = db.prepare('INSERT INTO live_message (queue, message) VALUES (?, ?)')
    this.#trim = db.prepare('DELETE FROM live_message WHERE seq <= ?')
    this.#first = db.prepare('SELECT min(seq) AS seq FROM live_message')
    this.#last = db.prepare('SELECT max(seq) AS seq FROM live_message')
    this.#read = db.prepare('SELECT seq, message FROM live_message WHERE seq > ? AND queue = ? ORDER BY seq LIMIT ?')
  }

  isWatched(queue: string): boolean {
    return this.#watcher.get(queue, this.#transaction.clock.mono()) !== undefined
  }

  /** Writes the message only if the queue is watched. Returns whether it is. */
  publish(queue: string, message: string): boolean {
    if (!this.isWatched(queue)) return false
    // The newest is never removed: the next number follows from it.
    this.#trim.run(Number(this.#insert.run(queue, message).lastInsertRowid) - mostMessages)
    this.#transaction.hasMessages = true
    return true
  }

  /**
   * Watches for `forMs` from now. Returns the number of the last message, and whether the watch went on without a
   * break. If not, messages in between were not kept for it.
   */
  watch(queue: string, watcher: string, forMs: number) {
    const mono = this.#transaction.clock.mono()
    this.#lapse.run(mono)
    const isRenewed = Number(this.#renew.run(queue, watcher, mono + forMs).changes) === 1
    if (!isRenewed) this.#enter.run(queue, watcher, mono + forMs)
    return { last: this.#bounds().last, isRenewed }
  }

  unwatch(queue: string, watcher: string): void {
    this.#leave.run(queue, watcher)
    if ((this.#anyWatcher.get() as { until: number | null }).until === null) this.#trim.run(this.#bounds().last - 1)
  }

  /**
   * The messages after that number. `last`: the number of the last message that exists, or of the last one read if
   * `more` are left. `isGap`: some in between were removed unread, perhaps some of this queue.
   */
  read(queue: string, after: number) {
    const rows = this.#read.all(after, queue, mostRead) as { seq: number; message: string }[]
    const { first, last } = this.#bounds()
    const more = rows.length === mostRead
    return {
      messages: rows.map(({ message }) => message),
      last: more ? rows.at(-1)!.seq : Math.max(after, last),
      isGap: first > after + 1,
      more,
    }
  }

  #bounds(): { readonly first: number; readonly last: number } {
    const numberIn = (statement: Statement) => (statement.get() as { seq: number | null }).seq ?? 0
    return { first: numberIn(this.#first), last: numberIn(this.#last) }
  }
}
