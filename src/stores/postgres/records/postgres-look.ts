/** Jobs of a Postgres store, read by id or page by page. */

import type { JobFields } from '../../../core/job/job-fields.js'
import { type ListQuery, type Page, resultDropped, type StoredJob } from '../../contract/job-records.js'
import { completed, dead, isHidden, isRemembered, noteBits, stateNames } from '../../rows/job-row.js'
import { storedJob } from '../../rows/stored-job.js'
import type { Row } from '../../rows/stored-text.js'
import { cursorAt, type ListPosition, positionIn } from '../../rules/listing-cursor.js'
import type { PostgresConnection } from '../client/postgres-connection.js'
import { endedStates, jobFlags } from '../schema/postgres-tables.js'
import { logFrom, payloadFrom, type ScoredColumns, scoredFrom, textFrom } from '../schema/stored-payload.js'
import type { PostgresReshard } from '../work/postgres-reshard.js'
import type { NumberedQueue, PostgresQueues } from '../work/postgres-settings.js'
import { listJobs } from './listing-functions.js'
import { recordOf } from './record-functions.js'

/** Texts and payloads that are stored in a form of their own. */
const stored = ['payload', 'meta', 'result', 'checkpoint'] as const
const texts = ['error', 'reason', 'progress', 'fields'] as const

export class PostgresLook {
  readonly #connection: PostgresConnection
  readonly #queues: PostgresQueues
  readonly #reshards: PostgresReshard

  constructor(connection: PostgresConnection, queues: PostgresQueues, reshards: PostgresReshard) {
    this.#connection = connection
    this.#queues = queues
    this.#reshards = reshards
  }

