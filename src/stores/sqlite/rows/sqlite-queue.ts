/**
 * Queue rows as the thread holds them: read at their first use, written back before the commit if they changed, and
 * kept for the next transactions until another connection commits. Counting and numbering then cost one write per queue
 * and transaction, however many jobs change.
 */

import { InvalidArgumentError, UnknownQueueError } from '../../../core/errors.js'
import type { Exclusive, Merge } from '../../../core/queue/queue.js'
import type { Throttle } from '../../../core/queue/throttle.js'
import type { QueueKind, StoredQueue } from '../../contract/queue-settings.js'
import { boundsOf, limitsFrom } from '../../rules/limit-rules.js'
import { shardOf } from '../../rules/payloads.js'
import { nextScore, nextStamp } from '../../rules/sequence.js'
import type { Lead } from '../../rules/wake-lead.js'
import type { Database, SqlValue, Statement } from '../file/sqlite-driver.js'
import { queueColumns } from '../file/sqlite-schema.js'

/** A row of `queue`: a queue, or one shard of an ordered one. Property names are column names. */
export interface QueueRow {
  readonly qid: number
  readonly name: string
  /** Negative: the queue is being resharded and leaves this shard. */
  readonly shard: number
  readonly shards: number
  /** The number of shards that the resharding is to reach. Until it ends, the queue is as good as paused. */
  resharding: number | null
  /** Numbers the queues in the order in which they came. */
  readonly number: number
  readonly kind: QueueKind
  readonly ord: 'fifo' | 'lifo'
  readonly exclusive: Exclusive
  merge: Merge
  paused: number
  draining: number
  /** The limits that have been said. The bounds that hold follow; each is for the whole queue: see `share`. */
  limits: string
  max_pending: number | null
  crash_limit: number
  results_limit: number | null
  dead_age_ms: number | null
  dead_count: number | null
  scheduled: number
  /** Including the suspects. */
  ready: number
  running: number
  completed: number
  dead: number
  /** Waiting jobs that failed at least once. */
  retries: number
  /** Rows in `remembered`. */
  remembered: number
  /** Waiting payloads of an ordered queue. */
  pending: number
  processed: number
  failed: number
  last_stamp: number
  last_fence: number
  /** The last default score of a payload, in µs. */
  last_score: number
  /** Ready jobs that only claims made alone receive. */
  suspects: number
  crashed: number
  expired: number
  /** No waiting job expires before this instant. */
  expiring_at: number | null
  lead_worker: string | null
  lead_wake_at: number | null
  suspect_lead_worker: string | null
  suspect_lead_wake_at: number | null
  /** For all shards together. */
  max_running: number | null
  max_per_group: number | null
  /** The scope of its throttle, and what the throttle counts by. */
  throttle: string | null
  throttle_by: 'queue' | 'group' | 'both' | null
  /** Nothing is granted before these instants: the queue was held back, or its throttle has denied what is ready. */
  held_until: number | null
  shut_until: number | null
  /** 1: it has, or once had, a lane. */
  laned: number
  /** Jobs that have a group: the ready ones without the suspects, and the running ones. */
  grouped: number
  grouped_running: number
  /** Lanes that have a turn. */
  open_lanes: number
  last_lane_turn: number
  /** No job that was there, or ended, after this instant has been removed. */
  lost_at: number | null
  /** 1: it has, or once had, a job or a checkpoint that is not light. */
  weighed: number
}

const fixed: readonly string[] = ['qid', 'name', 'shard', 'shards', 'number', 'kind', 'ord', 'exclusive']

const changing = queueColumns.filter((column) => !fixed.includes(column)) as (keyof QueueRow)[]

/**
 * In SQL: the row as JSON. One text crosses the driver at two thirds of the cost of the single columns. Each column
 * holds text or a whole number: JSON in SQLite cuts other numbers after 15 digits.
 */
const rowText = `json_object(${queueColumns.map((column) => `'${column}', ${column}`).join(', ')})`

/**
 * A row, and the values of its changeable columns as they were read. A copy of the row would cost more than reading it.
 */
interface HeldRow {
  readonly row: QueueRow
  before: readonly SqlValue[]
}

/** If more rows than this would be kept, only those of the last transaction are. */
const mostKept = 256

