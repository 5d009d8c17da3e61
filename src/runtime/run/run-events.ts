/** The events of a run: its start, its settled end, and the ends that a claim found. Each is also counted. */

import type { Events, JobRef } from '../../core/events.js'
import { messageOf } from '../../core/messages/describe.js'
import type { Claim, Claimed } from '../../stores/contract/claim.js'
import type { SettleAnswer } from '../../stores/contract/settle.js'
import { expiredReason } from '../../stores/rules/sequence.js'
import type { Verdict } from './verdict.js'

export function emitStarted(events: Events, claim: Claim, worker: string): void {
  events.counter?.started(claim.queue)
  // Nearly every job passes here: build no event that nobody hears.
  if (events.has('job.started')) events.emit('job.started', { ...refOf(claim), attempt: claim.attempt, worker })
}

/** `isInDoubt`: the end was sent before without an answer. */
export function emitSettled(
  events: Events,
  claim: Claim,
  verdict: Verdict,
  answer: SettleAnswer,
  runMs: number,
  isInDoubt = false,
): void {
  const { queue, id, task, attempt } = claim
  // The transaction in which its handler ended it has committed.
  if (verdict.endsInside && answer === 'gone') {
    emitSettled(events, claim, { kind: 'complete', result: undefined }, 'ok', runMs)
    return
  }
  if (answer === 'ok') countSettled(events, claim, verdict, runMs)
  if (answer === 'ok' && verdict.kind === 'complete') {
    // Most jobs end here: build no event that nobody hears.
    if (events.has('job.completed'))
      events.emit('job.completed', { queue, id, task, attempt, runMs, ...holdOf(verdict) })
    return
  }
  const ref = refOf(claim)
  if (answer !== 'ok') {
    events.emit('settle.refused', { ...ref, kind: verdict.kind, answer, ...(isInDoubt && { inDoubt: true }) })
    return
  }
  switch (verdict.kind) {
    case 'retry':
      events.emit('job.failed', {
        ...ref,
        attempt,
        error: verdict.error,
        retryMs: verdict.last ? undefined : verdict.delayMs,
        ...holdOf(verdict),
      })
      if (verdict.last) events.emit('job.buried', { ...ref, reason: verdict.reason, error: wordsOf(verdict.error) })
      return
    case 'release':
      events.emit('job.released', {
        ...ref,
        reason: verdict.reason,
        delayMs: verdict.delayMs,
        ...holdOf(verdict),
      })
      return
    case 'bury':
      events.emit('job.buried', { ...ref, reason: verdict.reason, error: wordsOf(verdict.error) })
      return
    case 'cancel':
      events.emit('job.cancelled', { ...ref, reason: verdict.reason })
  }
}

function holdOf({ holdMs }: Verdict): { readonly holdMs?: number } {
  return holdMs === undefined ? {} : { holdMs }
}

function countSettled(events: Events, claim: Claim, verdict: Verdict, runMs: number): void {
  const { counter, taskCounter } = events
  switch (verdict.kind) {
    case 'complete':
      counter?.completed(claim.queue, runMs)
      taskCounter?.completed(claim, runMs)
      return
    case 'retry':
      counter?.failed(claim.queue, runMs)
      taskCounter?.failed(claim, runMs)
      if (verdict.last) countBuried(events, claim)
      return
    case 'bury':
      countBuried(events, claim)
      return
    case 'cancel':
      counter?.cancelled(claim.queue)
  }
}

/** Counts a job that goes to the morgue. */
export function countBuried({ counter, taskCounter }: Events, job: JobRef): void {
  counter?.buried(job.queue)
  taskCounter?.buried(job)
}

function wordsOf(error: unknown): string | undefined {
  return error === undefined ? undefined : messageOf(error)
}

export type FoundByClaim = Pick<Claimed, 'crashed' | 'buried' | 'expired'>

/**
 * Emits events for the expired leases that a claim found, the jobs that it buried for them, and expired jobs. `died`: how
 * the holder of the leases ended, if that is known.
 */
export function emitFound(events: Events, { crashed, buried, expired = [] }: FoundByClaim, died?: Error): void {
  const { counter } = events
  for (const crash of crashed) {
    counter?.crashed(crash.queue)
    events.emit('job.crashed', died === undefined ? crash : { ...crash, error: died.message })
  }
  for (const { queue, id, task, reason } of buried) {
    countBuried(events, { queue, id, task })
    events.emit('job.buried', { queue, id, task, reason, error: died?.message })
  }
  for (const ref of expired) {
    counter?.cancelled(ref.queue)
    events.emit('job.cancelled', { ...ref, reason: expiredReason })
  }
}

/** Reports the errors of users' functions, such as `retry.when`. */
export function hookFailed(events: Events): (hook: string, error: unknown) => void {
  return (hook, error) => events.emit('hook.failed', { hook, error })
}

/** The job of a claim, as events name it. */
export function refOf({ queue, id, task }: JobRef): JobRef {
  return { queue, id, task }
}
