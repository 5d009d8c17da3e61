/** The lengths of timers: within the longest of Node, and before the next call to a store that is unavailable. */

import type { Random } from './clock.js'

/** 2^31 − 1 ms, about 24 days. Node turns a longer timer into one of 1 ms and prints a `TimeoutOverflowWarning`. */
export const longestTimerMs = 2 ** 31 - 1

/**
 * The length of a timer for `ms`. It ends early if `ms` is longer than the longest timer, so the caller must check
 * again.
 */
export function timerMs(ms: number): number {
  return Math.min(ms, longestTimerMs)
}

const firstMs = 20
const mostMs = 2_000

/**
 * The pause before the next call to a store that is unavailable, for its connection and its callers alike, with full
 * jitter. From 20 ms, so a connection that was cut is back before anybody notices. At most 2 s, so
 * work goes on by itself within 5 s.
 */
export function outageDelayMs(failures: number, random: Random): number {
  return Math.ceil(random() * Math.min(firstMs * 2 ** failures, mostMs))
}
