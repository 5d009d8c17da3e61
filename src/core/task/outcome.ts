/** Outcomes: values that a handler returns if it has no result but did not fail. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../values/describe.js'
import { type Duration, durationMs } from '../values/duration.js'

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
 * Holds the job's group, or its queue if it has no group, for this time: none of their jobs is started. Return it when
 * a service asks for fewer calls (HTTP 429). A longer hold stays. The job itself keeps its place; not a failure, not
 * counted. For a batch the groups of all jobs are held. On a store without throttles only the job itself waits.
 */
export function throttle(hold: Duration): OutcomeValue {
  return { [mark]: { kind: 'throttle', holdMs: durationMs(hold, 'throttle(hold)') } }
}

function refuseReason(reason: unknown, what: string): void {
  if (reason === undefined || typeof reason === 'string') return
  throw new InvalidArgumentError(`${what} must get text or nothing; got ${describe(reason)}.`)
}

/** The outcome in `value`, or undefined if it is an ordinary result. */
export function outcomeOf(value: unknown): Outcome | undefined {
  return typeof value === 'object' && value !== null && mark in value ? (value as OutcomeValue)[mark] : undefined
}
