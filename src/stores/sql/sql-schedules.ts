/** The schedules of a SQL store: one row each. The store ticks them in the transaction that enqueues. */

import type {
  DueSchedules,
  ScheduleChange,
  ScheduleState,
  ScheduleTick,
  StoredSchedule,
} from '../contract/schedules.js'
import { present } from '../rows/stored-job.js'
import { fromStored, storedOrNull, toStored, valueFromStored } from '../rows/stored-text.js'
import { definitionIn, definitionText, type ScheduleLeadership, scheduleLeadAfter } from '../rules/schedule-record.js'
import { all, first, run, type SqlSteps } from './sql-steps.js'

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

/** `'lost'`: the schedule is another one by now. After `'written'` the store wakes the lead. */
export function* putSchedule(
  { definition, revision, paused, nextAt }: ScheduleChange,
  expects: ScheduleState | undefined,
  now: number,
): SqlSteps<'written' | 'same' | 'lost'> {
  const before = yield* rowOf(definition.name)
  if (before?.revision === revision) return 'same'
  if (before?.revision !== expects?.revision || (before?.next_at ?? undefined) !== expects?.nextAt) return 'lost'
  // A tick may step the schedule between the two statements, if the store lets it.
  const written = yield* run(
    `INSERT INTO schedule (name, definition, revision, paused, next_at, created_at, updated_at) VALUES (?, ?, ?, ?, ?, ?, ?)
     ON CONFLICT (name) DO UPDATE SET definition = excluded.definition, revision = excluded.revision,
       paused = excluded.paused, next_at = excluded.next_at, updated_at = excluded.updated_at
       WHERE schedule.revision = ? AND schedule.next_at IS NOT DISTINCT FROM ?`,
    ...[definition.name, toStored(definitionText(definition)), revision, paused ? 1 : 0, nextAt ?? null, now, now],
    ...[expects?.revision ?? null, expects?.nextAt ?? null],
  )
  return written === 1 ? 'written' : 'lost'
}

export function* removeSchedule(name: string, expects?: string): SqlSteps<boolean> {
  if (expects !== undefined && (yield* rowOf(name))?.revision !== expects) return false
  return (yield* run('DELETE FROM schedule WHERE name = ?', name)) === 1
}

export function* scheduleOf(name: string): SqlSteps<StoredSchedule | undefined> {
  const row = yield* rowOf(name)
  return row && storedSchedule(row)
}

export function* schedulesAfter(after: string | undefined, limit: number): SqlSteps<StoredSchedule[]> {
  const text = 'SELECT * FROM schedule WHERE name > ? ORDER BY name LIMIT ?'
  return (yield* all<ScheduleRow>(text, after ?? '', limit)).flatMap((row) => storedSchedule(row) ?? [])
}

/** Whether the schedule is still at the time and the revision that the tick names. */
export function* isTickDue({ name, revision, dueAt }: ScheduleTick): SqlSteps<boolean> {
  const row = yield* rowOf(name)
  return row?.revision === revision && (row.next_at ?? undefined) === dueAt
}

/** Steps the schedule. `isSkipped`: its jobs were not enqueued, because the one before is still there. */
export function* passTick(
  { name, nextAt, lastAt, jobs, skips, misses }: ScheduleTick,
  isSkipped: boolean,
): SqlSteps<void> {
  const lastId = isSkipped ? undefined : jobs.at(-1)?.id
  const [ticks, skipped] = isSkipped ? [0, skips + jobs.length] : [jobs.length, skips]
  yield* run(
    `UPDATE schedule SET next_at = ?, last_at = coalesce(?, last_at), last_id = coalesce(?, last_id),
       ticked = ticked + ?, skipped = skipped + ?, missed = missed + ? WHERE name = ?`,
    ...[nextAt ?? null, lastAt ?? null, storedOrNull(lastId), ticks, skipped, misses, name],
  )
}

export function* dueSchedules(worker: string, leadMs: number, limit: number, now: number): SqlSteps<DueSchedules> {
  const meta = yield* all<{ name: string; value: string }>(
    "SELECT name, value FROM meta WHERE name IN ('schedule-lead', 'schedule-origin')",
  )
  const [before, named] = ['schedule-lead', 'schedule-origin'].map((of) => meta.find(({ name }) => name === of)?.value)
  const known = before === undefined ? undefined : (JSON.parse(before) as ScheduleLeadership)
  const lead = scheduleLeadAfter(known, worker, leadMs, now)
  // Only one of many workers leads. The others must cause no commit, after which all would look for a change.
  if (JSON.stringify(lead) !== before) yield* writeLead(lead)
  const isLead = lead.worker === worker
  const origin = named ?? (yield* nameOrigin(worker, now))
  const answer = { now, origin, isLead, leadMs: lead.until - now }
  if (!isLead) return { ...answer, due: [] }
  const rows = yield* all<ScheduleRow>(
    'SELECT * FROM schedule WHERE next_at IS NOT NULL ORDER BY next_at, name LIMIT ?',
    limit + 1,
  )
  const due = rows.filter(({ next_at }) => next_at! <= now).slice(0, limit)
  const nextAt = rows[due.length]?.next_at ?? undefined
  const schedules = due.flatMap((row) => storedSchedule(row) ?? [])
  return { ...answer, due: schedules, ...(nextAt === undefined ? {} : { nextAt }) }
}

export function* resignLead(worker: string): SqlSteps<void> {
  const lead = yield* metaOf('schedule-lead')
  if (lead === undefined || (JSON.parse(lead) as ScheduleLeadership).worker !== worker) return
  yield* writeLead({ worker, seenAt: 0, until: 0 })
}

/** The first to ask names it. */
function* nameOrigin(worker: string, now: number): SqlSteps<string> {
  const origin = `${now} ${worker}`
  yield* run("INSERT INTO meta (name, value) VALUES ('schedule-origin', ?)", origin)
  return origin
}

function* metaOf(name: string): SqlSteps<string | undefined> {
  return (yield* first<{ value: string }>('SELECT value FROM meta WHERE name = ?', name))?.value
}

function* writeLead(lead: ScheduleLeadership): SqlSteps<void> {
  yield* run(
    "INSERT INTO meta (name, value) VALUES ('schedule-lead', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    JSON.stringify(lead),
  )
}

function* rowOf(name: string): SqlSteps<ScheduleRow | undefined> {
  return yield* first<ScheduleRow>('SELECT * FROM schedule WHERE name = ?', name)
}

/** Undefined for a schedule that cannot be read. A plain queue is not spread over shards here. */
function storedSchedule(row: ScheduleRow): StoredSchedule | undefined {
  const definition = definitionIn(fromStored(row.definition))
  if (definition === undefined) return undefined
  const { revision, next_at, last_at, last_id, ticked, skipped, missed, created_at, updated_at } = row
  return present({
    ...{ definition, revision, paused: row.paused === 1, nextAt: next_at, shards: 1 },
    ...{ lastAt: last_at, lastId: valueFromStored(last_id), ticked, skipped, missed },
    ...{ createdAt: created_at, updatedAt: updated_at },
  }) as unknown as StoredSchedule
}
