/**
 * A roster: a map for members that come and go all the time. A long-lived Map keeps removed members alive: each table
 * that it outgrows points to the next one. As soon as one of these tables is in the old generation of the heap, all
 * later members get there too, and stay until a major collection. A roster replaces its Map before that can go on.
 */

/** A new Map copies all members, so it is taken only after at least this many have left. */
const fewestLeft = 512

export class Roster<Key, Value> {
  #members = new Map<Key, Value>()
  #left = 0
  /** The first key, once it was asked for, and the keys behind it. */
  #first: { readonly key: Key } | undefined
  #others: IterableIterator<Key> | undefined

  get size(): number {
    return this.#members.size
  }

  get(key: Key): Value | undefined {
    return this.#members.get(key)
  }

  /**
   * The key of the member that came first; undefined if there is none. Costs the same however many have left, whereas a
   * new iterator goes past the places of all of them.
   */
  firstKey(): Key | undefined {
    if (this.#first === undefined) {
      this.#others ??= this.#members.keys()
      const { done, value } = this.#others.next()
      // An iterator that has ended does not see who comes later.
      if (done) this.#others = undefined
      else this.#first = { key: value }
    }
    return this.#first?.key
  }

  /** Adds a member at the end; a key that is in keeps its position. Not to be called while the roster is iterated. */
  set(key: Key, value: Value): void {
    if (this.#left > this.#members.size + fewestLeft) this.#replace(new Map(this.#members))
    this.#members.set(key, value)
  }

  /** Removes a member; returns whether it was in. */
  delete(key: Key): boolean {
    if (!this.#members.delete(key)) return false
    this.#left += 1
    if (this.#first?.key === key) this.#first = undefined
    return true
  }

  clear(): void {
    this.#replace(new Map())
  }

  #replace(members: Map<Key, Value>): void {
    this.#members = members
    this.#left = 0
    this.#first = undefined
    this.#others = undefined
  }

  /** In the order of insertion, like the next two. */
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
