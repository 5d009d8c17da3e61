/** The patience of a connection: how it waits while others hold the write lock of its file, and for how long. */

import { systemRandom } from '../../../core/platform/clock.js'
import { isBusy } from '../file/sqlite-errors.js'
import type { ExitGate } from './exit-gate.js'

/** How long a call waits for other processes, and how long it does so while the store is being closed. */
const patienceMs = 30_000
const closingPatienceMs = 500

/** The longest first pause, the longest on a busy file, and the longest of all. */
const firstMs = 1
const shortMs = 8
const longMs = 64
/** The part of the time waited so far that a pause may take, at first and later on. */
const firstShare = 1 / 2
const share = 1 / 64

const sleeper = new Int32Array(new SharedArrayBuffer(4))

/**
 * The pause, in ms, after `waitedMs` of waiting. `random` is in [0, 1).
 *
 * The first pauses are shorter than a step of others takes, so that a call comes next once that is over. SQLite's own way to
 * wait is unfair: its pauses grow and grow, while others come and go. Random pauses of at most 8 ms are fair. But to ask costs
 * processor time, and if hundreds of connections ask all the time, none is left for the one that holds the lock. So pauses
 * grow further, up to a bound, once a call has waited for longer than a busy file takes: half a second.
 */
export function lockPauseMs(waitedMs: number, random: number): number {
  const busyMs = Math.min(shortMs, Math.max(firstMs, waitedMs * firstShare))
  return random * Math.min(longMs, Math.max(busyMs, waitedMs * share))
}

export class LockPatience {
  readonly #closing: Int32Array
  readonly #gate: ExitGate
  #closingAt: number | undefined

  /** `closing` is shared with the other side, which sets its first cell to 1 when it closes the store. */
  constructor(closing: Int32Array, gate: ExitGate) {
    this.#closing = closing
    this.#gate = gate
  }

  /**
   * The result of `step`, which is tried again while the file is locked, for 30 s at most. `meanwhile` is called
   * between two tries. Throws what `step` throws.
   */
  try<T>(step: () => T, meanwhile?: () => void): T {
    for (const startedAt = performance.now(); ; ) {
      try {
        return step()
      } catch (error) {
        if (!isBusy(error) || this.#isOver(startedAt)) throw error
      }
      this.#gate.outside(() => {
        Atomics.wait(sleeper, 0, 0, lockPauseMs(performance.now() - startedAt, systemRandom()))
        meanwhile?.()
      })
    }
  }

  /** Read from shared memory: a message would not be seen while a call waits. */
  #isOver(startedAt: number): boolean {
    const now = performance.now()
    if (now - startedAt > patienceMs) return true
    if (Atomics.load(this.#closing, 0) === 0) return false
    this.#closingAt ??= now
    return now - Math.max(startedAt, this.#closingAt) > closingPatienceMs
  }
}
