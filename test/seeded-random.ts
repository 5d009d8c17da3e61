/** Seeded random: the same numbers for the same seed, so that a test of chance fails always or never. */

import type { Random } from '#src/core/clock.js'

/** Mulberry32: 32 bits of state, uniform in [0, 1). */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let bits = Math.imul(state ^ (state >>> 15), state | 1)
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61)
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}
