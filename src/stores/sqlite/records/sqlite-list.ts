/** Looking at the jobs of a SQLite store: one, or pages of them. */

import type { JobState } from '../../../core/job.js'
import type { ListQuery, Page, StoredJob } from '../../contract/job-records.js'
import { cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import type { Row, SqlValue, Statement } from '../file/sqlite-driver.js'
import { readyLines, stateNames } from '../file/sqlite-schema.js'
import { isHidden, isRemembered, type JobRow } from '../rows/sqlite-job.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { SqliteOrderedList } from './sqlite-ordered-list.js'
import { rememberedJob, storedJob } from './sqlite-record.js'

/** Up to so many jobs of a state are sorted for a page of them. */
const sortLimit = 10_000

/** A way through jobs: which, in what order, and how to go on after one. All of it is fixed text; values are bound. */
interface ListPath {
  readonly where: string
  /** The columns that order it. */
  readonly columns: readonly string[]
  readonly descending?: boolean
  /** The index that finds them. It is the one that orders them, too, unless they are few enough to be sorted. */
  readonly index: string
}

/** What has expired is never shown. ?2: now; ?3: what died by then has expired, or null. */
const visible = '(expires_at IS NULL OR expires_at > ?2) AND (state <> 4 OR ?3 IS NULL OR finished_at > ?3)'

/** In the order in which a listing by time goes through the states; the number heads its cursors. */
const timePaths: readonly (readonly [JobState, ListPath])[] = [
  ['running', { where: 'state = 2', columns: ['fence', 'rid'], index: 'job_running' }],
  ['ready', { where: 'state = 1', columns: ['suspect', 'rank', 'place', 'rid'], index: 'job_ready' }],
  ['scheduled', { where: 'state = 0', columns: ['stamp', 'place', 'rid'], index: 'job_scheduled' }],
  ['completed', { where: 'state = 3', columns: ['finished_at', 'rid'], descending: true, index: 'job_completed' }],
  ['dead', { where: 'state = 4', columns: ['finished_at', 'rid'], descending: true, index: 'job_dead' }],
]

export class SqliteList {
  readonly #session: SqliteTransaction
  readonly #ordered: SqliteOrderedList
  readonly #statements = new Map<string, Statement>()

  constructor(session: SqliteTransaction) {
    this.#session = session
    this.#ordered = new SqliteOrderedList(session)
  }

  /** The entry of an id in the morgue. */
  getDead(name: string, id: string): StoredJob | undefined {
    if (this.#session.queues.get(name).kind === 'ordered') return this.#ordered.getDead(name, id)
    const job = this.get(name, id)
    return job?.state === 'dead' ? job : undefined
  }

  get(name: string, id: string): StoredJob | undefined {
    const queue = this.#session.queues.get(name)
    if (queue.kind === 'ordered') return this.#ordered.get(name, id)
    const now = this.#session.clock.now()
    const row = this.#prepared('SELECT * FROM job WHERE qid = ? AND id = ?').get(queue.qid, id) as
      | (Row & JobRow)
      | undefined
    if (row !== undefined && !isHidden(queue, row, now))
      return { ...storedJob(name, row), ...(row.noted ? this.#session.notes.of(row.rid) : {}) }
    if (row !== undefined) {
      if (!isRemembered(row, now)) return undefined
      const { id, task, rank, attempt, crashes, created_at, stamp, finished_at, reason } = row
      const run_at = Math.floor(stamp / 1_000)
      return rememberedJob(name, {
        id,
        task,
        state: 'completed',
        priority: 0 - rank,
        attempt,
        crashes,
        created_at,
        run_at,
        finished_at,
        reason,
      })
    }
    const memory = this.#prepared('SELECT * FROM remembered WHERE qid = ? AND id = ? AND until > ?').get(
      queue.qid,
      id,
      now,
    )
    return memory === undefined ? undefined : rememberedJob(name, memory as Row)
  }

  list(name: string, query: ListQuery): Page {
    const queue = this.#session.queues.get(name)
    if (queue.kind === 'ordered') return this.#ordered.list(name, query)
    const { state, by, cursor, limit } = query
    const after = cursor === undefined ? undefined : positionIn(cursor, by, positionForms[by])
    const found: { readonly row: Row; readonly position: ListPosition }[] = []
    const take = (path: ListPath, prefix: ListPosition, from: ListPosition | undefined) => {
      for (const row of this.#rowsOf(queue, path, from, limit + 1 - found.length))
        found.push({ row, position: [...prefix, ...path.columns.map((column) => row[column] as number | string)] })
    }
    if (by === 'time') {
      for (const [i, [name, path]] of timePaths.entries()) {
        if ((state !== undefined && state !== name) || found.length > limit) continue
        const [at] = after ?? [-1]
        if (i < Number(at)) continue
        take(path, [i], i === at ? after!.slice(1) : undefined)
      }
    } else take(pathBy(by, state, queue), [], after)
    const page = found.slice(0, limit)
    const jobs = page.map(({ row }) => storedJob(name, row))
    return found.length > page.length && page.length > 0
      ? { jobs, cursor: cursorAt(page.at(-1)!.position, by) }
      : { jobs }
  }

  #rowsOf(queue: QueueRow, path: ListPath, after: ListPosition | undefined, limit: number): Row[] {
    if (path.columns[0] !== 'suspect') return this.#rows(queue, path, after, limit)
    // Each line has an index in this order, in which the next page is found without going past those before it.
    const [, ...columns] = path.columns
    const rows = readyLines.flatMap(({ where, suspect }) => {
      if (after !== undefined && suspect < Number(after[0])) return []
      const isWithin = after !== undefined && suspect === after[0]
      return this.#rows(queue, { ...path, where, columns }, isWithin ? after.slice(1) : undefined, limit)
    })
    const compare = (a: Row, b: Row) =>
      path.columns.reduce((difference, column) => difference || Number(a[column]) - Number(b[column]), 0)
    return rows.sort(compare).slice(0, limit)
  }

  #rows(
    queue: QueueRow,
    { where, columns, descending, index }: ListPath,
    after: ListPosition | undefined,
    limit: number,
  ): Row[] {
    const key = `(${columns.join(', ')})`
    const beyond =
      after === undefined ? '' : `AND ${key} ${descending ? '<' : '>'} (${columns.map(() => '?').join(', ')})`
    const order = columns.map((column) => (descending ? `${column} DESC` : column)).join(', ')
    const now = this.#session.clock.now()
    const deadBy = queue.dead_age_ms === null ? null : now - queue.dead_age_ms
    const statement = this.#prepared(
      `SELECT * FROM job INDEXED BY ${index} WHERE qid = ?1 AND ${where} AND ${visible} ${beyond} ORDER BY ${order} LIMIT ?`,
    )
    const values: SqlValue[] = [queue.qid, now, deadBy, ...(after ?? []), limit]
    return statement.all(...values) as Row[]
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

function pathBy(by: 'id' | 'retry', state: JobState | undefined, queue: QueueRow): ListPath {
  const number = (stateNames as readonly (JobState | undefined)[]).indexOf(state)
  const wanted = state === undefined ? '' : ` AND state = ${number}`
  if (by === 'retry')
    return { where: `attempt > 1 AND state <= 2${wanted}`, columns: ['attempt', 'rid'], index: 'job_retries' }
  const path: ListPath = { where: `TRUE${wanted}`, columns: ['id'], index: 'job_id' }
  const name = stateNames[number]
  // Few among many are found by their state and sorted; many are met soon enough on the way through all ids.
  return name !== undefined && queue[name] <= sortLimit ? { ...path, index: `job_${name}` } : path
}

const positionForms: Record<ListQuery['by'], (parts: readonly unknown[]) => boolean> = {
  id: (parts) => parts.length === 1 && typeof parts[0] === 'string',
  retry: (parts) => parts.length === 2 && parts.every(isNumber),
  time: (parts) => {
    const path = timePaths[Number(parts[0])]?.[1]
    return path !== undefined && parts.length === path.columns.length + 1 && parts.every(isNumber)
  },
}

function isNumber(part: unknown): part is number {
  return typeof part === 'number'
}
