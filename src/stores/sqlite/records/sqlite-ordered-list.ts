/** Looking at the jobs of an ordered queue of a SQLite store: one, or pages of them, over all its shards and its morgue. */

import {
  type ListQuery,
  type Page,
  payloadsInPage,
  payloadsInRecord,
  type StoredJob,
} from '../../contract/job-records.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import type { Row, SqlValue, Statement } from '../file/sqlite-driver.js'
import { dead, readyLines, running, stateNames } from '../file/sqlite-schema.js'
import { isHidden, type JobRow } from '../rows/sqlite-job.js'
import { besideSet, setOf } from '../rows/sqlite-ordered-job.js'
import { scoredPayload } from '../rows/sqlite-payloads.js'
import { morgueOf, type QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { storedJob } from './sqlite-record.js'

/** A way through the jobs of each shard: which, and in what order. All of it is fixed text; values are bound. */
interface OrderedPath {
  readonly where: string
  /** The index that finds them, and orders them but for those that stand alike otherwise and for running ones. */
  readonly index: string
  /** The columns that order it; each of them is a number, and behind them comes the id. */
  readonly columns: readonly string[]
  /** Latest first; the ids ascend all the same. */
  readonly descending?: boolean
  /** Whether it goes through the morgue. */
  readonly isDead?: boolean
  /** What stands before or behind its positions, to part them from those of other paths. */
  readonly prefix?: number
  readonly suffix?: number
}

interface FoundRow {
  readonly queue: QueueRow
  readonly row: Row & JobRow
  readonly position: ListPosition
}

/** In the order in which a listing by time goes through the states. */
const timePaths: readonly OrderedPath[] = [
  { prefix: 0, where: 'state = 2', columns: ['fence'], index: 'job_running' },
  { prefix: 1, where: 'state = 1', columns: ['suspect', 'rank'], index: 'job_ready' },
  { prefix: 2, where: 'state = 0', columns: ['stamp'], index: 'job_scheduled' },
  { prefix: 4, where: 'state = 4', columns: ['finished_at'], descending: true, isDead: true, index: 'job_dead' },
]
const stateOfPrefix = ['running', 'ready', 'scheduled', 'completed', 'dead'] as const

export class SqliteOrderedList {
  readonly #session: SqliteTransaction
  readonly #statements = new Map<string, Statement>()

  constructor(session: SqliteTransaction) {
    this.#session = session
  }

  /** The live job, and only where there is none the entry in the morgue. */
  get(name: string, id: string): StoredJob | undefined {
    const live = this.#rowOf(name, id, ({ qid }) => qid)
    return live === undefined ? this.getDead(name, id) : this.#stored(live.queue, live.row, payloadsInRecord)
  }

  getDead(name: string, id: string): StoredJob | undefined {
    const found = this.#rowOf(name, id, morgueOf)
    const isShown = found !== undefined && !isHidden(found.queue, found.row, this.#session.clock.now())
    return isShown ? this.#stored(found.queue, found.row, payloadsInRecord) : undefined
  }

  /** While its queue is on its way to other shards a job may not have come along yet. */
  #rowOf(name: string, id: string, qidOf: (queue: QueueRow) => number): Omit<FoundRow, 'position'> | undefined {
    const { queues } = this.#session
    const statement = this.#prepared('SELECT * FROM job WHERE qid = ? AND id = ?')
    for (const queue of [queues.holding(name, id), queues.formerlyHolding(name, id)]) {
      const row = queue && (statement.get(qidOf(queue), id) as (Row & JobRow) | undefined)
      if (row !== undefined) return { queue: queue!, row }
    }
    return undefined
  }

  list(name: string, query: ListQuery): Page {
    const { cursor, by, limit } = query
    const queues = this.#session.queues.rowsOf(name)
    const after = cursor === undefined ? undefined : positionIn(cursor, by, isPosition[by])
    // Two paths by id are walked side by side, those by time one after the other.
    const paths = pathsOf(query)
    const found: FoundRow[] = []
    for (const path of paths) {
      if (by === 'time' && (found.length > limit || (after !== undefined && path.prefix! < Number(after[0])))) continue
      const isAfter = after !== undefined && (by !== 'time' || path.prefix === after[0])
      found.push(...this.#found(path, queues, isAfter ? after : undefined, limit + 1))
    }
    if (paths.length > 1 && by === 'id') found.sort((a, b) => comparePositions(a.position, b.position))
    const page = found.slice(0, limit)
    const jobs = page.map(({ queue, row }) => this.#stored(queue, row, payloadsInPage))
    return found.length > page.length && page.length > 0
      ? { jobs, cursor: cursorAt(page.at(-1)!.position, by) }
      : { jobs }
  }

  /** The first of a path after that position: so many of each shard, and of all of them the first. */
  #found(path: OrderedPath, queues: readonly QueueRow[], after: ListPosition | undefined, limit: number): FoundRow[] {
    const found = queues.flatMap((queue) =>
      this.#rowsOf(path, queue, after, limit).map((row) => ({ queue, row, position: positionOf(path, row) })),
    )
    return found.sort((a, b) => comparePositions(a.position, b.position)).slice(0, limit)
  }

  #rowsOf(path: OrderedPath, queue: QueueRow, after: ListPosition | undefined, limit: number): (Row & JobRow)[] {
    if (path.columns[0] !== 'suspect') return this.#rows(path, queue, after, limit)
    // Each line has an index in this order, in which the next page is found without going past those before it.
    const [, ...columns] = path.columns
    return readyLines.flatMap(({ where, suspect }) => {
      const [prefix, from, ...behind] = after ?? []
      if (from !== undefined && suspect < Number(from)) return []
      const isWithin = after !== undefined && suspect === from
      return this.#rows({ ...path, where, columns }, queue, isWithin ? [prefix!, ...behind] : undefined, limit)
    })
  }

  #rows(path: OrderedPath, queue: QueueRow, after: ListPosition | undefined, limit: number): (Row & JobRow)[] {
    const { where, columns, descending, isDead, suffix, index } = path
    const direction = descending ? 'DESC' : 'ASC'
    const order = [...columns.map((column) => `${column} ${direction}`), suffix === undefined ? 'place' : 'id'].join(
      ', ',
    )
    const isShown = isDead ? 'AND (?2 IS NULL OR finished_at > ?2)' : 'AND ?2 IS ?2'
    const statement = this.#prepared(
      `SELECT * FROM job INDEXED BY ${index} WHERE qid = ?1 AND ${where} ${isShown} ${after === undefined ? '' : beyond(path)} ORDER BY ${order} LIMIT ?3`,
    )
    const deadBy = queue.dead_age_ms === null ? null : this.#session.clock.now() - queue.dead_age_ms
    const values: SqlValue[] = [isDead ? morgueOf(queue) : queue.qid, deadBy, limit]
    return statement.all(...values, ...(after === undefined ? [] : boundPosition(path, after))) as (Row & JobRow)[]
  }

  #stored(queue: QueueRow, row: Row & JobRow, shown: number): StoredJob {
    const { payloads } = this.#session.orderedJobs
    return {
      ...storedJob(queue.name, row),
      priority: 0,
      payloads: payloads.head(setOf(row), shown).map(scoredPayload),
      payloadCount: payloads.count(setOf(row)),
      ...(row.beside_stamp === null ? {} : { pendingCount: payloads.count(besideSet(row)) }),
    }
  }

  #prepared(sql: string): Statement {
    let statement = this.#statements.get(sql)
    if (statement === undefined) {
      statement = this.#session.db.prepare(sql)
      this.#statements.set(sql, statement)
    }
    return statement
  }
}

