/** The facet `transactions`: jobs enqueued inside the user's own transaction, on the user's own connection. */

import type { EnqueueCall, Enqueued } from './new-job.js'

/** A connection that the user has opened; only the members by which it is recognised. */
export interface UserConnection {
  prepare(sql: string): object
  exec(sql: string): unknown
}

export interface Transactions {
  /**
   * Puts jobs into a queue, by the rules of `Store.enqueue`, before it returns. The jobs exist once the connection's
   * transaction commits, and not if it rolls back. Without a transaction they are committed when this returns. Waiters
   * are rung soon after the commit, or within a second if the process dies first. Such a call is never sent again, and
   * the store remembers none.
   *
   * Of the jobs, those in one shard are all accepted or all refused. Throws `InvalidArgumentError` for a connection
   * that cannot be used, and the errors of `Store.enqueue`. The transaction is then as it was before the call, unless
   * SQLite itself has ended it.
   */
  enqueue(connection: UserConnection, call: Omit<EnqueueCall, 'callId'>): Enqueued[]
}
