/** An outage of the store: whether waiting may mend it, and how long to wait. */

import type { Random } from '../core/clock.js'
import { MillraceError } from '../core/errors.js'

const firstMs = 50
const mostMs = 2_000

/** Full jitter from 50 ms, at most 2 s, so that workers resume by themselves within 5 s. */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}

const fatalCodes = new Set([
  'store-corrupt',
  'store-newer',
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
