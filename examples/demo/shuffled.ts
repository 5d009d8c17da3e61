/** A shuffle: the same order for the same seed. */

export function shuffled<T>(items: readonly T[], seed: number): T[] {
  const random = randomOf(seed)
  const order = [...items]
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random() * (i + 1))
    ;[order[i], order[j]] = [order[j]!, order[i]!]
  }
  return order
}

/** Numbers of [0, 1): a linear congruence, whose upper bits are good enough to shuffle by. */
function randomOf(seed: number): () => number {
  let state = BigInt(seed)
  return () => {
    state = (state * 6_364_136_223_846_793_005n + 1_442_695_040_888_963_407n) & 0xffff_ffff_ffff_ffffn
    return Number(state >> 11n) / 2 ** 53
  }
}
