/** An attack: deeds against a crew while it works, at random points of its progress. */

export interface Deed {
  readonly times: number
  readonly make: () => Promise<void>
  /** The next deeds do not wait for this one. At most three of its kind last at once. */
  readonly lasts?: true
}

const lastingAtOnce = 3
/** Every deed happens before this share of the work is done. */
const latest = 0.9

/** `reached` resolves when this share of the work is done, 0 … 1. Resolves when all deeds are done and over. */
export async function attack(
  deeds: readonly Deed[],
  random: () => number,
  reached: (share: number) => Promise<void>,
): Promise<void> {
  const all = deeds.flatMap((deed) => Array.from({ length: deed.times }, () => deed))
  const planned = all.map((deed) => ({ deed, at: random() * latest })).sort((a, b) => a.at - b.at)
  const lasting = new Set<Promise<void>>()
  for (const { deed, at } of planned) {
    await reached(at)
    const made = deed.make()
    if (!deed.lasts) await made
    else {
      const over = made.finally(() => lasting.delete(over))
      lasting.add(over)
      if (lasting.size >= lastingAtOnce) await Promise.race(lasting)
    }
  }
  await Promise.all(lasting)
}
