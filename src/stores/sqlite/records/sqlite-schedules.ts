/** The schedules of a SQLite store: one row each, ticked in the transaction that enqueues. */

import type { Enqueued } from '../../contract/new-job.js'
import type {
  DueSchedules,
  ScheduleChange,
  ScheduleState,
  ScheduleTick,
  StoredSchedule,
  TickAnswer,
} from '../../contract/schedules.js'
import { present } from '../../rows/job-record.js'
import { ready, running, scheduled } from '../../rows/job-row.js'
import { fromStored, storedOrNull, toStored, valueFromStored } from '../../rows/stored-text.js'
import {
  definitionIn,
  definitionText,
  type ScheduleLeadership,
  scheduleLeadAfter,
} from '../../rules/schedule-record.js'
import type { Statement } from '../file/sqlite-driver.js'
import type { SqliteTransaction } from '../rows/sqlite-transaction.js'
import { scheduleBell } from '../sqlite-wake-token.js'
import type { SqliteEnqueue } from '../work/sqlite-enqueue.js'

interface ScheduleRow {
  readonly name: string
  readonly definition: string
  readonly revision: string
  readonly paused: number
  readonly next_at: number | null
  readonly last_at: number | null
  readonly last_id: string | null
  readonly ticked: number
  readonly skipped: number
  readonly missed: number
  readonly created_at: number
  readonly updated_at: number
}

export class SqliteSchedules {
  readonly #transaction: SqliteTransaction
  readonly #enqueue: SqliteEnqueue
  readonly #select: Statement
  readonly #page: Statement
  readonly #waiting: Statement
  readonly #write: Statement
  readonly #step: Statement
  readonly #delete: Statement
  readonly #lead: Statement
  readonly #writeLead: Statement
  readonly #origin: Statement
  readonly #writeOrigin: Statement

