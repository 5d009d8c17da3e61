/** Seeded random: the same numbers for the same seed, so that a test of chance fails always or never. */

import type { Random } from '#src/core/platform/clock.js'
import { Dice } from '#src/store-testing/sequences/dice.js'

/** Uniform in [0, 1). */
export function seededRandom(seed: number): Random {
  return new Dice(seed).random
}
