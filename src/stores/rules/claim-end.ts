/**
 * The end of a claim: what becomes of a job that is settled, whose run an operator lets fail, or whose lease ended
 * unsettled. The rule of every store; Lua has a translation. `payloads.ts` says where the payloads of an ordered job go.
 */

import type { KeptResult, SettleItem } from '../contract/settle.js'

/** A running job, as far as its end depends on it. `Text`: a text or none, in the form in which the store keeps it. */
interface EndingJob<Text> {
  readonly attempt: number
  /** Crashes charged to the job. */
  readonly crashes: number
  readonly error: Text
  readonly reason: Text
  readonly cancelRequested: boolean
}

/** The job at its end. */
export interface ClaimEnd<Text> extends Omit<EndingJob<Text>, 'cancelRequested'> {
  /**
   * `'completed'` and `'cancelled'`: the job ends, and perhaps its id is remembered. `'kept'`: it ends, and its result
   * stays. `'dead'`: it is buried. `'exhausted'`: this was its last failure. `'delayed'`: it waits for its time.
   * `'returned'`: it waits in its old place. `'waiting'`: it waits for a signal.
   */
  readonly becomes: 'completed' | 'kept' | 'cancelled' | 'dead' | 'exhausted' | 'delayed' | 'returned' | 'waiting'
}

/** The signal that a job waits for, and for how long at the most. */
export type SignalWait = Pick<Extract<SettleItem, { kind: 'wait' }>, 'signal' | 'withinMs'>

/** The part of a settle that its store needs to carry the end out. */
export interface EndDetails {
  readonly result?: KeptResult
  readonly delayMs?: number
  /** Why it is buried. */
  readonly reason?: string
  readonly wait?: SignalWait
}

/**
 * An end by which the job waits for its time or for a signal begins the count of its crashes anew: a job of weeks has
 * crashed only if runs of it in a row do. `textOf` brings a text into the form in which the store keeps it.
 */
export function afterSettle<Text>(
  item: SettleItem,
  job: EndingJob<Text>,
  isOrdered: boolean,
  textOf: (text: string | undefined) => Text,
): ClaimEnd<Text> {
  const { attempt, crashes, reason, cancelRequested } = job
  const error = 'error' in item && item.error !== undefined ? textOf(item.error) : job.error
  switch (item.kind) {
    case 'complete':
      return { becomes: isKept(item.result) ? 'kept' : 'completed', attempt, crashes, error, reason: textOf(undefined) }
    case 'retry':
      return afterFailure(item, job, isOrdered, textOf)
    case 'release':
      if (cancelRequested) return { becomes: 'cancelled', attempt, crashes, error, reason }
      if (item.delayMs > 0) return { becomes: 'delayed', attempt, crashes: 0, error, reason }
      return { becomes: 'returned', attempt, crashes, error, reason }
    case 'wait':
      if (cancelRequested) return { becomes: 'cancelled', attempt, crashes, error, reason }
      return { becomes: 'waiting', attempt, crashes: 0, error, reason }
    case 'bury':
      return { becomes: 'dead', attempt, crashes, error, reason: textOf(item.reason) }
    case 'cancel': {
      const asked = textOf(item.reason)
      return { becomes: 'cancelled', attempt, crashes, error, reason: cancelRequested ? (reason ?? asked) : asked }
    }
  }
}

function isKept(result: KeptResult | undefined): boolean {
  return result !== undefined && result.onlyForJoins !== true
}

/** After a counted failure. Unlike a release, it forgets the error before. */
export function afterFailure<Text>(
  { last, error }: { readonly last?: boolean; readonly error?: string },
  { attempt, crashes, reason, cancelRequested }: EndingJob<Text>,
  isOrdered: boolean,
  textOf: (text: string | undefined) => Text,
): ClaimEnd<Text> {
  // An ordered queue goes on with the remaining payloads: those of a cancelled job must not come back.
  const isCancelled = cancelRequested && (!last || isOrdered)
  const becomes = isCancelled ? 'cancelled' : last ? 'exhausted' : 'delayed'
  return { becomes, attempt: attempt + 1, crashes, error: textOf(error), reason }
}

interface CrashedClaim {
  /** The claim was made alone: its worker held nothing else, so the job itself is to blame. */
  readonly alone: boolean
  readonly cancelRequested: boolean
  /** Crashes charged to the job before. */
  readonly crashes: number
}

interface CrashVerdict {
  /** Crashes charged to the job now. */
  readonly crashes: number
  /** `'suspect'`: ready in its old place, for claims made alone. */
  readonly becomes: 'suspect' | 'dead' | 'cancelled'
}

export function afterCrash({ alone, cancelRequested, crashes }: CrashedClaim, maxCrashes: number): CrashVerdict {
  const charged = alone ? crashes + 1 : crashes
  if (cancelRequested) return { crashes: charged, becomes: 'cancelled' }
  return { crashes: charged, becomes: alone && charged >= maxCrashes ? 'dead' : 'suspect' }
}
