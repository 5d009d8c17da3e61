/** The end of a claim on a Postgres store: what the rules decide about the job, in the form that the database takes. Pure. */

import type { SettleItem } from '../../contract/settle.js'
import { hasBegun, type JobRow, ready, running } from '../../rows/job-row.js'
import { fates } from '../../rows/join-row.js'
import { rememberedForMs } from '../../rules/bounds.js'
import { afterSettle } from '../../rules/claim-end.js'
import { doneOf } from '../../rules/payloads.js'
import { endedStates, jobFlags } from '../schema/postgres-tables.js'
import { payloadText, storedText } from '../schema/stored-payload.js'

/** As good as for ever, and no number of the database overflows. */
const longestHoldMs = 8_000_000_000_000

/** A job that runs or waits, as the database tells of it. */
export interface EndingRow {
  readonly id: string
  readonly task: string
  /** 0: it waits. */
  readonly fence: number
  readonly attempt: number
  readonly crashes: number
  /** 1: a suspect. */
  readonly pool: number
  /** See `jobFlags`. */
  readonly flags: number
  readonly error: string | null
  /** How long its id is remembered after its end, in ms. */
  readonly remember: number
  /** Whether it has a checkpoint. */
  readonly noted: boolean
  /** Why it is to be cancelled, if that was said. */
  readonly reason?: string | null
  /** Of an ordered id: the number of payloads in hand. */
  readonly hand?: number | null
  readonly grp?: string | null
}

/** See `ends_1` and `end_ids_1`. Times are in ms, but `delay` is in µs. */
export interface JobEnd {
  readonly id: string
  readonly fence: number
  readonly to: 'back' | 'line' | 'later' | 'aside' | 'dead' | 'exhausted' | 'kept' | 'known' | 'gone'
  readonly attempt: number
  readonly crashes: number
  readonly error: string | null
  readonly reason?: string | null
  readonly pool?: number
  readonly delay?: number
  readonly forMs?: number
  readonly state?: number
  readonly result?: string
  readonly codec?: string
  /** Of an ordered id: how many payloads in hand are done. */
  readonly done?: number
  /** Of a run that ended: ms since it began, and where it ran. What a beat has reported stays. */
  readonly started?: number
  readonly host?: string
  readonly pid?: number
  /** For how long its queue is held back, or this group of it. */
  readonly hold?: number
  readonly holdGroup?: string
  /** The counter that goes up. */
  readonly count?: 'processed' | 'failed' | 'crashed' | 'expired'
  /** Of a crash: its lease was over, and must be so still; or who died, and must hold it still. */
  readonly lapsed?: boolean
  readonly heldBy?: string
  /** What its joins are told, as in `fates`. Absent: that it is dead or kept, otherwise that it was cancelled. */
  readonly fate?: number
  /** The signal that it waits for, and for how long. */
  readonly signal?: string
  readonly withinMs?: number
  /** Of a job of which only the id stays: it had begun, and what is known of that stays too. */
  readonly rest?: boolean
}

/** Joins hear of ends after the commit: of all from this number on. */
export interface EndReports {
  deliver(from: number): Promise<void>
}

/** The end of a claim that is settled so. */
export function settledBy(row: EndingRow, item: SettleItem): JobEnd {
  const { id, fence, pool } = row
  const cancelRequested = (row.flags & jobFlags.cancelling) !== 0
  const job = {
    attempt: row.attempt,
    crashes: row.crashes,
    error: row.error,
    reason: row.reason ?? null,
    cancelRequested,
  }
  const { becomes, attempt, crashes, error, reason } = afterSettle<string | null>(item, job, false, (text) =>
    text === undefined ? null : storedText(text),
  )
  const counted = item.kind === 'complete' ? 'processed' : item.kind === 'retry' ? 'failed' : undefined
  const end = {
    ...{ id, fence, attempt, crashes, error, ...holdOf(item, row) },
    ...(counted === undefined ? {} : ({ count: counted } as const)),
  }
  switch (becomes) {
    case 'completed':
      // What it returned is for its joins alone.
      return { ...end, ...resultIn(item), ...endedBy({ ...row, attempt, error }, becomes, reason) }
    case 'cancelled':
      return { ...end, ...ranSo(item), ...endedBy({ ...row, attempt, crashes, error }, becomes, reason) }
    case 'kept':
      return { ...end, ...ranSo(item), to: 'kept', error: null, ...resultIn(item), ...keptFor(item) }
    case 'dead':
      return { ...end, ...ranSo(item), to: 'dead', reason }
    case 'exhausted':
      return { ...end, ...ranSo(item), to: 'dead', reason: storedOrNull('reason' in item ? item.reason : undefined) }
    case 'delayed': {
      const delayMs = 'delayMs' in item ? item.delayMs : 0
      if (delayMs === 0) return { ...end, to: 'line', pool: 0 }
      return { ...end, to: 'later', pool: 0, delay: Math.round(delayMs * 1_000) }
    }
    case 'returned':
      return { ...end, to: 'back', pool }
    case 'waiting':
      return { ...end, to: 'aside', pool: 0, ...waitFor(item) }
  }
}

