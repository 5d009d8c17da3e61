/** A sorted list: items in the order of a comparison by which no two of them are equal. */

export class SortedList<T> {
  /**
   * The items begin at `#head`; earlier ones have been removed. Queues mostly lose their first item, and moving all
   * others would cost more than the rest.
   */
  #items: T[] = []
  #head = 0
  readonly #compare: (a: T, b: T) => number

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare
  }

  get size(): number {
    return this.#items.length - this.#head
  }

  get first(): T | undefined {
    return this.#items[this.#head]
  }

  add(item: T): void {
    this.#items.splice(this.#indexOf(item), 0, item)
  }

  /** Harmless for an item that is not in the list. */
  remove(item: T): void {
    const at = this.#indexOf(item)
    if (this.#items[at] !== item) return
    if (at > this.#head) this.#items.splice(at, 1)
    else if (++this.#head > this.#items.length / 2) {
      this.#items = this.#items.slice(this.#head)
      this.#head = 0
    }
  }

  /** The first `count` items, still in the list; none if `count` is negative. */
  head(count: number): T[] {
    return this.#items.slice(this.#head, this.#head + Math.max(0, count))
  }

  [Symbol.iterator](): Iterator<T> {
    return this.head(this.size).values()
  }

  /** The index of the item, or the one where it would be inserted. */
  #indexOf(item: T): number {
    let low = this.#head
    let high = this.#items.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#compare(this.#items[middle]!, item) < 0) low = middle + 1
      else high = middle
    }
    return low
  }
}
