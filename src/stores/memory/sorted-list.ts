/** A sorted list: items kept in the order of a comparison that tells every two of them apart. */

export class SortedList<T> {
  readonly #items: T[] = []
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length
  }

  get first(): T | undefined {
    return this.#items[0]
  }

  add(item: T): void {
    this.#items.splice(this.#indexOf(item), 0, item)
  }

  /** Harmless where the item is not in the list. */
  remove(item: T): void {
    const at = this.#indexOf(item)
    if (this.#items[at] === item) this.#items.splice(at, 1)
  }

  /** The first `count` items, still in the list. */
  head(count: number): T[] {
    return this.#items.slice(0, count)
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.values()
  }

  /** Where the item stands, or would. */
  #indexOf(item: T): number {
    let low = 0
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#compare(this.#items[middle]!, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
