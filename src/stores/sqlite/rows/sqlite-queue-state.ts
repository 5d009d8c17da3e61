/** The state of a queue of a SQLite store: what is ready in it, and when it changes by itself. Reads only. */

import { isStopped, leadOf, ordinary } from '../../rows/queue-row.js'
import type { ShardLimits } from '../../rows/shard-limits.js'
import { mostLagLooks } from '../../rules/bounds.js'
import { ableSince, dueAt } from '../../rules/sequence.js'
import { asksNow, isLed } from '../../rules/wake-lead.js'
import type { Database, Statement } from '../file/sqlite-driver.js'
import { pools } from '../file/sqlite-schema.js'
import type { SqliteAmnesty } from './sqlite-amnesty.js'
import type { QueueRow } from './sqlite-queue.js'

/** The ready jobs of a queue that share one order: see `pools`. */
type PoolName = 'free' | 'grouped' | 'suspects'
const poolNames = ['free', 'grouped', 'suspects'] as const
/** A ready job: its place, and when its last wait for others or for a signal was over. */
interface ReadyRow {
  readonly stamp: number
  readonly waited_until: number | null
}
/** How far one instant may differ between the wall clock and the monotonic clock, each read in whole ms. */
const roundingMs = 2

export class SqliteQueueState {
  readonly #limits: ShardLimits
  readonly #amnesty: SqliteAmnesty
  readonly #nextDue: Statement
  readonly #nextLease: Statement
  readonly #firstOfRank: Record<PoolName, Statement>
  /** The jobs of one priority, the smallest stamp first. */
  readonly #byStamp: Record<'fifo' | 'lifo', Record<PoolName, Statement>>
  readonly #oldest: Record<'fifo' | 'lifo', Record<PoolName, Statement>>

