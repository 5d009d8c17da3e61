/** The administration of a whole mill: the counts of its queues, its workers, the health of its store. */

import { type HistoryOptions, type QueueHistory, queueHistories } from '../client/admin/queue-history.js'
import { depthsIn } from '../client/admin/queue-looks.js'
import { InvalidArgumentError, UnsupportedByStoreError } from '../core/errors.js'
import { describe } from '../core/messages/describe.js'
import type { Clock } from '../core/platform/clock.js'
import type { Registry } from '../core/registry.js'
import { refuseMore } from '../core/values/call-check.js'
import type { ProvisionedQueue } from '../stores/contract/provision.js'
import type { Depth } from '../stores/contract/queue-depth.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { Finding, StoreHealth } from '../stores/contract/store-health.js'
import type { SeenWorker, WorkerOrder } from '../stores/contract/worker-registry.js'
import { settingsOfAll } from './options/stored-settings.js'
import { refuseUnsupported } from './options/unsupported.js'
import type { StoreConnection } from './store-connection.js'

export abstract class MillAdmin<QueueName extends string> {
  readonly #connection: StoreConnection
  readonly #registry: Registry
  readonly #clock: Clock

  /** @internal */
  constructor(connection: StoreConnection, registry: Registry, clock: Clock) {
    this.#connection = connection
    this.#registry = registry
    this.#clock = clock
  }

  /** Counts of every declared queue, or of the named ones, in one round trip. */
  async depths(queues: readonly QueueName[] = [...this.#registry.queues.keys()] as QueueName[]): Promise<Depth[]> {
    for (const name of queues) this.#registry.queue(name)
    const { depths } = await depthsIn(await this.#connection.looked(), queues, () => true)
    return depths
  }

  /**
   * The history of every declared queue, or of the named ones, like `history()` of one queue, in one round trip. Throws
   * `InvalidArgumentError`, or `UnsupportedByStoreError` if the store keeps no history.
   */
  async histories(
    queues: readonly QueueName[] = [...this.#registry.queues.keys()] as QueueName[],
    options: HistoryOptions = {},
  ): Promise<QueueHistory[]> {
    for (const name of queues) this.#registry.queue(name)
    return queueHistories(await this.#connection.looked(), queues, options, this.#clock.now())
  }

  /** The calls to a paid API that this mill has made, by kind; undefined if the store's calls cost nothing. */
  async apiCalls(): Promise<Readonly<Record<string, number>> | undefined> {
    return (await this.#connection.looked()).apiCalls?.()
  }

  /**
   * The workers whose last beat is recent enough that they may still hold jobs; undefined if the store keeps no
   * registry.
   */
  async workers(): Promise<readonly SeenWorker[] | undefined> {
    return (await this.#connection.looked()).workers?.list()
  }

  /**
   * Orders a worker, by its id, to stop as at a signal, or to stop so that its supervisor replaces it. Without a
   * supervisor both mean a stop. The worker gets the order with its next beat, within 5 s; an idle worker on a server
   * within 20 s. Resolves to false if no such worker lives. Throws `InvalidArgumentError`, or `UnsupportedByStoreError`
   * if the store keeps no registry.
   */
  async orderWorker(id: string, order: WorkerOrder): Promise<boolean> {
    if (order !== 'stop' && order !== 'recycle')
      throw new InvalidArgumentError(`an order to a worker must be 'stop' or 'recycle'; got ${describe(order)}.`)
    const { workers, traits } = await this.#connection.looked()
    if (workers !== undefined) return workers.order(id, order)
    throw new UnsupportedByStoreError(traits.name, 'orders to workers', 'Send a signal to their processes.')
  }

  /**
   * The health checks of the store; undefined if there is nothing to check. They open no queue and write nothing, and
   * also work on a store that cannot be opened.
   */
  async health(): Promise<StoreHealth | undefined> {
    return (await this.#connection.looked()).health
  }

  /** The findings of the store's examination, with the declared queues; undefined if there is nothing to examine. */
  async examine(): Promise<Finding[] | undefined> {
    return (await this.#connection.looked()).health?.examine(settingsOfAll(this.#registry))
  }

  /** The queues in the store, declared or not; undefined if it keeps no records. Opens none. */
  async storedQueues(): Promise<StoredQueue[] | undefined> {
    return (await this.#connection.looked()).records?.queues()
  }

  /**
   * Creates the declared queues, with these tags, on a store that needs it; existing queues stay as they are. Throws
   * `UnsupportedByStoreError`.
   */
  async createQueues(tags: Readonly<Record<string, string>> = {}): Promise<ProvisionedQueue[]> {
    const store = await this.#connection.looked()
    refuseUnsupported(this.#registry, store.traits)
    return (await store.provision?.create(settingsOfAll(this.#registry), tags)) ?? []
  }
}

refuseMore('mill.', MillAdmin.prototype, {
  promised: {
    depths: 1,
    histories: 2,
    apiCalls: 0,
    workers: 0,
    orderWorker: 2,
    health: 0,
    examine: 0,
    storedQueues: 0,
    createQueues: 1,
  },
})
