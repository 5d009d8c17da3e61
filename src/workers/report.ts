/** The report on a settled attempt: the events that tell what became of it, and the call of the task's `onExhausted`. */

import type { Events } from '../core/events.js'
import { messageOf } from '../core/shown.js'
import { type Prepared, refOf } from '../runtime/executor.js'
import type { Verdict } from '../runtime/verdict.js'
import type { Claim, Claimed, SettleAnswer } from '../stores/store.js'

export function report(events: Events, claim: Claim, verdict: Verdict, answer: SettleAnswer, runMs: number): void {
  const ref = refOf(claim)
  if (answer !== 'ok') {
    events.emit('settle.refused', { ...ref, kind: verdict.kind, answer })
    return
  }
  switch (verdict.kind) {
    case 'complete':
      if (events.has('job.completed')) events.emit('job.completed', { ...ref, attempt: claim.attempt, runMs })
      return
    case 'retry':
      events.emit('job.failed', {
        ...ref,
        attempt: claim.attempt,
        error: verdict.error,
        retryMs: verdict.last ? undefined : verdict.delayMs,
      })
      if (verdict.last) events.emit('job.buried', { ...ref, reason: verdict.reason, error: wordsOf(verdict.error) })
      return
    case 'release':
      events.emit('job.released', { ...ref, reason: verdict.reason, delayMs: verdict.delayMs })
      return
    case 'bury':
      events.emit('job.buried', { ...ref, reason: verdict.reason, error: wordsOf(verdict.error) })
      return
    case 'cancel':
      events.emit('job.cancelled', { ...ref, reason: verdict.reason })
  }
}

function wordsOf(error: unknown): string | undefined {
  return error === undefined ? undefined : messageOf(error)
}

/** Tells the task that a job was buried because its retries are exhausted. What it throws is reported and changes nothing. */
export async function tellExhausted(
  events: Events,
  { task, execution }: Extract<Prepared, { task: unknown }>,
  verdict: Verdict,
): Promise<void> {
  if (task.onExhausted === undefined || verdict.kind !== 'retry' || !verdict.last) return
  if (verdict.reason !== 'max-retries' && verdict.reason !== 'no-retries') return
  try {
    await task.onExhausted({ job: execution.job, input: execution.input, error: verdict.error })
  } catch (error) {
    events.emit('hook.failed', { hook: `onExhausted of task '${task.name}'`, error })
  }
}

/** Tells of the leases that a claim found ended, and of the jobs it buried for them. */
export function reportCrashes(events: Events, { crashed, buried }: Pick<Claimed, 'crashed' | 'buried'>): void {
  for (const crash of crashed) events.emit('job.crashed', crash)
  for (const { reason, ...ref } of buried) events.emit('job.buried', { ...ref, reason, error: undefined })
}