/** The same for an ordered id. Finished payloads leave first, and the run was the first of the others. */
export function settledId(row: EndingRow, item: SettleItem): JobEnd {
  const { id, fence, pool } = row
  const done = doneOf(row.hand ?? 1, 'done' in item ? item.done : 0)
  const first = done > 0 ? { attempt: 1, crashes: 0, error: null } : row
  const job = { ...first, reason: null, cancelRequested: (row.flags & jobFlags.cancelling) !== 0 }
  const end = afterSettle<string | null>(item, job, true, (text) => (text === undefined ? null : storedText(text)))
  const { becomes, attempt, crashes, error } = end
  const counted = item.kind === 'complete' ? 'processed' : item.kind === 'retry' ? 'failed' : undefined
  const of = {
    id,
    fence,
    attempt,
    crashes,
    error,
    done,
    ...holdOf(item, row),
    ...(counted === undefined ? {} : ({ count: counted } as const)),
  }
  switch (becomes) {
    case 'completed':
    case 'kept':
    case 'cancelled':
      return { ...of, to: 'gone' }
    case 'dead':
      return { ...of, to: 'dead', reason: end.reason }
    case 'exhausted': {
      const reason = 'reason' in item && item.reason !== undefined ? storedText(item.reason) : null
      return { ...of, to: 'exhausted', reason }
    }
    case 'delayed': {
      const delayMs = 'delayMs' in item ? item.delayMs : 0
      return delayMs === 0
        ? { ...of, to: 'line', pool: 0 }
        : { ...of, to: 'later', pool: 0, delay: Math.round(delayMs * 1_000) }
    }
    case 'returned':
      return { ...of, to: 'back', pool }
    case 'waiting':
      throw new Error('an ordered job does not wait for a signal')
  }
}

/** The job ends, and its id is remembered for as long as the rules say. */
export function endedBy(row: EndingRow, as: 'completed' | 'cancelled', reason: string | null): JobEnd {
  const { id, fence, attempt, crashes, error, pool, noted, remember } = row
  const state = fence > 0 ? running : ready
  const begun = { state, attempt, crashes, suspect: pool === 1 ? 1 : 0, error } as JobRow
  const rest = as === 'cancelled' && hasBegun(begun, noted)
  const forMs = rememberedForMs(as, remember, rest)
  const end = { id, fence, attempt, crashes, error, reason, fate: fates.indexOf(as) }
  if (forMs <= 0) return { ...end, to: 'gone' }
  const known = as === 'completed' ? endedStates.rememberedCompleted : endedStates.rememberedCancelled
  return { ...end, to: 'known', state: known, forMs: Math.ceil(forMs), rest }
}

/** A job without a group holds the whole queue back. */
function holdOf({ hold }: SettleItem, { grp }: EndingRow): Pick<JobEnd, 'hold' | 'holdGroup'> {
  if (hold === undefined) return {}
  const isOfGroup = hold.of === 'group' && typeof grp === 'string'
  return { hold: Math.ceil(Math.min(hold.forMs, longestHoldMs)), ...(isOfGroup ? { holdGroup: grp } : {}) }
}

function ranSo(item: SettleItem): Pick<JobEnd, 'started' | 'host' | 'pid'> {
  const run = 'run' in item ? item.run : undefined
  if (run === undefined) return {}
  const { startedMs, host, pid } = run
  return {
    started: Math.floor(startedMs),
    ...(host === undefined ? {} : { host }),
    ...(pid === undefined ? {} : { pid }),
  }
}

export function resultIn(item: SettleItem): Pick<JobEnd, 'result' | 'codec'> {
  const { payload, codec } = (item.kind === 'complete' && item.result) || {}
  return {
    ...(payload === undefined ? {} : { result: payloadText(payload) }),
    ...(codec === undefined ? {} : { codec }),
  }
}

function keptFor(item: SettleItem): Pick<JobEnd, 'forMs'> {
  const { keepMs } = (item.kind === 'complete' && item.result) || {}
  return keepMs === undefined ? {} : { forMs: Math.ceil(keepMs) }
}

function waitFor(item: SettleItem): Pick<JobEnd, 'signal' | 'withinMs'> {
  if (item.kind !== 'wait') return {}
  const { signal, withinMs } = item
  return { signal: storedText(signal), ...(withinMs === undefined ? {} : { withinMs: Math.ceil(withinMs) }) }
}

function storedOrNull(text: string | undefined): string | null {
  return text === undefined ? null : storedText(text)
}
