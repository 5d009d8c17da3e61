/** The rows of a join in a SQL store: with what it waits, its sets, and the places of its members. Pure. */

import type { StoredSet } from '../contract/joins.js'
import type { NewJob } from '../contract/new-job.js'
import type { Fate, MemberOf, OnDead } from '../contract/new-join.js'
import { boundedDelayMs } from '../rules/taken-id.js'
import { bounded } from './queue-row.js'
import { fromStored } from './stored-text.js'

/** The values of the column `join_end.fate`. Stored rows depend on the order. */
export const fates: readonly Fate[] = ['completed', 'dead', 'cancelled', 'expired']
export const deadFate = 1
export const cancelledFate = 2

/** What a join waits with. Property names are column names; instants are on the wall clock. */
export interface JoinRow {
  readonly rid: number
  readonly within_ms: number | null
  readonly seal_within_ms: number
  /** When it is due once it is ready, and for how long it may wait then: see `NewJob`. */
  readonly run_at: number | null
  readonly delay_ms: number
  readonly expires_ms: number | null
  readonly cancels_rest: number
  late_at: number | null
  seal_by: number
  /** When a sweep makes it dead, if it still waits; null: never. */
  due_at: number | null
  /** Of the results that it keeps. */
  bytes: number
  /** 1: its outstanding members are to be cancelled. */
  cancelling: number
}

export interface JoinSetRow {
  readonly sid: number
  readonly name: string
  readonly queue: string
  readonly ids: string
  readonly is_many: number
  readonly on_dead: OnDead
  readonly keeps_results: number
  readonly size: number | null
  readonly added: number
  readonly completed: number
  readonly dead: number
  readonly cancelled: number
  readonly expired: number
}

/** A set as one transaction holds it. */
export interface HeldSet extends Omit<StoredSet, 'size' | 'added' | 'counts' | 'oldest'> {
  readonly sid: number
  size: number | undefined
  added: number
  readonly counts: Record<Fate, number>
}

export function heldSet(row: JoinSetRow): HeldSet {
  const { sid, is_many, on_dead, keeps_results, size, added, completed, dead, cancelled, expired } = row
  return {
    sid,
    ...{ name: fromStored(row.name), queue: row.queue, ids: fromStored(row.ids), isMany: is_many === 1 },
    ...{ onDead: on_dead, keepsResults: keeps_results === 1, size: size ?? undefined, added },
    counts: { completed, dead, cancelled, expired },
  }
}

/** `oldest`: of the members that have not ended or are held, the first. */
export function storedSet({ sid: _, size, ...set }: HeldSet, oldest: number | undefined): StoredSet {
  return { ...set, ...(size === undefined ? {} : { size }), ...(oldest === undefined ? {} : { oldest }) }
}

/** The row of a new join, but for the number of its job. */
export function newJoinRow(job: NewJob, now: number): Omit<JoinRow, 'rid'> {
  const { withinMs, sealWithinMs, cancelsRest } = job.join!
  const times = { within_ms: withinMs ?? null, seal_within_ms: sealWithinMs }
  return {
    ...times,
    run_at: job.runAt === undefined ? null : bounded(job.runAt),
    delay_ms: boundedDelayMs(job, now, now),
    expires_ms: job.expiresMs ?? null,
    cancels_rest: cancelsRest ? 1 : 0,
    ...waitingFrom(times, now),
    ...{ due_at: null, bytes: 0, cancelling: 0 },
  }
}

/** The bounds of a wait that begins now. */
export function waitingFrom(
  { within_ms, seal_within_ms }: Pick<JoinRow, 'within_ms' | 'seal_within_ms'>,
  now: number,
): Pick<JoinRow, 'late_at' | 'seal_by'> {
  return { late_at: within_ms === null ? null : bounded(now + within_ms), seal_by: bounded(now + seal_within_ms) }
}

/** When a waiting join dies of time; null: never. */
export function joinDueAt(
  { late_at, seal_by }: Pick<JoinRow, 'late_at' | 'seal_by'>,
  sets: readonly Pick<HeldSet, 'size'>[],
): number | null {
  if (!isNeverSealed(sets)) return late_at
  return late_at === null ? seal_by : Math.min(late_at, seal_by)
}

export function isNeverSealed(sets: readonly Pick<HeldSet, 'size'>[]): boolean {
  return sets.some(({ size }) => size === undefined)
}

/** A place of a member, as its row has it. */
export type PlaceRow = readonly [queue: string, id: string, set: string, number: number, onDead: OnDead, keeps: 0 | 1]

/** The places of a member, as its row has them. */
export function placesText(places: readonly MemberOf[]): string {
  const rows = places.map(
    ({ join, set, number, onDead, keepsResults }): PlaceRow => [
      ...([join.queue, join.id, set, number] as const),
      ...([onDead, keepsResults ? 1 : 0] as const),
    ],
  )
  return JSON.stringify(rows)
}

/** The same for a member with this place alone, but for its number: what is before that, and what is behind it. */
export function placeTextAround({
  join,
  set,
  onDead,
  keepsResults,
}: MemberOf): readonly [before: string, behind: string] {
  const before = JSON.stringify([join.queue, join.id, set])
  return [`[${before.slice(0, -1)},`, `,${JSON.stringify(onDead)},${keepsResults ? 1 : 0}]]`]
}

export function placeRowsIn(text: string): PlaceRow[] {
  return JSON.parse(text) as PlaceRow[]
}

/**
 * Reads the places of members, one text after the other. Those of one set differ in the number alone: only the first of
 * them is parsed.
 */
export function placeReader(): (text: string) => readonly PlaceRow[] {
  let last: PlaceRow | undefined
  let [before, behind] = ['', '']
  return (text) => {
    if (last !== undefined && text.startsWith(before) && text.endsWith(behind)) {
      const number = Number(text.slice(before.length, -behind.length))
      // Otherwise there is more than one place between them.
      if (Number.isInteger(number)) return [[last[0], last[1], last[2], number, last[4], last[5]]]
    }
    const rows = placeRowsIn(text)
    last = rows[0]!
    ;[before, behind] = placeTextAround(placesIn(text)[0]!)
    return rows
  }
}

export function placesIn(text: string): MemberOf[] {
  return placeRowsIn(text).map(([queue, id, set, number, onDead, keeps]) => ({
    ...{ join: { queue, id }, set, number },
    ...{ onDead, keepsResults: keeps === 1 },
  }))
}
