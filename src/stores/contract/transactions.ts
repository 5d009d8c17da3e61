/** The facet `transactions`: jobs enqueued inside the user's own transaction, on the user's own connection. */

import type { EnqueueCall, Enqueued } from './new-job.js'
import type { ClaimKey } from './settle.js'

/** A connection that the user has opened, or a transaction on it. The store knows which objects it accepts. */
export type UserConnection = object

/** The jobs of one enqueue in a transaction. `wakes`: false if the call may ring nobody, also not after the commit. */
export interface UserEnqueueCall extends Omit<EnqueueCall, 'callId'> {
  readonly wakes?: boolean
}

export interface Transactions {
  /** `enqueue` answers by a promise, so what comes before it may wait as well. */
  readonly answersLater?: boolean
  /**
   * Puts jobs into a queue, by the rules of `Store.enqueue`: before it returns, or, on a connection that answers later,
   * before its promise resolves. The jobs exist once the connection's transaction commits, and not if it rolls back.
   * Without a transaction they are committed by then. Waiters
   * are rung soon after the commit, or within a second if the process dies first. Such a call is never sent again, and
   * the store remembers none.
   *
   * Of the jobs, those in one shard are all accepted or all refused. Throws `InvalidArgumentError` for a connection
   * that cannot be used, and the errors of `Store.enqueue`; a promise rejects with these, or with an error of the user's client
   * if the database has ended the transaction. Otherwise the transaction is then as it was before the call.
   */
  enqueue(connection: UserConnection, call: UserEnqueueCall): Enqueued[] | Promise<Enqueued[]>

  /**
   * Completes a claim: the job ends with the commit of the connection's transaction, and of its result nothing is kept. The
   * claim may be settled as usual as long as that has not happened; afterwards the answer is `'gone'`. Returns false, and
   * changes nothing, if the claim is lost. Throws as `enqueue` does.
   */
  complete?(connection: UserConnection, claim: ClaimKey): Promise<boolean>
}
