/**
 * A clock: wall time for people, monotonic time for measuring. Only this file of the pure floors may read the real
 * clocks.
 */

export interface Clock {
  /** Milliseconds since 1970 on the wall clock. */
  now(): number
  /** Milliseconds that never go back and ignore steps of the wall clock. */
  mono(): number
}

/** If the wall clock goes back by at most this much, it counts as standing still. */
export const toleratedStepMs = 1_000

/** Uniform in [0, 1). */
export type Random = () => number

export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
}

export const systemRandom: Random = () => Math.random()
