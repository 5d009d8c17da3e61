/** The history in the file of a SQLite store: a row for each minute and each hour of a queue. */

import type { HistoryEntry, HistoryPoint, HistorySpan } from '../../contract/history.js'
import { upkeepLimit } from '../../rules/bounds.js'
import { countNumbers, gaugeNumbers, historySteps, oldestSlotAt, pointOf, slotAt } from '../../rules/history-slots.js'
import type { Statement } from '../file/sqlite-driver.js'
import { historyCounts, historyGauges } from '../file/sqlite-schema.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

const columns = [...historyCounts, ...historyGauges]

interface SlotRow {
  readonly queue: string
  readonly at: number
}

export class SqliteHistory {
  readonly #transaction: SqliteTransaction
  readonly #add: Statement
  readonly #read: Statement
  readonly #old: Statement
  readonly #delete: Statement

  constructor(transaction: SqliteTransaction) {
    const { db } = transaction
    this.#transaction = transaction
    const sums = historyCounts.map((name) => `${name} = ${name} + excluded.${name}`)
    const latest = historyGauges.map((name) => `${name} = ifnull(excluded.${name}, ${name})`)
    this.#add = db.prepare(
      `INSERT INTO history (queue, step, at, ${columns.join(', ')}) VALUES (?, ?, ?, ${columns.map(() => '?').join(', ')})
       ON CONFLICT DO UPDATE SET ${[...sums, ...latest].join(', ')}`,
    )
    this.#read = db.prepare(
      `SELECT at, ${columns.join(', ')} FROM history WHERE queue = ? AND step = ? AND at >= ? AND at < ? ORDER BY at`,
    )
    this.#old = db.prepare(
      'SELECT queue, at FROM history INDEXED BY history_at WHERE step = ? AND at < ? ORDER BY at LIMIT ?',
    )
    this.#delete = db.prepare('DELETE FROM history WHERE queue = ? AND step = ? AND at = ?')
  }

  /** Also removes the rows of each step that are too old, at most `upkeepLimit` more than it adds. */
  add(entries: readonly HistoryEntry[]): void {
    const now = this.#transaction.clock.now()
    for (const { queue, agoMs, counts, gauges } of entries) {
      const numbers = [...countNumbers(counts), ...(gauges === undefined ? [null, null, null] : gaugeNumbers(gauges))]
      for (const [i, step] of historySteps.entries()) {
        const at = slotAt(step, now - agoMs)
        if (at >= oldestSlotAt(step, now)) this.#add.run(queue, i, at, ...numbers)
      }
    }
    for (const [i, step] of historySteps.entries()) {
      const old = this.#old.all(i, oldestSlotAt(step, now), entries.length + upkeepLimit) as SlotRow[]
      for (const { queue, at } of old) this.#delete.run(queue, i, at)
    }
  }

  read(queues: readonly string[], { step, fromAt, toAt }: HistorySpan): HistoryPoint[][] {
    const oldest = Math.max(fromAt, oldestSlotAt(step, this.#transaction.clock.now()))
    return queues.map((queue) => {
      const rows = this.#read.all(queue, historySteps.indexOf(step), oldest, toAt) as Record<string, number | null>[]
      return rows.map((row) => {
        const numbers = columns.map((name) => row[name]!).filter((number) => number !== null)
        return pointOf(row.at!, numbers)
      })
    })
  }
}
