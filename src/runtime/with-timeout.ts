/** A wait with a timeout: for work, but at most for a set time. */

import { timerMs } from '../core/platform/timer.js'

/** Resolves with whether `work` ended within `ms`; rejects as it does. */
export async function endsWithin(ms: number, work: Promise<unknown>): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<false>((resolve) => {
    timer = setTimeout(() => resolve(false), timerMs(ms))
  })
  return Promise.race([work.then(() => true), late]).finally(() => clearTimeout(timer))
}

/**
 * Waits until `work` has ended, even if it rejects, or `signal` aborts. With a signal that never aborts, a race would
 * never be released.
 */
export async function settledOr(signal: AbortSignal, work: Promise<unknown>): Promise<void> {
  if (signal.aborted) return
  await new Promise<void>((resolve) => {
    const done = () => {
      signal.removeEventListener('abort', done)
      resolve()
    }
    signal.addEventListener('abort', done)
    work.then(done, done)
  })
}