function pathsOf({ by, state }: ListQuery): readonly OrderedPath[] {
  if (by === 'time') return timePaths.filter(({ prefix }) => state === undefined || stateOfPrefix[prefix!] === state)
  const number = (stateNames as readonly (string | undefined)[]).indexOf(state)
  const wanted = state === undefined ? '' : ` AND state = ${number}`
  if (by === 'retry')
    return [{ where: `attempt > 1 AND state <= ${running}${wanted}`, columns: ['attempt'], index: 'job_retries' }]
  return [
    { where: `TRUE${wanted}`, columns: [], suffix: 0, index: 'job_id' },
    { where: `state = ${dead}${wanted}`, columns: [], isDead: true, suffix: 1, index: 'job_id' },
  ]
}

/** What comes after the position that is bound from ?4 on. */
function beyond({ columns, descending, suffix }: OrderedPath): string {
  if (suffix !== undefined) return 'AND id >= ?4 AND (id > ?4 OR ?5)'
  if (descending) return `AND ${columns[0]} <= ?4 AND (${columns[0]} < ?4 OR place > ?5)`
  return `AND (${[...columns, 'place'].join(', ')}) > (${[...columns, 'place'].map((_, i) => `?${i + 4}`).join(', ')})`
}

function boundPosition({ columns, prefix, suffix, descending }: OrderedPath, after: ListPosition): SqlValue[] {
  const own = prefix === undefined ? after : after.slice(1)
  const id = String(own[columns.length])
  // With both of its entries an id stands in a listing twice.
  if (suffix !== undefined) return [id, suffix > Number(own[1]) ? 1 : 0]
  const numbers = own.slice(0, columns.length).map(Number)
  return [...(descending ? numbers.map((number) => -number) : numbers), Buffer.from(id)]
}

function positionOf({ columns, descending, prefix, suffix }: OrderedPath, row: Row): ListPosition {
  const sign = descending ? -1 : 1
  return [
    ...(prefix === undefined ? [] : [prefix]),
    ...columns.map((column) => sign * Number(row[column])),
    String(row['id']),
    ...(suffix === undefined ? [] : [suffix]),
  ]
}

const isPosition: Record<ListQuery['by'], (parts: readonly unknown[]) => boolean> = {
  id: ([id, suffix, ...more]) => typeof id === 'string' && isNumber(suffix) && more.length === 0,
  retry: ([attempt, id, ...more]) => isNumber(attempt) && typeof id === 'string' && more.length === 0,
  time([prefix, ...parts]) {
    const path = timePaths.find((one) => one.prefix === prefix)
    const numbers = parts.slice(0, -1)
    return path?.columns.length === numbers.length && numbers.every(isNumber) && typeof parts.at(-1) === 'string'
  },
}

function isNumber(part: unknown): part is number {
  return typeof part === 'number'
}
