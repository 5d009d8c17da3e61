/**
 * The canonical state: the contents of a store in a form that all stores share, so that two stores can be compared.
 *
 * - Every field is always present; `null` means that there is nothing.
 * - Expired things are left out as if they had been trimmed: ids no longer remembered, results and dead jobs beyond
 * their age, calls older than a minute. When a store removes them is its own affair.
 * - Lists are sorted by `compareBytes` of their id or name.
 */

import type { JobState, Progress } from '../../core/job/job.js'
import type { JobFields } from '../../core/job/job-fields.js'
import type { MaxRunning } from '../../core/queue/queue-limits.js'
import type { OwnRates } from '../../core/queue/throttle.js'
import type { Payload } from '../../core/values/codec.js'
import type { QueueKind } from '../../stores/contract/queue-settings.js'
import type { StoredStep } from '../../stores/contract/steps.js'
import { compareBytes } from '../../stores/rules/byte-order.js'
import type { Counter } from '../../stores/rules/throttle/throttle-counter.js'
import { isLed, type Lead } from '../../stores/rules/wake-lead.js'

export interface CanonicalState {
  /** The store's clock at the moment of the dump. */
  readonly now: number
  /** By name and shard. */
  readonly queues: readonly CanonicalQueue[]
  /** By scope. */
  readonly throttles: readonly CanonicalThrottle[]
}

/** The counts of a throttle. Instants are given as distances from now. */
export interface CanonicalThrottle {
  readonly scope: string
  readonly by: 'queue' | 'group'
  /** `ruleText` of each. */
  readonly rules: readonly string[]
  /** Those of each group, if it has some besides. */
  readonly eachGroup: readonly string[] | null
  /** The rates that groups have for themselves in sum, and each: the `ruleText`s by group. */
  readonly own: OwnRates | null
  readonly rates: readonly (readonly [group: string, rules: string])[]
  /** By name. */
  readonly queues: readonly string[]
  /** How often it was recovered since its first start. */
  readonly recoveries: number
  /** Ms until its silence ends; null if it is not silent. */
  readonly quietInMs: number | null
  /** By group, or for `''`; counters without a start in the longest window are left out. */
  readonly counters: readonly CanonicalCounter[]
}

export interface CanonicalCounter {
  readonly group: string
  /** Oldest first; starts outside every window are left out. */
  readonly starts: readonly { readonly agoMs: number; readonly count: number }[]
  /** For each rule how long ago the grid place of its last start was, in µs, or null; and its credit. */
  readonly grids: readonly { readonly slotAgoUs: number | null; readonly credit: number }[]
}

/** The lanes of a queue. */
export interface CanonicalLanes {
  /** The open ones (`canonicalTurn`); the first is next. */
  readonly turns: readonly string[]
  /** The ones that open by themselves, sorted; `inMs` is 0 or less if no claim has opened it since. */
  readonly shut: readonly { readonly group: string; readonly inMs: number }[]
  /** Groups that are held, sorted. */
  readonly held: readonly { readonly group: string; readonly inMs: number }[]
  /** Groups that are paused, sorted. */
  readonly paused: readonly string[]
}

/** An open lane; `had`: how many turns of its round it has had, if it has the next one too. */
export function canonicalTurn(group: string, had = 0): string {
  return had === 0 ? group : `${group} after ${had}`
}

