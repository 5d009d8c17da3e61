/**
 * The completion of jobs of which nothing is kept, or only the result, in a SQLite store. Most jobs end like this: many of
 * one claim with two statements, or three if they are ordered, or one if their results are kept; a single plain one with one.
 */

import { startedAtOf } from '../../contract/job-beat.js'
import type { KeptResult, SettleItem } from '../../contract/settle.js'
import { noteBits, running } from '../../rows/job-row.js'
import { placeRowsIn } from '../../rows/join-row.js'
import { bounded } from '../../rows/queue-row.js'
import { storedOrNull } from '../../rows/stored-text.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { QueueRow } from '../rows/sqlite-queue.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'

/** Fewer jobs of a claim are ended one by one: two statements would cost more. */
const fewestTogether = 4

/** The longest result, in UTF-16 units, that is kept together with others: SQLite reads it again for each of its columns. */
const longestTogether = 16_384

/**
 * The jobs of one claim that complete together and leave nothing, as they are sent to the thread: their ids are JSON.
 */
export interface Completions {
  readonly queue: string
  readonly fence: number
  readonly ids: string
  readonly count: number
  /** What each leaves to its joins: JSON, null for nothing. Absent: none leaves anything. */
  readonly results?: string
}

/** The items in this form; undefined if any of them does not fit into it. */
export function completionsOf(items: readonly SettleItem[]): Completions | undefined {
  const [first] = items
  if (first === undefined || items.length < fewestTogether) return undefined
  const { queue, fence } = first
  const results: (string | null)[] = []
  let areResults = false
  for (const item of items) {
    const result = textForJoins(item)
    if (result === undefined || item.fence !== fence || item.queue !== queue) return undefined
    results.push(result)
    areResults ||= result !== null
  }
  const ids = JSON.stringify(items.map(({ id }) => id))
  return { queue, fence, ids, count: items.length, ...(areResults && { results: JSON.stringify(results) }) }
}

/** What a completed job leaves to its joins, as far as that is text; null: nothing. Undefined: it leaves something else. */
function textForJoins(item: SettleItem): string | null | undefined {
  if (leavesNothing(item)) return null
  if (item.kind !== 'complete' || item.hold !== undefined) return undefined
  const { onlyForJoins, payload, codec } = item.result!
  return onlyForJoins && codec === undefined && typeof payload === 'string' ? payload : undefined
}

export function itemsOf(completions: Completions): SettleItem[] {
  const { queue, fence, ids } = completions
  const results = resultsOf(completions)
  return (JSON.parse(ids) as string[]).map((id, i) => {
    const result = results?.[i]
    return { queue, fence, id, kind: 'complete', ...(result && { result }) }
  })
}

function resultsOf({ results }: Completions): LeftResults | undefined {
  if (results === undefined) return undefined
  return (JSON.parse(results) as (string | null)[]).map((payload) =>
    payload === null ? undefined : { payload, onlyForJoins: true },
  )
}

/** What each job of a settle leaves to its joins. Absent: none leaves anything. */
type LeftResults = (KeptResult | undefined)[]

/** The jobs of a settle that were found, some with more than their row. `rids` and `stepped` are JSON arrays. */
interface NotedRow {
  readonly rids: string
  readonly found: number
  readonly stepped: string
  /** How many are members, and the first and the last of their places. */
  readonly members: number
  readonly least: string | null
  readonly most: string | null
}

/** A member, by its index among the ids of the settle. */
interface MemberRow {
  readonly i: number
  readonly places: string
}

/** A single job that was found, and may have more than its row. */
interface TiedRow {
  readonly grp: string | null
  readonly places: string | null
}

/** Jobs of one claim. */
interface Bunch {
  readonly queue: QueueRow
  readonly fence: number
  readonly ids: string[]
  /** The index of each job in the settle. */
  readonly places: number[]
  results?: LeftResults
}

export class SqliteCompletion {
  readonly #transaction: SqliteTransaction
  readonly #one: Statement
  readonly #oneTied: Statement
  readonly #look: Statement
  readonly #lookOrdered: Statement
  readonly #lookNoted: Statement
  readonly #placesOf: Statement
  readonly #dropSteps: Statement
  readonly #keep: Statement

