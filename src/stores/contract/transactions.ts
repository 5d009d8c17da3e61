/** The facet `transactions`: jobs that are enqueued inside a transaction of the user's, on a connection of his own. */

import type { EnqueueCall, Enqueued } from './new-job.js'

/** A connection that the user has opened: the part that tells it from anything else. */
export interface UserConnection {
  prepare(sql: string): object
  exec(sql: string): unknown
}

export interface Transactions {
  /**
   * Puts jobs into a queue, by the rules of `Store.enqueue`, before it returns. They are there when the transaction in which
   * the connection is commits, and never were if it does not; without a transaction they are committed when this returns.
   * Whoever waits is rung soon after the commit; should the process die before, within a second. Such a call is never sent
   * again, and none is remembered.
   *
   * All jobs that lie in one shard are accepted or none. Throws `InvalidArgumentError` for a connection that cannot be used,
   * and what `Store.enqueue` rejects with; the transaction is then as it was before the call, unless SQLite itself has ended it.
   */
  enqueue(connection: UserConnection, call: Omit<EnqueueCall, 'callId'>): Enqueued[]
}
