/** A look at a queue of a SQLite store: what is ready in it, and when it changes by itself. It changes nothing. */

import { asksNow, isLed } from '../../core/lead.js'
import { dueAt } from '../../core/stamp.js'
import type { Database, Statement } from './sqlite-driver.js'
import { claimable, isStopped, leadOf, ordinary, type QueueRow } from './sqlite-queue.js'

export class SqliteLook {
  readonly #nextDue: Statement
  readonly #nextLease: Statement
  readonly #firstOfRank: Statement
  readonly #lastOfRank: Statement
  readonly #oldest: Record<'fifo' | 'lifo', Statement>

  constructor(db: Database) {
    this.#nextDue = db.prepare('SELECT stamp FROM job WHERE qid = ? AND state = 0 ORDER BY stamp LIMIT 1')
    this.#nextLease = db.prepare('SELECT lease_until FROM job WHERE qid = ? AND state = 2 ORDER BY lease_until LIMIT 1')
    this.#firstOfRank = db.prepare(
      'SELECT rank, stamp FROM job WHERE qid = ? AND state = 1 AND suspect = ? AND rank > ? ORDER BY rank, place LIMIT 1',
    )
    this.#lastOfRank = db.prepare(
      'SELECT stamp FROM job WHERE qid = ? AND state = 1 AND suspect = ? AND rank = ? ORDER BY place DESC LIMIT 1',
    )
    const oldest = (direction: string) =>
      db.prepare(`SELECT stamp FROM job WHERE qid = ? AND state = 1 AND suspect = ? ORDER BY rank ${direction} LIMIT 1`)
    this.#oldest = { fifo: oldest('ASC'), lifo: oldest('DESC') }
  }

  /** Ms until a scheduled job falls due or a lease ends; undefined where nothing will. */
  nextChangeMs(queue: QueueRow, now: number, mono: number): number | undefined {
    const due = this.dueAt(queue)
    const lease =
      queue.running === 0 ? undefined : (this.#nextLease.get(queue.qid) as { lease_until: number }).lease_until
    if (due === undefined && lease === undefined) return undefined
    return Math.max(0, Math.min((due ?? Number.POSITIVE_INFINITY) - now, (lease ?? Number.POSITIVE_INFINITY) - mono))
  }

  /** When the next scheduled job is due. */
  dueAt(queue: QueueRow): number | undefined {
    return queue.scheduled === 0 ? undefined : dueAt((this.#nextDue.get(queue.qid) as { stamp: number }).stamp)
  }

  /** Whether an ordinary claim made now would find something. */
  hasWork(queue: QueueRow, now: number, mono: number): boolean {
    if (isStopped(queue)) return false
    return claimable(queue) > 0 || this.nextChangeMs(queue, now, mono) === 0
  }

  /** Whether a wait ends at once: what is due is left to the lead while there is one. */
  wakes(queue: QueueRow, now: number, mono: number): boolean {
    if (isStopped(queue)) return false
    if (claimable(queue) > 0) return true
    return !asksNow(leadOf(queue), mono) && this.nextChangeMs(queue, now, mono) === 0
  }

  /** Whether the next scheduled job is due before anybody would ask. */
  needsLead(queue: QueueRow, now: number, mono: number): boolean {
    const due = this.dueAt(queue)
    if (isStopped(queue) || due === undefined) return false
    const lead = leadOf(queue)
    return !isLed(lead, mono) || mono + due - now < lead.wakeAt
  }

  /** Ms since the oldest ordinary ready job was due; undefined where none is ready. */
  headAgeMs(queue: QueueRow, now: number): number | undefined {
    return ordinary(queue) === 0 ? undefined : this.#oldestAgeMs(queue, 0, now)
  }

  /** Ms since the oldest job that is due, suspect or not, should have been started; 0 where none is due. */
  lagMs(queue: QueueRow, now: number): number {
    const suspectAgeMs = queue.suspects === 0 ? 0 : this.#oldestAgeMs(queue, 1, now)
    return Math.max(0, this.headAgeMs(queue, now) ?? 0, suspectAgeMs, now - (this.dueAt(queue) ?? now))
  }

  /** An ordered queue has no priorities, and all its jobs stand in one line. */
  #oldestAgeMs(queue: QueueRow, suspect: number, now: number): number {
    if (queue.kind === 'plain') return this.#oldestOfRanksMs(queue, suspect, now)
    const { stamp } = this.#oldest[queue.ord].get(queue.qid, suspect) as { stamp: number }
    return Math.max(0, now - dueAt(stamp))
  }

  /** One look per priority in use, whatever the number of jobs. */
  #oldestOfRanksMs(queue: QueueRow, suspect: number, now: number): number {
    let oldest = Number.POSITIVE_INFINITY
    let rank = Number.MIN_SAFE_INTEGER
    for (;;) {
      const first = this.#firstOfRank.get(queue.qid, suspect, rank) as { rank: number; stamp: number } | undefined
      if (first === undefined) break
      rank = first.rank
      const { stamp } =
        queue.ord === 'lifo' ? (this.#lastOfRank.get(queue.qid, suspect, rank) as { stamp: number }) : first
      oldest = Math.min(oldest, stamp)
    }
    return Math.max(0, now - dueAt(oldest))
  }
}
