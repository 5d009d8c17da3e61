/**
 * The canonical state: what a store holds, said in one way by every store, so that two of them can be compared.
 *
 * - Every field is always there; `null` says that there is nothing.
 * - What has expired is left out as if it had been trimmed: ids no longer remembered, results and dead jobs beyond their age,
 *   calls older than a minute. When a store removes them is its own affair.
 * - Lists are sorted by `compareBytes` of their id or name.
 */

import type { JobState, Progress } from '../../core/job.js'
import type { JobFields } from '../../core/job-fields.js'
import type { Payload } from '../../core/values/codec.js'
import type { QueueKind } from '../../stores/contract/queue-settings.js'

export interface CanonicalState {
  /** The store's clock at the moment of the dump. */
  readonly now: number
  /** By name and shard. */
  readonly queues: readonly CanonicalQueue[]
  /** By scope. */
  readonly throttles: readonly CanonicalThrottle[]
}

/** What a throttle has counted. Instants are told by their distance from now. */
export interface CanonicalThrottle {
  readonly scope: string
  readonly by: 'queue' | 'group'
  /** `ruleText` of each. */
  readonly rules: readonly string[]
  /** By name. */
  readonly queues: readonly string[]
  /** How often it was recovered since something started in it. */
  readonly recoveries: number
  /** Ms until its silence ends; null where it is not silent. */
  readonly quietInMs: number | null
  /** By group, or of `''`; those in which nothing has started for the longest window are left out. */
  readonly counters: readonly CanonicalCounter[]
}

export interface CanonicalCounter {
  readonly group: string
  /** Oldest first; those that no window sees are left out. */
  readonly starts: readonly { readonly agoMs: number; readonly count: number }[]
  /** Of each rule how long ago the place of its last start on the grid was, in µs, or null; and its credit. */
  readonly grids: readonly { readonly slotAgoUs: number | null; readonly credit: number }[]
}

/** The lanes of a queue. */
export interface CanonicalLanes {
  /** Those that are open; the first is next. */
  readonly turns: readonly string[]
  /** Those that open by themselves, sorted; `inMs` is 0 or less where nobody has come by since. */
  readonly shut: readonly { readonly group: string; readonly inMs: number }[]
  /** Groups that are held back, sorted. */
  readonly held: readonly { readonly group: string; readonly inMs: number }[]
}

/** A queue; of an ordered one, one of its shards. Bounds are those of the shard. */
export interface CanonicalQueue {
  readonly name: string
  /** Null for a plain queue. */
  readonly shard: number | null
  readonly kind: QueueKind
  readonly order: 'fifo' | 'lifo'
  readonly exclusive: 'id' | 'shard'
  readonly merge: 'all' | 'latest'
  readonly maxPending: number | null
  readonly maxCrashes: number
  readonly resultsCount: number | null
  readonly deadAgeMs: number | null
  readonly deadCount: number | null
  readonly maxRunning: number | { readonly perGroup: number } | null
  /** The scope of its throttle; null where it has none. */
  readonly throttle: string | null
  /** Ms until it is held back no longer, or until its throttle opens; null where it is not. */
  readonly heldInMs: number | null
  readonly shutInMs: number | null
  /** Ms until leases that have ended are left alone no longer, after a start of the store; null where they are not. */
  readonly sparesInMs: number | null
  readonly lanes: CanonicalLanes
  readonly paused: boolean
  readonly draining: boolean
  readonly processed: number
  readonly failed: number
  /** Leases that ended unsettled, charged or not, since the queue exists. */
  readonly crashed: number
  /** Jobs that expired since the queue exists. */
  readonly expired: number
  /** Who asks again when a job falls due or a lease ends; null where nobody does, and where whoever did has lapsed. */
  readonly lead: CanonicalLead | null
  /** Who makes room for the suspects; null likewise. */
  readonly suspectLead: CanonicalLead | null
  /** The last stamp given to a job that was ready at once (µs); 0 before the first; null where the store does not keep it. */
  readonly lastStamp: number | null
  /** The last fence given; 0 before the first; null where the store does not keep it. */
  readonly lastFence: number | null
  /** The last default score given to a payload (µs); 0 before the first, and of a plain queue; null where the store does not keep it. */
  readonly lastScore: number | null
  /**
   * Every job of which more than the id is kept: scheduled, ready, running, dead, and completed with a kept result. In an
   * ordered queue the dead are entries of their own, behind the live job of their id.
   */
  readonly jobs: readonly CanonicalJob[]
  /** Ids that are remembered and of which nothing else is kept. */
  readonly remembered: readonly CanonicalMemory[]
  readonly calls: readonly CanonicalCall[]
}

export interface CanonicalLead {
  readonly worker: string
  /** Ms until it asks, on the clock of the leases; below 0 where it is late and has not yet lapsed (`isLed`). */
  readonly inMs: number
}

export interface CanonicalJob {
  readonly id: string
  readonly task: string
  readonly state: JobState
  readonly payload: CanonicalPayload
  readonly codec: string | null
  readonly meta: CanonicalPayload | null
  /** Of an ordered queue: what is in hand while the job runs, else what waits or is dead; in order. Null in a plain queue. */
  readonly payloads: readonly CanonicalEntry[] | null
  /** What waits beside a running job of an ordered queue; null where nothing does. */
  readonly successor: CanonicalSuccessor | null
  readonly priority: number
  readonly group: string | null
  /** The place in line, µs: of a scheduled job its due time. Of an ended job the last one it had. */
  readonly stamp: number
  readonly attempt: number
  /** Crashes charged to it. */
  readonly crashes: number
  /**
   * Marked by a crash and not cleared since: ready for claims alone, or running in one. True in no other state, however
   * the store keeps the mark.
   */
  readonly suspect: boolean
  readonly rememberMs: number
  readonly createdAt: number
  readonly updatedAt: number
  /** Null unless the job runs or has ended; then what the last beats said. */
  readonly startedAt: number | null
  /** Null unless completed or dead. */
  readonly finishedAt: number | null
  /** When a job that waits to be begun expires, or a kept result; null: never, or there is none. */
  readonly expiresAt: number | null
  /** Who holds the job, or held it when it ended; null while it waits, and dead in an ordered queue. So are its process (host to ticks) and progress. */
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
  /** Without a payload: it completed with nothing. */
  readonly result: { readonly payload: CanonicalPayload | null; readonly codec: string | null } | null
  readonly error: string | null
  readonly reason: string | null
  /** The current claim; null unless the job runs. */
  readonly claim: CanonicalClaim | null
}

export interface CanonicalClaim {
  readonly fence: number
  /** What is left of the lease; 0 or less when it has ended and nobody has recovered the job. */
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
}

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