  constructor(transaction: SqliteTransaction) {
    this.#transaction = transaction
    const { db } = transaction
    const held = (id: string, fence: string, noted = 'noted = 0') =>
      `FROM job WHERE qid = ?1 AND id ${id} AND state = 2 AND fence = ${fence} AND remember_ms = 0 AND ${noted}`
    this.#one = db.prepare(`DELETE ${held('= ?2', '?3')}`)
    this.#oneTied = db.prepare(`DELETE ${held('= ?2', '?3', `noted & ~${noteBits.member} = 0`)} RETURNING grp, places`)
    const among = 'IN (SELECT value FROM json_each(?2))'
    const found = 'SELECT json_group_array(rid) AS rids, count(*) AS found'
    const together = `${found} ${held(among, '?3')}`
    this.#look = db.prepare(together)
    this.#lookOrdered = db.prepare(`${together} AND successor_stamp IS NULL`)
    const tied = noteBits.member | noteBits.steps | noteBits.reports
    const stepped = `json_group_array(rid) FILTER (WHERE noted & ${noteBits.steps}) AS stepped`
    this.#lookNoted = db.prepare(
      `${found}, ${stepped}, count(places) AS members, min(places) AS least, max(places) AS most ${held(among, '?3', `noted & ~${tied} = 0`)}`,
    )
    this.#placesOf = db.prepare(
      'SELECT json_each.key AS i, places FROM json_each(?2) CROSS JOIN job ON qid = ?1 AND job.id = json_each.value WHERE places IS NOT NULL',
    )
    this.#dropSteps = db.prepare('DELETE FROM step WHERE rid IN (SELECT value FROM json_each(?))')
    const part = (n: number) => `json_each.value ->> ${n}`
    // Looked up one by one: joined with the list, SQLite would read the list again for each job of the queue.
    const one = `SELECT rid FROM job WHERE qid = ?1 AND id = ${part(0)} AND state = 2 AND fence = ?3 AND noted = 0`
    this.#keep = db.prepare(
      `UPDATE job SET state = 3, suspect = 0, error = NULL, reason = NULL, finished_at = ?4, updated_at = ?4, result = ${part(1)}, expires_at = ${part(2)},
         started_at = coalesce(started_at, ${part(3)}), host = coalesce(host, ${part(4)}), pid = coalesce(pid, ${part(5)})
       FROM json_each(?2) WHERE job.rid = (${one}) RETURNING id`,
    )
  }

  /**
   * Ends the items of a settle that can be ended together; `queues` has the row of each item. Returns true at the index
   * of each item that it has ended.
   */
  endSome(items: readonly SettleItem[], queues: readonly QueueRow[], now: number): readonly (true | undefined)[] {
    const ended: (true | undefined)[] = []
    // If a claim is named twice its first end counts, so each is ended in turn.
    if (items.length < fewestTogether || new Set(items.map(({ id }) => id)).size < items.length) return ended
    for (const bunch of bunchesOf(items, queues, isOnlyKept)) {
      const found = new Set(this.#keepSome(bunch, items, now))
      for (const [i, id] of bunch.ids.entries()) if (found.has(id)) ended[bunch.places[i]!] = true
    }
    const fits = (queue: QueueRow, item: SettleItem) => leavesNothing(item) || leavesToJoins(queue, item)
    for (const bunch of bunchesOf(items, queues, fits)) {
      const { queue, fence, ids, results } = bunch
      if (ids.length < fewestTogether || !this.#endIds(queue, fence, JSON.stringify(ids), ids.length, results)) continue
      for (const place of bunch.places) ended[place] = true
    }
    return ended
  }

  /** Ends all of the jobs, or changes nothing and returns false. */
  endAll(queue: QueueRow, completions: Completions): boolean {
    const { fence, ids, count } = completions
    if (queue.kind !== 'plain' || queue.grouped_running > 0) return false
    return this.#endIds(queue, fence, ids, count, resultsOf(completions))
  }

  /** Changes nothing and returns false if one of the jobs needs more than this. Each is then settled by itself. */
  #endIds(queue: QueueRow, fence: number, ids: string, count: number, results?: LeftResults): boolean {
    if (results !== undefined || queue.membered === 1) return this.#endNoted(queue, fence, ids, count, results)
    const look = queue.kind === 'plain' ? this.#look : this.#lookOrdered
    const { rids, found } = look.get(queue.qid, ids, fence) as { rids: string; found: number }
    if (found !== count) return queue.kind === 'plain' && this.#endNoted(queue, fence, ids, count)
    if (queue.kind === 'ordered') this.#transaction.orderedJobs.payloads.dropAll(rids)
    this.#transaction.jobs.deleteRows(rids, found)
    this.#ended(queue, found)
    return true
  }

  /** Like `#endIds`, if some of the jobs may be members of joins or have steps. */
  #endNoted(queue: QueueRow, fence: number, ids: string, count: number, results?: LeftResults): boolean {
    const looked = this.#lookNoted.get(queue.qid, ids, fence) as NotedRow
    if (looked.found !== count) return false
    if (looked.members > 0) this.#reportAll(queue, ids, looked, results)
    this.#transaction.jobs.deleteRows(looked.rids, count)
    if (looked.stepped !== '[]') this.#dropSteps.run(looked.stepped)
    this.#ended(queue, count)
    return true
  }

  /** All members of one set have the same places, or nearly so, and are reported together. */
  #reportAll(queue: QueueRow, ids: string, { members, found, least, most }: NotedRow, results?: LeftResults): void {
    const own = JSON.parse(ids) as string[]
    if (members === found && least === most) this.#report(queue, own, least!, results)
    else
      for (const { i, places } of this.#placesOf.all(queue.qid, ids) as MemberRow[])
        this.#report(queue, [own[i]!], places, [results?.[i]])
  }

  #report({ name: queue }: QueueRow, ids: readonly string[], places: string, left?: LeftResults): void {
    this.#transaction.joins.report({ queue, ids, places: placeRowsIn(places), fate: 'completed', left })
  }

  /** Keeps the results of jobs. Returns the ids of those that it has ended; the others need more than this. */
  #keepSome({ queue, fence, ids, places }: Bunch, items: readonly SettleItem[], now: number): readonly string[] {
    if (ids.length < fewestTogether) return []
    const rows = places.map((place) => this.#keptRow(queue, items[place] as KeptItem, now))
    const kept = this.#keep.all(queue.qid, JSON.stringify(rows), fence, now) as { id: string }[]
    queue.completed += kept.length
    if (kept.length > 0) this.#ended(queue, kept.length)
    return kept.map(({ id }) => id)
  }

  #keptRow(queue: QueueRow, { id, result, run }: KeptItem, now: number): unknown[] {
    const keepMs = this.#transaction.expected.keptMs(queue, id, result.keepMs)
    const expiresAt = keepMs === undefined ? null : bounded(now + keepMs)
    const ran = run === undefined ? [] : [startedAtOf(run.startedMs, now), run.host, run.pid]
    return [id, storedOrNull(result.payload), expiresAt, ...ran]
  }

  /** Changes nothing and returns false if the job needs more than this. */
  endOne(queue: QueueRow, item: SettleItem): boolean {
    const isBare = leavesNothing(item)
    if (!(isBare || leavesToJoins(queue, item)) || queue.kind === 'ordered') return false
    const { id, fence } = item
    // A statement with an answer costs more: it is asked only if the job may have a group, or be a member.
    if (isBare && queue.membered === 0 && queue.grouped_running === 0) {
      if (this.#one.run(queue.qid, id, fence).changes === 0) return false
    } else {
      const ended = this.#oneTied.get(queue.qid, id, fence) as TiedRow | undefined
      if (ended === undefined) return false
      const { grp, places } = ended
      if (queue.grouped_running > 0) {
        this.#transaction.lanes.count(queue, { state: running, suspect: 0, grp }, -1)
        this.#transaction.lanes.refresh(queue, grp)
      }
      if (places !== null) this.#report(queue, [id], places, [item.kind === 'complete' ? item.result : undefined])
    }
    this.#ended(queue, 1)
    return true
  }

  #ended(queue: QueueRow, jobs: number): void {
    queue.running -= jobs
    queue.processed += jobs
    this.#transaction.hasEnds = true
  }
}

