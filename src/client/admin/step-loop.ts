/** A step loop: an administrative action taken in bounded steps until it is done, so that no store is held for long. */

import { setTimeout as delay } from 'node:timers/promises'
import { timerMs } from '../../core/platform/timer.js'
import type { Step } from '../../stores/contract/job-records.js'

/** How far a long action is. */
export interface StepProgress {
  /** Jobs changed so far. */
  readonly changed: number
  /** The last step could change nothing: running jobs are waited for. */
  readonly isWaiting: boolean
}

export interface LongActionOptions {
  /** Ends the action between two steps; it then rejects with the signal's reason. Default: nothing does. */
  readonly signal?: AbortSignal
  /** Called after each step. Default: nobody hears of them. */
  readonly onProgress?: (progress: StepProgress) => void
}

const firstWaitMs = 50
const longestWaitMs = 1_000

/** Takes step after step; resolves with how many jobs were changed in all. */
export async function total(step: () => Promise<Step>): Promise<number> {
  let changed = 0
  for (;;) {
    const done = await step()
    changed += done.changed
    if (!done.more) return changed
  }
}

/**
 * The same where a step may have to wait for others: after one that changed nothing the next is taken 50 ms later, then at
 * ever longer intervals, up to 1 s.
 */
export async function patientTotal(
  step: () => Promise<Step>,
  { signal, onProgress }: LongActionOptions = {},
): Promise<number> {
  let changed = 0
  let waitMs = firstWaitMs
  for (;;) {
    signal?.throwIfAborted()
    const done = await step()
    changed += done.changed
    const isWaiting = done.more && done.changed === 0
    onProgress?.({ changed, isWaiting })
    if (!done.more) return changed
    if (isWaiting) await delay(timerMs(waitMs), undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    waitMs = isWaiting ? Math.min(waitMs * 2, longestWaitMs) : firstWaitMs
  }
}

/** Takes the steps of an action; resolves with how many jobs were changed in all. */
export type StepLoop = (step: () => Promise<Step>, options?: LongActionOptions) => Promise<number>

/** A budget of time for the steps of an action: what is not done by then is left for another call of the same. */
export class StepBudget {
  readonly #forMs: number
  readonly #mono: () => number
  /** Whether the last action would have found more to do. */
  more = false

  constructor(forMs: number, mono: () => number) {
    this.#forMs = forMs
    this.#mono = mono
  }

  /** At least one step is taken. */
  readonly loop: StepLoop = async (step, options) => {
    const untilAt = this.#mono() + this.#forMs
    return patientTotal(async () => {
      const done = await step()
      this.more = done.more
      return this.#mono() < untilAt ? done : { ...done, more: false }
    }, options)
  }
}
