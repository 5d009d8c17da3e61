/** The settlement of an attempt: its verdict as the item that the store receives. */

import { PayloadTooLargeError } from '../../core/errors.js'
import { storedError } from '../../core/job-failures.js'
import { type Packing, unkeptResult } from '../../core/packing/packing.js'
import type { Queue } from '../../core/queue/queue.js'
import { payloadBytes } from '../../core/values/codec.js'
import { errorText, type FormatError } from '../../core/values/error-text.js'
import type { Claim } from '../../stores/contract/claim.js'
import type { EndedRun } from '../../stores/contract/job-beat.js'
import type { Hold, SettleItem } from '../../stores/contract/settle.js'
import type { Execution } from './execution.js'
import type { Verdict } from './verdict.js'

export interface SettlementRules {
  readonly packing: Packing
  readonly formatError: FormatError
  readonly maxResultBytes: number
  readonly maxDelayMs: number
  /** Whether the store can hold a queue or a group. If not, a job that is released waits alone. */
  readonly canHold: boolean
  /**
   * When and where it ran; undefined if it has not begun. Called only if the job's record stays. Absent: another part
   * informs the store.
   */
  readonly endedRun?: (ran: Execution) => EndedRun | undefined
  /** The wall clock, for the instants of failures. */
  readonly now: () => number
  /** Called with a result that cannot be kept; the job completes, and the reason is kept instead. */
  readonly resultDropped: (claim: Claim, error: unknown) => void
}

/** A completion of which nothing is kept. A class for the reason that `listOfOne` gives. */
class Completion {
  readonly queue: string
  readonly id: string
  readonly fence: number
  readonly kind = 'complete'

  constructor({ queue, id, fence }: Claim) {
    this.queue = queue
    this.id = id
    this.fence = fence
  }
}

/** `ran`: the execution that ran, if any. */
export function settlementOf(
  claim: Claim,
  verdict: Verdict,
  results: Queue['results'],
  rules: SettlementRules,
  ran?: Execution,
): SettleItem {
  const { queue, id, fence } = claim
  const held = holdOf(claim, verdict, rules)
  if (verdict.kind === 'complete') {
    const result = keptResult(claim, verdict.result, results, rules)
    if (result !== undefined) return { queue, id, fence, ...held, kind: 'complete', result, ...runOf(ran, rules) }
    return held === undefined ? new Completion(claim) : { queue, id, fence, ...held, kind: 'complete' }
  }
  const { done } = verdict
  const delayMs = (ms: number) => Math.min(ms, rules.maxDelayMs)
  const key = { queue, id, fence, ...held }
  const left = done === undefined ? key : { ...key, done }
  // The payloads that are left had not failed before this run.
  const before = done === undefined ? claim : { attempt: 1, error: undefined }
  const text = (error: unknown, failed?: { readonly attempt: number; readonly at: number }) =>
    storedError(errorText(error, rules.formatError), before.error, failed)
  switch (verdict.kind) {
    case 'retry': {
      const error = text(verdict.error, { attempt: before.attempt, at: rules.now() })
      const failure = { ...left, kind: 'retry' as const, delayMs: delayMs(verdict.delayMs), error }
      return verdict.last ? { ...failure, last: true, reason: verdict.reason, ...runOf(ran, rules) } : failure
    }
    case 'release': {
      const { error, holdMs = 0 } = verdict
      const waitMs = rules.canHold ? verdict.delayMs : Math.max(verdict.delayMs, holdMs)
      return {
        ...left,
        kind: 'release',
        delayMs: delayMs(waitMs),
        ...(error === undefined ? {} : { error: text(error) }),
      }
    }
    case 'bury':
      return {
        ...left,
        kind: 'bury',
        reason: bounded(verdict.reason),
        ...(verdict.error === undefined ? {} : { error: text(verdict.error) }),
        ...runOf(ran, rules),
      }
    case 'cancel':
      return {
        ...key,
        kind: 'cancel',
        ...(verdict.reason === undefined ? {} : { reason: bounded(verdict.reason) }),
        ...runOf(ran, rules),
      }
  }
}

/** The hold that the end of the claim brings with it. */
function holdOf(
  { group }: Claim,
  { holdMs }: Verdict,
  { canHold, maxDelayMs }: SettlementRules,
): { readonly hold: Hold } | undefined {
  if (holdMs === undefined || !canHold) return undefined
  return { hold: { of: group === undefined ? 'queue' : 'group', forMs: Math.min(holdMs, maxDelayMs) } }
}

function runOf(ran: Execution | undefined, { endedRun }: SettlementRules): { readonly run?: EndedRun } {
  const run = ran && endedRun?.(ran)
  return run === undefined ? {} : { run }
}

function keptResult(
  claim: Claim,
  result: unknown,
  results: Queue['results'],
  rules: SettlementRules,
): (SettleItem & { kind: 'complete' })['result'] {
  if (results === 'none') return undefined
  const keepMs = results.ageMs === undefined ? {} : { keepMs: results.ageMs }
  if (result === undefined) return results.ends && claim.payloads === undefined ? keepMs : undefined
  try {
    const packed = rules.packing.pack(result, 'result', claim)
    const bytes = payloadBytes(packed.payload)
    if (bytes > rules.maxResultBytes) throw new PayloadTooLargeError('the result', bytes, rules.maxResultBytes)
    return { ...packed, ...keepMs }
  } catch (error) {
    rules.resultDropped(claim, error)
    return { ...unkeptResult(error), ...keepMs }
  }
}

/** Reasons are short words or sentences; a handler may return a novel. */
function bounded(reason: string): string {
  return reason.slice(0, 1_000).toWellFormed()
}