/** A queue; for an ordered queue, one of its shards. Bounds are those of the shard. */
export interface CanonicalQueue {
  readonly name: string
  /** Null for a plain queue. */
  readonly shard: number | null
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  readonly exclusive: 'id' | 'shard'
  readonly merge: 'all' | 'distinct' | 'latest'
  readonly maxPending: number | null
  readonly maxCrashes: number
  readonly resultsCount: number | null
  readonly deadAgeMs: number | null
  readonly deadCount: number | null
  readonly maxRunning: MaxRunning | null
  /** The scope of its throttle; null if it has none. */
  readonly throttle: string | null
  /** Ms until its hold ends or its throttle opens; null if neither denies jobs. */
  readonly heldInMs: number | null
  readonly shutInMs: number | null
  /** Ms for which expired leases are still left alone after a restart of the store; null if they are not. */
  readonly sparesInMs: number | null
  readonly lanes: CanonicalLanes
  readonly paused: boolean
  readonly draining: boolean
  readonly processed: number
  readonly failed: number
  /** Leases that expired unsettled, charged or not, since the queue exists. */
  readonly crashed: number
  /** Jobs that expired since the queue exists. */
  readonly expired: number
  /** The lead for due jobs and expired leases; null if there is none or it has lapsed. */
  readonly lead: CanonicalLead | null
  /** The lead that makes room for suspects; null likewise. */
  readonly suspectLead: CanonicalLead | null
  /**
   * The last stamp given to a job that was ready at once (µs); 0 before the first; null if the store does not keep it.
   */
  readonly lastStamp: number | null
  /** The last fence given; 0 before the first; null if the store does not keep it. */
  readonly lastFence: number | null
  /**
   * The last default score given to a payload (µs); 0 before the first, and for a plain queue; null if the store does
   * not keep it.
   */
  readonly lastScore: number | null
  /**
   * Every job of which more than the id is kept: scheduled, ready, running, dead, and completed with a kept result. In
   * an ordered queue dead jobs are entries of their own, after the live job of their id.
   */
  readonly jobs: readonly CanonicalJob[]
  /** Remembered ids of which nothing else is kept. */
  readonly remembered: readonly CanonicalMemory[]
  readonly calls: readonly CanonicalCall[]
}

export interface CanonicalLead {
  readonly worker: string
  /** Ms until it asks, on the clock of the leases; negative if it is late and has not lapsed yet (`isLed`). */
  readonly inMs: number
}

export interface CanonicalJob {
  readonly id: string
  readonly task: string
  readonly state: JobState
  readonly payload: CanonicalPayload
  readonly codec: string | null
  readonly meta: CanonicalPayload | null
  /**
   * Ordered queues only: the payloads in hand while the job runs, otherwise the waiting or dead ones; in order. Null in
   * a plain queue.
   */
  readonly payloads: readonly CanonicalEntry[] | null
  /** The payloads that wait behind a running job of an ordered queue; null if there are none. */
  readonly successor: CanonicalSuccessor | null
  readonly priority: number
  readonly group: string | null
  /** The place in line, µs: for a scheduled job its due time. An ended job has its last one. */
  readonly stamp: number
  readonly attempt: number
  /** Crashes charged to it. */
  readonly crashes: number
  /**
   * Marked by a crash and not cleared since: ready for claims made alone, or running in one. False in every other
   * state, however the store keeps the mark.
   */
  readonly suspect: boolean
  readonly rememberMs: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Null unless the job runs or has ended; then from its last beats. */
  readonly startedAt: number | null
  /** Null unless completed or dead. */
  readonly finishedAt: number | null
  /** When a job that waits for its first claim, or a kept result, expires; null: never, or there is none. */
  readonly expiresAt: number | null
  /**
   * The worker that holds the job, or held it when it ended; null while the job waits, and for a dead job of an ordered
   * queue. The same goes for its process (host to ticks) and progress.
   */
  readonly worker: string | null
  readonly host: string | null
  readonly boot: string | null
  readonly pidns: string | null
  readonly pid: number | null
  readonly ticks: number | null
  readonly progress: Progress | null
  readonly checkpoint: { readonly payload: CanonicalPayload | null; readonly codec: string | null } | null
  readonly log: string
  readonly fields: JobFields | null
  /** Without a payload: it completed without a value. */
  readonly result: { readonly payload: CanonicalPayload | null; readonly codec: string | null } | null
  readonly error: string | null
  readonly reason: string | null
  /** What it has reached, and the signals that it has, in the order in which they were stored. */
  readonly steps: readonly CanonicalStep[]
  /** The signal that it waits for, and until when; null: it waits for none. */
  readonly awaits: { readonly signal: string; readonly until: number | null } | null
  /** The current claim; null unless the job runs. */
  readonly claim: CanonicalClaim | null
}

interface CanonicalStep extends Pick<StoredStep, 'name' | 'kind' | 'at'> {
  readonly until: number | null
  readonly payload: CanonicalPayload | null
  readonly codec: string | null
}

export interface CanonicalClaim {
  readonly fence: number
  /** The rest of the lease; 0 or less if it has expired and nobody has recovered the job. */
  readonly leaseMs: number
  readonly alone: boolean
  readonly cancelRequested: boolean
}

