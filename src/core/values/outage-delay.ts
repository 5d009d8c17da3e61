/** The pause before the next call to a store that is unavailable: the same for its connection and for its callers. */

import type { Random } from '../platform/clock.js'

const firstMs = 20
const mostMs = 2_000

/**
 * The pause with full jitter. From 20 ms, so a connection that was cut is back before anybody notices. At most 2 s, so
 * work goes on by itself within 5 s.
 */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}
