/** The pause before a store that is away is asked again: the same for its connection and for whoever calls it. */

import type { Random } from '../platform/clock.js'

const firstMs = 20
const mostMs = 2_000

/**
 * Full jitter. From 20 ms: a connection that was cut is back before anybody has waited for it. At most 2 s: work goes on by
 * itself within 5 s.
 */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}
