/** The administration of one queue's limits: those that hold, and changes of them. */

import * as v from 'valibot'
import { UnknownQueueError } from '../../core/errors.js'
import {
  type LimitChange,
  limitChangeSchema,
  limitsOfChange,
  type StandingLimits,
} from '../../core/queue/queue-limits.js'
import { refuseMore } from '../../core/values/call-check.js'
import { defined } from '../../core/values/defined.js'
import { parsed } from '../../core/values/option-check.js'
import type { StoredQueue } from '../../stores/contract/queue-settings.js'
import type { Store } from '../../stores/contract/store.js'
import { boundsOf } from '../../stores/rules/limit-rules.js'
import { recordsOf } from '../store-facets.js'

const changeSchema = v.pipe(
  limitChangeSchema,
  v.check((change) => Object.values(change).some((limit) => limit !== undefined), 'must name at least one limit'),
)

export class LimitsAdmin {
  readonly #queue: string
  readonly #look: () => Promise<Store>
  readonly #connect: () => Promise<Store>

  /**
   * `look` connects without opening a queue.
   * @internal
   */
  constructor(queue: string, look: () => Promise<Store>, connect: () => Promise<Store>) {
    this.#queue = queue
    this.#look = look
    this.#connect = connect
    refuseMore('limits.', this, { promised: { get: 0, set: 1 } })
  }

  /**
   * The limits that hold in all processes, whatever this configuration declares; `'none'` where there is no limit. Ages
   * are in ms. Throws `UnknownQueueError` if the store has no such queue, `UnsupportedByStoreError`.
   */
  async get(): Promise<StandingLimits> {
    const stored = await this.#stored(await this.#look())
    if (stored === undefined) throw new UnknownQueueError(this.#queue, [], true)
    const { maxRunning = 'none', maxPending = 'none', maxCrashes, resultsCount, dead } = boundsOf(stored.limits)
    const { ageMs: age, count } = dead
    const keep = defined({ age, count })
    return {
      maxRunning,
      maxPending,
      maxCrashes,
      retention: {
        results: resultsCount === undefined ? 'untilDeleted' : { count: resultsCount },
        dead: Object.keys(keep).length === 0 ? 'untilDeleted' : keep,
      },
    }
  }

  /**
   * Changes these limits, at once and in every process; the others stay. `'none'` lifts one. A worker whose
   * configuration declares another number is refused from now on, when it starts; one that declares none goes by this
   * one. Throws `ConfigError` with every mistake; `ConfigConflictError` for `perGroup` in a queue of several shards;
   * `UnsupportedByStoreError`.
   */
  async set(change: LimitChange): Promise<void> {
    const limits = limitsOfChange(parsed(changeSchema, change, `the limits of queue '${this.#queue}'`))
    const looked = await this.#look()
    // A queue that the store does not have yet is made first.
    const store = (await this.#stored(looked)) === undefined ? await this.#connect() : looked
    await recordsOf(store).setLimits(this.#queue, limits)
  }

  async #stored(store: Store): Promise<StoredQueue | undefined> {
    return (await recordsOf(store).queues()).find(({ name }) => name === this.#queue)
  }
}
