/**
 * Who has ended in the sets of the joins of a SQLite store, and with what: the rows that a report changes, and the counts
 * of their set. A member that has completed and left nothing has its bit, and nothing else.
 *
 * Bits fit here because one connection writes at a time. On a server a settle would wait for the row of another's bits:
 * there each outstanding member needs a row of its own.
 */

import { type Payload, payloadBytes } from '../../../core/values/codec.js'
import type { MemberEnd } from '../../contract/joins.js'
import type { Fate } from '../../contract/new-join.js'
import { bitsIn, cancelledFate, chunkSize, deadFate, fates, type HeldSet, storedBits } from '../../rows/join-row.js'
import { present } from '../../rows/stored-job.js'
import { payloadToStored, type SqlValue, valueFromStored } from '../../rows/stored-text.js'
import { stepLimit } from '../../rules/bounds.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

/** The result or the error that a member leaves to its joins. `error` is as stored. */
export interface ForJoins {
  readonly payload?: Payload
  readonly codec?: string
  readonly error?: string | null
}

export type ReportedEnd = ForJoins & { readonly fate: Fate }

/** Fewer results are kept one by one. */
const fewestTogether = 4
const longestTogether = 2_048

/** The members of a page of results. Handlers read results by such pages. */
const pageSize = 1_000

/** The number of a member that has completed, with its result if that is kept. */
export type CompletedRow = number | readonly [number: number, result: string]

/** Undefined: such an end is not kept together with others. */
export function completedRow(number: number, keeps: boolean, { payload, codec }: ForJoins): CompletedRow | undefined {
  if (codec !== undefined) return undefined
  if (payload === undefined || !keeps) return number
  return typeof payload === 'string' && payload.length <= longestTogether ? [number, payload] : undefined
}

/** The bits of members behind the first chunk of their set. */
interface Chunk {
  readonly sid: number
  readonly number: number
  readonly bits: Uint8Array
}

interface EndRow {
  readonly number: number
  readonly fate: number
  readonly codec: string | null
  readonly error: string | null
  readonly payload: SqlValue
}

export class SqliteJoinEnds {
  /** The bits that this connection has used, by the numbers of their sets and chunks. */
  #chunks = new Map<number, Map<number, Chunk>>()
  /** Those that are to be written. */
  #changed = new Set<Chunk>()
  readonly #bits: Statement
  readonly #writeBits: Statement
  readonly #keep: Statement
  readonly #keepPage: Statement
  readonly #goForGood: Statement
  readonly #takeBack: Statement
  readonly #firstDead: Statement
  readonly #ends: Statement
  readonly #pages: Statement
  readonly #counts: Statement
  readonly #drops: readonly Statement[]
  readonly #dropSteps: readonly (readonly [first: Statement, drop: Statement, numbers: number])[]

