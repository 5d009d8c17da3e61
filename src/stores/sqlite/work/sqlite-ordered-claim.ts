/** The claim of an ordered queue's jobs in a SQLite store. It takes each job with the oldest of its payloads. */

import type { Claim, Claimer, ClaimFrom } from '../../contract/claim.js'
import { type JobRow, running } from '../../rows/job-row.js'
import { type PayloadHead, scoredPayload } from '../../rows/payload-row.js'
import { fromStored } from '../../rows/stored-text.js'
import type { ReadyPool } from '../../rules/fair-share.js'
import { dueAt, nextFence } from '../../rules/sequence.js'
import type { Statement } from '../file/sqlite-driver.js'
import { boundPool, type PoolJobs, poolJobs } from '../file/sqlite-schema.js'
import { changeSome } from '../rows/sqlite-job.js'
import { setOf, successorSet } from '../rows/sqlite-payloads.js'
import { type QueueRow, takeStamp } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** The state of a claim while it takes jobs of one queue. */
export interface Taking {
  readonly leaseUntil: number
  readonly now: number
  /** The bytes that the claim has taken so far. */
  bytes: number
  /** Whether plain jobs must be weighed, because together they may weigh too much. */
  readonly weighs: boolean
  /** One fence for all jobs that the claim takes of a queue, given with the first. */
  fence?: number
}

/** The columns of `job` that a claim reads: reading all of them would take longer than the search for the rows. */
const takenColumns = [
  ...(['rid', 'id', 'task', 'state', 'attempt', 'crashes', 'suspect', 'grp', 'part'] as const),
  ...(['stamp', 'created_at', 'error'] as const),
]
type TakenRow = Pick<JobRow, (typeof takenColumns)[number]>

/** The jobs taken of a queue or shard. */
interface Taken {
  readonly claims: readonly Claim[]
  readonly bytes: number
}

export class SqliteOrderedClaim {
  readonly #transaction: SqliteTransaction
  readonly #heads: Record<PoolJobs, Statement>
  readonly #takeSome: Statement
  readonly #takeWhole: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const heads = (jobs: string) =>
      transaction.db.prepare(`SELECT ${takenColumns.join(', ')} FROM ${jobs} ORDER BY rank, position LIMIT ?`)
    const { free, suspectsOf, lane } = poolJobs
    this.#heads = { free: heads(free), suspectsOf: heads(suspectsOf), lane: heads(lane) }
    this.#takeSome = transaction.db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ?, part = ?, successor_stamp = ?, successor_created_at = ?, successor_ready = 1
       WHERE rid = ?`,
    )
    this.#takeWhole = transaction.db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ?
       WHERE rid IN (SELECT value FROM json_each(?))`,
    )
  }

  take(queue: QueueRow, pool: ReadyPool, { limit, maxPayloads }: ClaimFrom, by: Claimer, taking: Taking): Taken {
    const { mostClaimBytes } = this.#transaction
    const { payloads } = this.#transaction.orderedJobs
    const { jobs: taken, of } = boundPool(queue.qid, pool)
    const jobs = this.#heads[taken].all(...of, limit) as TakenRow[]
    if (jobs.length > 0 && taking.fence === undefined) {
      queue.last_fence = nextFence(queue.last_fence, taking.now)
      taking.fence = queue.last_fence
    }
    const claims: Claim[] = []
    /** Jobs that are taken with all their payloads. A waiting job has no successor, and keeps its part. */
    const whole: number[] = []
    let bytes = taking.bytes
    for (const job of jobs) {
      if (bytes >= mostClaimBytes) break
      const head =
        maxPayloads === undefined || maxPayloads === Number.POSITIVE_INFINITY
          ? payloads.whole(setOf(job))
          : payloads.headWithin(setOf(job), Math.max(1, maxPayloads), mostClaimBytes)
      if (head.hasMore) this.#split(queue, job, head, by, taking)
      else whole.push(job.rid)
      this.#transaction.orderedJobs.moved(queue, job, {
        state: running,
        suspect: job.suspect,
        attempt: job.attempt,
        grp: job.grp,
      })
      queue.pending -= head.rows.length
      claims.push(claimOf(queue, job, head))
      bytes += head.bytes
    }
    const values = [queue.last_fence, by.worker, by.alone ? 1 : 0, taking.leaseUntil, taking.now]
    if (whole.length > 0) changeSome(this.#takeWhole, whole.length, ...values, JSON.stringify(whole))
    return { claims, bytes: bytes - taking.bytes }
  }

  /** Takes the payloads in hand. The rest is the successor's. */
  #split(queue: QueueRow, job: TakenRow, { rows }: PayloadHead, by: Claimer, taking: Taking): void {
    const successor = successorSet(job)
    this.#transaction.orderedJobs.payloads.takeUpTo(setOf(job), rows.at(-1)!, successor.part)
    const values = [queue.last_fence, by.worker, by.alone ? 1 : 0, taking.leaseUntil, taking.now, successor.part]
    this.#takeSome.run(...values, takeStamp(queue, taking.now), job.created_at, job.rid)
  }
}

function claimOf(queue: QueueRow, job: TakenRow, { rows, hasMore }: PayloadHead): Claim {
  const { id, task, grp, attempt, crashes, stamp, created_at, error } = job
  return {
    queue: queue.name,
    id,
    task,
    payload: '',
    payloads: rows.map(scoredPayload),
    ...(hasMore ? { hasMore } : {}),
    priority: 0,
    ...(grp === null ? {} : { group: grp }),
    attempt,
    crashes,
    fence: queue.last_fence,
    createdAt: created_at,
    runAt: dueAt(stamp),
    ...(error === null ? {} : { error: fromStored(error) }),
  }
}
