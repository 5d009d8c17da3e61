/** Outcomes: what a handler returns when it neither has a result nor has failed. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../values/describe.js'
import { type Duration, durationMs } from '../values/duration.js'

const mark = Symbol.for('millrace.outcome')

export type Outcome =
  | { readonly kind: 'snooze'; readonly delayMs: number }
  | { readonly kind: 'cancel'; readonly reason: string | undefined }
  | { readonly kind: 'bury'; readonly reason: string | undefined }
  | { readonly kind: 'throttle'; readonly holdMs: number }

/** An outcome is a value of its own type, so that a handler which may return one keeps its result type. */
export type OutcomeValue = { readonly [mark]: Outcome }

/** Run this job again after `delay`; not a failure, not counted. */
export function snooze(delay: Duration): OutcomeValue {
  return { [mark]: { kind: 'snooze', delayMs: durationMs(delay, 'snooze(delay)') } }
}

/** End this job as cancelled: it leaves nothing behind. */
export function cancel(reason?: string): OutcomeValue {
  refuseReason(reason, 'cancel(reason)')
  return { [mark]: { kind: 'cancel', reason } }
}

/** Bury this job in the morgue at once; not counted as a failure. */
export function bury(reason?: string): OutcomeValue {
  refuseReason(reason, 'bury(reason)')
  return { [mark]: { kind: 'bury', reason } }
}

/**
 * Somebody asked to be called less often (HTTP 429): nothing of this job's group is started for so long, or, where it has
 * none, nothing of its queue. A longer hold stays. The job itself keeps its place; not a failure, not counted. Of a batch
 * every job's group is held. On a store without throttles only the job itself waits.
 */
export function throttle(hold: Duration): OutcomeValue {
  return { [mark]: { kind: 'throttle', holdMs: durationMs(hold, 'throttle(hold)') } }
}

function refuseReason(reason: unknown, what: string): void {
  if (reason === undefined || typeof reason === 'string') return
  throw new InvalidArgumentError(`${what} must be given text or nothing; got ${describe(reason)}.`)
}

/** The outcome that `value` is, or undefined where it is an ordinary result. */
export function outcomeOf(value: unknown): Outcome | undefined {
  return typeof value === 'object' && value !== null && mark in value ? (value as OutcomeValue)[mark] : undefined
}
