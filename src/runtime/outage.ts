/** An outage of the store: whether waiting may mend it, and how long to wait. */

import { setTimeout as delay } from 'node:timers/promises'
import type { Random } from '../core/clock.js'
import { MillraceError, StoreUnavailableError } from '../core/errors.js'

const firstMs = 50
const mostMs = 2_000

/** Full jitter from 50 ms, at most 2 s, so that workers resume by themselves within 5 s. */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}

const fatalCodes = new Set([
  'store-corrupt',
  'store-newer',
  'store-refused',
  'config-conflict',
  'config-invalid',
  'queue-unknown',
  'argument-invalid',
  'closed',
])

/** Whether no waiting mends this error of a store. */
export function isFatal(error: unknown): boolean {
  return error instanceof MillraceError && fatalCodes.has(error.code)
}

/** What `work` resolves with, tried for as long as the store is away; undefined once it is over. Throws what else it throws. */
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
      if (!(error instanceof StoreUnavailableError)) throw error
      const retryMs = outageDelayMs(failures, random)
      failed(error, retryMs)
      await delay(retryMs)
    }
  }
  return undefined
}