export interface CanonicalEntry {
  readonly score: number
  readonly payload: CanonicalPayload
  readonly codec: string | null
  readonly meta: CanonicalPayload | null
}

interface CanonicalSuccessor {
  readonly stamp: number
  readonly createdAt: number
  readonly isReady: boolean
  readonly payloads: readonly CanonicalEntry[]
}

export interface CanonicalMemory {
  readonly id: string
  readonly task: string
  readonly state: 'completed' | 'cancelled'
  readonly priority: number
  readonly attempt: number
  readonly crashes: number
  readonly createdAt: number
  readonly runAt: number
  readonly finishedAt: number
  /** Until when the id is remembered; at this instant it no longer is. */
  readonly until: number
  readonly reason: string | null
  /** Only of a job that was cancelled after it had begun. */
  readonly remains: CanonicalRemains | null
}

export type CanonicalRemains = Pick<
  CanonicalJob,
  | 'payload'
  | 'codec'
  | 'meta'
  | 'group'
  | 'startedAt'
  | 'worker'
  | 'host'
  | 'boot'
  | 'pidns'
  | 'pid'
  | 'ticks'
  | 'progress'
  | 'checkpoint'
  | 'log'
  | 'fields'
  | 'error'
>

/** A remembered call. */
export interface CanonicalCall {
  readonly id: string
  readonly at: number
}

/** A payload as text: `text:` and the string, or `bytes:` and hexadecimal digits. */
export type CanonicalPayload = `text:${string}` | `bytes:${string}`

export function canonicalPayload(payload: Payload): CanonicalPayload {
  return typeof payload === 'string' ? `text:${payload}` : `bytes:${Buffer.from(payload).toString('hex')}`
}

/** A payload, with what belongs to it. */
interface CanonicalSource {
  readonly payload: Payload
  readonly codec?: string | undefined
  readonly meta?: Payload | undefined
}

export function canonicalContent({ payload, codec, meta }: CanonicalSource): Omit<CanonicalEntry, 'score'> {
  return {
    payload: canonicalPayload(payload),
    codec: codec ?? null,
    meta: meta === undefined ? null : canonicalPayload(meta),
  }
}

export function canonicalEntry({ score, ...content }: CanonicalSource & { readonly score: number }): CanonicalEntry {
  return { score, ...canonicalContent(content) }
}

/** A kept result, or a checkpoint. */
export function canonicalResult(
  value: { readonly payload?: Payload; readonly codec?: string } | undefined,
): CanonicalJob['result'] {
  if (value === undefined) return null
  return { payload: value.payload === undefined ? null : canonicalPayload(value.payload), codec: value.codec ?? null }
}

/** On a clock that the lead goes by too; a harness shows the same wall and monotonic time. */
export function canonicalLead(lead: Lead | undefined, now: number): CanonicalLead | null {
  return isLed(lead, now) ? { worker: lead.worker, inMs: lead.wakeAt - now } : null
}

/** Ms until an instant; null if it is over, or there is none. */
export function inMs(until: number | null, now: number): number | null {
  return until !== null && until > now ? until - now : null
}

/** Sorts them by id. */
export function byId<T extends { readonly id: string }>(items: T[]): T[] {
  return items.sort((a, b) => compareBytes(a.id, b.id))
}

/** The counter of a throttle at `now`, on the clock of its starts; `seenFrom`: earlier starts no longer count. */
export function canonicalCounter(
  group: string,
  { log, grids }: Counter,
  now: number,
  seenFrom: number,
): CanonicalCounter {
  return {
    group,
    starts: log.filter(({ at }) => at >= seenFrom).map(({ at, count }) => ({ agoMs: now - at, count })),
    grids: grids.map(({ slotUs, credit }) => ({
      slotAgoUs: slotUs === undefined ? null : now * 1_000 - slotUs,
      credit,
    })),
  }
}

export function canonicalStep({ name, kind, at, until, payload, codec }: StoredStep): CanonicalStep {
  return {
    ...{ name, kind, at, until: until ?? null, codec: codec ?? null },
    payload: payload === undefined ? null : canonicalPayload(payload),
  }
}

/** `maxRunning`, from the bounds as a store has them. */
export function runningOf(total: number | null, perGroup: number | null): MaxRunning | null {
  if (perGroup === null) return total
  return { perGroup, ...(total === null ? {} : { total }) }
}
