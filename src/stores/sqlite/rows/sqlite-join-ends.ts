/**
 * Who is outstanding in the sets of the joins of a SQLite store, and who has ended: the rows that a report changes, and
 * the counts of their set.
 */

import { type Payload, payloadBytes } from '../../../core/values/codec.js'
import type { Fate } from '../../contract/new-join.js'
import { cancelledFate, deadFate, fates, type HeldSet } from '../../rows/join-row.js'
import { payloadToStored, toStored } from '../../rows/stored-text.js'
import type { Database, Statement } from '../file/sqlite-driver.js'

/** What a member leaves to its joins. `error` is as stored. */
export interface ForJoins {
  readonly payload?: Payload
  readonly codec?: string
  readonly error?: string | null
}

type ReportedEnd = ForJoins & { readonly fate: Fate }

/** Fewer ends are kept one by one: two statements would cost more. */
const fewestTogether = 4
const longestTogether = 2_048

/** The number of a member that has completed, and its result, if that is kept. */
export type CompletedRow = readonly [number: number, result?: string]

/** Undefined: such an end is not kept together with others, because JSON does not carry its result unchanged. */
export function completedRow(
  number: number,
  keeps: boolean,
  { fate, payload, codec }: ReportedEnd,
): CompletedRow | undefined {
  if (fate !== 'completed' || codec !== undefined) return undefined
  if (payload === undefined || !keeps) return [number]
  if (typeof payload !== 'string' || payload.length > longestTogether || !payload.isWellFormed()) return undefined
  return [number, payload]
}

export class SqliteJoinEnds {
  readonly #enter: Statement
  readonly #leave: Statement
  readonly #leaveRange: Statement
  readonly #leaveAll: Statement
  readonly #keep: Statement
  readonly #keepAll: Statement
  readonly #endedAmong: Statement
  readonly #goForGood: Statement
  readonly #takeBack: Statement

  constructor(db: Database) {
    this.#enter = db.prepare('INSERT OR IGNORE INTO join_member (sid, number, rid) VALUES (?, ?, ?)')
    this.#leave = db.prepare('DELETE FROM join_member WHERE sid = ? AND number = ?')
    this.#leaveRange = db.prepare('DELETE FROM join_member WHERE sid = ? AND number BETWEEN ? AND ?')
    const among = 'sid = ?1 AND number IN (SELECT value ->> 0 FROM json_each(?2))'
    this.#leaveAll = db.prepare(`DELETE FROM join_member WHERE ${among}`)
    this.#keep = db.prepare('INSERT INTO join_end (sid, number, fate, codec, error, payload) VALUES (?, ?, ?, ?, ?, ?)')
    this.#keepAll = db.prepare(
      'INSERT INTO join_end (sid, number, fate, payload) SELECT ?1, value ->> 0, 0, value ->> 1 FROM json_each(?2)',
    )
    this.#endedAmong = db.prepare(`SELECT number FROM join_end WHERE ${among}`)
    const isDead = `sid = ? AND number = ? AND fate = ${deadFate}`
    this.#goForGood = db.prepare(`UPDATE join_end SET fate = ${cancelledFate}, error = NULL WHERE ${isDead}`)
    this.#takeBack = db.prepare(`DELETE FROM join_end WHERE ${isDead}`)
  }

  /** A member was added. */
  enter(set: HeldSet, number: number, rid: number): void {
    this.#enter.run(set.sid, number, rid)
    set.added = Math.max(set.added, number + 1)
  }

  /**
   * Returns the bytes of the result that is kept. Undefined, with nothing changed: this end was reported before. Of such
   * ends only one changes: a dead member may go for good.
   */
  keep(set: HeldSet, number: number, { fate, payload, codec, error }: ReportedEnd): number | undefined {
    const { sid, keepsResults, onDead, counts } = set
    let bytes = 0
    if (this.#leave.run(sid, number).changes === 0) {
      if (fate !== 'cancelled' || onDead === 'go-on' || this.#goForGood.run(sid, number).changes === 0) return undefined
      counts.dead -= 1
    } else if (!keepsResults) this.#keep.run(sid, number, fates.indexOf(fate), null, null, null)
    else {
      const stored = payload === undefined ? null : payloadToStored(payload)
      this.#keep.run(sid, number, fates.indexOf(fate), codec ?? null, error ?? null, stored)
      if (payload !== undefined) bytes = payloadBytes(payload)
    }
    counts[fate] += 1
    return bytes
  }

  /** Like `keep`, for many that have completed. Returns the bytes of all results that are kept. */
  keepCompleted(set: HeldSet, rows: readonly CompletedRow[]): number {
    if (rows.length < fewestTogether) return rows.reduce((bytes, row) => bytes + this.#keepOne(set, row), 0)
    let kept = [...rows].sort(([a], [b]) => a - b)
    const text = textOf(kept)
    const [first, last] = [kept[0]![0], kept.at(-1)![0]]
    const { changes } =
      last - first === kept.length - 1 ? this.#leaveRange.run(set.sid, first, last) : this.#leaveAll.run(set.sid, text)
    const areAllNew = Number(changes) === kept.length
    if (!areAllNew) kept = this.#withoutEnded(set, kept, text)
    this.#keepAll.run(set.sid, areAllNew ? text : textOf(kept))
    set.counts.completed += kept.length
    return kept.reduce((bytes, [, result]) => bytes + (result === undefined ? 0 : payloadBytes(result)), 0)
  }

  #keepOne(set: HeldSet, [number, result]: CompletedRow): number {
    return this.keep(set, number, { fate: 'completed', ...(result === undefined ? {} : { payload: result }) }) ?? 0
  }

  #withoutEnded(set: HeldSet, rows: readonly CompletedRow[], text: string): CompletedRow[] {
    const ended = new Set((this.#endedAmong.all(set.sid, text) as { number: number }[]).map(({ number }) => number))
    return rows.filter(([number]) => number < set.added && !ended.has(number))
  }

  /** A dead member waits again. False: it was not dead for this join. */
  takeBack(set: HeldSet, number: number, rid: number): boolean {
    if (this.#takeBack.run(set.sid, number).changes === 0) return false
    this.#enter.run(set.sid, number, rid)
    set.counts.dead -= 1
    return true
  }
}

function textOf(rows: readonly CompletedRow[]): string {
  return JSON.stringify(rows.map(([number, result]) => (result === undefined ? [number] : [number, toStored(result)])))
}
