/** The registry of workers in a SQL store: which are alive, and the signal of each. Their claims are the store's own. */

import { toleratedStepMs } from '../../core/platform/clock.js'
import { type SeenWorker, storedWorker, type WorkerRecord, type WorkerSignal } from '../contract/worker-registry.js'
import { bounded } from '../rows/queue-row.js'
import { all, first, run, type SqlSteps } from './sql-steps.js'

export function* beatWorker(worker: WorkerRecord, ttlMs: number, now: number): SqlSteps<WorkerSignal | undefined> {
  // Before the write: a worker that had lapsed comes back without its signal.
  yield* run('DELETE FROM worker WHERE until <= ?', now)
  yield* run(
    `INSERT INTO worker (id, record, seen_at, until) VALUES (?, ?, ?, ?)
     ON CONFLICT (id) DO UPDATE SET record = excluded.record, seen_at = excluded.seen_at, until = excluded.until`,
    ...[worker.id, JSON.stringify(worker), now, bounded(now + ttlMs)],
  )
  // The clock was set back: from now on they live for as long as their last beat gave them.
  yield* run(
    'UPDATE worker SET until = until - seen_at + ?, seen_at = ? WHERE seen_at > ?',
    ...[now, now, now + toleratedStepMs],
  )
  const text = 'SELECT signal FROM worker WHERE id = ?'
  return (yield* first<{ signal: WorkerSignal | null }>(text, worker.id))?.signal ?? undefined
}

/** False if there is no such worker. */
export function* signalWorker(id: string, signal: WorkerSignal, now: number): SqlSteps<boolean> {
  return (yield* run('UPDATE worker SET signal = ? WHERE id = ? AND until > ?', signal, id, now)) === 1
}

export function* deleteWorker(id: string): SqlSteps<void> {
  yield* run('DELETE FROM worker WHERE id = ?', id)
}

export function* liveWorkers(now: number): SqlSteps<SeenWorker[]> {
  const rows = yield* all<{ id: string; record: string; seen_at: number }>(
    'SELECT id, record, seen_at FROM worker WHERE until > ? ORDER BY id',
    now,
  )
  return rows.flatMap(({ id, record: text, seen_at }) => {
    const record = storedWorker(text)
    return record === undefined ? [] : [{ ...record, id, seenAt: seen_at, silentMs: Math.max(0, now - seen_at) }]
  })
}
