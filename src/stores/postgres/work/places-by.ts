/** Items that travel together. Pure. */

/** The places of the items by a key of each, in their order. */
export function placesBy<T>(items: readonly T[], keyOf: (item: T, place: number) => string): number[][] {
  const groups = new Map<string, number[]>()
  for (const [place, item] of items.entries()) {
    const key = keyOf(item, place)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [place])
    else group.push(place)
  }
  return [...groups.values()]
}
