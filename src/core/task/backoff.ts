/** Backoff: the delay before a failed job is tried again. */

import { InvalidArgumentError } from '../errors.js'
import { describe } from '../messages/describe.js'
import type { Random } from '../platform/clock.js'
import { callForms, callOptions } from '../values/call-check.js'
import { type Duration, durationMs } from '../values/duration.js'

/**
 * A function that returns the delay in ms before the next run, after `failures` failures (1 for the first). You may
 * write your own. The returned number is clamped to 0 … 10 years, and NaN to 0; anything else is an error.
 */
export type Backoff = (failures: number, random: Random) => number

interface ExponentialOptions {
  /** The first delay, or its upper bound if there is jitter; doubles with each failure. Default `'1m'`. */
  readonly base?: Duration | undefined
  /** Upper bound of every delay. Default `'15m'`. */
  readonly max?: Duration | undefined
  /**
   * Whether the delay is drawn at random from 0 up to its bound, so that jobs that fail together do not run again
   * together. Default true.
   */
  readonly jitter?: boolean | undefined
}

const checkOptions = callOptions('exponential', { base: callForms.own, max: callForms.own, jitter: callForms.flag })

/**
 * Exponential backoff: uniform in [0, min(base · 2^(failures−1), max)], which spreads many simultaneous failures over
 * the whole delay. (AWS Architecture Blog, "Exponential Backoff And Jitter".) With `jitter: false` it is the upper bound
 * itself, as in Kale: 1, 2, 4, 8, 15, 15 … minutes by default. Throws `InvalidArgumentError` for a wrong option.
 *
 * @example
 * defineTask({ name: 'mail', retry: { max: 8, backoff: exponential({ base: '10s', max: '1h' }) } })
 */
export function exponential(options: ExponentialOptions = {}): Backoff {
  checkOptions(options)
  const baseMs = durationMs(options.base ?? '1m', 'exponential({ base })')
  const maxMs = durationMs(options.max ?? '15m', 'exponential({ max })')
  const boundOf = (failures: number) => Math.min(doubled(baseMs, failures), maxMs)
  if (options.jitter === false) return boundOf
  return (failures, random) => Math.round(random() * boundOf(failures))
}

/**
 * Polynomial backoff: n⁴ + 15 + r·(n+1) seconds, with n = failures before this one and r a random whole number in 0 …
 * 29. 25 retries take about 20 days. (Lowkiq's and Sidekiq's formula.)
 *
 * @example
 * defineTask({ name: 'mail', retry: { max: 25, backoff: polynomial() } })
 */
export function polynomial(): Backoff {
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
