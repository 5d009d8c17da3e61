/** Claiming from a SQLite store: recover expired leases, promote due jobs, take, lease, fence. */

import { dueAt, nextFence } from '../../core/stamp.js'
import { upkeepLimit } from '../../core/upkeep.js'
import type { Buried, Claimer, ClaimFrom, Wait } from '../store.js'
import type { Statement } from './sqlite-driver.js'
import { type JobRow, jobColumns } from './sqlite-job.js'
import { bounded, type QueueRow } from './sqlite-queue.js'
import type { SqliteSession } from './sqlite-session.js'

/** What `claim` answers; the claims are still the JSON text that SQLite made of them, for the other thread to read. */
export interface ClaimedText {
  readonly now: number
  readonly queue?: string
  readonly claims?: string
  readonly fence?: number
  readonly buried: Buried[]
  readonly waits: Wait[]
  readonly heads?: { queue: string; ageMs?: number }[]
  readonly more: boolean
}

export class SqliteClaim {
  readonly #session: SqliteSession
  readonly #expired: Statement
  readonly #promote: Statement
  readonly #heads: Statement
  readonly #take: Statement
  readonly #nextDue: Statement
  readonly #nextLease: Statement
  readonly #firstOfRank: Statement
  readonly #lastOfRank: Statement

