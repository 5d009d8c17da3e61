/**
 * The joins of a SQL store: what is stored of each, besides the row of its job, and how it is read. `join_member` has a
 * row for each member that was added and has not ended, `join_end` one for each that has.
 */

import type { Payload } from '../../core/values/codec.js'
import type { FailedJoin, MemberEnd, StoredJoin } from '../contract/joins.js'
import type { NewJob } from '../contract/new-job.js'
import {
  deadFate,
  fates,
  type HeldSet,
  heldSet,
  type JoinRow,
  type JoinSetRow,
  newJoinRow,
  storedSet,
} from '../rows/join-row.js'
import { present } from '../rows/stored-job.js'
import { fromStored, type SqlValue, toStored, valueFromStored } from '../rows/stored-text.js'
import { stepLimit } from '../rules/bounds.js'
import { all, first, run, type SqlSteps } from './sql-steps.js'

/** A join as one transaction holds it. */
export interface HeldJoin {
  readonly row: JoinRow
  readonly sets: readonly HeldSet[]
}

/** Results of more bytes than this, or ends of more members than `stepLimit`, are deleted step by step. */
const mostDropped = 1_048_576

export function* storeJoin(rid: number, job: NewJob, now: number): SqlSteps<void> {
  const row = newJoinRow(job, now)
  const columns = Object.keys(row)
  yield* run(
    `INSERT INTO join_job (rid, ${columns.join(', ')}) VALUES (?${', ?'.repeat(columns.length)})`,
    ...[rid, ...Object.values(row)],
  )
  for (const { name, queue, ids, isMany, onDead, keepsResults, size } of job.join!.sets)
    yield* run(
      'INSERT INTO join_set (rid, name, queue, ids, is_many, on_dead, keeps_results, size) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
      ...[rid, toStored(name), queue, toStored(ids), isMany ? 1 : 0, onDead, keepsResults ? 1 : 0, size ?? null],
    )
}

/** Undefined: the job is no join, or one that has ended. */
export function* joinOf(rid: number): SqlSteps<HeldJoin | undefined> {
  const row = yield* first<JoinRow>('SELECT * FROM join_job WHERE rid = ?', rid)
  if (row === undefined) return undefined
  const sets = yield* all<JoinSetRow>('SELECT * FROM join_set WHERE rid = ? ORDER BY sid', rid)
  return { row, sets: sets.map(heldSet) }
}

/**
 * Writes what changes of a join. A server would leave out the counts and the bytes: no settle may wait for the row of another,
 * so it would count the rows of `join_end` when somebody asks.
 */
export function* writeJoin({ row, sets }: HeldJoin): SqlSteps<void> {
  const { rid, late_at, seal_by, due_at, bytes, cancelling } = row
  yield* run(
    'UPDATE join_job SET late_at = ?, seal_by = ?, due_at = ?, bytes = ?, cancelling = ? WHERE rid = ?',
    ...[late_at, seal_by, due_at, bytes, cancelling, rid],
  )
  for (const { sid, size, added, counts } of sets)
    yield* run(
      'UPDATE join_set SET size = ?, added = ?, completed = ?, dead = ?, cancelled = ?, expired = ? WHERE sid = ?',
      ...[size ?? null, added, counts.completed, counts.dead, counts.cancelled, counts.expired, sid],
    )
}

export function* lookAtJoin(rid: number, isWaiting: boolean): SqlSteps<StoredJoin | undefined> {
  const join = yield* joinOf(rid)
  if (join === undefined) return undefined
  const sets: StoredJoin['sets'][number][] = []
  for (const set of join.sets) sets.push(storedSet(set, yield* oldestIn(set)))
  const until = join.row.due_at
  return { sets, ...(isWaiting && until !== null ? { waitsUntil: until } : {}) }
}

/** The first member that has not ended or is held. */
function* oldestIn({ sid, onDead }: HeldSet): SqlSteps<number | undefined> {
  const texts = ['SELECT number FROM join_member WHERE sid = ? ORDER BY number LIMIT 1']
  if (onDead === 'hold')
    texts.push(`SELECT number FROM join_end WHERE sid = ? AND fate = ${deadFate} ORDER BY number LIMIT 1`)
  let oldest: number | undefined
  for (const text of texts) {
    const found = yield* first<{ number: number }>(text, sid)
    if (found !== undefined && !(oldest! < found.number)) oldest = found.number
  }
  return oldest
}

interface EndRow {
  readonly number: number
  readonly fate: number
  readonly codec: string | null
  readonly error: string | null
  readonly payload: SqlValue
}

