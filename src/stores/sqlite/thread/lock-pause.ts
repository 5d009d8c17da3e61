/** How long a call pauses before it asks for the write lock of its file again. */

const shortMs = 8
const longMs = 64
/** The part of the time waited so far that a pause may take. */
const share = 1 / 16

/**
 * The pause, in ms, after `waitedMs` of waiting. `random` is in [0, 1).
 *
 * SQLite's own way to wait is unfair: its pauses grow from the start, while others come and go. Short random pauses are
 * fair. But to ask costs processor time, and if hundreds of connections ask all the time, none is left for the one that
 * holds the lock. So pauses grow, up to a bound, once a call has waited for longer than a busy file takes: 128 ms.
 */
export function lockPauseMs(waitedMs: number, random: number): number {
  return random * Math.min(longMs, Math.max(shortMs, waitedMs * share))
}