  constructor(db: Database) {
    this.#bits = db.prepare('SELECT bits FROM join_bits WHERE sid = ? AND chunk = ?')
    this.#writeBits = db.prepare('INSERT OR REPLACE INTO join_bits (sid, chunk, bits) VALUES (?, ?, ?)')
    this.#keep = db.prepare('INSERT INTO join_end (sid, number, fate, codec, error, payload) VALUES (?, ?, ?, ?, ?, ?)')
    this.#keepPage = db.prepare('INSERT INTO join_page (sid, page, first, ends) VALUES (?, ?, ?, ?)')
    const isDead = `sid = ? AND number = ? AND fate = ${deadFate}`
    this.#goForGood = db.prepare(`UPDATE join_end SET fate = ${cancelledFate}, error = NULL WHERE ${isDead}`)
    this.#takeBack = db.prepare(`DELETE FROM join_end WHERE ${isDead}`)
    this.#firstDead = db.prepare(
      `SELECT number FROM join_end WHERE sid = ? AND fate = ${deadFate} ORDER BY number LIMIT 1`,
    )
    this.#ends = db.prepare(
      'SELECT number, fate, codec, error, payload FROM join_end WHERE sid = ? AND number >= ? AND number < ?',
    )
    this.#pages = db.prepare('SELECT ends FROM join_page WHERE sid = ? AND page BETWEEN ? AND ?')
    const count = (fate: Fate) => `count(*) FILTER (WHERE fate = ${fates.indexOf(fate)}) AS ${fate}`
    this.#counts = db.prepare(
      `SELECT ${count('dead')}, ${count('cancelled')}, ${count('expired')} FROM join_end WHERE sid = ?`,
    )
    this.#drops = ['join_bits', 'join_end', 'join_page'].map((table) =>
      db.prepare(`DELETE FROM ${table} WHERE sid = ?`),
    )
    const step = (table: string, column: string, count: number) =>
      [
        db.prepare(`SELECT ${column} AS first FROM ${table} WHERE sid = ? ORDER BY ${column} LIMIT 1`),
        db.prepare(`DELETE FROM ${table} WHERE sid = ? AND ${column} < ?`),
        count,
      ] as const
    this.#dropSteps = [step('join_end', 'number', stepLimit), step('join_page', 'page', stepLimit / pageSize)]
  }

  /** A member was added. */
  enter(set: HeldSet, number: number): void {
    set.added = Math.max(set.added, number + 1)
  }

  /**
   * Returns the bytes of the result that is kept. Undefined, with nothing changed: this end was reported before, or is
   * none of a member that was added. Of ends that were reported only one changes: a dead member may go for good.
   */
  keep(set: HeldSet, number: number, end: ReportedEnd): number | undefined {
    const { sid, onDead, counts } = set
    if (number >= set.added) return undefined
    if (this.#mark(set, number)) return this.#keepEnd(set, number, end)
    if (end.fate !== 'cancelled' || onDead === 'go-on' || this.#goForGood.run(sid, number).changes === 0)
      return undefined
    counts.dead -= 1
    counts.cancelled += 1
    return 0
  }

  #keepEnd({ sid, keepsResults, counts }: HeldSet, number: number, end: ReportedEnd): number {
    const { fate, payload, codec, error } = keepsResults ? end : ({ fate: end.fate } as ReportedEnd)
    counts[fate] += 1
    if (fate === 'completed' && payload === undefined) return 0
    const stored = payload === undefined ? null : payloadToStored(payload)
    this.#keep.run(sid, number, fates.indexOf(fate), codec ?? null, error ?? null, stored)
    return payload === undefined ? 0 : payloadBytes(payload)
  }

  /** Like `keep`, for many that have completed. Returns the bytes of all results that are kept. */
  keepCompleted(set: HeldSet, rows: readonly CompletedRow[]): number {
    const { sid, counts } = set
    const results: Exclude<CompletedRow, number>[] = []
    for (const row of rows) {
      const number = typeof row === 'number' ? row : row[0]
      if (number >= set.added || !this.#mark(set, number)) continue
      counts.completed += 1
      if (typeof row !== 'number') results.push(row)
    }
    results.sort(([a], [b]) => a - b)
    for (let from = 0; from < results.length; ) {
      const page = pageOf(results[from]![0])
      let to = from + 1
      while (to < results.length && pageOf(results[to]![0]) === page) to += 1
      const some = results.slice(from, to)
      if (some.length >= fewestTogether) this.#keepPage.run(sid, page, some[0]![0], JSON.stringify(some))
      else for (const [number, result] of some) this.#keep.run(sid, number, 0, null, null, payloadToStored(result))
      from = to
    }
    return results.reduce((bytes, [, result]) => bytes + payloadBytes(result), 0)
  }

  /** A dead member waits again. False: it was not dead for this join. */
  takeBack(set: HeldSet, number: number): boolean {
    if (this.#takeBack.run(set.sid, number).changes === 0) return false
    this.#bitsToChange(set, number)[byteOf(number)]! &= ~bitOf(number)
    set.counts.dead -= 1
    return true
  }

  /** Returns false if the member has ended before. */
  #mark(set: HeldSet, number: number): boolean {
    if (this.#hasEnded(set, number)) return false
    this.#bitsToChange(set, number)[byteOf(number)]! |= bitOf(number)
    return true
  }

  #hasEnded(set: HeldSet, number: number): boolean {
    return (this.#bitsOf(set, number)[byteOf(number)]! & bitOf(number)) !== 0
  }

  /** The bits of the chunk of this member. Those of the first chunk are written with the row of the set. */
  #bitsOf(set: HeldSet, number: number): Uint8Array {
    return number < chunkSize ? set.bits : this.#chunk(set.sid, Math.floor(number / chunkSize)).bits
  }

  #bitsToChange(set: HeldSet, number: number): Uint8Array {
    if (number >= chunkSize) this.#changed.add(this.#chunk(set.sid, Math.floor(number / chunkSize)))
    return this.#bitsOf(set, number)
  }

  #chunk(sid: number, number: number): Chunk {
    let chunks = this.#chunks.get(sid)
    if (chunks === undefined) {
      chunks = new Map()
      this.#chunks.set(sid, chunks)
    }
    let chunk = chunks.get(number)
    if (chunk === undefined) {
      const stored = this.#bits.get(sid, number) as { bits: Uint8Array } | undefined
      chunk = { sid, number, bits: bitsIn(stored?.bits) }
      chunks.set(number, chunk)
    }
    return chunk
  }

  // What is read

  /** The members that were added and have not ended, from `from` on in the order of their numbers. */
  *outstanding(set: HeldSet, from = 0): Generator<number, void, undefined> {
    for (let number = from; number < set.added; number += 1)
      if (this.#bitsOf(set, number)[byteOf(number)] === 255) number |= 7
      else if (!this.#hasEnded(set, number)) yield number
  }

  /** The first member that has not ended or is held. */
  oldest(set: HeldSet): number | undefined {
    const oldest = this.outstanding(set).next().value
    const held = set.onDead === 'hold' ? (this.#firstDead.get(set.sid) as { number: number } | undefined) : undefined
    return held === undefined || oldest! < held.number ? (oldest ?? undefined) : held.number
  }

  /** The ends of the members with numbers from `from` on and below `from + limit`, in this order. */
  ends(set: HeldSet, from: number, limit: number): MemberEnd[] {
    const behind = Math.min(from + limit, set.added)
    const left = new Map<number, MemberEnd>()
    for (const row of this.#ends.all(set.sid, from, behind) as EndRow[]) left.set(row.number, endIn(row))
    for (const { ends } of this.#pages.all(set.sid, pageOf(from), pageOf(behind)) as { ends: string }[])
      for (const [number, payload] of JSON.parse(ends) as [number, string][])
        left.set(number, { number, fate: 'completed', payload })
    const ends: MemberEnd[] = []
    for (let number = from; number < behind; number += 1)
      if (this.#hasEnded(set, number)) ends.push(left.get(number) ?? { number, fate: 'completed' })
    return ends
  }

  /** The members by their fates, counted anew. */
  countsOf(set: HeldSet): Record<Fate, number> {
    let ended = 0
    for (let number = 0; number < set.added; number += 1) if (this.#hasEnded(set, number)) ended += 1
    const others = this.#counts.get(set.sid) as Record<'dead' | 'cancelled' | 'expired', number>
    return { ...others, completed: ended - others.dead - others.cancelled - others.expired }
  }

  // What becomes of it

  /** Deletes all of a set. */
  drop(sid: number): void {
    for (const chunk of this.#chunks.get(sid)?.values() ?? []) this.#changed.delete(chunk)
    this.#chunks.delete(sid)
    for (const statement of this.#drops) statement.run(sid)
  }

  /** Deletes a bounded part of a set. Returns whether something may be left. */
  dropStep(sid: number): boolean {
    for (const [first, drop, numbers] of this.#dropSteps) {
      const next = first.get(sid) as { first: number } | undefined
      if (next === undefined) continue
      drop.run(sid, next.first + numbers)
      return true
    }
    this.drop(sid)
    return false
  }

  /** Writes the bits that have changed, but for those of the rows of sets. */
  flush(): void {
    for (const { sid, number, bits } of this.#changed) this.#writeBits.run(sid, number, storedBits(bits))
    this.#changed = new Set()
  }

  forget(): void {
    this.#chunks = new Map()
    this.#changed = new Set()
  }
}

function byteOf(number: number): number {
  return (number % chunkSize) >> 3
}

function bitOf(number: number): number {
  return 1 << (number & 7)
}

function pageOf(number: number): number {
  return Math.floor(number / pageSize)
}

function endIn({ number, fate, codec, error, payload }: EndRow): MemberEnd {
  return present({
    ...{ number, fate: fates[fate]!, codec, error: valueFromStored(error) },
    payload: valueFromStored(payload),
  }) as unknown as MemberEnd
}
