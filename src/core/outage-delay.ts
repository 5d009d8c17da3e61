/** The pause before a store that is away is asked again: the same for its connection and for whoever calls it. */

import type { Random } from './clock.js'

const firstMs = 50
const mostMs = 2_000

/** Full jitter from 50 ms, at most 2 s, so that work goes on by itself within 5 s. */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}
