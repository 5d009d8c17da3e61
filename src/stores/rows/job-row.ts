/**
 * The row of a job in a SQL store: its states, how its queue counts it, and whether its id is taken. Pure.
 */

import type { NewJob } from '../contract/new-job.js'
import { leavesRemains } from '../rules/bounds.js'
import type { TakenAs } from '../rules/taken-id.js'
import type { QueueSettingsRow, QueueTally } from './queue-row.js'

/** The values of the column `state`. Each is the index of its name in `stateNames`; stored rows depend on the order. */
export const scheduled = 0
export const ready = 1
export const running = 2
export const completed = 3
export const dead = 4
/** A join waits for its members, or a job for a signal. */
export const waiting = 5
/** A join goes before its members, whose ends would make it dead. */
export const waitingStates = [waiting, ready, scheduled]
export const stateNames = ['scheduled', 'ready', 'running', 'completed', 'dead', 'waiting'] as const

/**
 * The bits of the column `noted`. Most jobs have none, and nothing is looked up for them. `cut`: of a join with a member
 * that is gone for good, so that it cannot be revived. `steps`: it has entries. `awaiting`: it waits for a signal. `reports`:
 * its deaths are to be reported.
 */
export const noteBits = { notes: 1, member: 2, join: 4, cut: 8, steps: 16, awaiting: 32, reports: 64 } as const

/** The columns of `job` that decide its next state. */
export interface JobRow {
  readonly rid: number
  readonly id: string
  readonly task: string
  readonly state: number
  readonly rank: number
  readonly stamp: number
  attempt: number
  crashes: number
  readonly fence: number
  readonly alone: number
  readonly cancelling: number
  /** 1: a suspect, for claims made alone. Only ready and running jobs can be suspects. */
  readonly suspect: number
  /** See `noteBits`. */
  readonly noted: number
  /** Its group. */
  readonly grp: string | null
  /** This column and the next three are for ordered queues: see `rules/payloads`. */
  readonly part: number
  readonly successor_stamp: number | null
  readonly successor_created_at: number | null
  readonly successor_ready: number
  readonly remember_ms: number
  readonly created_at: number
  readonly finished_at: number | null
  readonly expires_at: number | null
  readonly worker: string | null
  /** This column and `reason` are as stored: see `stored-text`. */
  error: string | null
  reason: string | null
}

/** The columns that the counts of its queue depend on. */
export type CountedJob = Pick<JobRow, 'state' | 'suspect' | 'attempt' | 'grp'>

/** Counts the job in its state, or no longer. Its lane is counted by `HeldLanes`. */
export function countJob(tally: QueueTally, job: CountedJob, by: 1 | -1): void {
  tally[stateNames[job.state]!] += by
  if (job.state > ready) return
  if (job.state === ready) tally.suspects += by * job.suspect
  if (job.attempt > 1) tally.retries += by
}

/** The pool of a ready job: see `pools`. For another job, the pool that it would be in if it were ready. */
export function poolOf(suspect: number, grp: string | null): number {
  return suspect === 1 ? 1 : grp === null ? 0 : 2
}

/** Whether a kept job is past its time but not yet trimmed. */
export function isHidden(
  queue: Pick<QueueSettingsRow, 'dead_age_ms'>,
  job: Pick<JobRow, 'state' | 'expires_at' | 'finished_at'>,
  now: number,
): boolean {
  if (job.state === completed) return job.expires_at !== null && job.expires_at <= now
  if (job.state === dead) return queue.dead_age_ms !== null && job.finished_at! + queue.dead_age_ms <= now
  return false
}

/** Whether the id of a completed job is remembered for itself, whatever becomes of its result. */
export function isRemembered(job: Pick<JobRow, 'state' | 'finished_at' | 'remember_ms'>, now: number): boolean {
  return job.state === completed && job.finished_at! + job.remember_ms > now
}

/** Whether the job runs, or ran before as far as one can tell. `hasNotes`: its attempts have left a checkpoint or a log. */
export function hasBegun({ state, attempt, crashes, suspect, error }: JobRow, hasNotes: boolean): boolean {
  const isRunning = state === running
  return leavesRemains({ isRunning, attempt, crashes, suspect: suspect === 1, hasNotes: hasNotes || error !== null })
}

/** The group of a new job; an empty text is no group. */
export function groupIn({ group }: Pick<NewJob, 'group'>): string | null {
  return group === undefined || group === '' ? null : group
}

/**
 * Says by which job or memory an id is taken; undefined if the id is free. A waiting join, a member of one, or a job that
 * has reached a step is as good as running: nothing takes its place.
 */
export function takenBy(
  queue: Pick<QueueSettingsRow, 'dead_age_ms'>,
  job: Pick<JobRow, 'state' | 'expires_at' | 'finished_at' | 'remember_ms' | 'noted'>,
  now: number,
): TakenAs | undefined {
  if (job.state === completed || isHidden(queue, job, now)) return isRemembered(job, now) ? 'remembered' : undefined
  if (job.state === dead) return 'dead'
  const isTied = (job.noted & (noteBits.member | noteBits.join | noteBits.steps)) !== 0
  return job.state > ready || isTied ? 'running' : 'waiting'
}
