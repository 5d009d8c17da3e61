/**
 * Who has ended in the sets of the joins of a SQLite store, and with what: the rows that a report changes, and the counts
 * of their set. A member that has completed and left nothing has its bit in `join_bits`, and nothing else.
 *
 * Bits fit here because one connection writes at a time. On a server a settle would wait for the row of another's bits:
 * there each outstanding member needs a row of its own.
 */

import { type Payload, payloadBytes } from '../../../core/values/codec.js'
import type { MemberEnd } from '../../contract/joins.js'
import type { Fate } from '../../contract/new-join.js'
import { cancelledFate, deadFate, fates, type HeldSet } from '../../rows/join-row.js'
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

/** The members of a chunk of bits, and those of a page of results. Handlers read results by such pages. */
const chunkSize = 4_096
const pageSize = 1_000

/** The number of a member that has completed, and its result, if that is kept. */
export type CompletedRow = readonly [number: number, result?: string]

/** Undefined: such an end is not kept together with others. */
export function completedRow(number: number, keeps: boolean, { payload, codec }: ForJoins): CompletedRow | undefined {
  if (codec !== undefined) return undefined
  if (payload === undefined || !keeps) return [number]
  return typeof payload === 'string' && payload.length <= longestTogether ? [number, payload] : undefined
}

/** One bit for each member, the lowest first: whether it has ended. */
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
    this.#keepPage = db.prepare('INSERT INTO join_page (sid, page, ends) VALUES (?, ?, ?)')
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
    if (this.#mark(sid, number)) return this.#keepEnd(set, number, end)
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
    const kept = rows.filter(([number]) => number < set.added && this.#mark(sid, number))
    counts.completed += kept.length
    const results = kept.filter((row): row is [number, string] => row.length === 2).sort(([a], [b]) => a - b)
    for (let from = 0; from < results.length; ) {
      const page = pageOf(results[from]![0])
      let to = from + 1
      while (to < results.length && pageOf(results[to]![0]) === page) to += 1
      const some = results.slice(from, to)
      if (some.length >= fewestTogether) this.#keepPage.run(sid, page, JSON.stringify(some))
      else for (const [number, result] of some) this.#keep.run(sid, number, 0, null, null, payloadToStored(result))
      from = to
    }
    return results.reduce((bytes, [, result]) => bytes + payloadBytes(result), 0)
  }

  /** A dead member waits again. False: it was not dead for this join. */
  takeBack({ sid, counts }: HeldSet, number: number): boolean {
    if (this.#takeBack.run(sid, number).changes === 0) return false
    const [chunk, byte, bit] = this.#placeOf(sid, number)
    chunk.bits[byte]! &= ~bit
    this.#changed.add(chunk)
    counts.dead -= 1
    return true
  }

  /** Returns false if the member has ended before. */
  #mark(sid: number, number: number): boolean {
    const [chunk, byte, bit] = this.#placeOf(sid, number)
    if (chunk.bits[byte]! & bit) return false
    chunk.bits[byte]! |= bit
    this.#changed.add(chunk)
    return true
  }

  #placeOf(sid: number, number: number): readonly [chunk: Chunk, byte: number, bit: number] {
    const at = number % chunkSize
    return [this.#chunk(sid, (number - at) / chunkSize), at >> 3, 1 << (at & 7)]
  }

  #chunk(sid: number, number: number): Chunk {
    let chunks = this.#chunks.get(sid)
    if (chunks === undefined) {
      chunks = new Map()
      this.#chunks.set(sid, chunks)
    }
    let chunk = chunks.get(number)
    if (chunk === undefined) {
      chunk = { sid, number, bits: new Uint8Array(chunkSize / 8) }
      const stored = this.#bits.get(sid, number) as { bits: Uint8Array } | undefined
      if (stored !== undefined) chunk.bits.set(stored.bits)
      chunks.set(number, chunk)
    }
    return chunk
  }

  // What is read

  /** The members that were added and have not ended, from `from` on in the order of their numbers. */
  *outstanding({ sid, added }: HeldSet, from = 0): Generator<number, void, undefined> {
    for (let number = from; number < added; number += 1) {
      const [{ bits }, byte, bit] = this.#placeOf(sid, number)
      if (bits[byte] === 255) number |= 7
      else if ((bits[byte]! & bit) === 0) yield number
    }
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
    for (let number = from; number < behind; number += 1) {
      const [{ bits }, byte, bit] = this.#placeOf(set.sid, number)
      if (bits[byte]! & bit) ends.push(left.get(number) ?? { number, fate: 'completed' })
    }
    return ends
  }

  /** The members by their fates, counted anew. */
  countsOf({ sid, added }: HeldSet): Record<Fate, number> {
    let ended = 0
    for (let number = 0; number < added; number += 1) {
      const [{ bits }, byte, bit] = this.#placeOf(sid, number)
      if (bits[byte]! & bit) ended += 1
    }
    const others = this.#counts.get(sid) as Record<'dead' | 'cancelled' | 'expired', number>
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

  /** Writes the bits that have changed. */
  flush(): void {
    for (const { sid, number, bits } of this.#changed) this.#writeBits.run(sid, number, withoutZeros(bits))
    this.#changed = new Set()
  }

  forget(): void {
    this.#chunks = new Map()
    this.#changed = new Set()
  }
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

/** Without the zero bytes at the end. */
function withoutZeros(bits: Uint8Array): Uint8Array {
  let length = bits.length
  while (length > 0 && bits[length - 1] === 0) length -= 1
  return bits.subarray(0, length)
}
