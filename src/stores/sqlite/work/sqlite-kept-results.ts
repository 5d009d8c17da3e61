/** The completion of jobs of which only the result is kept, in a SQLite store: many of one claim with one statement. */

import { startedAtOf } from '../../contract/job-beat.js'
import type { SettleItem } from '../../contract/settle.js'
import { bounded } from '../../rows/queue-row.js'
import { storedOrNull } from '../../rows/stored-text.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { type Bunch, bunchesOf, fewestTogether } from './sqlite-completion.js'

type KeptItem = Extract<SettleItem, { kind: 'complete' }>

/** The statement gets all of them as text, which it reads again for each part of a result. */
const longestTogether = 16_384

export class SqliteKeptResults {
  readonly #transaction: SqliteTransaction
  readonly #keep: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const part = (n: number) => `json_each.value ->> ${n}`
    // Looked up one by one: joined with the list, SQLite would read the list again for each job of the queue.
    const held = `SELECT rid FROM job WHERE qid = ?1 AND id = ${part(0)} AND state = 2 AND fence = ?3 AND noted = 0`
    this.#keep = transaction.db.prepare(
      `UPDATE job SET state = 3, suspect = 0, error = NULL, reason = NULL, finished_at = ?4, updated_at = ?4, result = ${part(1)}, expires_at = ${part(2)},
         started_at = coalesce(started_at, ${part(3)}), host = coalesce(host, ${part(4)}), pid = coalesce(pid, ${part(5)})
       FROM json_each(?2) WHERE job.rid = (${held}) RETURNING id`,
    )
  }

  /** Ends such items of a settle; `queues` has the row of each. Sets true at the index of each item that it has ended. */
  endSome(items: readonly SettleItem[], queues: readonly QueueRow[], ended: (true | undefined)[], now: number): void {
    if (items.length < fewestTogether) return
    for (const bunch of bunchesOf(items, queues, isOnlyKept)) {
      const { ids, places } = bunch
      // Of one that is named twice, the first end counts.
      if (ids.length < fewestTogether || new Set(ids).size < ids.length) continue
      const found = new Set(this.#keepAll(bunch, items, now))
      for (const [i, id] of ids.entries()) if (found.has(id)) ended[places[i]!] = true
    }
  }

  /** Returns the ids of those that it has ended. The others need more than this. */
  #keepAll({ queue, fence, ids, places }: Bunch, items: readonly SettleItem[], now: number): string[] {
    const rows = places.map((place) => this.#rowOf(queue, items[place] as KeptItem, now))
    const found = this.#keep.all(queue.qid, JSON.stringify(rows), fence, now) as { id: string }[]
    queue.running -= found.length
    queue.completed += found.length
    queue.processed += found.length
    if (found.length > 0) this.#transaction.hasEnds = true
    return found.length === ids.length ? ids : found.map(({ id }) => id)
  }

  #rowOf(queue: QueueRow, { id, result, run }: KeptItem, now: number): unknown[] {
    const keepMs = this.#transaction.expected.keptMs(queue, id, result!.keepMs)
    const expiresAt = keepMs === undefined ? null : bounded(now + keepMs)
    const ran = run === undefined ? [] : [startedAtOf(run.startedMs, now), run.host, run.pid]
    return [id, storedOrNull(result!.payload as string | undefined), expiresAt, ...ran]
  }
}

/** As far as the item shows: its job may be a member of a join, or have notes. */
function isOnlyKept({ kind }: QueueRow, item: SettleItem): boolean {
  if (kind === 'ordered' || item.kind !== 'complete' || item.result === undefined || item.hold !== undefined)
    return false
  const { onlyForJoins, payload, codec } = item.result
  const isText = payload === undefined || (typeof payload === 'string' && payload.length <= longestTogether)
  return !onlyForJoins && codec === undefined && isText
}
