/** The verdict on an attempt: the end of its claim, from what the handler returned or threw. Pure. */

import { hasCode, InvalidArgumentError } from '../../core/errors.js'
import type { BuryReason } from '../../core/job/job.js'
import type { Random } from '../../core/platform/clock.js'
import type { AnyTask } from '../../core/task/any-task.js'
import { type Backoff, delayAfter, exponential } from '../../core/task/backoff.js'
import { type Outcome, outcomeOf } from '../../core/task/outcome.js'
import type { SignalWait } from '../../stores/rules/claim-end.js'

/**
 * `done`: how many payloads of an ordered id, from the oldest, are completed, even if the others fail. `holdMs`:
 * for how long the group of its job, or its queue, is held from then on. `endsInside`: its handler has completed the job in
 * a transaction; the verdict is for the case that this was not committed.
 */
export type Verdict = { readonly done?: number; readonly holdMs?: number; readonly endsInside?: boolean } & (
  | { readonly kind: 'complete'; readonly result: unknown }
  | { readonly kind: 'retry'; readonly delayMs: number; readonly last: false; readonly error: unknown }
  | {
      readonly kind: 'retry'
      readonly delayMs: 0
      readonly last: true
      readonly error: unknown
      readonly reason: string
    }
  /** `error`: why the job waits; kept with it. `awaits`: the signal that it waits for. */
  | {
      readonly kind: 'release'
      readonly delayMs: number
      readonly reason: string
      readonly error?: string
      readonly awaits?: SignalWait
    }
  | { readonly kind: 'bury'; readonly reason: string; readonly error?: unknown }
  | { readonly kind: 'cancel'; readonly reason: string | undefined }
)

/**
 * The end that a run is to have because its handler sleeps or waits: it says so in `text`. `since`: the instant on the
 * monotonic clock from which its time counts.
 */
export type Suspension = { readonly text: string; readonly since: number } & (
  | { readonly kind: 'sleep'; readonly delayMs: number }
  | { readonly kind: 'wait'; readonly awaits: SignalWait }
)

/** The verdict on a run whose handler sleeps or waits, if the run ends `now`: steps beside it may have taken long. */
export function verdictOnSuspension(suspension: Suspension, now: number): Verdict {
  const left = (ms: number) => Math.max(0, Math.ceil(ms - (now - suspension.since)))
  if (suspension.kind === 'sleep') return { kind: 'release', delayMs: left(suspension.delayMs), reason: 'sleeping' }
  const { signal, withinMs } = suspension.awaits
  const awaits = { signal, ...(withinMs === undefined ? {} : { withinMs: left(withinMs) }) }
  return { kind: 'release', delayMs: 0, reason: 'waiting', awaits }
}

/** The verdict with the hold that its handler asked for by `ctx.hold()`; a longer one stays. */
export function withHold(verdict: Verdict, heldMs: number | undefined): Verdict {
  if (heldMs === undefined) return verdict
  return { ...verdict, holdMs: Math.max(heldMs, verdict.holdMs ?? 0) }
}

/** Whether another attempt may follow, if only out of the morgue. */
export function mayComeAgain({ kind }: Verdict): boolean {
  return kind !== 'complete' && kind !== 'cancel'
}

/** For a job whose cancel was requested while it ran. If the request had a reason, the store keeps that one. */
export const cancelledWhileRunning = { kind: 'cancel', reason: 'cancelled while running' } as const

/** For a job whose worker stops, or whose process is told to end: not its doing, so it goes back as it was. */
export const interrupted = { kind: 'release', delayMs: 0, reason: 'interrupted' } as const

/** For a job whose lease is lost: it goes back as it was, unless the store has already given it away and refuses. */
export const leaseLost = { kind: 'release', delayMs: 0, reason: 'lease-lost' } as const

/**
 * The verdict on a return value: a result, or an outcome that requests something else. Throws `InvalidArgumentError`
 * for an outcome of an unknown kind.
 */
export function verdictOnReturn(returned: unknown): Verdict {
  const outcome = outcomeOf(returned)
  return outcome === undefined ? { kind: 'complete', result: returned } : verdictOnOutcome(outcome)
}

function verdictOnOutcome(outcome: Outcome): Verdict {
  switch (outcome.kind) {
    case 'snooze':
      return { kind: 'release', delayMs: outcome.delayMs, reason: 'snoozed' }
    case 'cancel':
      return { kind: 'cancel', reason: outcome.reason }
    case 'bury':
      return { kind: 'bury', reason: outcome.reason ?? 'buried' }
    case 'hold':
      return { kind: 'release', delayMs: 0, reason: 'held', holdMs: outcome.holdMs }
    default:
      // It is marked as an outcome, but by another version of this package, or it is a stand-in that answers to
      // everything.
      throw new InvalidArgumentError(
        "the handler returned an outcome that this version of Millrace does not know; return a result, or what snooze(), cancel(), bury() or hold() of the worker's own version gives.",
      )
  }
}

/**
 * The verdict on a failure of attempt number `attempt`. Order: unrecoverable, then no attempts left, then another run.
 * `hookFailed` is called with the error of a `retry.when` or backoff that threw; the job is then retried with the
 * default backoff.
 */
export function verdictOnFailure(
  task: AnyTask,
  error: unknown,
  attempt: number,
  random: Random,
  hookFailed: (hook: string, error: unknown) => void,
): Verdict {
  const { max, when, backoff } = task.retry
  if (hasCode(error, 'unrecoverable') || !worthRetrying(when, error, hookFailed)) return last(error, 'unrecoverable')
  if (attempt > max) return last(error, max === 0 ? 'no-retries' : 'max-retries')
  return { kind: 'retry', delayMs: retryDelayMs(backoff, attempt, random, hookFailed), last: false, error }
}

/**
 * The verdict on one job of a batch. The cancel of one does not abort the others: it runs to its end with them, and is
 * cancelled then, unless it was completed or buried.
 */
export function verdictInBatch(verdict: Verdict, isCancelled: boolean): Verdict {
  if (!isCancelled || verdict.kind === 'complete' || verdict.kind === 'bury' || verdict.kind === 'cancel')
    return verdict
  return cancelledWhileRunning
}

function last(error: unknown, reason: BuryReason): Verdict {
  return { kind: 'retry', delayMs: 0, last: true, error, reason }
}

function worthRetrying(
  when: (error: unknown) => boolean,
  error: unknown,
  hookFailed: (hook: string, error: unknown) => void,
): boolean {
  try {
    return when(error) !== false
  } catch (thrown) {
    hookFailed('retry.when', thrown)
    return true
  }
}

const defaultBackoff = exponential()

/** The delay after this many failures; valid whatever the user's backoff returns. */
export function retryDelayMs(
  backoff: Backoff,
  failures: number,
  random: Random,
  hookFailed: (hook: string, error: unknown) => void,
): number {
  try {
    return delayAfter(backoff, failures, random)
  } catch (thrown) {
    hookFailed('retry.backoff', thrown)
    return delayAfter(defaultBackoff, failures, random)
  }
}
