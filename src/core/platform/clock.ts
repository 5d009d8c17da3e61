/** A clock: wall time for what people see, monotonic time for measuring. The only file of the pure floors that may read the real ones. */

export interface Clock {
  /** Milliseconds since 1970, as the wall clock has it. */
  now(): number
  /** Milliseconds that never go back and do not follow steps of the wall clock. */
  mono(): number
}

/** A clock that is set back by no more than this is taken to stand still. */
export const toleratedStepMs = 1_000

/** Uniform in [0, 1). */
export type Random = () => number

export const systemClock: Clock = {
  now: () => Date.now(),
  mono: () => performance.now(),
}

export const systemRandom: Random = () => Math.random()
