/** Backoff: the delay before a failed job is tried again. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import type { Random } from '../platform/clock.js'
import { type Duration, durationMs } from '../values/duration.js'

/**
 * A function that returns the delay in ms before the next run, after `failures` failures (1 for the first). You may
 * write your own. The returned number is clamped to 0 … 10 years, and NaN to 0; anything else is an error.
 */
export type Backoff = (failures: number, random: Random) => number

interface ExponentialOptions {
  /** Upper bound of the first delay; doubles with each failure. Default `'1m'`. */
  readonly base?: Duration | undefined
  /** Upper bound of every delay. Default `'15m'`. */
  readonly max?: Duration | undefined
}

/**
 * Exponential backoff with full jitter: uniform in [0, min(base · 2^(failures−1), max)]. It spreads many simultaneous
 * failures over the whole delay. (AWS Architecture Blog, "Exponential Backoff And Jitter".)
 */
export function exponential(options: ExponentialOptions = {}): Backoff {
  const baseMs = durationMs(options.base ?? '1m', 'exponential({ base })')
  const maxMs = durationMs(options.max ?? '15m', 'exponential({ max })')
  return (failures, random) => Math.round(random() * Math.min(doubled(baseMs, failures), maxMs))
}

interface KaleOptions {
  /** The first delay; doubles with each failure. Default `'60s'`. */
  readonly multiple?: Duration | undefined
  /** Upper bound of every delay. Default `'15m'`. */
  readonly max?: Duration | undefined
}

/**
 * Kale's backoff: min(2^n · multiple, max) with n = failures before this one. By default 1, 2, 4, 8, 15, 15 … minutes.
 */
export function kale(options: KaleOptions = {}): Backoff {
  const multipleMs = durationMs(options.multiple ?? '60s', 'kale({ multiple })')
  const maxMs = durationMs(options.max ?? '15m', 'kale({ max })')
  return (failures) => Math.min(doubled(multipleMs, failures), maxMs)
}

/**
 * Lowkiq's backoff: n⁴ + 15 + r·(n+1) seconds, with n = failures before this one and r a whole number in 0 … 29. 25
 * retries take about 20 days.
 */
export function lowkiq(): Backoff {
  return (failures, random) => {
    const n = failures - 1
    return (n ** 4 + 15 + Math.floor(random() * 30) * (n + 1)) * 1_000
  }
}

/**
 * The delay doubled with each failure after the first. 53 doublings of 1 ms exceed every duration; more would turn 0
 * into NaN.
 */
function doubled(ms: number, failures: number): number {
  return ms * 2 ** Math.min(failures - 1, 53)
}

const longestDelayMs = 10 * 365 * 86_400_000

/**
 * The delay that a backoff returns, made safe for a store. Throws `InvalidArgumentError` if the backoff returns no
 * number.
 */
export function delayAfter(backoff: Backoff, failures: number, random: Random): number {
  const ms: unknown = backoff(failures, random)
  if (typeof ms !== 'number') {
    throw new InvalidArgumentError(`a backoff must return a number of milliseconds, at once; got ${describe(ms)}.`)
  }
  return Number.isNaN(ms) ? 0 : Math.round(Math.min(Math.max(ms, 0), longestDelayMs))
}
