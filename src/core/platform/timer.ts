/** The longest timer of Node, and lengths of timers that stay within it. */

/** Node turns a longer timer into one of 1 ms and prints a `TimeoutOverflowWarning`: 2^31 − 1 ms, about 24 days. */
export const longestTimerMs = 2 ** 31 - 1

/** The length of a timer for `ms`. A timer for longer than the longest ends early: look again at what it waits for. */
export function timerMs(ms: number): number {
  return Math.min(ms, longestTimerMs)
}
