/**
 * The end hooks: users' code that is called when a run has ended: `settle` of middleware, and `onExhausted` of the
 * task.
 */

import type { Events } from '../core/events.js'
import type { EndAnswer, Middleware, Run, RunEnd } from '../core/task/middleware.js'
import { JobsExecution, OrderedExecution } from '../runtime/run/batch-execution.js'
import type { Execution, JobExecution } from '../runtime/run/execution.js'
import { leaseLost, type Verdict } from '../runtime/run/verdict.js'
import { type EndHook, exhaustedHookOf } from './exhausted-hook.js'

export type { EndHook } from './exhausted-hook.js'

type Settle = NonNullable<Middleware['settle']>

const kinds = {
  complete: 'completed',
  retry: 'failed',
  bury: 'buried',
  release: 'released',
  cancel: 'cancelled',
} as const satisfies Record<Verdict['kind'], RunEnd['kind']>

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

function runOf(execution: Execution): Run {
  if (execution instanceof OrderedExecution)
    return { task: execution.task, input: execution.payloadsById, ctx: execution }
  if (execution instanceof JobsExecution) return { task: execution.task, input: execution.inputs, ctx: execution }
  const { task, input } = execution as JobExecution
  return { task, input, ctx: execution as JobExecution }
}

function endOf(id: string, verdict: Verdict, runMs: number): RunEnd {
  return {
    ...{ id, kind: kinds[verdict.kind], runMs },
    ...('reason' in verdict && verdict.reason !== undefined ? { reason: verdict.reason } : {}),
    ...('error' in verdict && verdict.error !== undefined ? { error: verdict.error } : {}),
  }
}
