/** The payload sets of the ordered jobs of a SQLite store, by the rules of `rules/payloads`. */

import type { Merge } from '../../../core/queue/queue.js'
import type { ScoredPayload } from '../../contract/new-job.js'
import { type JobRow, running } from '../../rows/job-row.js'
import { headWithin, type PayloadHead, type PayloadRow, wholeHead } from '../../rows/payload-row.js'
import { payloadToStored } from '../../rows/stored-text.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

/**
 * A set: the job it belongs to (`job.rid`), and which of the job's two it is, or the one on its way from set to set.
 */
export interface PayloadSetKey {
  readonly rid: number
  readonly part: number
}

interface PayloadPlace {
  readonly seq: number
  readonly score: number
}

/** The part of payloads that are on their way from one set to another. */
const onTheWay = 2

/** The number of payloads that are read at once, whatever they weigh. */
const few = 16

export class SqlitePayloads {
  readonly #insert: Statement
  readonly #find: Statement
  readonly #delete: Statement
  readonly #head: Statement
  readonly #count: Statement
  readonly #drop: Statement
  readonly #dropAll: Statement
  readonly #takeUpTo: Statement
  readonly #keepLast: Statement
  readonly #moveAll: Statement
  readonly #dropLater: Statement
  readonly #dropEarlier: Statement
  readonly #dropFirst: Statement
  readonly #copy: Statement

