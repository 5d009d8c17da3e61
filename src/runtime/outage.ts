/** An outage of the store: whether waiting may mend an error, and the wait for its end. */

import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../core/errors.js'
import type { Random } from '../core/platform/clock.js'
import { outageDelayMs } from '../core/platform/timer.js'

const fatalCodes = new Set([
  'store-corrupt',
  'store-newer',
  'store-refused',
  'config-conflict',
  'config-invalid',
  'queue-missing',
  'queue-unknown',
  'argument-invalid',
  'closed',
])

/** Whether this error of a store is permanent, so that waiting is of no use. */
export function isFatal(error: unknown): boolean {
  return fatalCodes.has((error as { code?: string } | null | undefined)?.code ?? '')
}

/**
 * Tries `work` while the store is away, and resolves with its result; with undefined once `isOver()`. Rethrows other
 * errors.
 */
export async function onceThere<T>(
  work: () => Promise<T>,
  {
    isOver,
    random,
    failed,
  }: {
    readonly isOver: () => boolean
    readonly random: Random
    readonly failed: (error: unknown, retryMs: number) => void
  },
): Promise<T | undefined> {
  for (let failures = 0; !isOver(); failures += 1) {
    try {
      return await work()
    } catch (error) {
      if (!hasCode(error, 'store-unavailable')) throw error
      const retryMs = outageDelayMs(failures, random)
      failed(error, retryMs)
      await delay(retryMs)
    }
  }
  return undefined
}
