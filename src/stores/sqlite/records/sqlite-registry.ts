/**
 * The SQLite store's registry of workers: which are alive, the claims of each, and the end of these claims once a
 * worker is dead.
 */

import type { Buried, Crash } from '../../contract/claim.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { HeldClaim, SeenWorker, WorkerRecord, WorkerSignal } from '../../contract/worker-registry.js'
import { running } from '../../rows/job-row.js'
import { leadOf, setLead, setSuspectLead, suspectLeadOf } from '../../rows/queue-row.js'
import { present } from '../../rows/stored-job.js'
import { beatWorker, deleteWorker, liveWorkers, signalWorker } from '../../sql/sql-workers.js'
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

/** The LIMIT that is none in SQLite. */
const noLimit = -1

export class SqliteWorkers {
  readonly #transaction: SqliteTransaction
  readonly #held: Statement
  readonly #adopt: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
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
    return this.#transaction.run(beatWorker(worker, ttlMs, this.#transaction.clock.now()))
  }

  signal(id: string, signal: WorkerSignal): boolean {
    return this.#transaction.run(signalWorker(id, signal, this.#transaction.clock.now()))
  }

  /** A worker that is removed leads nothing any more. */
  remove(id: string): void {
    this.#transaction.run(deleteWorker(id))
    const { queues } = this.#transaction
    for (const { name, shard } of queues.all()) {
      const queue = queues.shard(name, shard)!
      if (leadOf(queue)?.worker === id) setLead(queue, undefined)
      if (suspectLeadOf(queue)?.worker === id) setSuspectLead(queue, undefined)
    }
  }

  list(): SeenWorker[] {
    return this.#transaction.run(liveWorkers(this.#transaction.clock.now()))
  }

  held(worker: string): HeldClaim[] {
    return this.#heldRows(worker, noLimit).map(
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
