/**
 * The answers of the API, as docs/http-api.md describes them, and what follows from one of them alone. Instants are ISO
 * 8601, durations milliseconds.
 */

export type Instant = string

export interface Session {
  readonly user: string
  readonly role: 'viewer' | 'operator'
  readonly readOnly: boolean
  /** Whether the window has a `redact`. */
  readonly redacts: boolean
  readonly csrf?: string
  readonly store: string
  readonly version: string
  readonly namespace: string
  readonly features: Readonly<Record<'schedules' | 'throttles' | 'live' | 'history' | 'workers' | 'records', boolean>>
}

/** The outcome of a change; `more`: another call would find more. */
export interface Changed {
  readonly changed: number
  readonly more: boolean
}

export interface ListPage<Item> {
  readonly items: readonly Item[]
  /** Leads to the next page. */
  readonly cursor?: string
}

export interface Spark {
  readonly enqueued: readonly number[]
  readonly done: readonly number[]
  readonly failed: readonly number[]
}

export interface QueueCounts {
  readonly ready: number
  readonly payloads: number
  readonly suspects: number
  readonly scheduled: number
  /** Jobs that wait for other jobs, or for a signal. */
  readonly waiting: number
  readonly running: number
  readonly dead: number
  readonly fresh: number
  readonly retries: number
  readonly lagMs: number
  readonly processed: number
  readonly failed: number
  readonly crashed: number
  readonly expired: number
}

export interface QueueRow extends QueueCounts {
  readonly name: string
  readonly kind: 'plain' | 'ordered'
  readonly declared: boolean
  readonly damaged?: string
  /** The number of shards to which it is on its way. */
  readonly resharding?: number
  readonly paused: boolean
  readonly draining: boolean
  readonly shards: number
  /** The fullest window of its throttle. */
  readonly limit?: { readonly hits: number; readonly limit: number; readonly windowMs: number; readonly nextMs: number }
  readonly maxRunning?: number | { readonly perGroup: number }
  /** The number of workers that take its jobs. */
  readonly serving?: number
  readonly spark: Spark
}

export interface Overview {
  readonly at: Instant
  readonly store: string
  readonly queues: readonly QueueRow[]
  readonly totals: QueueCounts
  readonly workers: {
    readonly count: number
    readonly slots: number
    readonly running: number
    /** Not in the others. */
    readonly silent: number
  } | null
}

export interface ThrottleRule {
  readonly limit: number
  readonly windowMs: number
  /** Starts are evenly spaced. */
  readonly moderate: boolean
  readonly elasticBuffer?: number
}

export interface Throttle {
  readonly scope: string
  readonly by: 'queue' | 'group'
  readonly queues: readonly string[]
  readonly rules: readonly ThrottleRule[]
  /** Starts in the window of each rule. */
  readonly hits: readonly number[]
  /** Beside rules for all jobs: those for each group, and the starts of the group that was asked for. */
  readonly eachGroup?: readonly ThrottleRule[]
  readonly groupHits?: readonly number[]
  readonly forMs: number
  readonly quietForMs: number
  readonly groups?: number
}

/** A group with ready jobs under a throttle; `''`: the jobs without one. */
export interface WaitingGroup {
  readonly group: string
  /** How many of the jobs that were looked at are its. */
  readonly ready: number
  /** Ms until its next start; 0: at once. */
  readonly forMs: number
  readonly rules: readonly ThrottleRule[]
  readonly hits: readonly number[]
}

/** A hold of a queue, or of a group of it; without `until` the group is paused. */
export interface QueueHold {
  readonly group?: string
  readonly until?: Instant
  readonly forMs?: number
}

export interface QueueHolds {
  readonly holds: readonly QueueHold[]
  readonly total: number
}

export interface WorkerRow {
  readonly id: string
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly slots: number
  readonly running: number
  readonly startedAt: Instant
  readonly seenAt: Instant
  /** Whether its process lives, as far as this machine can know. */
  readonly process: 'alive' | 'dead' | 'silent' | 'unknown'
  readonly state?: 'running' | 'stopping'
  readonly version?: string
  readonly selector?: string
  readonly tasks?: number
  readonly rssBytes?: number
  readonly loopDelayMs?: number
}

