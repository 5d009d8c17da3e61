/**
 * The hook of exhausted retries: calls a task's `onExhausted` once the store has buried the payloads of an execution's
 * last failure. `found-ends.ts` calls it for crashes.
 */

import type { Events } from '../core/events.js'
import { ownMeta } from '../core/job-origin.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { EndAnswer } from '../core/task/middleware.js'
import { type BatchedJob, JobsExecution, OrderedExecution } from '../runtime/run/batch-execution.js'
import type { Execution, JobExecution } from '../runtime/run/execution.js'
import type { Verdict } from '../runtime/run/verdict.js'

/** Receives the store's answers to the settles of one execution; resolves when the user's hook has ended. */
export interface EndHook {
  answered(id: string, answer: EndAnswer): Promise<unknown> | undefined
}

/** Undefined if nothing of it can be exhausted, or the task has no hook. */
export function exhaustedHookOf(
  execution: Execution,
  verdicts: readonly Verdict[],
  events: Events,
): EndHook | undefined {
  if (execution.task.onExhausted === undefined) return undefined
  if (execution instanceof OrderedExecution) return payloadsExhaustion(execution, verdicts, events)
  if (execution instanceof JobsExecution) return jobsExhaustion(execution, verdicts, events)
  const [verdict] = verdicts
  const error = exhaustedBy(verdict!)
  if (error === undefined) return undefined
  const { task, job, input } = execution as JobExecution
  return {
    answered(_, answer) {
      if (answer !== 'ok') return undefined
      return callExhausted(events, task, () => task.onExhausted!({ job, input, error: error.error }))
    },
  }
}

/** Called once, after the last answer, with the oldest payload of each id whose burial the store has confirmed. */
function payloadsExhaustion(
  { task, leased }: OrderedExecution,
  verdicts: readonly Verdict[],
  events: Events,
): EndHook | undefined {
  const failed = new Map<string, { readonly job: BatchedJob; readonly error: unknown }>()
  for (const [i, job] of leased.entries()) {
    const last = exhaustedBy(verdicts[i]!)
    if (last !== undefined) failed.set(job.claim.id, { job, error: last.error })
  }
  if (failed.size === 0) return undefined
  let unanswered = leased.length
  return {
    answered(id, answer) {
      if (answer !== 'ok') failed.delete(id)
      unanswered -= 1
      if (unanswered > 0 || failed.size === 0) return undefined
      const payloads = [...failed].map(([id, { job, error }]) => ({
        id,
        input: job.inputs[job.done],
        score: job.claim.payloads![job.done]!.score,
        meta: ownMeta(job.metas[job.done]!),
        error,
      }))
      return callExhausted(events, task, () => task.onExhausted!(payloads))
    },
  }
}

/** Called for each job by itself. */
function jobsExhaustion(execution: JobsExecution, verdicts: readonly Verdict[], events: Events): EndHook | undefined {
  const { task, leased } = execution
  const hooks = new Map<string, () => unknown>()
  for (const [i, batched] of leased.entries()) {
    const last = exhaustedBy(verdicts[i]!)
    if (last === undefined) continue
    const [job, input] = [execution.jobOf(batched), batched.inputs[0]]
    hooks.set(batched.claim.id, () => task.onExhausted!({ job, input, error: last.error }))
  }
  if (hooks.size === 0) return undefined
  return {
    answered(id, answer) {
      const hook = hooks.get(id)
      return hook !== undefined && answer === 'ok' ? callExhausted(events, task, hook) : undefined
    },
  }
}

/**
 * The failure after which no retry is left. A failure that must not be retried ends the job too, but exhausts nothing.
 */
function exhaustedBy(verdict: Verdict): { readonly error: unknown } | undefined {
  return verdict.kind === 'retry' && verdict.last && verdict.reason !== 'unrecoverable' ? verdict : undefined
}

/** An error of the hook is reported and changes nothing. */
export async function callExhausted(events: Events, { name }: AnyTask, hook: () => unknown): Promise<void> {
  try {
    await hook()
  } catch (thrown) {
    events.emit('hook.failed', { hook: `onExhausted of task '${name}'`, error: thrown })
  }
}
