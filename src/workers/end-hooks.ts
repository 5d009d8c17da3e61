/**
 * The end hooks: users' code that is called when a run has ended: `settle` of middleware, and `onExhausted` of the
 * task.
 */

import type { Events } from '../core/events.js'
import { ownMeta } from '../core/job/job-origin.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { EndAnswer, Middleware, RunEnd } from '../core/task/middleware.js'
import { type BatchExecution, type BatchedJob, OrderedExecution } from '../runtime/run/batch-execution.js'
import { type Execution, type JobExecution, runOf } from '../runtime/run/execution.js'
import { leaseLost, type Verdict } from '../runtime/run/verdict.js'

type Settle = NonNullable<Middleware['settle']>

const kinds = {
  complete: 'completed',
  retry: 'failed',
  bury: 'buried',
  release: 'released',
  cancel: 'cancelled',
} as const satisfies Record<Verdict['kind'], RunEnd['kind']>

/** Receives the store's answers to the settles of one execution; resolves when the user's hook has ended. */
export interface EndHook {
  answered(id: string, answer: EndAnswer): Promise<unknown> | undefined
}

export class EndHooks {
  readonly #settles: readonly Settle[]
  readonly #events: Events

  constructor(middleware: readonly Middleware[], events: Events) {
    this.#settles = middleware.flatMap((layer) => layer.settle?.bind(layer) ?? [])
    this.#events = events
  }

  /**
   * The hook to call once each claim of the execution has a verdict, in their order. Undefined if the user has none.
   */
  of(execution: Execution, verdicts: readonly Verdict[], runMs: number): EndHook | undefined {
    const exhaustion = exhaustedHookOf(execution, verdicts, this.#events)
    if (this.#settles.length === 0) return exhaustion
    const settling = this.#settling(execution, verdicts, runMs)
    return {
      answered: (id, answer) => Promise.all([exhaustion?.answered(id, answer), settling.answered(id, answer)]),
    }
  }

  /** The process of its job was killed because the lease is lost: nothing is settled. */
  lost(execution: JobExecution, runMs: number): void {
    void this.of(execution, [leaseLost], runMs)?.answered(execution.claim.id, 'lost')
  }

  #settling(execution: Execution, verdicts: readonly Verdict[], runMs: number): EndHook {
    const run = runOf(execution)
    const ends = execution.leased.map(({ claim }, i) => endOf(claim.id, verdicts[i]!, runMs))
    const told = new Map<string, EndAnswer>()
    let resolve: (answers: readonly EndAnswer[]) => void = () => {}
    const answers = new Promise<readonly EndAnswer[]>((resolved) => {
      resolve = resolved
    })
    const heard = Promise.all(this.#settles.map((settle) => this.#call(() => settle(run, ends, answers))))
    return {
      answered(id, answer) {
        told.set(id, answer)
        if (told.size === ends.length) resolve(ends.map((end) => told.get(end.id)))
        return heard
      },
    }
  }

  /** An error of the hook is reported and changes nothing. */
  async #call(settle: () => unknown): Promise<void> {
    try {
      await settle()
    } catch (error) {
      this.#events.emit('hook.failed', { hook: 'settle of a middleware', error })
    }
  }
}

function endOf(id: string, verdict: Verdict, runMs: number): RunEnd {
  return {
    ...{ id, kind: kinds[verdict.kind], runMs },
    ...('reason' in verdict && verdict.reason !== undefined ? { reason: verdict.reason } : {}),
    ...('error' in verdict && verdict.error !== undefined ? { error: verdict.error } : {}),
  }
}

/**
 * Calls the task's `onExhausted` once the store has buried the payloads of the execution's last failure. Undefined if
 * nothing of it can be exhausted, or the task has no hook. For crashes, `found-ends.ts` calls it.
 */
export function exhaustedHookOf(
  execution: Execution,
  verdicts: readonly Verdict[],
  events: Events,
): EndHook | undefined {
  if (execution.task.onExhausted === undefined) return undefined
  return execution instanceof OrderedExecution
    ? payloadsExhaustion(execution, verdicts, events)
    : jobsExhaustion(execution as JobExecution | BatchExecution, verdicts, events)
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
function jobsExhaustion(
  execution: JobExecution | BatchExecution,
  verdicts: readonly Verdict[],
  events: Events,
): EndHook | undefined {
  const { task } = execution
  let hooks: Map<string, () => unknown> | undefined
  for (const [i, leased] of execution.leased.entries()) {
    const last = exhaustedBy(verdicts[i]!)
    if (last === undefined) continue
    const { job, input } = leased as JobExecution | BatchedJob
    hooks ??= new Map()
    hooks.set(leased.claim.id, () => task.onExhausted!({ job, input, error: last.error }))
  }
  return (
    hooks && {
      answered(id, answer) {
        const hook = hooks.get(id)
        return hook !== undefined && answer === 'ok' ? callExhausted(events, task, hook) : undefined
      },
    }
  )
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
