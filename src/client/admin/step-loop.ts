/** A step loop: runs an administrative action in bounded steps, so that it never blocks a store for long. */

import { setTimeout as delay } from 'node:timers/promises'
import { timerMs } from '../../core/platform/timer.js'
import type { Step } from '../../stores/contract/job-records.js'

/** The progress of a long action. */
export interface StepProgress {
  /** Jobs changed so far. */
  readonly changed: number
  /** The last step could change nothing, because jobs still run. */
  readonly isWaiting: boolean
}

/** The options of a drain. */
export interface DrainOptions {
  /** Ends the waiting, but not the drain. Default: nothing does. */
  readonly signal?: AbortSignal | undefined
  /** Called about ten times a second, with the number of jobs left. Default: none. */
  readonly onProgress?: ((left: { readonly waiting: number; readonly running: number }) => void) | undefined
}

export interface LongActionOptions {
  /** Ends the action between two steps; it then rejects with the signal's reason. Default: nothing does. */
  readonly signal?: AbortSignal | undefined
  /** Called after each step. Default: none. */
  readonly onProgress?: ((progress: StepProgress) => void) | undefined
}

const firstWaitMs = 50
const longestWaitMs = 1_000

/**
 * The share of an operator in the time of a store that others wait for: then, if each step changes five jobs, the 99th of a hundred
 * of their jobs begins hardly later (`proofs/stores/tenants.txt`).
 */
const ownShare = 1 / 4

/** How long the store is left to others after a step: if they wait for it, three times as long as the step took. */
export function restMs({ isAwaited }: Step, tookMs: number): number {
  return isAwaited === true ? tookMs / ownShare - tookMs : 0
}

/** Takes a step, and then leaves the store to those who wait for it. */
export async function politely(step: () => Promise<Step>): Promise<Step> {
  const startedAt = performance.now()
  const done = await step()
  const forMs = restMs(done, performance.now() - startedAt)
  if (forMs > 0) await delay(timerMs(forMs))
  return done
}

/** Runs all steps; resolves with the total of changed jobs. */
export async function total(step: () => Promise<Step>): Promise<number> {
  let changed = 0
  for (;;) {
    const done = await politely(step)
    changed += done.changed
    if (!done.more) return changed
  }
}

/**
 * Runs all steps of an action that may have to wait for others. After a step that changed nothing it waits 50 ms, then
 * longer and longer, up to 1 s.
 */
export async function patientTotal(
  step: () => Promise<Step>,
  { signal, onProgress }: LongActionOptions = {},
): Promise<number> {
  let changed = 0
  let waitMs = firstWaitMs
  for (;;) {
    signal?.throwIfAborted()
    const done = await politely(step)
    changed += done.changed
    const isWaiting = done.more && done.changed === 0
    onProgress?.({ changed, isWaiting })
    if (!done.more) return changed
    if (isWaiting) await delay(timerMs(waitMs), undefined, signal && { signal }).catch(() => signal?.throwIfAborted())
    waitMs = isWaiting ? Math.min(waitMs * 2, longestWaitMs) : firstWaitMs
  }
}

/** A runner for the steps of an action; resolves with the total of changed jobs. */
export type StepLoop = (step: () => Promise<Step>, options?: LongActionOptions) => Promise<number>

/** The steps of an action that yields what each has changed. `isOver`: whether it has come to its end. */
export function yieldedSteps(changes: AsyncGenerator<number, void, undefined>): {
  readonly step: () => Promise<Step>
  readonly isOver: () => boolean
} {
  let isOver = false
  const step = async (): Promise<Step> => {
    const { value, done } = await changes.next()
    isOver = done === true
    return { changed: value ?? 0, more: !isOver }
  }
  return { step, isOver: () => isOver }
}

/** A time budget for the steps of an action; a later call of the same action does the rest. */
export class StepBudget {
  readonly #forMs: number
  readonly #mono: () => number
  /** Whether the last action has more to do. */
  more = false

  constructor(forMs: number, mono: () => number) {
    this.#forMs = forMs
    this.#mono = mono
  }

  /** Runs at least one step. */
  readonly loop: StepLoop = async (step, options) => {
    const untilAt = this.#mono() + this.#forMs
    return patientTotal(async () => {
      const done = await step()
      this.more = done.more
      return this.#mono() < untilAt ? done : { ...done, more: false }
    }, options)
  }
}
