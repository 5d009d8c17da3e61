/**
 * Queue rows as the thread holds them: read at their first use, written back before the commit if they changed, and
 * kept for the next transactions until another connection commits. Counting and numbering then cost one write per queue
 * and transaction, however many jobs change.
 */

import { UnknownQueueError } from '../../../core/errors.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import type { CountedQueue } from '../../rows/queue-row.js'
import type { SqlValue } from '../../rows/stored-text.js'
import { shardOf } from '../../rules/payloads.js'
import { refusePlain } from '../../rules/queue-form.js'
import { nextScore, nextStamp } from '../../rules/sequence.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { queueColumns } from '../file/sqlite-schema.js'

/** A row of `queue`: a queue, or one shard of an ordered one. Property names are column names. */
export interface QueueRow extends CountedQueue {
  /** Numbers the queues in the order in which they came. */
  readonly number: number
  last_stamp: number
  last_fence: number
  /** The last default score of a payload, in µs. */
  last_score: number
  /** No waiting job expires before this instant. */
  expiring_at: number | null
  /** No job that was there, or ended, after this instant has been removed. */
  lost_at: number | null
  /** 1: it has, or once had, a job or a checkpoint that is not light. */
  weighed: number
  /** 1: it has, or once had, a member of a join. */
  membered: number
}

const fixed: readonly string[] = ['qid', 'name', 'shard', 'shards', 'number', 'kind', 'ord', 'exclusive']

const changing = queueColumns.filter((column) => !fixed.includes(column)) as (keyof QueueRow)[]

/**
 * In SQL: the row as JSON. One text crosses the driver at two thirds of the cost of the single columns. Each column
 * holds text or a whole number: JSON in SQLite cuts other numbers after 15 digits.
 */
const rowText = `json_object(${queueColumns.map((column) => `'${column}', ${column}`).join(', ')})`

/**
 * A row, and the values of its changeable columns as they were read. A copy of the row would cost more than reading it.
 */
interface HeldRow {
  readonly row: QueueRow
  before: readonly SqlValue[]
}

/** If more rows than this would be kept, only those of the last transaction are. */
const mostKept = 256

export class SqliteQueues {
  /** The rows that this transaction has used. Only these are looked through for changes. */
  #held = new Map<string, HeldRow>()
  /** The rows that earlier transactions have used, as they are in the file. */
  #kept = new Map<string, HeldRow>()
  readonly #select: Statement
  readonly #selectAll: Statement
  readonly #update: Statement

  constructor(db: Database) {
    this.#select = db.prepare(`SELECT ${rowText} AS text FROM queue WHERE name = ? AND shard = ?`)
    this.#selectAll = db.prepare('SELECT * FROM queue ORDER BY number, shard')
    this.#update = db.prepare(`UPDATE queue SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE qid = ?`)
  }

  /** The queue, or the first shard of an ordered one. */
  find(name: string): QueueRow | undefined {
    return this.shard(name, 0)
  }

  shard(name: string, shard: number): QueueRow | undefined {
    // No queue name contains a space.
    const key = shard === 0 ? name : `${name} ${shard}`
    const held = this.#held.get(key)
    if (held !== undefined) return held.row
    const used = this.#kept.get(key) ?? this.#read(name, shard)
    if (used !== undefined) this.#held.set(key, used)
    return used?.row
  }

  #read(name: string, shard: number): HeldRow | undefined {
    const found = this.#select.get(name, shard) as { text: string } | undefined
    if (found === undefined) return undefined
    const row = JSON.parse(found.text) as QueueRow
    return { row, before: changingOf(row) }
  }

  /** Like `find`. Throws `UnknownQueueError`. */
  get(name: string): QueueRow {
    const row = this.find(name)
    if (row === undefined) throw new UnknownQueueError(name, this.names())
    return row
  }

  /** The shards of an ordered queue, or a plain queue alone. Throws `UnknownQueueError`. */
  shardsOf(name: string): QueueRow[] {
    const first = this.get(name)
    return Array.from({ length: first.shards }, (_, shard) => this.shard(name, shard)!)
  }

  /** The shards that an ordered queue is leaving. */
  leaving(name: string): QueueRow[] {
    const first = this.get(name).resharding === null ? undefined : this.shard(name, -1)
    return Array.from({ length: first?.shards ?? 0 }, (_, shard) => this.shard(name, -1 - shard)!)
  }

  /** All rows of a queue, including the shards that it is leaving. Throws `UnknownQueueError`. */
  rowsOf(name: string): QueueRow[] {
    return [...this.shardsOf(name), ...this.leaving(name)]
  }

  /** The row that holds jobs with this id. Throws `UnknownQueueError`. */
  holding(name: string, id: string): QueueRow {
    const first = this.get(name)
    return first.shards === 1 ? first : this.shard(name, shardOf(id, first.shards))!
  }

  /** The row that held jobs with this id before resharding began; undefined if the queue is not being resharded. */
  formerlyHolding(name: string, id: string): QueueRow | undefined {
    const first = this.get(name).resharding === null ? undefined : this.shard(name, -1)
    return first && this.shard(name, -1 - shardOf(id, first.shards))
  }

  /**
   * The first shard of an ordered queue. Throws `UnknownQueueError`, and `InvalidArgumentError` if the queue is plain.
   */
  ordered(name: string): QueueRow {
    const first = this.get(name)
    refusePlain(name, first.kind)
    return first
  }

  all(): QueueRow[] {
    return this.#selectAll.all() as QueueRow[]
  }

  names(): string[] {
    return [...new Set(this.all().map(({ name }) => name))]
  }

  /** Writes back changed rows. Called before each commit of a write. Without changes it costs nothing. */
  flush(): void {
    for (const held of this.#held.values()) {
      const values = changingOf(held.row)
      if (values.every((value, i) => value === held.before[i])) continue
      this.#update.run(...values, held.row.qid)
      held.before = values
    }
  }

  /** Keeps the rows, which were written back, for the next transaction. */
  keep(): void {
    if (this.#kept.size + this.#held.size > mostKept) this.#kept = new Map()
    for (const [key, held] of this.#held) this.#kept.set(key, held)
    this.#held = new Map()
  }

  /**
   * Forgets all rows. Those of a transaction that was rolled back or only read, and those from before the commit of
   * another connection, must not be used in the next.
   */
  forget(): void {
    this.#held = new Map()
    this.#kept = new Map()
  }
}

function changingOf(row: QueueRow): SqlValue[] {
  return changing.map((column) => row[column])
}

/** The column that orders jobs that are otherwise equal: by arrival, or in an ordered queue by the bytes of the id. */
export type Tie = 'rid' | 'position'

/** A statement for each kind of queue. */
export function byKind(db: Database, text: (tie: Tie) => string): Record<QueueKind, Statement> {
  return { plain: db.prepare(text('rid')), ordered: db.prepare(text('position')) }
}

/** The next stamp: the place in line of a job that is ready now. */
export function takeStamp(queue: QueueRow, now: number): number {
  queue.last_stamp = nextStamp(queue.last_stamp, now)
  return queue.last_stamp
}

/** The score, in µs, of a payload that arrives with this stamp and has none of its own. */
export function takeScore(queue: QueueRow, stamp: number): number {
  queue.last_score = nextScore(queue.last_score, stamp)
  return queue.last_score
}
