/**
 * The row of a queue in a SQL store, or of one shard of an ordered queue: what it is set to, what it counts, and what follows
 * from both. A store in which no row may be hot adds its counts up from a log, and hands them in. Pure.
 */

import type { Exclusive, Merge } from '../../core/queue/queue.js'
import type { Throttle } from '../../core/queue/throttle.js'
import type { QueueKind, StoredQueue } from '../contract/queue-settings.js'
import { boundsOf, limitsFrom } from '../rules/limit-rules.js'
import type { Lead } from '../rules/wake-lead.js'

/** Property names are column names. */
export interface QueueSettingsRow {
  readonly qid: number
  readonly name: string
  /** Negative: the queue is being resharded and leaves this shard. */
  readonly shard: number
  readonly shards: number
  /** The number of shards that the resharding is to reach. Until it ends, the queue is as good as paused. */
  resharding: number | null
  readonly kind: QueueKind
  readonly ord: 'fifo' | 'lifo'
  readonly exclusive: Exclusive
  merge: Merge
  paused: number
  draining: number
  /** The limits that have been said. The bounds that hold follow; each is for the whole queue: see `share`. */
  limits: string
  max_pending: number | null
  crash_limit: number
  results_limit: number | null
  dead_age_ms: number | null
  dead_count: number | null
  /** For all shards together. */
  max_running: number | null
  max_per_group: number | null
  /** The scope of its throttle, and what the throttle counts by. */
  throttle: string | null
  throttle_by: 'queue' | 'group' | 'both' | null
  /** Nothing is granted before these instants: the queue was held back, or its throttle has denied what is ready. */
  held_until: number | null
  shut_until: number | null
  lead_worker: string | null
  lead_wake_at: number | null
  suspect_lead_worker: string | null
  suspect_lead_wake_at: number | null
}

/** The counts of a queue or shard. Each change of a job's state changes some of them. */
export interface QueueTally {
  scheduled: number
  /** Joins that wait for their members. */
  waiting: number
  /** Including the suspects. */
  ready: number
  running: number
  completed: number
  dead: number
  /** Waiting jobs that failed at least once. */
  retries: number
  /** Ready jobs that only claims made alone receive. */
  suspects: number
  /** Ids that are remembered. */
  remembered: number
  /** Waiting payloads of an ordered queue. */
  pending: number
  processed: number
  failed: number
  crashed: number
  expired: number
  /** 1: it has, or once had, a lane. */
  laned: number
  /** Jobs that have a group: the ready ones without the suspects, and the running ones. */
  grouped: number
  grouped_running: number
  /** Lanes that have a turn. */
  open_lanes: number
  last_lane_turn: number
}

export interface CountedQueue extends QueueSettingsRow, QueueTally {}

/** The number of ready jobs that any claim may receive. */
export function ordinary(queue: Pick<QueueTally, 'ready' | 'suspects'>): number {
  return queue.ready - queue.suspects
}

/** Whether the queue grants nothing, whatever is ready. */
export function isStopped({ paused, resharding }: QueueSettingsRow): boolean {
  return paused === 1 || resharding !== null
}

/** Whether a running claim has the shard to itself. */
export function isBusy({ exclusive, running, kind }: CountedQueue): boolean {
  return exclusive === 'shard' && running > 0 && kind === 'ordered'
}

/** Whether anything besides the queue's state and the claim of its shard can keep ready jobs from a claim. */
export function isLimited(queue: CountedQueue): boolean {
  const { laned, throttle, max_running, max_per_group, held_until, shut_until } = queue
  return (
    laned === 1 ||
    throttle !== null ||
    max_running !== null ||
    max_per_group !== null ||
    held_until !== null ||
    shut_until !== null
  )
}

/** Whether claims on it go round its lanes. */
export function hasLanes({ grouped, throttle_by, max_per_group }: CountedQueue): boolean {
  return grouped > 0 || throttle_by === 'group' || throttle_by === 'both' || max_per_group !== null
}

/** The instant until which nothing is granted, whatever is ready. */
export function opensAt({ held_until, shut_until }: QueueSettingsRow): number {
  return Math.max(held_until ?? Number.NEGATIVE_INFINITY, shut_until ?? Number.NEGATIVE_INFINITY)
}

/** This shard's part of a bound for the whole queue, rounded up; null is no bound. */
export function share({ shards }: QueueSettingsRow, bound: number | null): number {
  return bound === null ? Number.POSITIVE_INFINITY : Math.ceil(bound / shards)
}

/** The `job.qid` of the queue's dead jobs. */
export function morgueOf({ qid, kind }: QueueSettingsRow): number {
  return kind === 'ordered' ? -qid : qid
}

/** The queue's name, with the shard if the queue is ordered. */
export function placeIn({ name, shard, kind }: QueueSettingsRow): { queue: string; shard?: number } {
  return kind === 'ordered' ? { queue: name, shard } : { queue: name }
}

/** The worker that asks again when a job is due or a lease ends. */
export function leadOf({ lead_worker, lead_wake_at }: QueueSettingsRow): Lead | undefined {
  return leadFrom(lead_worker, lead_wake_at)
}

/** The worker that makes room for the suspects. */
export function suspectLeadOf({ suspect_lead_worker, suspect_lead_wake_at }: QueueSettingsRow): Lead | undefined {
  return leadFrom(suspect_lead_worker, suspect_lead_wake_at)
}

function leadFrom(worker: string | null, wakeAt: number | null): Lead | undefined {
  return worker === null || wakeAt === null ? undefined : { worker, wakeAt }
}

export function setLead(queue: QueueSettingsRow, lead: Lead | undefined): void {
  queue.lead_worker = lead?.worker ?? null
  queue.lead_wake_at = lead?.wakeAt ?? null
}

export function setSuspectLead(queue: QueueSettingsRow, lead: Lead | undefined): void {
  queue.suspect_lead_worker = lead?.worker ?? null
  queue.suspect_lead_wake_at = lead?.wakeAt ?? null
}

/** A stamp as stored in `job.position`, in an ordered queue in `job.rank`: claims take jobs in ascending order. */
export function positionOf(queue: Pick<QueueSettingsRow, 'ord'>, stamp: number): number {
  return queue.ord === 'lifo' ? -stamp : stamp
}

/** Bounds an instant: larger integers of SQLite cannot be read back as numbers. Such an instant means never. */
export function bounded(value: number): number {
  return Math.min(value, Number.MAX_SAFE_INTEGER)
}

/** The queue as the contract describes it. */
export function storedQueue(row: QueueSettingsRow, throttle: Throttle | undefined): StoredQueue {
  const { name, kind, ord, exclusive, shards, paused, draining, resharding } = row
  const limits = limitsFrom(row.limits)
  const { maxRunning } = boundsOf(limits)
  return {
    ...{ name, kind, order: ord, exclusive, shards, paused: paused === 1, draining: draining === 1, limits },
    ...(throttle === undefined ? {} : { throttle }),
    ...(maxRunning === undefined ? {} : { maxRunning }),
    ...(resharding === null ? {} : { resharding }),
  }
}