/** As far as the item shows. The id of a plain job may still have to be remembered; an ordered one may have a successor. */
function leavesNothing(item: SettleItem): boolean {
  return item.kind === 'complete' && item.result === undefined && item.hold === undefined
}

/** As far as the item shows: its job may be no member of a join. */
function leavesToJoins({ kind }: QueueRow, item: SettleItem): boolean {
  return item.kind === 'complete' && item.result?.onlyForJoins === true && item.hold === undefined && kind === 'plain'
}

/** An item of which only a result is kept that is text, or none. */
type KeptItem = SettleItem & {
  readonly kind: 'complete'
  readonly result: { readonly payload?: string; readonly keepMs?: number }
}

/** As far as the item shows: its job may be a member of a join, or have notes. */
function isOnlyKept({ kind }: QueueRow, item: SettleItem): item is KeptItem {
  if (kind === 'ordered' || item.kind !== 'complete' || item.result === undefined || item.hold !== undefined)
    return false
  const { onlyForJoins, payload, codec } = item.result
  const isText = payload === undefined || (typeof payload === 'string' && payload.length <= longestTogether)
  return !onlyForJoins && codec === undefined && isText
}

/**
 * The jobs by claim whose items fit, from queues in which no job of a group runs: such a job must be counted in its lane.
 */
function bunchesOf(
  items: readonly SettleItem[],
  queues: readonly QueueRow[],
  fits: (queue: QueueRow, item: SettleItem) => boolean,
): Iterable<Bunch> {
  const bunches = new Map<string, Bunch>()
  let last: Bunch | undefined
  for (const [place, item] of items.entries()) {
    const queue = queues[place]!
    const { id, fence } = item
    if (queue.grouped_running > 0 || !fits(queue, item)) continue
    if (last?.queue !== queue || last.fence !== fence) {
      const key = `${queue.qid} ${fence}`
      last = bunches.get(key) ?? { queue, fence, ids: [], places: [] }
      bunches.set(key, last)
    }
    last.ids.push(id)
    last.places.push(place)
    if (item.kind === 'complete' && item.result !== undefined) {
      last.results ??= []
      last.results[last.ids.length - 1] = item.result
    }
  }
  return bunches.values()
}
