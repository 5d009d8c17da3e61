/** Claiming from a SQLite store: recover expired leases, promote due jobs, take, lease, fence. */

import { groupRules } from '../../../core/queue/throttle.js'
import type { Claimer, ClaimFrom, Expired, Wait } from '../../contract/claim.js'
import { countTaken, DealtRow, type Hand } from '../../rows/dealt-row.js'
import { type JobRow, noteBits, ready, scheduled } from '../../rows/job-row.js'
import { LeftRow } from '../../rows/left-row.js'
import { bounded, ordinary } from '../../rows/queue-row.js'
import type { Moment } from '../../rows/scope-throttle.js'
import { upkeepLimit } from '../../rules/bounds.js'
import { waitsAfter } from '../../rules/claim-waits.js'
import { deal, groupIn, mostSuspects, type ReadyPool, suspectInMs } from '../../rules/fair-share.js'
import { nextFence } from '../../rules/sequence.js'
import type { Statement } from '../file/sqlite-driver.js'
import { boundPool, type PoolJobs, poolJobs } from '../file/sqlite-schema.js'
import { jobColumns } from '../rows/sqlite-job.js'
import { byKind, type QueueRow, type Tie } from '../rows/sqlite-queue.js'
import type { SqliteQueueState } from '../rows/sqlite-queue-state.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { type ClaimedText, type ClaimNotes, claimsText, type PoolGrant, textColumns } from './sqlite-claim-text.js'
import { SqliteCrashes } from './sqlite-crash.js'
import { SqliteOrderedClaim, type Taking } from './sqlite-ordered-claim.js'

/** The first jobs of a pool. */
interface Heads {
  /** The jobs as claims, in JSON. */
  readonly claims: string
  readonly taken: number
  readonly retries: number
  /** Row number, id, `noted` and `waited_until` of each job that has one of these, in JSON. */
  readonly noted: string
}

interface Grant {
  readonly granted: readonly PoolGrant[]
  /** The number of jobs. */
  readonly taken: number
  /** Their weight in bytes; 0 if they were not weighed. */
  readonly bytes: number
}

/** One entry of a claim: a queue, or a shard of an ordered one, which may not exist. */
interface ClaimCandidate {
  readonly from: ClaimFrom
  readonly row: QueueRow | undefined
}

/** Of a look that takes nothing. */
const emptyHand = { isFull: () => true, take: () => 0 }

const dueJobs = 'job INDEXED BY job_scheduled WHERE qid = ? AND state = 0 AND stamp < ?'

/**
 * The order of their index, in which jobs that are due at one moment follow each other by place. So SQLite sorts none
 * of them, however many there are.
 */
function dueOrder(tie: Tie): string {
  return tie === 'rid' ? 'stamp, position, rid' : 'stamp, position'
}

export class SqliteClaim {
  readonly #transaction: SqliteTransaction
  readonly #state: SqliteQueueState
  readonly #handover: SqliteOrderedClaim
  readonly #expiry: SqliteExpiry
  readonly #expired: ReturnType<typeof byKind>
  readonly #promote: ReturnType<typeof byKind>
  readonly #heads: Record<PoolJobs, Statement>
  readonly #takeHeads: Record<PoolJobs, Statement>
  readonly #suspectGroups: Statement
  readonly #dueJobs: ReturnType<typeof byKind>
  readonly #recount: Statement