export class SqliteQueues {
  /** The rows that this transaction has used. Only these are looked through for changes. */
  #held = new Map<string, HeldRow>()
  /** The rows that earlier transactions have used, as they are in the file. */
  #kept = new Map<string, HeldRow>()
  readonly #select: Statement
  readonly #selectAll: Statement
  readonly #update: Statement

  constructor(db: Database) {
    this.#select = db.prepare(`SELECT ${rowText} AS text FROM queue WHERE name = ? AND shard = ?`)
    this.#selectAll = db.prepare('SELECT * FROM queue ORDER BY number, shard')
    this.#update = db.prepare(`UPDATE queue SET ${changing.map((column) => `${column} = ?`).join(', ')} WHERE qid = ?`)
  }

  /** The queue, or the first shard of an ordered one. */
  find(name: string): QueueRow | undefined {
    return this.shard(name, 0)
  }

  shard(name: string, shard: number): QueueRow | undefined {
    // No queue name contains a space.
    const key = shard === 0 ? name : `${name} ${shard}`
    const held = this.#held.get(key)
    if (held !== undefined) return held.row
    const used = this.#kept.get(key) ?? this.#read(name, shard)
    if (used !== undefined) this.#held.set(key, used)
    return used?.row
  }

  #read(name: string, shard: number): HeldRow | undefined {
    const found = this.#select.get(name, shard) as { text: string } | undefined
    if (found === undefined) return undefined
    const row = JSON.parse(found.text) as QueueRow
    return { row, before: changingOf(row) }
  }

  /** Like `find`. Throws `UnknownQueueError`. */
  get(name: string): QueueRow {
    const row = this.find(name)
    if (row === undefined) throw new UnknownQueueError(name, this.names())
    return row
  }

  /** The shards of an ordered queue, or a plain queue alone. Throws `UnknownQueueError`. */
  shardsOf(name: string): QueueRow[] {
    const first = this.get(name)
    return Array.from({ length: first.shards }, (_, shard) => this.shard(name, shard)!)
  }

  /** The shards that an ordered queue is leaving. */
  leaving(name: string): QueueRow[] {
    const first = this.get(name).resharding === null ? undefined : this.shard(name, -1)
    return Array.from({ length: first?.shards ?? 0 }, (_, shard) => this.shard(name, -1 - shard)!)
  }

  /** All rows of a queue, including the shards that it is leaving. Throws `UnknownQueueError`. */
  rowsOf(name: string): QueueRow[] {
    return [...this.shardsOf(name), ...this.leaving(name)]
  }

  /** The row that holds jobs with this id. Throws `UnknownQueueError`. */
  holding(name: string, id: string): QueueRow {
    const first = this.get(name)
    return first.shards === 1 ? first : this.shard(name, shardOf(id, first.shards))!
  }

  /** The row that held jobs with this id before resharding began; undefined if the queue is not being resharded. */
  formerlyHolding(name: string, id: string): QueueRow | undefined {
    const first = this.get(name).resharding === null ? undefined : this.shard(name, -1)
    return first && this.shard(name, -1 - shardOf(id, first.shards))
  }

  /**
   * The first shard of an ordered queue. Throws `UnknownQueueError`, and `InvalidArgumentError` if the queue is plain.
   */
  ordered(name: string): QueueRow {
    const first = this.get(name)
    if (first.kind === 'ordered') return first
    throw new InvalidArgumentError(`queue '${name}' is not ordered; only ordered queues are resharded and moved.`)
  }

  all(): QueueRow[] {
    return this.#selectAll.all() as QueueRow[]
  }

  names(): string[] {
    return [...new Set(this.all().map(({ name }) => name))]
  }

  /** Writes back changed rows. Called before each commit of a write. Without changes it costs nothing. */
  flush(): void {
    for (const held of this.#held.values()) {
      const values = changingOf(held.row)
      if (values.every((value, i) => value === held.before[i])) continue
      this.#update.run(...values, held.row.qid)
      held.before = values
    }
  }

  /** Keeps the rows, which were written back, for the next transaction. */
  keep(): void {
    if (this.#kept.size + this.#held.size > mostKept) this.#kept = new Map()
    for (const [key, held] of this.#held) this.#kept.set(key, held)
    this.#held = new Map()
  }

  /**
   * Forgets all rows. Those of a transaction that was rolled back or only read, and those from before the commit of
   * another connection, must not be used in the next.
   */
  forget(): void {
    this.#held = new Map()
    this.#kept = new Map()
  }
}

function changingOf(row: QueueRow): SqlValue[] {
  return changing.map((column) => row[column])
}

/** The number of ready jobs that any claim may receive. */
export function ordinary(queue: QueueRow): number {
  return queue.ready - queue.suspects
}

/** Whether the queue grants nothing, whatever is ready. */
export function isStopped({ paused, resharding }: QueueRow): boolean {
  return paused === 1 || resharding !== null
}

/** Whether a running claim has the shard to itself. */
export function isBusy({ exclusive, running, kind }: QueueRow): boolean {
  return exclusive === 'shard' && running > 0 && kind === 'ordered'
}

/** Whether anything besides the queue's state and the claim of its shard can keep ready jobs from a claim. */
export function isLimited(queue: QueueRow): boolean {
  const { laned, throttle, max_running, max_per_group, held_until, shut_until } = queue
  return (
    laned === 1 ||
    throttle !== null ||
    max_running !== null ||
    max_per_group !== null ||
    held_until !== null ||
    shut_until !== null
  )
}

/** Whether claims on it go round its lanes. */
export function hasLanes({ grouped, throttle_by, max_per_group }: QueueRow): boolean {
  return grouped > 0 || throttle_by === 'group' || throttle_by === 'both' || max_per_group !== null
}

/** The instant until which nothing is granted, whatever is ready. */
export function opensAt({ held_until, shut_until }: QueueRow): number {
  return Math.max(held_until ?? Number.NEGATIVE_INFINITY, shut_until ?? Number.NEGATIVE_INFINITY)
}

/** This shard's part of a bound for the whole queue, rounded up; null is no bound. */
export function share({ shards }: QueueRow, bound: number | null): number {
  return bound === null ? Number.POSITIVE_INFINITY : Math.ceil(bound / shards)
}

/** The `job.qid` of the queue's dead jobs. */
export function morgueOf({ qid, kind }: QueueRow): number {
  return kind === 'ordered' ? -qid : qid
}

/** The queue's name, with the shard if the queue is ordered. */
export function placeIn({ name, shard, kind }: QueueRow): { queue: string; shard?: number } {
  return kind === 'ordered' ? { queue: name, shard } : { queue: name }
}

/** The column that orders jobs that are otherwise equal: by arrival, or in an ordered queue by the bytes of the id. */
export type Tie = 'rid' | 'position'

/** A statement for each kind of queue. */
export function byKind(db: Database, text: (tie: Tie) => string): Record<QueueKind, Statement> {
  return { plain: db.prepare(text('rid')), ordered: db.prepare(text('position')) }
}

/** The worker that asks again when a job is due or a lease ends. */
export function leadOf({ lead_worker, lead_wake_at }: QueueRow): Lead | undefined {
  return leadFrom(lead_worker, lead_wake_at)
}

/** The worker that makes room for the suspects. */
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

/** The next stamp: the place in line of a job that is ready now. */
export function takeStamp(queue: QueueRow, now: number): number {
  queue.last_stamp = nextStamp(queue.last_stamp, now)
  return queue.last_stamp
}

/** The score, in µs, of a payload that arrives with this stamp and has none of its own. */
export function takeScore(queue: QueueRow, stamp: number): number {
  queue.last_score = nextScore(queue.last_score, stamp)
  return queue.last_score
}

/** A stamp as stored in `job.position`, in an ordered queue in `job.rank`: claims take jobs in ascending order. */
export function positionOf(queue: QueueRow, stamp: number): number {
  return queue.ord === 'lifo' ? -stamp : stamp
}

/** Bounds an instant: larger integers of SQLite cannot be read back as numbers. Such an instant means never. */
export function bounded(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER)
}

/** The queue as the contract describes it. */
export function storedQueue(row: QueueRow, throttle: Throttle | undefined): StoredQueue {
  const { name, kind, ord, exclusive, shards, paused, draining, resharding } = row
  const limits = limitsFrom(row.limits)
  const { maxRunning } = boundsOf(limits)
  return {
    ...{ name, kind, order: ord, exclusive, shards, paused: paused === 1, draining: draining === 1, limits },
    ...(throttle === undefined ? {} : { throttle }),
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(resharding === null ? {} : { resharding }),
  }
}
