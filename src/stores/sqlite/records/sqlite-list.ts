/** Listings of a SQLite store: pages of the jobs of a queue, over all its shards and its morgue. */

import type { JobState } from '../../../core/job/job.js'
import type { ListQuery, Page } from '../../contract/job-records.js'
import type { QueueKind } from '../../contract/queue-settings.js'
import { dead, type JobRow, running, stateNames } from '../../rows/job-row.js'
import { morgueOf } from '../../rows/queue-row.js'
import type { Row, SqlValue } from '../../rows/stored-text.js'
import { comparePositions, cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import { groupPools, readyPools } from '../file/sqlite-schema.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import type { SqliteLook } from './sqlite-look.js'

/** The most jobs of a state that are sorted for one page. */
const sortLimit = 10_000

/** A way through the jobs of a shard: which jobs, and in what order. All of it is fixed text; values are bound. */
interface ListPath {
  readonly where: string
  /**
   * The columns that order it, all of them numbers. Rows that are equal in all columns are ordered by the tie of the
   * kind.
   */
  readonly columns: readonly string[]
  readonly descending?: boolean
  /** Whether it goes through the morgue of an ordered queue. */
  readonly isDead?: boolean
  /** The index that finds the jobs. It also orders them, unless they are few enough to be sorted. */
  readonly index: string
  /** The part before or after the others in its positions, which tells them from the positions of other paths. */
  readonly prefix?: number
  readonly suffix?: number
}

/**
 * The part of a path that is read: its first rows after a position, at most `limit`. A lane has those of the group alone; no
 * index has other states by their groups, and a page must not read a whole queue for a few jobs.
 */
interface PathPart {
  readonly after: ListPosition | undefined
  readonly limit: number
  readonly group?: string | undefined
}

interface FoundRow {
  readonly queue: QueueRow
  readonly row: Row & JobRow
  readonly position: ListPosition
}

/** Expired jobs are never shown. `?2`: now; `?3`: jobs that died by then have expired, or null. */
const visible =
  '(state <> 3 OR expires_at IS NULL OR expires_at > ?2) AND (state <> 4 OR ?3 IS NULL OR finished_at > ?3)'

const ended = { columns: ['finished_at'], descending: true }
const path = (prefix: number, state: (typeof stateNames)[number], columns: readonly string[]): ListPath => ({
  prefix,
  where: `state = ${stateNames.indexOf(state)}`,
  columns,
  index: `job_${state}`,
})
const completedPath: ListPath = { ...path(4, 'completed', []), ...ended }
const deadPath: ListPath = { ...path(5, 'dead', []), ...ended }

/**
 * In the order in which a listing by time goes through the states. Jobs of a plain queue that are otherwise equal are
 * in the order of their arrival, by `rid`; those of an ordered queue are in the order of their ids.
 */
const timePaths: Readonly<Record<QueueKind, readonly ListPath[]>> = {
  plain: [
    path(0, 'running', ['fence']),
    path(1, 'ready', ['suspect', 'rank', 'position']),
    path(2, 'scheduled', ['stamp', 'position']),
    path(3, 'waiting', ['stamp']),
    completedPath,
    deadPath,
  ],
  ordered: [
    path(0, 'running', ['fence']),
    path(1, 'ready', ['suspect', 'rank']),
    path(2, 'scheduled', ['stamp']),
    { ...deadPath, isDead: true },
  ],
}

export class SqliteList {
  readonly #transaction: SqliteTransaction
  readonly #look: SqliteLook

  constructor(transaction: SqliteTransaction, look: SqliteLook) {
    this.#transaction = transaction
    this.#look = look
  }

  list(name: string, query: ListQuery): Page {
    const { cursor, by, limit, group } = query
    const queues = this.#transaction.queues.rowsOf(name)
    const { kind } = queues[0]!
    const after = cursor === undefined ? undefined : positionIn(cursor, by, isPosition(kind, by))
    // Two paths by id are merged; paths by time follow each other.
    const paths = pathsOf(queues[0]!, query)
    const found: FoundRow[] = []
    for (const one of paths) {
      if (by === 'time' && (found.length > limit || (after !== undefined && one.prefix! < Number(after[0])))) continue
      const isAfter = after !== undefined && (by !== 'time' || one.prefix === after[0])
      found.push(...this.#found(one, queues, { after: isAfter ? after : undefined, limit: limit + 1, group }))
    }
    if (paths.length > 1 && by === 'id') found.sort((a, b) => comparePositions(a.position, b.position))
    const page = found.slice(0, limit)
    const wanted = page.filter(({ row }) => group === undefined || row.grp === group)
    const jobs = wanted.map(({ queue, row }) => this.#look.listed(queue, row))
    return found.length > page.length && page.length > 0
      ? { jobs, cursor: cursorAt(page.at(-1)!.position, by) }
      : { jobs }
  }

  /** The first rows of a path, over all shards. */
  #found(one: ListPath, queues: readonly QueueRow[], part: PathPart): FoundRow[] {
    const found = queues.flatMap((queue) =>
      this.#rowsOf(one, queue, part).map((row) => ({ queue, row, position: positionOf(one, queue.kind, row) })),
    )
    return found.sort((a, b) => comparePositions(a.position, b.position)).slice(0, part.limit)
  }

  #rowsOf(one: ListPath, queue: QueueRow, part: PathPart): (Row & JobRow)[] {
    const { after, group } = part
    if (one.columns[0] !== 'suspect') return this.#rows(one, queue, part)
    // Each pool has an index in this order, which finds the next page without going past the earlier ones.
    const [, ...columns] = one.columns
    return (group === undefined ? readyPools : groupPools).flatMap(({ where, index, suspect }) => {
      const [prefix, from, ...behind] = after ?? []
      if (from !== undefined && suspect < Number(from)) return []
      const isWithin = after !== undefined && suspect === from
      const pool = { ...one, where, index, columns }
      return this.#rows(pool, queue, { ...part, after: isWithin ? [prefix!, ...behind] : undefined })
    })
  }

  #rows(one: ListPath, queue: QueueRow, { after, limit, group }: PathPart): (Row & JobRow)[] {
    const { where, columns, descending, isDead, index } = one
    const isLane = index === 'job_lane'
    const bound = after === undefined ? [] : boundPosition(one, queue.kind, after)
    if (isLane) bound.push(group!)
    const ofGroup = isLane ? `AND grp = ?${4 + bound.length}` : ''
    const order = [...columns, tieOf(one, queue.kind)].map((column) =>
      descending && column !== 'position' ? `${column} DESC` : column,
    )
    const statement = this.#transaction.prepared(
      `SELECT * FROM job INDEXED BY ${index} WHERE qid = ?1 AND ${where} AND ${visible} ${ofGroup} ${after === undefined ? '' : beyond(one, queue.kind)} ORDER BY ${order.join(', ')} LIMIT ?4`,
    )
    const now = this.#transaction.clock.now()
    const deadBy = queue.dead_age_ms === null ? null : now - queue.dead_age_ms
    const values: SqlValue[] = [isDead ? morgueOf(queue) : queue.qid, now, deadBy, limit]
    return statement.all(...values, ...bound) as (Row & JobRow)[]
  }
}

