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
  readonly bytes: number
  readonly bits: Uint8Array
}

/** The members of a set of which its own row says who has ended. Of the others each chunk of so many has a row. */
export const chunkSize = 4_096

/** One bit for each member of a chunk, the lowest first: whether it has ended. Rows have no zero bytes at the end. */
export function bitsIn(stored: Uint8Array | undefined): Uint8Array {
  const bits = new Uint8Array(chunkSize / 8)
  if (stored !== undefined) bits.set(stored)
  return bits
}

/** The bits as a row has them. */
export function storedBits(bits: Uint8Array): Uint8Array {
  let length = bits.length
  while (length > 0 && bits[length - 1] === 0) length -= 1
  return bits.subarray(0, length)
}

/** A set as one transaction holds it. */
export interface HeldSet extends Omit<StoredSet, 'size' | 'added' | 'counts' | 'oldest'> {
  readonly sid: number
  size: number | undefined
  added: number
  readonly counts: Record<Fate, number>
  /** Of the results that are kept. */
  bytes: number
  /** Of the members of the first chunk. */
  readonly bits: Uint8Array
}

export function heldSet(row: JoinSetRow): HeldSet {
  const { sid, is_many, on_dead, keeps_results, size, added, completed, dead, cancelled, expired, bytes, bits } = row
  return {
    sid,
    ...{ name: fromStored(row.name), queue: row.queue, ids: fromStored(row.ids), isMany: is_many === 1 },
    ...{ onDead: on_dead, keepsResults: keeps_results === 1, size: size ?? undefined, added },
    counts: { completed, dead, cancelled, expired },
    bytes,
    bits: bitsIn(bits),
  }
}

/** `oldest`: of the members that have not ended or are held, the first. */
export function storedSet(
  { sid: _, bits: __, bytes: ___, size, ...set }: HeldSet,
  oldest: number | undefined,
): StoredSet {
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
    ...{ due_at: null, cancelling: 0 },
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

/**
 * A place of a member, as its row has it. The number is null or left out if the id of the member ends with it; without more
 * than three parts the rest is 'fail' and 1. So most members of a set have the same text.
 */
export type PlaceRow = readonly [
  ...[queue: string, id: string, set: string],
  ...[number?: number | null, onDead?: OnDead, keeps?: 0 | 1],
]

/** The places of a member, as its row has them. `id`: that of the member; without it no number is left out. */
export function placesText(places: readonly MemberOf[], id = ''): string {
  return JSON.stringify(places.map((place) => placeRow(place, id)))
}

function placeRow({ join, set, number, onDead, keepsResults }: MemberOf, id: string): PlaceRow {
  const isInId = id.endsWith(`.${number}`)
  if (isInId && onDead === 'fail' && keepsResults) return [join.queue, join.id, set]
  return [join.queue, join.id, set, isInId ? null : number, onDead, keepsResults ? 1 : 0]
}

export function placeRowsIn(text: string): PlaceRow[] {
  return JSON.parse(text) as PlaceRow[]
}

/** The places of the member with this id. */
export function placesIn(text: string, member: string): MemberOf[] {
  return placeRowsIn(text).map(([queue, id, set, number, onDead = 'fail', keeps = 1]) => ({
    ...{ join: { queue, id }, set, number: number ?? Number(member.slice(member.lastIndexOf('.') + 1)) },
    ...{ onDead, keepsResults: keeps === 1 },
  }))
}
