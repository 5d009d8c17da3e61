/** The longest timer of Node, and timer lengths within it. */

/** 2^31 − 1 ms, about 24 days. Node turns a longer timer into one of 1 ms and prints a `TimeoutOverflowWarning`. */
export const longestTimerMs = 2 ** 31 - 1

/**
 * The length of a timer for `ms`. It ends early if `ms` is longer than the longest timer, so the caller must check
 * again.
 */
export function timerMs(ms: number): number {
  return Math.min(ms, longestTimerMs)
}
