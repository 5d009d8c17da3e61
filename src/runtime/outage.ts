/** An outage of the store, or of what handlers need: whether waiting may mend an error, and the wait for its end. */

import { setTimeout as delay } from 'node:timers/promises'
import { hasCode } from '../core/errors.js'
import { messageOf } from '../core/messages/describe.js'
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
 * Tries `work` while the store is away, or while `mayMend` says that waiting may mend its error, and resolves with its
 * result; with undefined once `isOver()`. Rethrows other errors.
 */
export async function onceThere<T>(
  work: () => Promise<T>,
  {
    isOver,
    random,
    failed,
    mayMend = (error) => hasCode(error, 'store-unavailable'),
  }: {
    readonly isOver: () => boolean
    readonly random: Random
    readonly failed: (error: unknown, retryMs: number) => void
    readonly mayMend?: (error: unknown) => boolean
  },
): Promise<T | undefined> {
  for (let failures = 0; !isOver(); failures += 1) {
    try {
      return await work()
    } catch (error) {
      if (!mayMend(error)) throw error
      const retryMs = outageDelayMs(failures, random)
      failed(error, retryMs)
      await delay(retryMs)
    }
  }
  return undefined
}

/** Node prints it, once: there is neither a logger nor a listener, and a start that waits in silence looks like one that hangs. */
export function warnOfWaiting(what: string, error: unknown, code: string): void {
  process.emitWarning(
    `${what}${messageOf(error).replace(/\.$/, '')}. The worker waits; to hear of it, give the mill a logger.`,
    {
      type: 'MillraceWarning',
      code,
    },
  )
}
