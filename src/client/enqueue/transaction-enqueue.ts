/**
 * Enqueueing in a user's transaction. Everything happens before the call returns, because a transaction does not wait:
 * checks, encoding, the store's statements, and the client side of middleware up to its call of `next()`.
 */

import {
  InvalidArgumentError,
  InvalidJobError,
  QueueDrainingError,
  QueueFullError,
  UnsupportedByStoreError,
} from '../../core/errors.js'
import type { JobHandle } from '../../core/job/job-handle.js'
import { refuseNoTask } from '../../core/task/any-task.js'
import { type EnqueueItem, throughLayers } from '../../core/task/middleware.js'
import type { Store } from '../../stores/contract/store.js'
import type { Transactions, UserConnection } from '../../stores/contract/transactions.js'
import { type ClientParts, outcomeOf } from './client.js'
import { type DraftRules, draftJobNow, nameOf } from './job-draft.js'

interface TransactionParts extends Pick<ClientParts, 'middleware' | 'events' | 'handle'> {
  /** The store, if it is open. */
  readonly store: () => Store | undefined
  readonly rulesOf: (store: Store) => DraftRules
}

/** @internal */
export class TransactionEnqueue {
  readonly #parts: TransactionParts

  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  enqueue(connection: UserConnection, item: EnqueueItem): JobHandle {
    refuseNoTask(item.task, 'enqueueIn()')
    const store = this.#parts.store()
    if (store === undefined)
      throw new InvalidArgumentError(
        'enqueueIn() needs a store that is open, for it cannot wait for that: `await mill.ready()` once, when the program starts.',
      )
    const transactions = transactionsOf(store)
    const rules = this.#parts.rulesOf(store)
    return this.#through(item, (one) => {
      const { queue, job } = draftJobNow(one, rules)
      const [answer] = transactions.enqueue(connection, { queue, jobs: [job] })
      if (answer === 'full') throw new QueueFullError(queue)
      if (answer === 'draining') throw new QueueDrainingError(queue)
      return this.#parts.handle(queue, job.id, outcomeOf(answer!, queue, job, this.#parts.events))
    })
  }

  #through(item: EnqueueItem, enqueue: (item: EnqueueItem) => JobHandle): JobHandle {
    const layers = this.#parts.middleware.flatMap((layer) => layer.enqueue?.bind(layer) ?? [])
    if (layers.length === 0) return enqueue(item)
    const items = [item]
    let ended: { readonly jobs: readonly JobHandle[] } | { readonly error: unknown } | undefined
    const passed = throughLayers<void>(
      layers.map((layer) => (next) => layer(items, next)),
      async () => {
        if (ended !== undefined) throw tooLate(item)
        try {
          const jobs = items.map(enqueue)
          for (const [i, one] of items.entries()) one.job = jobs[i]!
          ended = { jobs }
        } catch (error) {
          ended = { error }
          throw error
        }
      },
    )
    const outcome = ended as typeof ended
    ended ??= { error: tooLate(item) }
    passed.catch((error: unknown) => {
      const isKnown = outcome !== undefined && 'error' in outcome && outcome.error === error
      if (!isKnown) this.#parts.events.emit('hook.failed', { hook: 'middleware of enqueueIn()', error })
    })
    if (outcome === undefined) throw tooLate(item)
    if ('error' in outcome) throw outcome.error
    return outcome.jobs[0]!
  }
}

function transactionsOf({ transactions, traits }: Store): Transactions {
  if (transactions !== undefined) return transactions
  throw new UnsupportedByStoreError(
    traits.name,
    'enqueueing in a transaction of yours',
    'Write the job into a table of yours (an outbox) in that transaction, and enqueue from there under an id of your own; or use a sqlite: store in the file of your tables.',
  )
}

function tooLate({ task }: EnqueueItem): InvalidJobError {
  return new InvalidJobError(
    `${nameOf(task)}: a middleware refused it, or waited for something before it called next(); in enqueueIn() it must call next() at once, because a transaction cannot wait. Nothing was enqueued; the event 'hook.failed' has the reason.`,
  )
}
