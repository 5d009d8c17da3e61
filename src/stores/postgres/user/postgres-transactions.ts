/** The facet `transactions` of a Postgres store: what its users do in their own transactions. */

import { UnsupportedByStoreError } from '../../../core/errors.js'
import type { Enqueued } from '../../contract/new-job.js'
import type { ClaimKey } from '../../contract/settle.js'
import type { Transactions, UserConnection, UserEnqueueCall } from '../../contract/transactions.js'
import { completeInside } from '../work/end-functions.js'
import { PostgresEnqueue } from '../work/postgres-enqueue.js'
import type { PostgresQueues } from '../work/postgres-settings.js'
import { callsIn } from './user-calls.js'

export class PostgresTransactions implements Transactions {
  readonly answersLater = true
  readonly #schema: string
  readonly #queues: PostgresQueues

  constructor(schema: string, queues: PostgresQueues) {
    this.#schema = schema
    this.#queues = queues
  }

  async enqueue(connection: UserConnection, call: UserEnqueueCall): Promise<Enqueued[]> {
    const { queue, jobs, wakes = true } = call
    // An insert into a lane or an id that others write to would wait for them, or fail, as long as a user's transaction is open.
    const isPlain = (await this.#queues.named([queue]))[0]!.kind === 'plain'
    if (jobs.some(({ group, join }) => (isPlain && group !== undefined) || join !== undefined))
      throw new UnsupportedByStoreError(
        'postgres',
        `enqueueIn() of a job of a group in a plain queue, or of one that waits for others (queue '${queue}')`,
        'Leave the group out, or enqueue in the transaction a plain job whose handler enqueues this one.',
      )
    return new PostgresEnqueue(callsIn(connection, this.#schema), this.#queues).enqueueIn(call, wakes)
  }

  /** The row of the job is locked until the transaction ends, so this is to be the last statement before the commit. */
  async complete(connection: UserConnection, { queue, id, fence }: ClaimKey): Promise<boolean> {
    const [plain] = await this.#queues.named([queue])
    return (await callsIn(connection, this.#schema).call(completeInside, [plain!.qid, fence, id])) as boolean
  }
}
