/**
 * A roster: who is in, where members come and go all the time. A Map that lives long would keep alive what has left it: each
 * table that it outgrows points to the next one, so that as soon as one of them is in the old generation of the heap all who
 * come later get there too, and stay until a major collection. A roster takes a new Map before that can go on.
 */

/** A new Map copies all members, so it is taken only after at least this many have left. */
const fewestLeft = 512

export class Roster<Key, Value> {
  #members = new Map<Key, Value>()
  #left = 0

  get size(): number {
    return this.#members.size
  }

  get(key: Key): Value | undefined {
    return this.#members.get(key)
  }

  /** Comes last, unless the key is in: then its place stays. Not while the roster is gone through. */
  set(key: Key, value: Value): void {
    if (this.#left > this.#members.size + fewestLeft) {
      this.#members = new Map(this.#members)
      this.#left = 0
    }
    this.#members.set(key, value)
  }

  /** Whether it was in. */
  delete(key: Key): boolean {
    if (!this.#members.delete(key)) return false
    this.#left += 1
    return true
  }

  clear(): void {
    this.#members = new Map()
    this.#left = 0
  }

  /** In the order in which they came, as are the next two. */
  keys(): IterableIterator<Key> {
    return this.#members.keys()
  }

  values(): IterableIterator<Value> {
    return this.#members.values()
  }

  [Symbol.iterator](): IterableIterator<[Key, Value]> {
    return this.#members[Symbol.iterator]()
  }
}