/** A job that a worker holds; without `startedAt` it is only reserved. */
export interface HeldJob {
  readonly queue: string
  readonly id: string
  readonly task: string
  readonly startedAt?: Instant
  readonly progress?: { readonly fraction: number; readonly note?: string }
}

export interface QueueDetail extends QueueRow {
  readonly settings: Readonly<Record<string, unknown>>
  readonly shardLagsMs?: readonly number[]
  readonly throttle?: Throttle
  readonly holds?: QueueHolds
  /** Why the first of its ready jobs has not begun. */
  readonly waits?: readonly WaitReason[]
  readonly workers: readonly WorkerRow[]
}

/** Counts of a queue's jobs in a minute or an hour, and the queue's gauges then. */
export interface HistoryPoint {
  readonly at: Instant
  readonly enqueued: number
  readonly started: number
  readonly completed: number
  readonly failed: number
  readonly dead: number
  readonly crashed: number
  readonly cancelled: number
  /** Total run time of the attempts that completed or failed. */
  readonly runMs: number
  /** Absent: nobody measured. */
  readonly gauges?: { readonly lagMs: number; readonly waiting: number; readonly running: number }
}

export interface QueueHistory {
  readonly queue: string
  readonly step: 'minute' | 'hour'
  readonly points: readonly HistoryPoint[]
}

export type JobState = 'waiting' | 'scheduled' | 'ready' | 'running' | 'completed' | 'dead' | 'cancelled'

/** What a job waits for. */
export interface JoinProgress {
  readonly sets: readonly JoinSet[]
  /** When it dies if it still waits then. */
  readonly waitsUntil?: Instant
}

export interface JoinSet {
  readonly name: string
  readonly queue: string
  readonly onDead: 'fail' | 'go-on' | 'hold'
  /** Absent while members are being added. */
  readonly size?: number
  readonly added: number
  /** How many it waits for no more. */
  readonly done: number
  readonly counts: Readonly<Record<'completed' | 'dead' | 'cancelled' | 'expired', number>>
  /** The first member that has not ended, or is held. */
  readonly oldest?: string
}

/** The jobs around a join; the first is the one that was asked for. */
export interface JoinGraph {
  readonly jobs: readonly GraphJob[]
  readonly sets: readonly GraphSet[]
  /** Other jobs were left out. */
  readonly more: boolean
}

export interface GraphJob {
  readonly queue: string
  readonly id: string
  readonly task?: string
  /** Absent: it has ended, and nothing says how. */
  readonly state?: JobState
  readonly hasExpired?: true
}

/** What a job of the graph waits for under one name. */
export interface GraphSet {
  /** The place of the job that waits, among the jobs. */
  readonly join: number
  readonly name: string
  /** Sets with the same queue and ids are the same jobs. */
  readonly queue: string
  readonly ids: string
  readonly isMany: boolean
  readonly task?: string
  /** The places of its members among the jobs. */
  readonly members: readonly number[]
  /** Most of its members are not among the jobs. */
  readonly isCounted?: true
  readonly size?: number
  readonly added: number
  readonly done: number
  readonly counts: JoinSet['counts']
}

/** One payload of an ordered job. */
interface JobPayload {
  readonly input?: unknown
  readonly score: number
  readonly meta?: Readonly<Record<string, unknown>>
}

/** Why a job has not begun. */
export interface WaitReason {
  readonly why: string
  readonly text: string
  /** It stays until a person or a deploy acts. */
  readonly standing?: true
  readonly until?: Instant
  /** The jobs that keep it. */
  readonly jobs?: readonly { readonly queue: string; readonly id: string }[]
}

