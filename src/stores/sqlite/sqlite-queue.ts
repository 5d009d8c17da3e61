/**
 * Queues as the thread holds them during one transaction: read at their first use, written back before the commit where
 * something in them changed. Counting and numbering then cost one write per queue and transaction, however many jobs change.
 */

import { UnknownQueueError } from '../../core/errors.js'
import type { Lead } from '../../core/lead.js'
import { nextStamp } from '../../core/stamp.js'
import type { Database, Statement } from './sqlite-driver.js'

/** A row of `queue`; property names are those of the columns. */
export interface QueueRow {
  readonly qid: number
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly ord: 'fifo' | 'lifo'
  paused: number
  draining: number
  max_pending: number | null
  max_crashes: number
  results_count: number | null
  dead_age_ms: number | null
  dead_count: number | null
  scheduled: number
  /** With the suspects. */
  ready: number
  running: number
  completed: number
  dead: number
  /** Waiting jobs that failed at least once. */
  retries: number
  /** Rows in `remembered`. */
  remembered: number
  processed: number
  failed: number
  stamp: number
  last_fence: number
  /** Ready jobs that only claims alone are given. */
  suspects: number
  crashed: number
  lead_worker: string | null
  lead_wake_at: number | null
  suspect_lead_worker: string | null
  suspect_lead_wake_at: number | null
}

const changing = [
  'paused',
  'draining',
  'max_pending',
  'max_crashes',
  'results_count',
  'dead_age_ms',
  'dead_count',
  'scheduled',
  'ready',
  'running',
  'completed',
  'dead',
  'retries',
  'remembered',
  'processed',
  'failed',
  'stamp',
  'last_fence',
  'suspects',
  'crashed',
  'lead_worker',
  'lead_wake_at',
  'suspect_lead_worker',
  'suspect_lead_wake_at',
] as const

/** A row, and as it was read. */
interface Held {
  readonly row: QueueRow
  readonly before: QueueRow
}

export class SqliteQueues {
  readonly #held = new Map<string, Held>()
  readonly #select: Statement
  readonly #selectAll: Statement
  readonly #update: Statement

  constructor(db: Database) {
    this.#select = db.prepare('SELECT * FROM queue WHERE name = ?')
    this.#selectAll = db.prepare('SELECT * FROM queue ORDER BY qid')
    this.#update = db.prepare(`UPDATE queue SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE qid = ?`)
  }

  find(name: string): QueueRow | undefined {
    const held = this.#held.get(name)
    if (held !== undefined) return held.row
    const row = this.#select.get(name) as QueueRow | undefined
    if (row !== undefined) this.#held.set(name, { row, before: { ...row } })
    return row
  }

  /** Throws `UnknownQueueError`. */
  get(name: string): QueueRow {
    const row = this.find(name)
    if (row === undefined) throw new UnknownQueueError(name, this.names())
    return row
  }

  /** All are looked up before the first is changed: an unknown one changes nothing. */
  of(items: readonly { readonly queue: string }[]): QueueRow[] {
    return items.map(({ queue }) => this.get(queue))
  }

  all(): QueueRow[] {
    return this.#selectAll.all() as QueueRow[]
  }

  names(): string[] {
    return this.all().map(({ name }) => name)
  }

  /** Writes back what changed and forgets all rows. Called before each commit of a write; one that changed nothing is free. */
  flush(): void {
    for (const { row, before } of this.#held.values()) {
      if (changing.some((column) => row[column] !== before[column]))
        this.#update.run(...changing.map((column) => row[column]), row.qid)
    }
    this.#held.clear()
  }

  /** Forgets them: nothing of a transaction that was rolled back or only read may be used in the next. */
  forget(): void {
    this.#held.clear()
  }
}

/** Ready jobs that any claim may be given. */
export function ordinary(queue: QueueRow): number {
  return queue.ready - queue.suspects
}

/** Who asks again when something falls due or a lease ends. */
export function leadOf({ lead_worker, lead_wake_at }: QueueRow): Lead | undefined {
  return leadFrom(lead_worker, lead_wake_at)
}

/** Who makes room for the suspects. */
export function suspectLeadOf({ suspect_lead_worker, suspect_lead_wake_at }: QueueRow): Lead | undefined {
  return leadFrom(suspect_lead_worker, suspect_lead_wake_at)
}

function leadFrom(worker: string | null, wakeAt: number | null): Lead | undefined {
  return worker === null || wakeAt === null ? undefined : { worker, wakeAt }
}

export function setLead(queue: QueueRow, lead: Lead | undefined): void {
  queue.lead_worker = lead?.worker ?? null
  queue.lead_wake_at = lead?.wakeAt ?? null
}

export function setSuspectLead(queue: QueueRow, lead: Lead | undefined): void {
  queue.suspect_lead_worker = lead?.worker ?? null
  queue.suspect_lead_wake_at = lead?.wakeAt ?? null
}

/** The place in line of a job that is ready now. */
export function takeStamp(queue: QueueRow, now: number): number {
  queue.stamp = nextStamp(queue.stamp, now)
  return queue.stamp
}

/** `job.place` of a stamp: ascending is the order of claims. */
export function placeOf(queue: QueueRow, stamp: number): number {
  return queue.ord === 'lifo' ? -stamp : stamp
}

/** Integers of SQLite beyond this cannot be read back as numbers. For instants, which are then never. */
export function bounded(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER)
}
