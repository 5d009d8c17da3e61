/** Answers of a Redis that is in trouble: the error of a call, and the first good answer. */

import { setTimeout as pause } from 'node:timers/promises'

export async function errorOf(promise: Promise<unknown>): Promise<Error> {
  return promise.then(
    () => new Error('it did not reject'),
    (error: Error) => error,
  )
}

/** Asks until the answer is what is hoped for; the test's own time limit ends it otherwise. */
export async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo().catch(() => false))) await pause(20)
}
