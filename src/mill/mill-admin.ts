/** The administration of a whole mill: counts of all its queues, its workers, the health of its store. */

import { type HistoryOptions, type QueueHistory, queueHistories } from '../client/admin/queue-history.js'
import { InvalidArgumentError, UnsupportedByStoreError } from '../core/errors.js'
import type { Clock } from '../core/platform/clock.js'
import type { Registry } from '../core/registry.js'
import { describe } from '../core/values/describe.js'
import type { ProvisionedQueue } from '../stores/contract/provision.js'
import type { Depth } from '../stores/contract/queue-depth.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { Finding, StoreHealth } from '../stores/contract/store-health.js'
import type { WorkerOrder, WorkerRecord } from '../stores/contract/worker-registry.js'
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

  /** Counts of every declared queue, or of those named, in one trip. */
  async depths(queues: readonly QueueName[] = [...this.#registry.queues.keys()] as QueueName[]): Promise<Depth[]> {
    for (const name of queues) this.#registry.queue(name)
    return (await (await this.#connection.opened()).depth(queues)).depths
  }

  /**
   * What became of the jobs of every declared queue, or of those named, as `history()` of one queue, in one trip. Throws
   * `InvalidArgumentError`, or `UnsupportedByStoreError` where the store keeps no history.
   */
  async histories(
    queues: readonly QueueName[] = [...this.#registry.queues.keys()] as QueueName[],
    options: HistoryOptions = {},
  ): Promise<QueueHistory[]> {
    for (const name of queues) this.#registry.queue(name)
    return queueHistories(await this.#connection.opened(), queues, options, this.#clock.now())
  }

  /** Calls of a paid API that this mill has made, by kind; undefined if its store's calls cost nothing. */
  async apiCalls(): Promise<Readonly<Record<string, number>> | undefined> {
    return (await this.#connection.opened()).apiCalls?.()
  }

  /** Workers that said so late that they live that they may still hold jobs; undefined if the store keeps no registry. */
  async workers(): Promise<readonly (WorkerRecord & { readonly seenAt: number })[] | undefined> {
    return (await this.#connection.opened()).workers?.list()
  }

  /**
   * Orders a worker, by its id, to stop as at a signal, or to stop so that its supervisor puts another in its place; without
   * one that is a stop. It hears of it with its next beat, within 5 s, an idle one on a server within 20 s. False: no such
   * worker lives. Throws `InvalidArgumentError`, or `UnsupportedByStoreError` where the store keeps no registry.
   */
  async orderWorker(id: string, order: WorkerOrder): Promise<boolean> {
    if (order !== 'stop' && order !== 'recycle')
      throw new InvalidArgumentError(`an order to a worker must be 'stop' or 'recycle'; got ${describe(order)}.`)
    const { workers, traits } = await this.#connection.opened()
    if (workers !== undefined) return workers.order(id, order)
    throw new UnsupportedByStoreError(traits.name, 'orders to workers', 'Send a signal to their processes.')
  }

  /**
   * What examines the store and checks what it holds; undefined where there is nothing to examine. Opens no queue: it is
   * there also for a store that cannot be opened, and writes nothing.
   */
  async health(): Promise<StoreHealth | undefined> {
    return (await this.#connection.looked()).health
  }

  /** As `examine` of that, and of the declared queues; undefined where there is nothing to examine. */
  async examine(): Promise<Finding[] | undefined> {
    return (await this.#connection.looked()).health?.examine(settingsOfAll(this.#registry))
  }

  /** The queues that the store holds, declared or not; undefined if it keeps no records. Opens none. */
  async storedQueues(): Promise<StoredQueue[] | undefined> {
    return (await this.#connection.looked()).records?.queues()
  }

  /** Makes the declared queues, with these tags, if the store must be told to; what is there is left. Throws `UnsupportedByStoreError`. */
  async createQueues(tags: Readonly<Record<string, string>> = {}): Promise<ProvisionedQueue[]> {
    const store = await this.#connection.looked()
    refuseUnsupported(this.#registry, store.traits)
    return (await store.provision?.create(settingsOfAll(this.#registry), tags)) ?? []
  }
}