function pathsOf(queue: QueueRow, { by, state }: ListQuery): readonly ListPath[] {
  if (by === 'time')
    return timePaths[queue.kind].filter(({ prefix }) => state === undefined || timeStates[prefix!] === state)
  const number = (stateNames as readonly (JobState | undefined)[]).indexOf(state)
  const wanted = state === undefined ? '' : ` AND state = ${number}`
  if (by === 'retry')
    return [{ where: `attempt > 1 AND state <= ${running}${wanted}`, columns: ['attempt'], index: 'job_retries' }]
  const live: ListPath = { where: `TRUE${wanted}`, columns: [], suffix: 0, index: 'job_id' }
  if (queue.kind === 'ordered') return [live, { ...live, where: `state = ${dead}${wanted}`, isDead: true, suffix: 1 }]
  const name = stateNames[number]
  // Few jobs among many are found by their state and sorted. If there are many, the way through all ids soon meets
  // them.
  return [name !== undefined && queue[name] <= sortLimit ? { ...live, index: `job_${name}` } : live]
}

const timeStates = ['running', 'ready', 'scheduled', 'waiting', 'completed', 'dead'] as const

/** The column that orders rows that are otherwise equal. In an ordered queue `position` is the id. */
function tieOf({ suffix }: ListPath, kind: QueueKind): 'id' | 'rid' | 'position' {
  if (suffix !== undefined) return 'id'
  return kind === 'plain' ? 'rid' : 'position'
}

/** The condition for rows after the position that is bound from ?5 on. */
function beyond(one: ListPath, kind: QueueKind): string {
  const { columns, descending } = one
  const tie = tieOf(one, kind)
  if (tie === 'id') return 'AND id >= ?5 AND (id > ?5 OR ?6)'
  // The latest come first; ids ascend all the same.
  if (descending && tie === 'position') return `AND ${columns[0]} <= ?5 AND (${columns[0]} < ?5 OR position > ?6)`
  const all = [...columns, tie]
  return `AND (${all.join(', ')}) ${descending ? '<' : '>'} (${all.map((_, i) => `?${i + 5}`).join(', ')})`
}

function boundPosition(one: ListPath, kind: QueueKind, after: ListPosition): SqlValue[] {
  const { columns, prefix, suffix, descending } = one
  const own = prefix === undefined ? after : after.slice(1)
  const last = own[columns.length]!
  // An id that has both entries is in a listing twice.
  if (suffix !== undefined) return [String(last), suffix > Number(own[1]) ? 1 : 0]
  const sign = descending ? -1 : 1
  const numbers = own.slice(0, columns.length).map((part) => sign * Number(part))
  return [...numbers, kind === 'plain' ? sign * Number(last) : Buffer.from(String(last))]
}

function positionOf(one: ListPath, kind: QueueKind, row: Row): ListPosition {
  const { columns, descending, prefix, suffix } = one
  const sign = descending ? -1 : 1
  return [
    ...(prefix === undefined ? [] : [prefix]),
    ...columns.map((column) => sign * Number(row[column])),
    tieOf(one, kind) === 'rid' ? sign * Number(row['rid']) : String(row['id']),
    ...(suffix === undefined ? [] : [suffix]),
  ]
}

/** Whether these are the parts of a position: numbers, and the tie in its place. */
function isPosition(kind: QueueKind, by: ListQuery['by']): (parts: readonly unknown[]) => boolean {
  const isTie = (part: unknown) => typeof part === (kind === 'plain' ? 'number' : 'string')
  return (parts) => {
    if (by === 'id') return parts.length === 2 && typeof parts[0] === 'string' && isNumber(parts[1])
    const columns = by === 'retry' ? 1 : timePaths[kind].find(({ prefix }) => prefix === parts[0])?.columns.length
    const numbers = parts.slice(by === 'retry' ? 0 : 1, -1)
    return numbers.length === columns && numbers.every(isNumber) && isTie(parts.at(-1))
  }
}

function isNumber(part: unknown): part is number {
  return typeof part === 'number'
}
