/** An outage: how long to wait before the store is asked again. Full jitter from 50 ms, at most 2 s, so that workers resume by themselves within 5 s. */

import type { Random } from '../core/clock.js'

const firstMs = 50
const mostMs = 2_000

export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}
