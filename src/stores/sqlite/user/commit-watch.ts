/**
 * The watch for the commit of a user's transaction: SQLite reports it to nobody, and a worker that is rung before it
 * finds nothing. Most transactions are over as soon as the running code is. One that stays open is looked at a few
 * times more. A ring for a transaction that was rolled back wakes a worker in vain; a ring that never comes is made up
 * for by the bell's own look.
 */

import type { AdoptedDatabase } from '../file/sqlite-driver.js'

/**
 * The pauses between the looks. After the last one it rings in any case. Waiters also look by themselves within a
 * second.
 */
const looksAfterMs = [1, 2, 5, 10, 20, 50, 100, 200, 400] as const

export class CommitWatch {
  readonly #db: Pick<AdoptedDatabase, 'isInTransaction'>
  readonly #ring: (queues: readonly string[]) => void
  readonly #queues = new Set<string>()

  constructor(db: Pick<AdoptedDatabase, 'isInTransaction'>, ring: (queues: readonly string[]) => void) {
    this.#db = db
    this.#ring = ring
  }

  /** Rings the queues once the transaction that is open now is over. */
  ring(queues: Iterable<string>): void {
    const isWatching = this.#queues.size > 0
    for (const queue of queues) this.#queues.add(queue)
    if (!isWatching && this.#queues.size > 0) queueMicrotask(() => this.#look(0))
  }

  #look(looks: number): void {
    const afterMs = looksAfterMs[looks]
    if (afterMs !== undefined && this.#isOpen()) {
      setTimeout(() => this.#look(looks + 1), afterMs).unref()
      return
    }
    const rung = [...this.#queues]
    this.#queues.clear()
    this.#ring(rung)
  }

  /** A connection that was closed has ended its transaction. */
  #isOpen(): boolean {
    try {
      return this.#db.isInTransaction
    } catch {
      return false
    }
  }
}