  constructor(db: Database, limits: ShardLimits, amnesty: SqliteAmnesty) {
    this.#limits = limits
    this.#amnesty = amnesty
    this.#nextDue = db.prepare('SELECT stamp FROM job WHERE qid = ? AND state = 0 ORDER BY stamp LIMIT 1')
    this.#nextLease = db.prepare('SELECT lease_until FROM job WHERE qid = ? AND state = 2 ORDER BY lease_until LIMIT 1')
    const inPools = (sql: (where: string) => string): Record<PoolName, Statement> => {
      const prepared = poolNames.map((pool) => [pool, db.prepare(sql(`FROM job WHERE qid = ? AND ${pools[pool]}`))])
      return Object.fromEntries(prepared)
    }
    this.#firstOfRank = inPools(
      (of) => `SELECT rank, stamp, waited_until ${of} AND rank > ? ORDER BY rank, position LIMIT 1`,
    )
    const inRank = (order: string) =>
      inPools((of) => `SELECT stamp, waited_until ${of} AND rank = ? ORDER BY ${order} LIMIT ?`)
    this.#byStamp = { fifo: inRank('position'), lifo: inRank('position DESC') }
    const oldest = (direction: string) => inPools((of) => `SELECT stamp ${of} ORDER BY rank ${direction} LIMIT 1`)
    this.#oldest = { fifo: oldest('ASC'), lifo: oldest('DESC') }
  }

  /**
   * Ms until a scheduled job is due, a lease ends, or ready jobs are no longer shut; undefined if none of these will
   * happen.
   */
  nextChangeMs(queue: QueueRow, now: number, mono: number): number | undefined {
    const due = this.dueAt(queue)
    const lease = queue.running === 0 ? undefined : this.#nextLeaseEnd(queue, mono)
    const opening = this.#limits.opensAt(queue, mono)
    if (due === undefined && lease === undefined && opening === undefined) return undefined
    const [never, ...instants] = [Number.POSITIVE_INFINITY, lease, opening]
    const soonest = Math.min((due ?? never) - now, ...instants.map((at) => (at ?? never) - mono))
    return Math.max(0, soonest)
  }

  #nextLeaseEnd({ qid }: QueueRow, mono: number): number {
    const { lease_until } = this.#nextLease.get(qid) as { lease_until: number }
    return lease_until > mono ? lease_until : Math.max(lease_until, this.#amnesty.until(mono))
  }

  /** When the next scheduled job is due. */
  dueAt(queue: QueueRow): number | undefined {
    return queue.scheduled === 0 ? undefined : dueAt((this.#nextDue.get(queue.qid) as { stamp: number }).stamp)
  }

  /** Whether an ordinary claim made now would find something. */
  hasWork(queue: QueueRow, now: number, mono: number): boolean {
    if (isStopped(queue)) return false
    return this.#limits.isClaimable(queue, mono) || this.nextChangeMs(queue, now, mono) === 0
  }

  /** Whether a wait ends at once. Due jobs are left to the lead while there is one. */
  wakes(queue: QueueRow, now: number, mono: number): boolean {
    if (isStopped(queue)) return false
    if (this.#limits.isClaimable(queue, mono)) return true
    return !asksNow(leadOf(queue), mono) && this.nextChangeMs(queue, now, mono) === 0
  }

  /** Whether the next scheduled job is due before any worker would ask. */
  needsLead(queue: QueueRow, now: number, mono: number): boolean {
    const due = this.dueAt(queue)
    if (isStopped(queue) || due === undefined) return false
    const lead = leadOf(queue)
    return !isLed(lead, mono) || mono + due - now < lead.wakeAt - roundingMs
  }

  /** Ms since the oldest ordinary ready job could begin; undefined if none is ready. */
  headAgeMs(queue: QueueRow, now: number): number | undefined {
    const ages = [
      ...(ordinary(queue) > queue.grouped ? [this.#oldestAgeMs(queue, 'free', now)] : []),
      ...(queue.grouped > 0 ? [this.#oldestAgeMs(queue, 'grouped', now)] : []),
    ]
    return ages.length === 0 ? undefined : Math.max(...ages)
  }

  /** Ms since the oldest due job, suspect or not, could begin; 0 if none is due. */
  lagMs(queue: QueueRow, now: number): number {
    const suspectAgeMs = queue.suspects === 0 ? 0 : this.#oldestAgeMs(queue, 'suspects', now)
    return Math.max(0, this.headAgeMs(queue, now) ?? 0, suspectAgeMs, now - (this.dueAt(queue) ?? now))
  }

  /** An ordered queue has no priorities: its `rank` is the stamp, so one row of the pool has the answer. */
  #oldestAgeMs(queue: QueueRow, pool: PoolName, now: number): number {
    if (queue.kind === 'plain') return this.#oldestOfRanksMs(queue, pool, now)
    const { stamp } = this.#oldest[queue.ord][pool].get(queue.qid) as { stamp: number }
    return Math.max(0, now - dueAt(stamp))
  }

  /** One query per priority in use, whatever the number of jobs, and one more if its first job has waited. */
  #oldestOfRanksMs(queue: QueueRow, pool: PoolName, now: number): number {
    let oldest = Number.POSITIVE_INFINITY
    let rank = Number.MIN_SAFE_INTEGER
    for (;;) {
      const head = this.#firstOfRank[pool].get(queue.qid, rank) as (ReadyRow & { rank: number }) | undefined
      if (head === undefined) break
      rank = head.rank
      const inOrder = this.#byStamp[queue.ord][pool]
      const first = queue.ord === 'lifo' ? (inOrder.get(queue.qid, rank, 1) as ReadyRow) : head
      const hasWaited = first.waited_until !== null
      oldest = Math.min(
        oldest,
        hasWaited ? firstAble(inOrder.iterate(queue.qid, rank, mostLagLooks)) : dueAt(first.stamp),
      )
    }
    return Math.max(0, now - oldest)
  }
}

/**
 * Since when the first of these jobs could begin, which are in the order of their stamps. None can before its stamp, so
 * those behind the first so far are not looked at.
 */
function firstAble(rows: Iterable<unknown>): number {
  let since = Number.POSITIVE_INFINITY
  for (const { stamp, waited_until } of rows as Iterable<ReadyRow>) {
    if (dueAt(stamp) >= since) break
    since = Math.min(since, ableSince(stamp, waited_until))
  }
  return since
}