  constructor(transaction: SqliteTransaction, state: SqliteQueueState) {
    this.#transaction = transaction
    this.#state = state
    this.#handover = new SqliteOrderedClaim(transaction)
    this.#expiry = new SqliteExpiry(transaction)
    const { db } = transaction
    this.#expired = byKind(
      db,
      (tie) =>
        `SELECT ${jobColumns} FROM job INDEXED BY job_running WHERE qid = ? AND state = 2 AND lease_until <= ? ORDER BY lease_until, ${tie} LIMIT ${upkeepLimit}`,
    )
    this.#promote = byKind(
      db,
      (tie) =>
        `UPDATE job SET state = 1, updated_at = ? WHERE rid IN
           (SELECT rid FROM ${dueJobs} ORDER BY ${dueOrder(tie)} LIMIT ${upkeepLimit})`,
    )
    const heads = (jobs: string) =>
      db.prepare(
        `SELECT ${claimsText} AS claims,
           count(*) AS taken, total(attempt > 1) AS retries, json_group_array(json_array(rid, id, noted, waited_until)) FILTER (WHERE noted OR waited_until) AS noted
         FROM (SELECT rid, ${textColumns}, noted, waited_until FROM ${jobs} ORDER BY rank, position, rid LIMIT ?)`,
      )
    const takeHeads = (jobs: string) =>
      db.prepare(
        `UPDATE job SET state = 2, fence = ?, worker = ?, alone = ?, lease_until = ?, updated_at = ? WHERE rid IN
           (SELECT rid FROM ${jobs} ORDER BY rank, position, rid LIMIT ?)`,
      )
    const { free, suspectsOf, lane } = poolJobs
    this.#heads = { free: heads(free), suspectsOf: heads(suspectsOf), lane: heads(lane) }
    this.#takeHeads = { free: takeHeads(free), suspectsOf: takeHeads(suspectsOf), lane: takeHeads(lane) }
    this.#suspectGroups = db.prepare(
      `SELECT ifnull(grp, '') AS grp FROM ${poolJobs.suspects} ORDER BY rank, position, rid LIMIT ${mostSuspects}`,
    )
    this.#dueJobs = byKind(db, (tie) => `SELECT grp FROM ${dueJobs} ORDER BY ${dueOrder(tie)} LIMIT ${upkeepLimit}`)
    this.#recount = db.prepare(
      'SELECT count(*) AS ready, coalesce(sum(suspect), 0) AS suspects, coalesce(sum(pool = 2), 0) AS grouped FROM job WHERE qid = ? AND state = 1',
    )
  }

  claim(from: readonly ClaimFrom[], by: Claimer): ClaimedText {
    const claimed = this.#claim(from, by)
    // What it finds to have ended is reported when it is over.
    this.#transaction.joins.deliver()
    return claimed
  }

  #claim(from: readonly ClaimFrom[], by: Claimer): ClaimedText {
    const at = this.#transaction.moment()
    const candidates = from.flatMap((one) => this.#candidatesOf(one))
    const crashes = new SqliteCrashes(this.#transaction)
    const expired: Expired[] = []
    const waits: Wait[] = []
    const granted: PoolGrant[] = []
    let queue: string | undefined
    let taken = 0
    let bytes = 0
    let more = false
    for (const { from, row } of candidates) {
      const limit = from.limit - taken
      // A claim may go on through the shards of an ordered queue, unless one of them is all that may be granted
      // (`exclusive: 'shard'`).
      const isNext = from.queue === queue && row?.kind !== 'plain' && row?.exclusive !== 'shard'
      if (taken > 0 && !(isNext && !by.alone && limit > 0 && bytes < this.#transaction.mostClaimBytes)) break
      if (row === undefined) {
        waits.push({ queue: from.queue, shard: from.shard!, reason: 'empty' })
        continue
      }
      this.#recover(row, at, crashes)
      this.#promoteDue(row, at)
      expired.push(...this.#expiry.end(row, at.now))
      const grant = this.#grant(row, { ...from, limit }, by, at, bytes)
      if (grant !== undefined) {
        granted.push(...grant.granted)
        taken += grant.taken
        bytes += grant.bytes
        queue = from.queue
      }
      more ||= this.#state.hasWork(row, at.now, at.mono)
      const left = waitsAfter(this.#leftOf(row, from, at), by, { limit, taken: grant?.taken ?? 0 }, at.mono)
      waits.push(...left.waits)
      if (left.rings) this.#transaction.ring(row)
    }
    return {
      now: at.now,
      ...(queue === undefined ? {} : { queue }),
      granted,
      crashed: crashes.crashed,
      buried: crashes.buried,
      ...(expired.length > 0 ? { expired } : {}),
      waits,
      ...(by.heads ? { heads: candidates.map((candidate) => this.#head(candidate, at)) } : {}),
      more,
    }
  }

  #candidatesOf(from: ClaimFrom): ClaimCandidate[] {
    const { queues } = this.#transaction
    const row = queues.get(from.queue)
    if (row.kind === 'plain') return [{ from, row }]
    if (from.shard !== undefined)
      return [{ from, row: from.shard < 0 ? undefined : queues.shard(from.queue, from.shard) }]
    return queues.shardsOf(from.queue).map((row) => ({ from: { ...from, shard: row.shard }, row }))
  }

  /** Ends expired leases as crashes. */
  #recover(queue: QueueRow, { now, mono }: Moment, crashes: SqliteCrashes): void {
    if (queue.running === 0) return
    const expired = this.#expired[queue.kind].all(queue.qid, mono) as JobRow[]
    if (expired.length === 0 || this.#transaction.amnesty.until(mono) > mono) return
    for (const job of expired) crashes.add(queue, job, now)
  }

  #promoteDue(queue: QueueRow, { now }: Moment): void {
    if (queue.scheduled === 0 || this.#state.dueAt(queue)! > now) return
    const until = (now + 1) * 1_000
    const due = queue.laned ? (this.#dueJobs[queue.kind].all(queue.qid, until) as { grp: string | null }[]) : []
    const promoted = Number(this.#promote[queue.kind].run(now, queue.qid, until).changes)
    queue.scheduled -= promoted
    queue.ready += promoted
    for (const { grp } of due) {
      this.#transaction.lanes.count(queue, { state: ready, suspect: 0, grp }, 1)
      this.#transaction.lanes.refresh(queue, grp)
    }
  }

  /** The jobs that the queue grants to a claim that already has `bytes`. A claim made alone gets a suspect first. */
  #grant(queue: QueueRow, from: ClaimFrom, by: Claimer, at: Moment, bytes: number): Grant | undefined {
    // More jobs may have expired than one claim ends, so nothing is granted while any is left.
    if (this.#transaction.limits.isClosed(queue, at.mono) || hasExpired(queue, at.now)) return undefined
    const granted: PoolGrant[] = []
    const { weight, mostClaimBytes } = this.#transaction
    const leaseUntil = bounded(at.mono + (from.leaseMs ?? by.leaseMs))
    const taking: Taking = { leaseUntil, now: at.now, bytes, weighs: weight.areNeeded(queue, from.limit) }
    const { dealt, throttle } = this.#dealtOf(queue, from, at, {
      isFull: () => taking.bytes >= mostClaimBytes,
      take: (pool, most) => {
        const taken =
          queue.kind === 'plain'
            ? this.#takePlain(queue, pool, most, by, taking, granted)
            : this.#takeOrdered(queue, pool, { ...from, limit: most }, by, taking, granted)
        if (taken === 0) this.#countAnew(queue, pool)
        return taken
      },
    })
    const count = deal(dealt, from.limit, by.alone === true)
    if (throttle !== undefined && groupRules(throttle.settings) !== undefined && (count > 0 || ordinary(queue) > 0))
      throttle.trim(at)
    return count === 0 ? undefined : { granted, taken: count, bytes: taking.bytes - bytes }
  }

  #dealtOf(queue: QueueRow, from: ClaimFrom, at: Moment, hand: Pick<Hand, 'take' | 'isFull'>) {
    const { lanes, limits, throttles } = this.#transaction
    const throttle = throttles.of(queue)
    const sharing = () => throttles.sharing(throttle!.row.scope)
    const parts = { queue, lanes, limits, throttle, sharing, moment: at, from }
    const suspectGroups = () => this.#groupsOfSuspects(queue)
    return { dealt: new DealtRow(parts, { ...hand, suspectGroups }), throttle }
  }

  #takeOrdered(
    queue: QueueRow,
    pool: ReadyPool,
    from: ClaimFrom,
    by: Claimer,
    taking: Taking,
    granted: PoolGrant[],
  ): number {
    const { claims, bytes } = this.#handover.take(queue, pool, from, by, taking)
    if (claims.length > 0) granted.push(claims)
    taking.bytes += bytes
    return claims.length
  }

  #takePlain(
    queue: QueueRow,
    pool: ReadyPool,
    most: number,
    by: Claimer,
    taking: Taking,
    granted: PoolGrant[],
  ): number {
    const { jobs, of } = boundPool(queue.qid, pool)
    const weighed = taking.weighs ? this.#transaction.weight.weigh(queue, pool, most, taking.bytes) : undefined
    const { claims, taken, retries, noted } = this.#heads[jobs].get(...of, weighed?.jobs ?? most) as Heads
    if (taken === 0) return 0
    if (weighed !== undefined) taking.bytes = weighed.bytes
    if (taking.fence === undefined) queue.last_fence = nextFence(queue.last_fence, taking.now)
    taking.fence = queue.last_fence
    const claim = [queue.last_fence, by.worker, by.alone ? 1 : 0, taking.leaseUntil, taking.now]
    this.#takeHeads[jobs].run(...claim, ...of, taken)
    const group = groupIn(pool)
    countTaken(queue, this.#transaction.lanes, pool, taken, retries, group)
    granted.push({
      ...{ queue: queue.name, fence: queue.last_fence, text: claims },
      ...(group === '' ? {} : { group }),
      ...(noted === '[]' ? {} : { notes: this.#notesOf(noted) }),
    })
    return taken
  }

  #notesOf(noted: string): ReadonlyMap<string, ClaimNotes> {
    const found = new Map<string, ClaimNotes>()
    for (const [rid, id, bits, waitedUntil] of JSON.parse(noted) as [number, string, number, number | null][]) {
      const checkpoint = bits & noteBits.notes ? this.#transaction.checkpoints.checkpointOf(rid) : undefined
      found.set(id, { bits, checkpoint, waitedUntil })
    }
    return found
  }

  #groupsOfSuspects({ qid }: QueueRow): string[] {
    return [...new Set((this.#suspectGroups.all(qid) as { grp: string }[]).map(({ grp }) => grp))]
  }

  /** Counts the ready jobs anew: a wrong count must not stop a fleet. */
  #countAnew(queue: QueueRow, pool: ReadyPool): void {
    if (typeof pool === 'object' && 'group' in pool) this.#transaction.lanes.recount(queue, pool.group)
    Object.assign(queue, this.#recount.get(queue.qid))
  }

  #leftOf(queue: QueueRow, from: ClaimFrom, at: Moment): LeftRow {
    const { now, mono } = at
    return new LeftRow(this.#transaction.limits, queue, mono, {
      nextChangeMs: () => this.#state.nextChangeMs(queue, now, mono),
      suspectInMs: () => suspectInMs(this.#dealtOf(queue, from, at, emptyHand).dealt),
    })
  }

  #head({ from, row }: ClaimCandidate, { now }: Moment): { queue: string; shard?: number; ageMs?: number } {
    const { queue, shard } = from
    const ageMs = row === undefined ? undefined : this.#state.headAgeMs(row, now)
    return { queue, ...(shard === undefined ? {} : { shard }), ...(ageMs === undefined ? {} : { ageMs }) }
  }
}

/** The states in which a job waits. */
const waiting = [scheduled, ready] as const

/** Ends the waiting jobs whose time to begin is over. */
class SqliteExpiry {
  readonly #transaction: SqliteTransaction
  readonly #due: readonly Statement[]
  readonly #first: readonly Statement[]

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    const found = (state: number) => `FROM job INDEXED BY job_expires WHERE qid = ? AND state = ${state} AND expires_at`
    this.#due = waiting.map((state) =>
      db.prepare(`SELECT ${jobColumns} ${found(state)} <= ? ORDER BY expires_at, rid LIMIT ${upkeepLimit}`),
    )
    this.#first = waiting.map((state) =>
      db.prepare(`SELECT expires_at ${found(state)} IS NOT NULL ORDER BY expires_at LIMIT 1`),
    )
  }

  /** Ends expired jobs, a bounded number. */
  end(queue: QueueRow, now: number): Expired[] {
    if (!hasExpired(queue, now)) return []
    const due = this.#due.flatMap((statement) => statement.all(queue.qid, now) as JobRow[])
    due.sort((a, b) => a.expires_at! - b.expires_at! || a.rid - b.rid)
    const ended = due.slice(0, upkeepLimit)
    for (const job of ended) {
      this.#transaction.jobs.expire(queue, job, now)
    }
    queue.expired += ended.length
    queue.expiring_at = this.#firstAt(queue)
    if (ended.length > 0) this.#transaction.hasEnds = true
    return ended.map(({ id, task }) => ({ queue: queue.name, id, task }))
  }

  #firstAt({ qid }: QueueRow): number | null {
    const firsts = this.#first.flatMap((statement) => (statement.get(qid) as { expires_at: number } | undefined) ?? [])
    return firsts.length === 0 ? null : Math.min(...firsts.map(({ expires_at }) => expires_at))
  }
}

/** Whether there may be an expired job. */
function hasExpired({ expiring_at }: QueueRow, now: number): boolean {
  return expiring_at !== null && expiring_at <= now
}