  constructor(session: SqliteSession) {
    this.#session = session
    const { db } = session
    this.#expired = db.prepare(
      `SELECT ${jobColumns} FROM job WHERE qid = ? AND state = 2 AND lease_until <= ? ORDER BY lease_until, rid LIMIT ${upkeepLimit}`,
    )
    this.#promote = db.prepare(
      `UPDATE job SET state = 1, updated_at = ? WHERE rid IN
         (SELECT rid FROM job WHERE qid = ? AND state = 0 AND stamp < ? ORDER BY stamp, rid LIMIT ${upkeepLimit})`,
    )
    // One text for all: a row object per job, and its copy to the other thread, cost more than the claim itself.
    this.#heads = db.prepare(
      `SELECT json_group_array(json_array(id, task,
           CASE typeof(payload) WHEN 'blob' THEN hex(payload) ELSE payload END,
           CASE typeof(meta) WHEN 'blob' THEN hex(meta) ELSE meta END,
           (typeof(payload) = 'blob') + 2 * (typeof(meta) = 'blob'),
           codec, -rank, attempt, crashes, created_at, stamp, error)) AS claims,
         count(*) AS taken, total(attempt > 1) AS retries
       FROM (SELECT * FROM job WHERE qid = ? AND state = 1 ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#take = db.prepare(
      `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ? WHERE rid IN
         (SELECT rid FROM job WHERE qid = ? AND state = 1 ORDER BY rank, place, rid LIMIT ?)`,
    )
    this.#nextDue = db.prepare('SELECT stamp FROM job WHERE qid = ? AND state = 0 ORDER BY stamp LIMIT 1')
    this.#nextLease = db.prepare('SELECT lease_until FROM job WHERE qid = ? AND state = 2 ORDER BY lease_until LIMIT 1')
    this.#firstOfRank = db.prepare(
      'SELECT rank, stamp FROM job WHERE qid = ? AND state = 1 AND rank > ? ORDER BY rank, place LIMIT 1',
    )
    this.#lastOfRank = db.prepare(
      'SELECT stamp FROM job WHERE qid = ? AND state = 1 AND rank = ? ORDER BY place DESC LIMIT 1',
    )
  }

  claim(from: readonly ClaimFrom[], by: Claimer): ClaimedText {
    const { clock, queues } = this.#session
    const now = clock.now()
    const mono = clock.mono()
    const rows = queues.of(from)
    const waits: Wait[] = []
    const buried: Buried[] = []
    let more = false
    const answer = (granted: { queue?: string; claims?: string; fence?: number }): ClaimedText => ({
      now,
      ...granted,
      buried,
      waits,
      ...(by.heads ? { heads: rows.map((row) => this.#head(row, now)) } : {}),
      more,
    })
    for (const [i, { queue, limit, leaseMs }] of from.entries()) {
      const row = rows[i]!
      const hasRecovered = this.#recover(row, now, mono, buried)
      const hasPromoted = this.#promoteDue(row, now)
      const granted =
        row.paused || row.ready === 0 || limit <= 0
          ? undefined
          : this.#grant(row, by.alone ? 1 : limit, by, leaseMs ?? by.leaseMs, now, mono)
      more ||= this.hasWork(row, now, mono)
      if ((hasRecovered || hasPromoted) && row.ready > 0) this.#session.ring(row)
      if (granted !== undefined) return answer({ queue, ...granted })
      if (row.paused || row.ready === 0) waits.push(this.#wait(row, now, mono))
    }
    return answer({})
  }

  /** Expired leases end: cancelled jobs leave, jobs that crashed too often are buried, the others are ready in their old place. */
  #recover(queue: QueueRow, now: number, mono: number, buried: Buried[]): boolean {
    if (queue.running === 0) return false
    const { jobs } = this.#session
    const expired = this.#expired.all(queue.qid, mono) as JobRow[]
    for (const job of expired) {
      if (job.alone) job.crashes += 1
      if (job.cancelling) jobs.end(queue, job, 'cancelled', now)
      else if (job.alone && job.crashes >= queue.max_crashes) {
        jobs.bury(queue, job, 'crashed', undefined, now)
        buried.push({ queue: queue.name, id: job.id, task: job.task, reason: 'crashed' })
      } else {
        jobs.requeue(queue, job, now)
        continue
      }
      this.#session.hasEnds = true
    }
    return expired.length > 0
  }

  #promoteDue(queue: QueueRow, now: number): boolean {
    if (queue.scheduled === 0 || this.#dueAt(queue)! > now) return false
    const promoted = Number(this.#promote.run(now, queue.qid, (now + 1) * 1_000).changes)
    queue.scheduled -= promoted
    queue.ready += promoted
    return promoted > 0
  }

  #grant(
    queue: QueueRow,
    limit: number,
    by: Claimer,
    leaseMs: number,
    now: number,
    mono: number,
  ): { claims: string; fence: number } {
    const { claims, taken, retries } = this.#heads.get(queue.qid, limit) as {
      claims: string
      taken: number
      retries: number
    }
    queue.fence = nextFence(queue.fence, now)
    this.#take.run(queue.fence, by.worker, by.alone ? 1 : 0, bounded(mono + leaseMs), now, queue.qid, taken)
    queue.ready -= taken
    queue.running += taken
    queue.retries -= retries
    return { claims, fence: queue.fence }
  }

  #wait(queue: QueueRow, now: number, mono: number): Wait {
    if (queue.paused) return { queue: queue.name, reason: 'paused' }
    const forMs = this.#nextChangeMs(queue, now, mono)
    const reason = queue.scheduled > 0 ? 'scheduled' : 'empty'
    return { queue: queue.name, reason, ...(forMs === undefined ? {} : { forMs }) }
  }

  #head(queue: QueueRow, now: number): { queue: string; ageMs?: number } {
    const ageMs = this.headAgeMs(queue, now)
    return { queue: queue.name, ...(ageMs === undefined ? {} : { ageMs }) }
  }

  /** Ms until a scheduled job falls due or a lease ends. */
  #nextChangeMs(queue: QueueRow, now: number, mono: number): number | undefined {
    const due = this.#dueAt(queue)
    const lease =
      queue.running === 0 ? undefined : (this.#nextLease.get(queue.qid) as { lease_until: number }).lease_until
    if (due === undefined && lease === undefined) return undefined
    return Math.max(0, Math.min((due ?? Number.POSITIVE_INFINITY) - now, (lease ?? Number.POSITIVE_INFINITY) - mono))
  }

  /** When the next scheduled job is due. */
  #dueAt(queue: QueueRow): number | undefined {
    return queue.scheduled === 0 ? undefined : dueAt((this.#nextDue.get(queue.qid) as { stamp: number }).stamp)
  }

  /** Ms that the next scheduled job is overdue; 0 where none is. */
  overdueMs(queue: QueueRow, now: number): number {
    return Math.max(0, now - (this.#dueAt(queue) ?? now))
  }

  /** Whether a claim made now would find something. */
  hasWork(queue: QueueRow, now: number, mono: number): boolean {
    if (queue.paused) return false
    return queue.ready > 0 || this.#nextChangeMs(queue, now, mono) === 0
  }

  /** Ms since the oldest ready job was due. One look per priority in use, whatever the number of jobs. */
  headAgeMs(queue: QueueRow, now: number): number | undefined {
    if (queue.ready === 0) return undefined
    let oldest = Number.POSITIVE_INFINITY
    let rank = Number.MIN_SAFE_INTEGER
    for (;;) {
      const first = this.#firstOfRank.get(queue.qid, rank) as { rank: number; stamp: number } | undefined
      if (first === undefined) break
      rank = first.rank
      const { stamp } = queue.ord === 'lifo' ? (this.#lastOfRank.get(queue.qid, rank) as { stamp: number }) : first
      oldest = Math.min(oldest, stamp)
    }
    return Math.max(0, now - dueAt(oldest))
  }
}