  /** For an ordered queue the live job; only if there is none, the entry in the morgue. */
  async get(name: string, id: string): Promise<StoredJob | undefined> {
    const row = await this.shown(await this.#reshards.homeOf(name, id), id)
    return row && recordFrom(name, row)
  }

  /** The entry of an id in the morgue, which an ordered id may have beside its live job. */
  async getDead(name: string, id: string): Promise<StoredJob | undefined> {
    const row = await this.shown(await this.#reshards.homeOf(name, id), id, true)
    return row && Number(row['state']) === dead ? recordFrom(name, row) : undefined
  }

  /**
   * The row of a job, unless all of it is past its time; of an id that is only remembered, the row of that. `hasEnded`: not that of
   * a live job.
   */
  async shown({ qid }: NumberedQueue, id: string, hasEnded = false): Promise<Row | undefined> {
    const answer = await this.#connection.call(recordOf, [qid, id, hasEnded])
    const [now, deadAge, row] = answer as [now: number, deadAge: number | null, row: Row | null]
    if (row === null) return undefined
    const state = Number(row['state'])
    if (state > stateNames.length) return Number(row['until']) > now ? row : undefined
    const job = { state, finished_at: row['finished_at'] as number, remember_ms: Number(row['remember_ms']) }
    const until = row['until'] as number | null | undefined
    if (state !== completed && state !== dead) return row
    if (!isHidden({ dead_age_ms: deadAge }, { ...job, expires_at: until ?? null }, now)) return row
    return isRemembered(job, now) ? memoryOf(row) : undefined
  }

  async list(name: string, { by, cursor, limit, state, group }: ListQuery): Promise<Page> {
    const { shards, leaving } = await this.#queues.current(name)
    const all = [...shards, ...leaving]
    const after = cursor === undefined ? null : positionIn(cursor, by, isPosition(shards[0]!, by))
    const states =
      state === undefined ? stateNames.map((_, i) => i) : [(stateNames as readonly string[]).indexOf(state)]
    const from = after === null ? null : JSON.stringify(after)
    const values = [all.map(({ qid }) => qid), by, states, from, limit + 1, group ?? null]
    const found = (await this.#connection.call(listJobs, values)) as [position: ListPosition, row: Row | null][]
    const jobs = found.slice(0, limit).flatMap(([, row]) => (row === null ? [] : [recordFrom(name, row)]))
    const last = found[limit - 1]
    return found.length > limit ? { jobs, cursor: cursorAt(ofNumbers(last![0], by), by) } : { jobs }
  }
}

export function fieldsIn(fields: unknown): JobFields {
  return typeof fields === 'string' ? (JSON.parse(textFrom(fields)) as JobFields) : {}
}

/** The database gives a position that ends with an id as texts. */
function ofNumbers(position: ListPosition, by: ListQuery['by']): ListPosition {
  if (by === 'id' || typeof position[0] === 'number') return position
  return [...position.slice(0, -1).map(Number), position.at(-1)!]
}

/** The lengths of the positions by time, by their first number: see `list_2`. */
const lengths = [3, 5, 3, 3, 3, 3]

function isPosition({ kind }: NumberedQueue, by: ListQuery['by']): (parts: readonly unknown[]) => boolean {
  const areNumbers = (of: readonly unknown[]) => of.every((part) => Number.isSafeInteger(part))
  const isTie = (part: unknown) => (kind === 'ordered' ? typeof part === 'string' : areNumbers([part]))
  return (parts) => {
    if (by === 'id') return parts.length === 2 && typeof parts[0] === 'string' && areNumbers(parts.slice(1))
    // What is ready has its place in line besides its id.
    const more = kind === 'ordered' && parts[0] === 1 ? 1 : 0
    const length = by === 'retry' ? 2 : lengths[Number(parts[0])]! + more
    return parts.length === length && areNumbers(parts.slice(0, -1)) && isTie(parts.at(-1))
  }
}

function recordFrom(queue: string, row: Row): StoredJob {
  const flags = Number(row['flags'] ?? 0)
  const { fields, awaits, awaits_until: until } = row
  const { result: _, ...others } = row
  const state = Number(row['state'])
  const known: Row = {
    ...others,
    ...(state > stateNames.length
      ? { state: state === endedStates.rememberedCompleted ? 'completed' : 'cancelled' }
      : {}),
    noted: flags & jobFlags.join ? noteBits.join : 0,
    fields: null,
  }
  // Their own forms are read here, so that the record is left with nothing to read but marks that are none.
  const job = storedJob(queue, { ...known, ...blank })
  return {
    ...job,
    ...readTexts(row, state),
    ...(fields === null || fields === undefined ? {} : { fields: fieldsIn(fields) }),
    ...(typeof awaits === 'string'
      ? { awaits: { signal: textFrom(awaits), ...(until === null ? {} : { until: Number(until) }) } }
      : {}),
    ...(flags & jobFlags.steps ? { hasSteps: true as const } : {}),
    ...payloadsIn(row),
  }
}

/** The payloads of an ordered job: see `payloads_of_1`. */
function payloadsIn({ of }: Row): Partial<StoredJob> {
  if (of === null || of === undefined) return {}
  const { shown, count, pending } = of as unknown as { shown: ScoredColumns[]; count: number; pending: number | null }
  return {
    ...{ priority: 0, payload: '', payloads: shown.map(scoredFrom), payloadCount: count },
    ...(pending === null ? {} : { pendingCount: pending }),
  }
}

/** A result that is left out is no result; null is one without a value. */
const blank = { payload: '', meta: null, checkpoint: null, error: null, reason: null, progress: null, log: null }

function readTexts(row: Row, state: number): Partial<StoredJob> {
  const payloads = Object.fromEntries(
    stored.map((name) => [name, typeof row[name] === 'string' ? payloadFrom(row[name]) : undefined]),
  )
  const read = Object.fromEntries(
    texts.map((name) => [name, typeof row[name] === 'string' ? textFrom(row[name]) : undefined]),
  )
  const { payload, meta, result, checkpoint } = payloads
  const { error, reason, progress } = read
  const codec = (name: string) => (typeof row[name] === 'string' ? { codec: row[name] } : {})
  return {
    ...(payload === undefined ? {} : { payload }),
    ...(meta === undefined ? {} : { meta }),
    ...(state === completed
      ? { result: { ...(result === undefined ? {} : { payload: result }), ...codec('result_codec') } }
      : {}),
    ...(checkpoint === undefined ? {} : { checkpoint: { payload: checkpoint, ...codec('checkpoint_codec') } }),
    ...(error === undefined ? {} : { error }),
    ...(reason === undefined ? {} : { reason }),
    ...(progress === undefined ? {} : { progress: JSON.parse(progress) }),
    ...(typeof row['log'] === 'string' && row['log'] !== '' ? { log: logFrom(row['log']) } : {}),
  }
}

/** A completed job whose result is past its time, as what is remembered of it. */
function memoryOf(row: Row): Row {
  const { id, task, rank, attempt, crashes, created_at, stamp, finished_at, result } = row
  const reason = result === null || result === undefined ? null : resultDropped
  return {
    ...{ id, task, rank, attempt, crashes, created_at, stamp, finished_at, reason },
    state: endedStates.rememberedCompleted,
  } as Row
}
