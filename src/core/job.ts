/** A job: one enqueued instance of a task, as records show it and as its handler sees it. */

import type { JobFailure } from './job-failures.js'
import type { JobFields } from './job-fields.js'
import type { JobOrigin } from './job-origin.js'

export const jobStates = ['scheduled', 'ready', 'running', 'completed', 'dead', 'cancelled'] as const

/** `scheduled → ready → running → completed | dead | cancelled`; a retry is scheduled again. docs/job-lifecycle.md has the chart. */
export type JobState = (typeof jobStates)[number]

/** What an enqueue did: `'duplicate'`: nothing, as its id was there already. */
export type EnqueueOutcome = 'added' | 'merged' | 'replaced' | 'duplicate'

/** Why a job lies in the morgue; an operator's or a handler's own reason may stand instead. */
export type BuryReason = 'max-retries' | 'no-retries' | 'unrecoverable' | 'bad-payload' | 'crashed' | 'buried'

/** Everything that is known of a job. A field that is absent does not apply, or not yet. */
export interface JobRecord<Input = unknown, Result = unknown> extends JobOrigin {
  readonly id: string
  readonly task: string
  readonly queue: string
  readonly state: JobState
  /** Absent where the payload cannot be decoded; `error` then says why. */
  readonly input?: Input
  /**
   * Of a job of an ordered queue, in the place of `input` and `meta`: the payloads that it runs with, or that wait, or lie
   * in the morgue; old to new, the first 1,000 of them, in a listing the first 10.
   */
  readonly payloads?: readonly PayloadRecord<Input>[]
  /** How many those are in all. */
  readonly payloadCount?: number
  /** Payloads that wait beside a running job. */
  readonly pendingCount?: number
  readonly meta?: Meta
  readonly priority: number
  readonly group?: string
  /** Failures so far + 1. */
  readonly attempt: number
  /** Crashes charged to it: its worker died while the job ran alone. Failures are counted by `attempt`. */
  readonly crashes: number
  /** Its worker died with it in hand: it waits for a worker process of its own, or runs in one. */
  readonly suspect?: true
  readonly createdAt: Date
  readonly updatedAt: Date
  /** When it is, or was, due. */
  readonly runAt: Date
  /** When it is cancelled as `expired`, if no worker has taken it by then; only while it waits for that. */
  readonly expiresAt?: Date
  /** When its handler began; a running job without it is reserved only. */
  readonly startedAt?: Date
  readonly finishedAt?: Date
  /** Where it runs, or ran last: host and process. */
  readonly host?: string
  readonly pid?: number
  /** Who holds it, or held it last: the id of a worker. */
  readonly worker?: string
  readonly progress?: Progress
  /** What was set by `fields.set()`, of its context, of a listener's claim or of a handle to it. */
  readonly fields?: JobFields
  /** What its handler stored last by `ctx.checkpoint()`. This and the log are not in listings. */
  readonly checkpoint?: unknown
  /** The last 64 KiB of what its attempts have logged and, where they are isolated, printed. */
  readonly log?: string
  readonly result?: Result
  /** Message and bounded stack of the last failure. */
  readonly error?: string
  /** Its latest attempts that failed, at most 10, oldest first; the last is the one of `error`, unless that tells of something else. */
  readonly failures?: readonly JobFailure[]
  /** Why it was buried or cancelled. */
  readonly reason?: string
}

/** One payload of a job of an ordered queue. */
export interface PayloadRecord<Input = unknown> extends JobOrigin {
  /** Absent where it cannot be decoded; the job's `error` then says why. */
  readonly input?: Input
  readonly score: number
  readonly meta?: Meta
}

/** What the user sends along with a job beside its input; it travels through retries unchanged. */
export type Meta = Readonly<Record<string, unknown>>

export interface Progress {
  /** 0 … 1. */
  readonly fraction: number
  readonly note?: string
}

/** The job as its handler sees it. */
export interface RunningJob extends JobOrigin {
  readonly id: string
  readonly task: string
  readonly queue: string
  readonly priority: number
  /** Absent where it has none. */
  readonly group?: string
  /** Failures so far + 1. */
  readonly attempt: number
  readonly crashes: number
  /** Grows with every claim of this job: hand it to what you write to, and let that refuse a smaller one. */
  readonly fence: number
  readonly meta: Meta
  readonly createdAt: Date
  readonly runAt: Date
  /** The error of the attempt before this one, or why no worker could run it since. */
  readonly lastError?: string
}

export const lowestPriority = -32_768
export const highestPriority = 32_767
export const priorityForm = `a whole number from ${lowestPriority} to ${highestPriority}`

export function isPriority(value: unknown): value is number {
  return Number.isInteger(value) && (value as number) >= lowestPriority && (value as number) <= highestPriority
}