export interface JobRow {
  readonly id: string
  readonly task: string
  readonly queue: string
  readonly state: JobState
  readonly input?: unknown
  readonly payloads?: readonly JobPayload[]
  readonly payloadCount?: number
  readonly pendingCount?: number
  readonly meta?: Readonly<Record<string, unknown>>
  readonly parent?: { readonly queue: string; readonly id: string; readonly task: string }
  readonly priority: number
  readonly group?: string
  /** Why it has not begun, the most decisive reason first. */
  readonly waits?: readonly WaitReason[]
  /** The hold of a ready job; without `until` its group is paused. */
  readonly held?: { readonly until?: Instant }
  readonly attempt: number
  readonly crashes: number
  readonly suspect?: true
  readonly createdAt: Instant
  readonly updatedAt: Instant
  readonly runAt: Instant
  readonly waitedUntil?: Instant
  readonly expiresAt?: Instant
  readonly startedAt?: Instant
  readonly finishedAt?: Instant
  readonly host?: string
  readonly pid?: number
  readonly worker?: string
  readonly progress?: { readonly fraction: number; readonly note?: string }
  readonly fields?: Readonly<Record<string, string | number | boolean>>
  readonly checkpoint?: unknown
  /** The schedule that enqueued it, and the instant of its tick. */
  readonly schedule?: { readonly name: string; readonly tickAt: Instant }
  readonly log?: string
  readonly result?: unknown
  readonly error?: string
  readonly reason?: string
  /** Of a job that waits for others: what has become of these. Listings leave it out. */
  readonly join?: JoinProgress
  /** The jobs that wait, or waited, for this one. */
  readonly joins?: readonly { readonly queue: string; readonly id: string; readonly set: string }[]
  /** The signal that it waits for, and until when at the longest; since `updatedAt`. */
  readonly awaits?: { readonly signal: string; readonly until?: Instant }
  /** What its runs have reached, and the signals that it got, in their order. Listings leave it out. */
  readonly steps?: readonly JobStep[]
  /** The window leaves out its input, meta, result, checkpoint, and the values of its steps. */
  readonly payloadsHidden?: true
}

/** A step, a sleep or a signal of a job. */
export interface JobStep {
  readonly name: string
  readonly kind: 'step' | 'sleep' | 'signal' | 'timeout'
  readonly at: Instant
  /** The end of a sleep. */
  readonly until?: Instant
  readonly value?: unknown
}

/** A process' report on a job of a queue. */
export interface LiveEvent {
  readonly type: string
  readonly at: Instant
  readonly queue?: string
  readonly id?: string
  readonly task?: string
  readonly error?: string
  readonly count?: number
  readonly [field: string]: unknown
}

export interface ScheduleRow {
  readonly name: string
  readonly task: string
  readonly queue: string
  readonly input?: unknown
  readonly payloadsHidden?: true
  /** This or `everyMs`. */
  readonly cron?: string
  readonly everyMs?: number
  readonly timeZone: string
  readonly from?: Instant
  readonly until?: Instant
  readonly onMissed: 'skip' | 'latest' | 'all'
  readonly overlap: 'allow' | 'skip'
  readonly jitterMs: number
  readonly isDeclared: boolean
  readonly isPaused: boolean
  /** Absent while it is paused, and once it has ended. */
  readonly nextAt?: Instant
  readonly lastAt?: Instant
  readonly lastId?: string
  /** The half hours in which it ticks, of the 48 that begin with the present one. Only lists have it. */
  readonly nextDay?: readonly number[]
  readonly ticked: number
  readonly skipped: number
  readonly missed: number
}

/** How many of its attempts failed. */
export function failuresOf(job: JobRow): number {
  return diedOfFailure(job) ? job.attempt : job.attempt - 1
}

/** Whether its last attempt is one that failed. */
export function diedOfFailure({ state, reason = '' }: JobRow): boolean {
  return state === 'dead' && ['max-retries', 'no-retries', 'unrecoverable'].includes(reason)
}

/** Whether jobs wait in it although no worker takes them. */
export function isUnserved({ serving, ready, scheduled }: Pick<QueueRow, 'serving' | 'ready' | 'scheduled'>): boolean {
  return serving === 0 && ready + scheduled > 0
}
