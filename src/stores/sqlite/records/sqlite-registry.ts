/**
 * The SQLite store's registry of workers: which are alive, the claims of each, and the end of these claims once a
 * worker is dead.
 */

import { toleratedStepMs } from '../../../core/platform/clock.js'
import type { Buried, Crash } from '../../contract/claim.js'
import type { ClaimKey } from '../../contract/settle.js'
import {
  type HeldClaim,
  type SeenWorker,
  storedWorker,
  type WorkerRecord,
  type WorkerSignal,
} from '../../contract/worker-registry.js'
import { present } from '../../rows/job-record.js'
import { running } from '../../rows/job-row.js'
import { bounded, leadOf, setLead, setSuspectLead, suspectLeadOf } from '../../rows/queue-row.js'
import { stepLimit } from '../../rules/bounds.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { SqliteCrashes } from '../work/sqlite-crash.js'

interface HeldClaimRow {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly fence: number
  readonly alone: number
  readonly started_at: number | null
  readonly host: string | null
  readonly boot: string | null
  readonly pidns: string | null
  readonly pid: number | null
  readonly ticks: number | null
  readonly progress: string | null
}

export class SqliteWorkers {
  readonly #transaction: SqliteTransaction
  readonly #write: Statement
  readonly #signalled: Statement
  readonly #signal: Statement
  readonly #lapse: Statement
  readonly #turnBack: Statement
  readonly #delete: Statement
  readonly #select: Statement
  readonly #held: Statement
  readonly #adopt: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    this.#write = db.prepare(
      `INSERT INTO worker (id, record, seen_at, until) VALUES (?, ?, ?, ?)
       ON CONFLICT DO UPDATE SET record = excluded.record, seen_at = excluded.seen_at, until = excluded.until`,
    )
    this.#signalled = db.prepare('SELECT signal FROM worker WHERE id = ?')
    this.#signal = db.prepare('UPDATE worker SET signal = ? WHERE id = ? AND until > ?')
    this.#lapse = db.prepare('DELETE FROM worker WHERE until <= ?')
    // The clock was set back: from now on they live for as long as their last beat gave them.
    this.#turnBack = db.prepare(
      `UPDATE worker SET until = until - seen_at + ?1, seen_at = ?1 WHERE seen_at > ?1 + ${toleratedStepMs}`,
    )
    this.#delete = db.prepare('DELETE FROM worker WHERE id = ?')
    this.#select = db.prepare('SELECT id, record, seen_at FROM worker WHERE until > ? ORDER BY id')
    // Reads all running jobs: there are no more than the slots of all workers, and an index by worker would have to be
    // written with every claim.
    this.#held = db.prepare(
      `SELECT queue.name AS queue, id, task, job.fence AS fence, alone, started_at, host, boot, pidns, pid, ticks, progress
       FROM queue CROSS JOIN job INDEXED BY job_running ON job.qid = queue.qid
       WHERE job.state = 2 AND job.worker = ? ORDER BY queue.number, queue.shard, job.fence,
         CASE queue.kind WHEN 'ordered' THEN position END, rid LIMIT ?`,
    )
    this.#adopt = db.prepare(
      'UPDATE job SET worker = ? WHERE qid = ? AND id = ? AND state = 2 AND fence = ? AND worker = ?',
    )
  }

  beat(worker: WorkerRecord, ttlMs: number): WorkerSignal | undefined {
    const now = this.#transaction.clock.now()
    // Before the write: a worker that had lapsed comes back without its signal.
    this.#lapse.run(now)
    this.#write.run(worker.id, JSON.stringify(worker), now, bounded(now + ttlMs))
    this.#turnBack.run(now)
    return (this.#signalled.get(worker.id) as { signal: WorkerSignal | null } | undefined)?.signal ?? undefined
  }

  signal(id: string, signal: WorkerSignal): boolean {
    return Number(this.#signal.run(signal, id, this.#transaction.clock.now()).changes) === 1
  }

  /** A worker that is removed leads nothing any more. */
  remove(id: string): void {
    this.#delete.run(id)
    const { queues } = this.#transaction
    for (const { name, shard } of queues.all()) {
      const queue = queues.shard(name, shard)!
      if (leadOf(queue)?.worker === id) setLead(queue, undefined)
      if (suspectLeadOf(queue)?.worker === id) setSuspectLead(queue, undefined)
    }
  }

  list(): SeenWorker[] {
    const now = this.#transaction.clock.now()
    const rows = this.#select.all(now) as { id: string; record: string; seen_at: number }[]
    return rows.flatMap(({ id, record: text, seen_at }) => {
      const record = storedWorker(text)
      return record === undefined ? [] : [{ ...record, id, seenAt: seen_at, silentMs: Math.max(0, now - seen_at) }]
    })
  }

  held(worker: string): HeldClaim[] {
    return this.#heldRows(worker, stepLimit).map(
      ({ alone, started_at, progress, ...row }) =>
        present({
          ...row,
          alone: alone === 1,
          startedAt: started_at,
          progress: progress === null ? null : JSON.parse(progress),
        }) as unknown as HeldClaim,
    )
  }

  /** Rings the queues, because a worker must ask to learn of the suspects. */
  gone(
    claims: readonly ClaimKey[],
    worker: string,
    error?: string,
  ): { readonly crashed: Crash[]; readonly buried: Buried[] } {
    const { clock, jobs } = this.#transaction
    const now = clock.now()
    const rows = this.#transaction.holdingAll(claims)
    const crashes = new SqliteCrashes(this.#transaction)
    for (const [i, { id, fence }] of claims.entries()) {
      const queue = rows[i]!
      const job = jobs.find(queue, id)
      if (job?.state !== running || job.fence !== fence || job.worker !== worker) continue
      crashes.add(queue, job, now, error)
      this.#transaction.ring(queue)
    }
    if (this.#heldRows(worker, 1).length === 0) this.remove(worker)
    return { crashed: crashes.crashed, buried: crashes.buried }
  }

  adopt({ queue, id, fence }: ClaimKey, from: string, to: string): boolean {
    const { qid } = this.#transaction.holding(queue, id)
    return Number(this.#adopt.run(to, qid, id, fence, from).changes) === 1
  }

  #heldRows(worker: string, limit: number): HeldClaimRow[] {
    return this.#held.all(worker, limit) as HeldClaimRow[]
  }
}