  constructor(transaction: SqliteTransaction, enqueue: SqliteEnqueue) {
    this.#transaction = transaction
    this.#enqueue = enqueue
    const { db } = transaction
    this.#select = db.prepare('SELECT * FROM schedule WHERE name = ?')
    this.#page = db.prepare('SELECT * FROM schedule WHERE name > ? ORDER BY name LIMIT ?')
    this.#waiting = db.prepare('SELECT * FROM schedule WHERE next_at IS NOT NULL ORDER BY next_at, name LIMIT ?')
    this.#write = db.prepare(
      `INSERT INTO schedule (name, definition, revision, paused, next_at, created_at, updated_at)
       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)
       ON CONFLICT (name) DO UPDATE SET definition = ?2, revision = ?3, paused = ?4, next_at = ?5, updated_at = ?6`,
    )
    this.#step = db.prepare(
      `UPDATE schedule SET next_at = ?2, last_at = coalesce(?3, last_at), last_id = coalesce(?4, last_id),
         ticked = ticked + ?5, skipped = skipped + ?6, missed = missed + ?7 WHERE name = ?1`,
    )
    this.#delete = db.prepare('DELETE FROM schedule WHERE name = ?')
    this.#lead = db.prepare("SELECT value FROM meta WHERE name = 'schedule-lead'")
    this.#writeLead = db.prepare("INSERT OR REPLACE INTO meta (name, value) VALUES ('schedule-lead', ?)")
    this.#origin = db.prepare("SELECT value FROM meta WHERE name = 'schedule-origin'")
    this.#writeOrigin = db.prepare("INSERT INTO meta (name, value) VALUES ('schedule-origin', ?)")
  }

  put({ definition, revision, paused, nextAt }: ScheduleChange, expects: ScheduleState | undefined): boolean {
    const { name, queue } = definition
    this.#transaction.queues.get(queue)
    const before = this.#row(name)
    if (before?.revision === revision) return true
    if (before?.revision !== expects?.revision || (before?.next_at ?? undefined) !== expects?.nextAt) return false
    const text = toStored(definitionText(definition))
    this.#write.run(name, text, revision, paused ? 1 : 0, nextAt ?? null, this.#transaction.clock.now())
    this.#transaction.rung.add(scheduleBell)
    return true
  }

  remove(name: string, expects?: string): boolean {
    if (expects !== undefined && this.#row(name)?.revision !== expects) return false
    return Number(this.#delete.run(name).changes) === 1
  }

  get(name: string): StoredSchedule | undefined {
    const row = this.#row(name)
    return row && this.#told(row)
  }

  list(after: string | undefined, limit: number): StoredSchedule[] {
    return this.#toldAll(this.#page.all(after ?? '', limit))
  }

  tick(tick: ScheduleTick): TickAnswer {
    const { name, queue, revision, dueAt, jobs, unless, callId } = tick
    const row = this.#row(name)
    if (row?.revision !== revision || (row.next_at ?? undefined) !== dueAt) return { outcome: 'lost' }
    const isSkipped = unless !== undefined && jobs.length > 0 && this.#isThere(queue, unless)
    const enqueued: Enqueued[] =
      isSkipped || jobs.length === 0 ? [] : this.#enqueue.enqueue([{ callId, queue, jobs }])[0]!
    if (enqueued[0] === 'full' || enqueued[0] === 'draining') return { outcome: enqueued[0] }
    this.#pass(tick, isSkipped)
    return isSkipped ? { outcome: 'skipped' } : { outcome: 'ticked', enqueued }
  }

  due(worker: string, leadMs: number, limit: number): DueSchedules {
    const now = this.#transaction.clock.now()
    const before = this.#lead.get() as { value: string } | undefined
    const lead = scheduleLeadAfter(before && (JSON.parse(before.value) as ScheduleLeadership), worker, leadMs, now)
    const text = JSON.stringify(lead)
    // Only one of many workers leads. The others must cause no commit, after which all would look for a change.
    if (text !== before?.value) this.#writeLead.run(text)
    const [isLead, leftMs] = [lead.worker === worker, lead.until - now]
    const origin = this.#originFor(worker, now)
    if (!isLead) return { now, origin, isLead, leadMs: leftMs, due: [] }
    const rows = this.#waiting.all(limit + 1) as unknown as ScheduleRow[]
    const due = rows.filter(({ next_at }) => next_at! <= now).slice(0, limit)
    const nextAt = rows[due.length]?.next_at ?? undefined
    return { now, origin, isLead, leadMs: leftMs, due: this.#toldAll(due), ...(nextAt === undefined ? {} : { nextAt }) }
  }

  resign(worker: string): void {
    const lead = this.#lead.get() as { value: string } | undefined
    if (lead === undefined || (JSON.parse(lead.value) as ScheduleLeadership).worker !== worker) return
    this.#writeLead.run(JSON.stringify({ worker, seenAt: 0, until: 0 } satisfies ScheduleLeadership))
  }

  /** The first to ask names it. */
  #originFor(worker: string, now: number): string {
    const known = this.#origin.get() as { value: string } | undefined
    if (known !== undefined) return known.value
    const origin = `${now} ${worker}`
    this.#writeOrigin.run(origin)
    return origin
  }

  #pass({ name, nextAt, lastAt, jobs, skips, misses }: ScheduleTick, isSkipped: boolean): void {
    const lastId = isSkipped ? undefined : jobs.at(-1)?.id
    const [ticks, skipped] = isSkipped ? [0, skips + jobs.length] : [jobs.length, skips]
    this.#step.run(name, nextAt ?? null, lastAt ?? null, storedOrNull(lastId), ticks, skipped, misses)
  }

  #isThere(queue: string, id: string): boolean {
    const row = this.#transaction.holding(queue, id)
    const state = this.#transaction.jobsOf(row).find(row, id)?.state
    return state === scheduled || state === ready || state === running
  }

  #row(name: string): ScheduleRow | undefined {
    return this.#select.get(name) as ScheduleRow | undefined
  }

  #toldAll(rows: readonly unknown[]): StoredSchedule[] {
    return rows.flatMap((row) => this.#told(row as ScheduleRow) ?? [])
  }

  /** Undefined for a schedule that cannot be read. A plain queue is not spread over shards here. */
  #told(row: ScheduleRow): StoredSchedule | undefined {
    const definition = definitionIn(fromStored(row.definition))
    if (definition === undefined) return undefined
    const { revision, next_at, last_at, last_id, ticked, skipped, missed, created_at, updated_at } = row
    return present({
      ...{ definition, revision, paused: row.paused === 1, nextAt: next_at, shards: 1 },
      ...{ lastAt: last_at, lastId: valueFromStored(last_id), ticked, skipped, missed },
      ...{ createdAt: created_at, updatedAt: updated_at },
    }) as unknown as StoredSchedule
  }
}