/** The ends in a set of a join, in the order of their numbers. */
export function* endsIn(rid: number, set: string, from: number, limit: number): SqlSteps<MemberEnd[]> {
  const sets = yield* all<{ sid: number; name: string }>('SELECT sid, name FROM join_set WHERE rid = ?', rid)
  const found = sets.find(({ name }) => fromStored(name) === set)
  if (found === undefined) return []
  const rows = yield* all<EndRow>(
    'SELECT number, fate, codec, error, payload FROM join_end WHERE sid = ? AND number >= ? AND number < ? ORDER BY number',
    ...[found.sid, from, from + limit],
  )
  return rows.map(
    ({ number, fate, codec, error, payload }) =>
      present({
        ...{ number, fate: fates[fate]!, codec, error: valueFromStored(error) },
        payload: valueFromStored(payload) as Payload | null,
      }) as unknown as MemberEnd,
  )
}

/** The join has ended, or its job is gone. What may be much is left to `dropLeftovers`: it has no join any more. */
export function* dropJoin({ row: { rid, bytes }, sets }: HeldJoin): SqlSteps<void> {
  yield* run('DELETE FROM join_job WHERE rid = ?', rid)
  const members = sets.reduce((sum, { added }) => sum + added, 0)
  if (members > stepLimit || bytes > mostDropped) {
    yield* run('UPDATE join_set SET rid = NULL WHERE rid = ?', rid)
    return
  }
  for (const { sid } of sets) {
    yield* run('DELETE FROM join_member WHERE sid = ?', sid)
    yield* run('DELETE FROM join_end WHERE sid = ?', sid)
  }
  yield* run('DELETE FROM join_set WHERE rid = ?', rid)
}

/** Deletes what is left of joins that have ended, one bounded step. Returns whether more is left. */
export function* dropLeftovers(): SqlSteps<boolean> {
  const left = yield* first<{ sid: number }>('SELECT sid FROM join_set WHERE rid IS NULL LIMIT 1')
  if (left === undefined) return false
  for (const table of ['join_member', 'join_end']) {
    const next = yield* first<{ number: number }>(
      `SELECT number FROM ${table} WHERE sid = ? ORDER BY number LIMIT 1`,
      left.sid,
    )
    if (next === undefined) continue
    yield* run(`DELETE FROM ${table} WHERE sid = ? AND number < ?`, left.sid, next.number + stepLimit)
    return true
  }
  yield* run('DELETE FROM join_set WHERE sid = ?', left.sid)
  return (yield* first('SELECT sid FROM join_set WHERE rid IS NULL LIMIT 1')) !== undefined
}

/** Whether a sweep would find something to do. */
export function* isSweepDue(now: number): SqlSteps<boolean> {
  const found = yield* first(
    `SELECT 1 AS found WHERE EXISTS (SELECT 1 FROM join_failed) OR EXISTS (SELECT 1 FROM join_job WHERE due_at <= ?)
       OR EXISTS (SELECT 1 FROM join_job WHERE cancelling = 1) OR EXISTS (SELECT 1 FROM join_set WHERE rid IS NULL)`,
    now,
  )
  return found !== undefined
}

/** The jobs of waiting joins whose time is over, at most `limit`. */
export function* overdueJoins(now: number, limit: number): SqlSteps<number[]> {
  const text = 'SELECT rid FROM join_job WHERE due_at <= ? ORDER BY due_at, rid LIMIT ?'
  return (yield* all<{ rid: number }>(text, now, limit)).map(({ rid }) => rid)
}

/** The job of a join whose outstanding members are to be cancelled. */
export function* cancellingJoin(): SqlSteps<number | undefined> {
  return (yield* first<{ rid: number }>('SELECT rid FROM join_job WHERE cancelling = 1 ORDER BY rid LIMIT 1'))?.rid
}

export function* reportFailed({ queue, id, task, reason }: FailedJoin): SqlSteps<void> {
  yield* run('INSERT INTO join_failed (queue, id, task, reason) VALUES (?, ?, ?, ?)', queue, id, task, reason)
}

/** The joins that have died since this was last asked, at most `limit`. */
export function* takeFailed(limit: number): SqlSteps<FailedJoin[]> {
  const rows = yield* all<FailedJoin & { n: number }>(
    'SELECT n, queue, id, task, reason FROM join_failed ORDER BY n LIMIT ?',
    limit,
  )
  const last = rows.at(-1)
  if (last !== undefined) yield* run('DELETE FROM join_failed WHERE n <= ?', last.n)
  return rows.map(({ queue, id, task, reason }) => ({ queue, id, task, reason }))
}
