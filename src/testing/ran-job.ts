/** A job that was run by a drain, and what became of it. */

import type { JobState } from '../core/job.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { TaskResult } from '../core/task/task-definition.js'
import { messageOf } from '../core/values/describe.js'
import type { Verdict } from '../runtime/run/verdict.js'
import type { Claim } from '../stores/contract/claim.js'
import type { SettleAnswer } from '../stores/contract/settle.js'

/** One attempt at a job of one of these tasks; `task` tells which, and so what `result` is. */
export type RanJob<T extends AnyTask = AnyTask> = T extends AnyTask
  ? {
      readonly task: T['name']
      readonly id: string
      readonly queue: string
      /** Failures before this attempt + 1. */
      readonly attempt: number
      /**
       * What the attempt has led to: `'scheduled'` or `'ready'` if it runs again, `'running'` if its end was refused because
       * the job was taken over or deleted meanwhile. Of an ordered id whose last retry has failed `'dead'`, as its oldest
       * payload is.
       */
      readonly state: JobState
      /** What the handler returned; absent if the job has not completed. */
      readonly result?: TaskResult<T>
      /** What the handler threw, or why it was not called. */
      readonly error?: unknown
      /** Why it was buried, cancelled or put back: `'max-retries'`, `'snoozed'`, … or the handler's own words. */
      readonly reason?: string
      /** When it is due again. */
      readonly runAt?: Date
    }
  : never

/** `now`: the store's, when it was settled. */
export function ranJob(
  { task, id, queue, attempt }: Claim,
  verdict: Verdict,
  answer: SettleAnswer,
  now: number,
): RanJob {
  const ran = { task, id, queue, attempt }
  if (answer !== 'ok') return { ...ran, state: 'running', reason: `its settle was refused: ${answer}` }
  switch (verdict.kind) {
    case 'complete':
      return { ...ran, state: 'completed', result: verdict.result }
    case 'retry':
      return verdict.last
        ? { ...ran, state: 'dead', error: verdict.error, reason: verdict.reason }
        : { ...ran, ...again(verdict.delayMs, now), error: verdict.error }
    case 'release': {
      const error = verdict.error === undefined ? {} : { error: new Error(verdict.error) }
      return { ...ran, ...again(verdict.delayMs, now), ...error, reason: verdict.reason }
    }
    case 'bury':
      return { ...ran, state: 'dead', error: verdict.error, reason: verdict.reason }
    case 'cancel':
      return { ...ran, state: 'cancelled', ...(verdict.reason !== undefined && { reason: verdict.reason }) }
  }
}

function again(delayMs: number, now: number): { readonly state: 'ready' | 'scheduled'; readonly runAt: Date } {
  return { state: delayMs > 0 ? 'scheduled' : 'ready', runAt: new Date(now + delayMs) }
}

/** In one line, for a message. */
export function lineOf({ task, id, state, error, reason }: RanJob): string {
  const why = error === undefined ? reason : messageOf(error)
  return `${task} ${id}: ${state}${why === undefined ? '' : ` (${why})`}`
}
