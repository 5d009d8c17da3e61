/** A manual clock: it stands still until it is moved. */

import type { Clock } from '../../core/platform/clock.js'

export class ManualClock implements Clock {
  #now: number
  #mono = 0

  constructor(startAt: number) {
    this.#now = startAt
  }

  now(): number {
    return this.#now
  }

  mono(): number {
    return this.#mono
  }

  /** Time passes: both the wall clock and the monotonic one go forward. */
  advance(ms: number): void {
    if (!(ms >= 0))
      throw new RangeError(`a clock advances by 0 or more milliseconds, not by ${ms}; use step() to set it`)
    this.#now += ms
    this.#mono += ms
  }

  /** Sets the wall clock, forward or back, as an administrator or NTP does; the monotonic one goes on undisturbed. */
  step(ms: number): void {
    this.#now += ms
  }
}
