/** Sequences and instants: the numbers that order jobs and claims, and when a job expires. Every store computes them by these rules. */

import type { NewPlace } from '../contract/job-records.js'
import type { NewJob } from '../contract/new-job.js'

/**
 * A wall clock that steps back by no more than this counts as standing still; the store follows a larger step.
 * @internal
 */
export const toleratedStepUs = 1_000_000

/**
 * The place in line of a job that is ready at once: µs since 1970, strictly growing within a queue. First in is thus
 * first out within a millisecond, and while the wall clock is being adjusted.
 */
export function nextStamp(lastUs: number, nowMs: number): number {
  const nowUs = nowMs * 1_000
  if (nowUs > lastUs) return nowUs
  return lastUs - nowUs <= toleratedStepUs ? lastUs + 1 : nowUs
}

/**
 * The default score of a payload, in µs: the stamp of its arrival, unless its shard has given a higher one before.
 * Scores thus grow even if the wall clock steps back, however far.
 */
export function nextScore(lastUs: number, stampUs: number): number {
  return Math.max(stampUs, lastUs + 1)
}

/** The place in line of a job with a due time. */
export function stampOf(runAtMs: number): number {
  return runAtMs * 1_000
}

/** When a job with this place is, or was, due. */
export function dueAt(stampUs: number): number {
  return Math.floor(stampUs / 1_000)
}

/**
 * Since when a job could begin: it was due, and waited for no other job and no signal any more. Its lag counts from then,
 * whatever its place.
 */
export function ableSince(stampUs: number, waitedUntilMs: number | null | undefined): number {
  return Math.max(dueAt(stampUs), waitedUntilMs ?? 0)
}

/** Until when a job waited for another one or a signal, if it was due before that; otherwise that says nothing of it. */
export function waitedBeyond(stampUs: number, waitedUntilMs: number | null | undefined): number | undefined {
  return typeof waitedUntilMs === 'number' && waitedUntilMs > dueAt(stampUs) ? waitedUntilMs : undefined
}

/**
 * What becomes of the due time of a job that gets another place. It keeps its place among those of its priority if its due
 * time stays (`'kept'`) or it is due already (`'due'`, whether or not that was noticed). `'behind'`: it was not due, and is
 * ready behind the others. A number: the instant at which it will be due.
 */
export function newDue(
  stampUs: number,
  { delayMs, runAt }: NewPlace,
  nowMs: number,
): 'kept' | 'due' | 'behind' | number {
  if (delayMs === undefined && runAt === undefined) return 'kept'
  const at = runAt ?? nowMs + Math.ceil(delayMs ?? 0)
  if (at > nowMs) return at
  return dueAt(stampUs) > nowMs ? 'behind' : 'due'
}

/**
 * The fence of a claim: it follows the clock, so that it keeps growing if a store is made anew, and never goes back
 * when the clock does. (A hybrid logical clock; Kulkarni et al., 2014.)
 */
export function nextFence(last: number, nowMs: number): number {
  return Math.max(nowMs * 1_000, last + 1)
}

/** The reason with which such a job is cancelled. */
export const expiredReason = 'expired'

/** From this instant on no claim receives the job; undefined: it never expires. */
export function expiryOf({ expiresMs }: Pick<NewJob, 'expiresMs'>, now: number): number | undefined {
  return expiresMs === undefined ? undefined : now + Math.ceil(expiresMs)
}