  /** Each statement names its index: without statistics SQLite cannot know which of the two finds fewer rows. */
  constructor(db: Database) {
    this.#insert = db.prepare(
      'INSERT INTO payload (rid, part, score, digest, codec, meta, payload) VALUES (?, ?, ? / ? / ?, ?, ?, ?, ?)',
    )
    this.#find = db.prepare(
      'SELECT seq, score FROM payload INDEXED BY payload_digest WHERE rid = ? AND digest = ? AND part = ?',
    )
    this.#delete = db.prepare('DELETE FROM payload WHERE seq = ?')
    this.#head = db.prepare(
      'SELECT seq, score, codec, meta, payload FROM payload INDEXED BY payload_order WHERE rid = ? AND part = ? ORDER BY score, seq LIMIT ?',
    )
    this.#count = db.prepare('SELECT count(*) AS n FROM payload INDEXED BY payload_order WHERE rid = ? AND part = ?')
    this.#drop = db.prepare('DELETE FROM payload INDEXED BY payload_order WHERE rid = ? AND part = ?')
    this.#dropAll = db.prepare(
      'DELETE FROM payload INDEXED BY payload_order WHERE rid IN (SELECT value FROM json_each(?))',
    )
    this.#takeUpTo = db.prepare(
      'UPDATE payload INDEXED BY payload_order SET part = ?1 WHERE rid = ?2 AND part = ?3 AND score <= ?4 / ?5 / ?6 AND (score, seq) <= (?4 / ?5 / ?6, ?7)',
    )
    this.#keepLast = db.prepare(
      `DELETE FROM payload INDEXED BY payload_order WHERE rid = ?1 AND part = ?2 AND seq <>
         (SELECT seq FROM payload INDEXED BY payload_order WHERE rid = ?1 AND part = ?2 ORDER BY score DESC, seq DESC LIMIT 1)`,
    )
    this.#moveAll = db.prepare(
      'UPDATE payload INDEXED BY payload_order SET rid = ?3, part = ?4 WHERE rid = ?1 AND part = ?2',
    )
    this.#dropLater = db.prepare(
      `DELETE FROM payload INDEXED BY payload_order WHERE rid = ?1 AND part = ?2 AND EXISTS
         (SELECT 1 FROM payload AS other INDEXED BY payload_digest WHERE other.rid = ?3 AND other.part = ?4 AND other.digest = payload.digest
            AND (other.score, other.seq) < (payload.score, payload.seq))`,
    )
    this.#dropEarlier = db.prepare(
      `DELETE FROM payload WHERE seq IN
         (SELECT other.seq FROM payload AS own INDEXED BY payload_order CROSS JOIN payload AS other INDEXED BY payload_digest
            ON other.rid = ?3 AND other.part = ?4 AND other.digest = own.digest
          WHERE own.rid = ?1 AND own.part = ?2)`,
    )
    this.#dropFirst = db.prepare(
      `DELETE FROM payload WHERE seq IN
         (SELECT seq FROM payload INDEXED BY payload_order WHERE rid = ? AND part = ? ORDER BY score, seq LIMIT ?)`,
    )
    this.#copy = db.prepare(
      `INSERT INTO payload (rid, part, score, digest, codec, meta, payload)
         SELECT rid, ${onTheWay}, score, digest, codec, meta, payload FROM payload INDEXED BY payload_order
         WHERE rid = ? AND part = ? ORDER BY score, seq`,
    )
  }

  /** Adds a payload. Returns by how many the set has grown. */
  add(set: PayloadSetKey, scored: ScoredPayload, digest: Uint8Array, merge: Merge): number {
    const { rid, part } = set
    const { score, payload, codec, meta } = scored
    const equal = this.#find.get(rid, digest, part) as PayloadPlace | undefined
    if (equal === undefined || equal.score > score) {
      if (equal !== undefined) this.#delete.run(equal.seq)
      const storedMeta = meta === undefined ? null : payloadToStored(meta)
      this.#insert.run(rid, part, ...quotient(score), digest, codec ?? null, storedMeta, payloadToStored(payload))
    }
    const trimmed = merge === 'latest' ? this.trim(set) : 0
    return (equal === undefined ? 1 : 0) - trimmed
  }

  has({ rid, part }: PayloadSetKey, digest: Uint8Array): boolean {
    return this.#find.get(rid, digest, part) !== undefined
  }

  /** The first payloads in order; all if `limit` is -1. */
  head({ rid, part }: PayloadSetKey, limit: number): PayloadRow[] {
    return this.#head.all(rid, part, limit) as PayloadRow[]
  }

  /**
   * The first payloads in order, at most `limit` and at most `most` bytes, but at least one. Reads few of the others.
   */
  headWithin({ rid, part }: PayloadSetKey, limit: number, most: number): PayloadHead {
    // Most ids have few payloads, and reading row by row costs more than reading them all.
    const first = this.head({ rid, part }, Math.min(few, limit + 1))
    const isAll = first.length < few || limit < few
    const rows = isAll ? first : (this.#head.iterate(rid, part, limit + 1) as Iterable<PayloadRow>)
    return headWithin(rows, limit, most)
  }

  /** All payloads, whatever they weigh. */
  whole(set: PayloadSetKey): PayloadHead {
    return wholeHead(this.head(set, -1))
  }

  count({ rid, part }: PayloadSetKey): number {
    return (this.#count.get(rid, part) as { n: number }).n
  }

  /** Drops the set. Returns the number of its payloads. */
  drop({ rid, part }: PayloadSetKey): number {
    return Number(this.#drop.run(rid, part).changes)
  }

  /** Drops the first `count` payloads in order. */
  dropFirst({ rid, part }: PayloadSetKey, count: number): void {
    this.#dropFirst.run(rid, part, count)
  }

  /** Drops all sets of these jobs, whose numbers are given as JSON. */
  dropAll(rids: string): void {
    this.#dropAll.run(rids)
  }

  /** Keeps only the last payload in order. Returns the number removed. */
  trim({ rid, part }: PayloadSetKey): number {
    return Number(this.#keepLast.run(rid, part).changes)
  }

  /** Moves the payloads up to and including `last` into an empty part. */
  takeUpTo({ rid, part }: PayloadSetKey, last: PayloadPlace, into: number): void {
    this.#takeUpTo.run(into, rid, part, ...quotient(last.score), last.seq)
  }

  /** Moves the oldest payload into a set of its own. */
  oldest(set: PayloadSetKey, oldest: PayloadPlace): PayloadSetKey {
    this.takeUpTo(set, oldest, onTheWay)
    return { rid: set.rid, part: onTheWay }
  }

  /** Joins `set` to `into` by the rule of `merged`. Returns by how many `into` has grown. */
  join(set: PayloadSetKey, into: PayloadSetKey, merge: Merge): number {
    const sets = [set.rid, set.part, into.rid, into.part] as const
    this.#dropLater.run(...sets)
    const replaced = Number(this.#dropEarlier.run(...sets).changes)
    const moved = Number(this.#moveAll.run(...sets).changes)
    return moved - replaced - (merge === 'latest' ? this.trim(into) : 0)
  }

  /** The set with new numbers, as if its payloads had arrived only now, in their order. */
  renumbered(set: PayloadSetKey): PayloadSetKey {
    const { rid, part } = set
    this.#copy.run(rid, part)
    this.#drop.run(rid, part)
    return { rid, part: onTheWay }
  }
}

const scale = 2 ** 600

/**
 * The score as a dividend and two divisors, which SQL divides exactly. The driver binds a number that is nearly whole
 * as that integer. A score next to 0 or 1 is therefore multiplied by powers of 2 before it is bound, and divided by
 * them in SQL.
 */
function quotient(score: number): [number, number, number] {
  const isNearlyWhole = !Number.isInteger(score) && Math.abs(score - Math.round(score)) < 2 * Number.EPSILON
  if (!isNearlyWhole) return [score, 1, 1]
  return Math.abs(score) > 1 / scale ? [score * scale, scale, 1] : [score * scale * scale, scale, scale]
}

/** The payloads that wait, are in hand, or are dead. */
export function setOf({ rid, part }: Pick<JobRow, 'rid' | 'part'>): PayloadSetKey {
  return { rid, part }
}

/** The payloads of the successor of a running job, if it has one. */
export function successorSet({ rid, part }: Pick<JobRow, 'rid' | 'part'>): PayloadSetKey {
  return { rid, part: 1 - part }
}

/** The waiting payloads of a live job, for a running one those of its successor; undefined if none wait. */
export function waitingSetOf(
  job: Pick<JobRow, 'rid' | 'part' | 'state' | 'successor_stamp'>,
): PayloadSetKey | undefined {
  if (job.state !== running) return setOf(job)
  return job.successor_stamp === null ? undefined : successorSet(job)
}
