/**
 * Queues as the thread holds them during one transaction: read at their first use, written back before the commit.
 * Counting and numbering then cost one write per queue and transaction, however many jobs change.
 */

import { UnknownQueueError } from '../../core/errors.js'
import { nextStamp } from '../../core/stamp.js'
import type { Database, Statement } from './sqlite-driver.js'

/** A row of `queue`; property names are those of the columns. */
export interface QueueRow {
  readonly qid: number
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly ord: 'fifo' | 'lifo'
  paused: number
  draining: number
  max_pending: number | null
  max_crashes: number
  results_count: number | null
  dead_age_ms: number | null
  dead_count: number | null
  scheduled: number
  ready: number
  running: number
  completed: number
  dead: number
  /** Waiting jobs that failed at least once. */
  retries: number
  /** Rows in `remembered`. */
  remembered: number
  processed: number
  failed: number
  stamp: number
  fence: number
}

const changing = [
  'paused',
  'draining',
  'max_pending',
  'max_crashes',
  'results_count',
  'dead_age_ms',
  'dead_count',
  'scheduled',
  'ready',
  'running',
  'completed',
  'dead',
  'retries',
  'remembered',
  'processed',
  'failed',
  'stamp',
  'fence',
] as const

export class SqliteQueues {
  readonly #rows = new Map<string, QueueRow>()
  readonly #select: Statement
  readonly #selectAll: Statement
  readonly #update: Statement

  constructor(db: Database) {
    this.#select = db.prepare('SELECT * FROM queue WHERE name = ?')
    this.#selectAll = db.prepare('SELECT * FROM queue ORDER BY qid')
    this.#update = db.prepare(`UPDATE queue SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE qid = ?`)
  }

  find(name: string): QueueRow | undefined {
    let row = this.#rows.get(name)
    if (row === undefined) {
      row = this.#select.get(name) as QueueRow | undefined
      if (row !== undefined) this.#rows.set(name, row)
    }
    return row
  }

  /** Throws `UnknownQueueError`. */
  get(name: string): QueueRow {
    const row = this.find(name)
    if (row === undefined) throw new UnknownQueueError(name, this.names())
    return row
  }

  /** All are looked up before the first is changed: an unknown one changes nothing. */
  of(items: readonly { readonly queue: string }[]): QueueRow[] {
    return items.map(({ queue }) => this.get(queue))
  }

  all(): QueueRow[] {
    return this.#selectAll.all() as QueueRow[]
  }

  names(): string[] {
    return this.all().map(({ name }) => name)
  }

  /** Writes all rows back and forgets them. Called before each commit of a write. */
  flush(): void {
    for (const row of this.#rows.values()) this.#update.run(...changing.map((column) => row[column]), row.qid)
    this.#rows.clear()
  }

  /** Forgets them: nothing of a transaction that was rolled back or only read may be used in the next. */
  forget(): void {
    this.#rows.clear()
  }
}

/** The place in line of a job that is ready now. */
export function takeStamp(queue: QueueRow, now: number): number {
  queue.stamp = nextStamp(queue.stamp, now)
  return queue.stamp
}

/** `job.place` of a stamp: ascending is the order of claims. */
export function placeOf(queue: QueueRow, stamp: number): number {
  return queue.ord === 'lifo' ? -stamp : stamp
}

/** Integers of SQLite beyond this cannot be read back as numbers. For instants, which are then never. */
export function bounded(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER)
}
