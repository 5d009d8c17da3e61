/** A job that a drain has run, and its outcome. */

import type { JobState } from '../core/job.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { TaskResult } from '../core/task/task-definition.js'
import { messageOf } from '../core/values/describe.js'
import type { Verdict } from '../runtime/run/verdict.js'
import type { Claim } from '../stores/contract/claim.js'
import type { SettleAnswer } from '../stores/contract/settle.js'

/** One attempt at a job of one of these tasks; `task` says which, and so the type of `result`. */
export type RanJob<T extends AnyTask = AnyTask> = T extends AnyTask
  ? {
      readonly task: T['name']
      readonly id: string
      readonly queue: string
      /** Failures before this attempt + 1. */
      readonly attempt: number
      /**
       * The state after the attempt: `'scheduled'` or `'ready'` if the job runs again, `'running'` if its end was
       * refused because the job was taken over or deleted meanwhile. For an ordered id whose last retry has failed it
       * is `'dead'`, as its oldest payload is.
       */
      readonly state: JobState
      /** The return value of the handler; absent if the job has not completed. */
      readonly result?: TaskResult<T>
      /** The error that the handler threw, or why it was not called. */
      readonly error?: unknown
      /** Why the job was buried, cancelled or put back: `'max-retries'`, `'snoozed'`, … or the handler's own reason. */
      readonly reason?: string
      /** When the job is due again. */
      readonly runAt?: Date
    }
  : never

/** `now`: the store's time when the job was settled. */
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

/** The job in one line, for a message. */
export function lineOf({ task, id, state, error, reason }: RanJob): string {
  const why = error === undefined ? reason : messageOf(error)
  return `${task} ${id}: ${state}${why === undefined ? '' : ` (${why})`}`
}
