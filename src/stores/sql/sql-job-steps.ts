/**
 * The steps and signals of the jobs of a SQL store. `step` has a row for each entry of a job, `signal_wait` one for each
 * job that waits for a signal.
 */

import type { Payload } from '../../core/values/codec.js'
import type { EntryKind, StoredStep } from '../contract/steps.js'
import { isSignalEntry } from '../contract/steps.js'
import { bounded } from '../rows/queue-row.js'
import { present } from '../rows/stored-job.js'
import { fromStored, payloadToStored, type SqlValue, toStored, valueFromStored } from '../rows/stored-text.js'
import type { SignalWait } from '../rules/claim-end.js'
import { all, first, run, type SqlSteps } from './sql-steps.js'

/** The values of the column `step.kind`. Stored rows depend on the order. */
const kinds = ['step', 'sleep', 'signal', 'timeout'] as const satisfies readonly StoredStep['kind'][]

interface StepRow {
  readonly n: number
  readonly kind: number
  readonly name: string
  readonly at: number
  readonly until: number | null
  readonly codec: string | null
  readonly payload: SqlValue
}

/** The wait of a job for a signal, as its record shows it. */
interface StoredWait {
  readonly signal: string
  readonly until?: number
}

/** In the order in which they were stored. A job has few enough to be sorted here. */
export function* stepsOf(rid: number): SqlSteps<StoredStep[]> {
  const text = 'SELECT n, kind, name, at, until, codec, payload FROM step WHERE rid = ?'
  const rows = yield* all<StepRow>(text, rid)
  rows.sort((a, b) => a.n - b.n)
  return rows.map(
    ({ kind, name, at, until, codec, payload }) =>
      present({
        ...{ name: fromStored(name), kind: kinds[kind]!, at, until, codec },
        payload: valueFromStored(payload) as Payload | null,
      }) as unknown as StoredStep,
  )
}

/** Adds an entry, unless there is one of its name. The caller marks the job. */
export function* addStep(rid: number, { name, kind, at, until, payload, codec }: StoredStep): SqlSteps<void> {
  yield* run(
    `INSERT INTO step (rid, is_signal, name, kind, at, until, codec, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (rid, is_signal, name) DO NOTHING`,
    ...[rid, isSignalEntry({ kind }) ? 1 : 0, toStored(name), kinds.indexOf(kind), at],
    until === undefined ? null : bounded(until),
    codec ?? null,
    payload === undefined ? null : payloadToStored(payload),
  )
}

/** Removes the entry of this name. Returns whether there was one. */
export function* removeStep(rid: number, name: string, of: EntryKind): SqlSteps<boolean> {
  const text = 'DELETE FROM step WHERE rid = ? AND is_signal = ? AND name = ?'
  return (yield* run(text, rid, of === 'signal' ? 1 : 0, toStored(name))) > 0
}

/** Whether the job has entries. */
export function* hasSteps(rid: number): SqlSteps<boolean> {
  return (yield* first('SELECT 1 FROM step WHERE rid = ? LIMIT 1', rid)) !== undefined
}

/** Whether the signal of this name has come, or its time is over; undefined: neither. */
export function* signalEntry(rid: number, name: string): SqlSteps<'signal' | 'timeout' | undefined> {
  const row = yield* first<{ kind: number }>(
    'SELECT kind FROM step WHERE rid = ? AND is_signal = 1 AND name = ?',
    ...[rid, toStored(name)],
  )
  return row && (kinds[row.kind] as 'signal' | 'timeout')
}

/** The number of signals of a job, and the bytes of their data. */
export function* signalLoad(rid: number): SqlSteps<{ readonly count: number; readonly bytes: number }> {
  const text = `SELECT count(*) AS count, coalesce(sum(octet_length(payload)), 0) AS bytes FROM step
    WHERE rid = ? AND is_signal = 1 AND kind = ${kinds.indexOf('signal')}`
  return (yield* first<{ count: number; bytes: number }>(text, rid))!
}

/** Sleeps that are not over end at `now`. */
export function* endSleeps(rid: number, now: number): SqlSteps<void> {
  yield* run('UPDATE step SET until = ? WHERE rid = ? AND is_signal = 0 AND until > ?', now, rid, now)
}

export function* dropSteps(rid: number): SqlSteps<void> {
  yield* run('DELETE FROM step WHERE rid = ?', rid)
}

export function* beginWait(rid: number, { signal, withinMs }: SignalWait, now: number): SqlSteps<void> {
  const until = withinMs === undefined ? null : bounded(now + withinMs)
  yield* run('INSERT INTO signal_wait (rid, signal, until) VALUES (?, ?, ?)', rid, toStored(signal), until)
}

export function* endWait(rid: number): SqlSteps<void> {
  yield* run('DELETE FROM signal_wait WHERE rid = ?', rid)
}

export function* waitOf(rid: number): SqlSteps<StoredWait | undefined> {
  const row = yield* first<{ signal: string; until: number | null }>(
    'SELECT signal, until FROM signal_wait WHERE rid = ?',
    rid,
  )
  return row && { signal: fromStored(row.signal), ...(row.until === null ? {} : { until: row.until }) }
}

/** The jobs whose wait is over in vain, at most `limit`, the oldest first. */
export function* vainWaits(now: number, limit: number): SqlSteps<number[]> {
  const text = 'SELECT rid FROM signal_wait WHERE until <= ? ORDER BY until, rid LIMIT ?'
  return (yield* all<{ rid: number }>(text, now, limit)).map(({ rid }) => rid)
}
