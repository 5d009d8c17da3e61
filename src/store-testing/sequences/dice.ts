/** Dice: seeded chance. The same seed gives the same numbers, so that a failed run fails again. */

import type { Random } from '../../core/platform/clock.js'

export class Dice {
  /** Uniform in [0, 1): SplitMix32. */
  readonly random: Random

  constructor(seed: number) {
    let state = seed >>> 0
    this.random = () => {
      state = (state + 0x9e3779b9) >>> 0
      let bits = state
      bits = Math.imul(bits ^ (bits >>> 16), 0x21f0aaad)
      bits = Math.imul(bits ^ (bits >>> 15), 0x735a2d97)
      return ((bits ^ (bits >>> 15)) >>> 0) / 2 ** 32
    }
  }

  /** A whole number from `least` to `most`. */
  whole(least: number, most: number): number {
    return least + Math.floor(this.random() * (most - least + 1))
  }

  chance(probability: number): boolean {
    return this.random() < probability
  }

  pick<T>(items: readonly T[]): T {
    return items[Math.floor(this.random() * items.length)]!
  }

  /** One of the items, with a likelihood in proportion to its weight. */
  weighted<T>(items: readonly (readonly [weight: number, item: T])[]): T {
    let left = this.random() * items.reduce((sum, [weight]) => sum + weight, 0)
    for (const [weight, item] of items) {
      left -= weight
      if (left < 0) return item
    }
    return items.at(-1)![1]
  }

  /** Between `least` and `most` items, made one by one. */
  several<T>(least: number, most: number, make: (i: number) => T): T[] {
    return Array.from({ length: this.whole(least, most) }, (_, i) => make(i))
  }
}
