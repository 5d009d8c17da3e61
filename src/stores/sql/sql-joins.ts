/**
 * The joins of a SQL store: what is stored of each, besides the row of its job, and how it is read. Who has ended in its
 * sets is stored by each store in its own way.
 */

import type { FailedJoin } from '../contract/joins.js'
import type { NewJob } from '../contract/new-job.js'
import { type HeldSet, heldSet, type JoinRow, type JoinSetRow, newJoinRow, storedBits } from '../rows/join-row.js'
import { toStored } from '../rows/stored-text.js'
import { all, first, run, type SqlSteps } from './sql-steps.js'

/** A join as one transaction holds it. */
export interface HeldJoin {
  readonly row: JoinRow
  readonly sets: readonly HeldSet[]
}

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

/** Writes what changes of a join, but for its sets. */
export function* writeJoin({ rid, late_at, seal_by, due_at, cancelling }: JoinRow): SqlSteps<void> {
  yield* run(
    'UPDATE join_job SET late_at = ?, seal_by = ?, due_at = ?, cancelling = ? WHERE rid = ?',
    ...[late_at, seal_by, due_at, cancelling, rid],
  )
}

/**
 * Writes what changes of a set. A server would leave out what a report changes, which is all but the size: no settle may
 * wait for the row of another, so it would count the rows of `join_end` when somebody asks.
 */
export function* writeSet({ sid, size, added, counts, bytes, bits }: HeldSet): SqlSteps<void> {
  yield* run(
    'UPDATE join_set SET size = ?, added = ?, completed = ?, dead = ?, cancelled = ?, expired = ?, bytes = ?, bits = ? WHERE sid = ?',
    ...[size ?? null, added, counts.completed, counts.dead, counts.cancelled, counts.expired],
    ...[bytes, storedBits(bits), sid],
  )
}

/** A set of a join that has ended, and of which something is still to be deleted. */
export function* setLeft(): SqlSteps<number | undefined> {
  return (yield* first<{ sid: number }>('SELECT sid FROM join_set WHERE rid IS NULL LIMIT 1'))?.sid
}

/** The join has ended, or its job is gone. `leavesSets`: what its sets have is deleted later. */
export function* dropJoin({ row: { rid } }: HeldJoin, leavesSets: boolean): SqlSteps<void> {
  yield* run('DELETE FROM join_job WHERE rid = ?', rid)
  yield* run(leavesSets ? 'UPDATE join_set SET rid = NULL WHERE rid = ?' : 'DELETE FROM join_set WHERE rid = ?', rid)
}

export function* dropSet(sid: number): SqlSteps<void> {
  yield* run('DELETE FROM join_set WHERE sid = ?', sid)
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
