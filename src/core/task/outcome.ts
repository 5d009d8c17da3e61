/** Outcomes: values that a handler returns if it has no result but did not fail. */

import { InvalidArgumentError } from '../errors.js'
import { systemClock } from '../platform/clock.js'
import { describe } from '../values/describe.js'
import { type Duration, durationMs } from '../values/duration.js'
import { type HoldOptions, type HoldTime, holdTimeMs } from './hold-time.js'

const mark = Symbol.for('millrace.outcome')

export type Outcome =
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'cancel'; readonly reason: string | undefined }
  | { readonly kind: 'bury'; readonly reason: string | undefined }
  | { readonly kind: 'throttle'; readonly holdMs: number }

/** An outcome has a type of its own, so a handler that may return one keeps its result type. */
export type OutcomeValue = { readonly [mark]: Outcome }

/** Runs this job again after `delay`; not a failure, not counted. */
export function snooze(delay: Duration): OutcomeValue {
  return { [mark]: { kind: 'snooze', delayMs: durationMs(delay, 'snooze(delay)') } }
}

/** Ends this job as cancelled; it leaves nothing behind. */
export function cancel(reason?: string): OutcomeValue {
  refuseReason(reason, 'cancel(reason)')
  return { [mark]: { kind: 'cancel', reason } }
}

/** Buries this job in the morgue at once; not counted as a failure. */
export function bury(reason?: string): OutcomeValue {
  refuseReason(reason, 'bury(reason)')
  return { [mark]: { kind: 'bury', reason } }
}

/**
 * Holds the job's group, or its queue if it has no group: none of their jobs is started for that time, and this job
 * runs again then. Return it when a service asks for fewer calls (HTTP 429): `throttle(answer)` heeds its `Retry-After`
 * header, which may be seconds or a date. Also takes a duration, the text of that header, or a Date. Nothing that a
 * server sends makes it throw: what cannot be read, or is missing, means 30 s, and the hold lasts at most `atMost`
 * (default 1 h). A longer hold stays; `queue.throttle.release()` ends it before its time. The job keeps its place; not
 * a failure, not counted. For a batch the groups of all jobs are held. On a store without throttles only the job itself
 * waits.
 */
export function throttle(when: HoldTime, options?: HoldOptions): OutcomeValue {
  return { [mark]: { kind: 'throttle', holdMs: holdTimeMs(when, options, systemClock.now(), 'throttle') } }
}

function refuseReason(reason: unknown, what: string): void {
  if (reason === undefined || typeof reason === 'string') return
  throw new InvalidArgumentError(`${what} must get text or nothing; got ${describe(reason)}.`)
}

/** The outcome in `value`, or undefined if it is an ordinary result. */
export function outcomeOf(value: unknown): Outcome | undefined {
  return typeof value === 'object' && value !== null && mark in value ? (value as OutcomeValue)[mark] : undefined
}
