/** The claim of an ordered queue's jobs in a SQLite store. It takes each job with the oldest of its payloads. */

import type { Claim, Claimer, ClaimFrom } from '../../contract/claim.js'
import type { ReadyPool } from '../../rules/fair-share.js'
import { dueAt, nextFence } from '../../rules/sequence.js'
import type { Statement } from '../file/sqlite-driver.js'
import { poolJobs, running } from '../file/sqlite-schema.js'
import { fromStored } from '../file/sqlite-text.js'
import { type JobRow, jobColumns } from '../rows/sqlite-job.js'
import { type PayloadHead, scoredPayload, setOf, successorSet } from '../rows/sqlite-payloads.js'
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

/** The jobs taken of a queue or shard. */
interface Taken {
  readonly claims: readonly Claim[]
  readonly bytes: number
}

export class SqliteOrderedClaim {
  readonly #session: SqliteTransaction
  readonly #heads: Record<'free' | 'suspects', Statement>
  readonly #laneHeads: Statement
  readonly #take: Statement

  constructor(session: SqliteTransaction) {
    this.#session = session
    const heads = (jobs: string) =>
      session.db.prepare(`SELECT ${jobColumns} FROM ${jobs} ORDER BY rank, position LIMIT ?`)
    this.#heads = { free: heads(poolJobs.free), suspects: heads(poolJobs.suspects) }
    this.#laneHeads = heads(poolJobs.lane)
    this.#take = session.db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ?, part = ?, successor_stamp = ?, successor_created_at = ?, successor_ready = ?
       WHERE rid = ?`,
    )
  }

  take(queue: QueueRow, pool: ReadyPool, { limit, maxPayloads }: ClaimFrom, by: Claimer, taking: Taking): Taken {
    const { mostClaimBytes } = this.#session
    const { payloads } = this.#session.orderedJobs
    const jobs = (
      typeof pool === 'string'
        ? this.#heads[pool].all(queue.qid, limit)
        : this.#laneHeads.all(queue.qid, pool.group, limit)
    ) as JobRow[]
    if (jobs.length > 0 && taking.fence === undefined) {
      queue.last_fence = nextFence(queue.last_fence, taking.now)
      taking.fence = queue.last_fence
    }
    const claims: Claim[] = []
    let bytes = taking.bytes
    for (const job of jobs) {
      if (bytes >= mostClaimBytes) break
      const head =
        maxPayloads === undefined || maxPayloads === Number.POSITIVE_INFINITY
          ? payloads.whole(setOf(job))
          : payloads.headWithin(setOf(job), Math.max(1, maxPayloads), mostClaimBytes)
      claims.push(this.#takeOne(queue, job, head, by, taking))
      bytes += head.bytes
    }
    return { claims, bytes: bytes - taking.bytes }
  }

  #takeOne(queue: QueueRow, job: JobRow, { rows: inHand, hasMore }: PayloadHead, by: Claimer, taking: Taking): Claim {
    const { rid, id, task, grp, attempt, crashes, stamp, created_at, error } = job
    const { payloads } = this.#session.orderedJobs
    if (hasMore) payloads.takeUpTo(setOf(job), inHand.at(-1)!, successorSet(job).part)
    const part = hasMore ? successorSet(job).part : job.part
    const successor = hasMore ? [takeStamp(queue, taking.now), created_at, 1] : [null, null, 0]
    const alone = by.alone ? 1 : 0
    this.#take.run(queue.last_fence, by.worker, alone, taking.leaseUntil, taking.now, part, ...successor, rid)
    this.#session.orderedJobs.moved(queue, job, { ...job, state: running })
    queue.pending -= inHand.length
    return {
      queue: queue.name,
      id,
      task,
      payload: '',
      payloads: inHand.map(scoredPayload),
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
}
