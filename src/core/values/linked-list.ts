/**
 * A linked list: nodes come at its end, and leave from anywhere by themselves. So nothing is hashed or searched, and no
 * node that has left keeps another one alive.
 */

/** A node of at most one list, once. */
export class ListNode {
  isIn = false
  previous: ListNode | undefined
  next: ListNode | undefined
}

export class LinkedList<Node extends ListNode> {
  #first: Node | undefined
  #last: Node | undefined
  #size = 0

  get size(): number {
    return this.#size
  }

  /** The node that came first of those that are in; undefined if there is none. */
  get first(): Node | undefined {
    return this.#first
  }

  /** Adds a node at the end. */
  add(node: Node): void {
    node.isIn = true
    node.previous = this.#last
    if (this.#last === undefined) this.#first = node
    else this.#last.next = node
    this.#last = node
    this.#size += 1
  }

  /** Removes a node; returns whether it was in. */
  remove(node: Node): boolean {
    if (!node.isIn) return false
    const { previous, next } = node
    if (previous === undefined) this.#first = next as Node | undefined
    else previous.next = next
    if (next === undefined) this.#last = previous as Node | undefined
    else next.previous = previous
    // An old node that has left would keep younger ones alive.
    node.isIn = false
    node.previous = undefined
    node.next = undefined
    this.#size -= 1
    return true
  }

  clear(): void {
    for (const node of this) this.remove(node)
  }

  /** In the order in which they came. The one that is looked at may be removed meanwhile. */
  *[Symbol.iterator](): Generator<Node> {
    for (let node = this.#first; node !== undefined; ) {
      const next = node.next as Node | undefined
      yield node
      node = next
    }
  }
}
