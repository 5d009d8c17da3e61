/** The restart delay: how long a supervisor waits before it replaces a process that died. */

import type { Random } from '../../core/platform/clock.js'

const firstMs = 250
const longestMs = 30_000
/** A process that lived this long was healthy: its death says nothing about the next. */
const forgottenAfterMs = 60_000

/** The deaths in a row in one place, after one more of a process that lived for `livedMs`. */
export function deathsInARow(before: number, livedMs: number): number {
  return livedMs >= forgottenAfterMs ? 1 : before + 1
}

/**
 * 0 after the first death; then 250 ms, doubling to 30 s. A random part of up to a half is subtracted, so places that
 * die together do not restart together.
 */
export function restartDelayMs(deaths: number, random: Random): number {
  if (deaths <= 1) return 0
  const wholeMs = Math.min(firstMs * 2 ** (deaths - 2), longestMs)
  return Math.round(wholeMs * (1 - random() / 2))
}
