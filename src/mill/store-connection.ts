/**
 * The connection of a mill to its store: opened at the first call, shared by everything that the mill hands out, closed
 * with it.
 */

import { setMaxListeners } from 'node:events'
import { ClosedError } from '../core/errors.js'
import { declaredLimits, type Queue } from '../core/queue/queue.js'
import { Registry } from '../core/registry.js'
import type { Surroundings } from '../core/surroundings.js'
import type { AnyOrderedTask } from '../core/task/ordered-task.js'
import { defined } from '../core/values/defined.js'
import { IdleWaiter } from '../runtime/idle-waiter.js'
import { LeaseKeeper } from '../runtime/leases/lease-keeper.js'
import { LivePublisher } from '../runtime/live-publisher.js'
import { Meter } from '../runtime/meter.js'
import { processIdentity } from '../runtime/process/process-identity.js'
import type { QueueSettings, StoredQueue } from '../stores/contract/queue-settings.js'
import type { Store } from '../stores/contract/store.js'
import type { Connection } from '../workers/assemble-worker.js'
import { refuseUnshared } from './isolated-from.js'
import { refuseUnsupported } from './options/unsupported.js'
import type { Launch } from './options/worker-options.js'
import type { StoreSource } from './store-source.js'
import { leaseThread } from './store-thread.js'

/** After this time at the latest, the lease thread opens its store. */
const latestLeaseThreadMs = 1_000

export class StoreConnection {
  readonly #surroundings: Surroundings
  readonly #registry: Registry
  readonly #source: StoreSource
  readonly #hasHistory: boolean
  #store: Promise<Store> | undefined
  #ready: Store | undefined
  /** The store of a process that has opened one for itself. */
  #given: Store | undefined
  /** A store for read access, whose queues are not opened. */
  #unopened: Promise<Store> | undefined
  /** The queues as workers declare them. */
  #stored: Promise<StoredQueue[]> | undefined
  #connection: Promise<Connection> | undefined
  #publisher: LivePublisher | undefined
  #meter: Meter | undefined
  readonly #closing = new AbortController()
  #closed = false
  #isInPlace = false

  /** `hasHistory`: whether jobs are counted for the history of their queues. */
  constructor(surroundings: Surroundings, registry: Registry, source: StoreSource, hasHistory: boolean) {
    this.#surroundings = surroundings
    this.#registry = registry
    this.#source = source
    this.#hasHistory = hasHistory
    // Each feed adds a listener, and the number of feeds has no limit.
    setMaxListeners(0, this.#closing.signal)
  }

  /** Uses this opened store from now on; the caller closes it. */
  use(store: Store): void {
    this.#given = store
  }

  /** Opens a store that starts no thread of its own: this thread waits for its disk. */
  serveInPlace(): void {
    this.#isInPlace = true
  }

  /** The store, even if none of its queues was opened. */
  looked(): Promise<Store> {
    if (this.#store !== undefined) return this.#store
    this.refuseClosed()
    return this.#made()
  }

  #made(): Promise<Store> {
    this.#unopened ??=
      this.#given !== undefined ? Promise.resolve(this.#given) : this.#source.create({ inPlace: this.#isInPlace })
    return this.#unopened
  }

  /**
   * The store with the queues of the mill, for enqueues and actions: it follows what is stored of them, and creates
   * what is not. A failed opening is tried again at the next call.
   */
  readonly opened = (): Promise<Store> => {
    if (this.#store === undefined) {
      this.refuseClosed()
      this.#store = this.#open()
      this.#store.catch(() => {
        this.#store = undefined
      })
    }
    return this.#store
  }

  /** The opened store, if it is open by now; also while a closing mill waits for its handlers. */
  get ready(): Store | undefined {
    if (this.#ready === undefined) this.refuseClosed()
    return this.#ready
  }

  /** The connection for workers: all workers of this mill share one lease keeper and one waiter. */
  async forWorkers(launch: Launch | undefined, hasProcesses: boolean): Promise<Connection> {
    const store = await this.opened()
    if (hasProcesses) refuseUnshared(store.traits)
    // Workers are bound by the limits that they declare.
    this.#stored ??= store.open(settingsOfAll(this.#registry))
    this.#stored.catch(() => {
      this.#stored = undefined
    })
    const stored = await this.#stored
    const publisher = this.publishFrom(store)
    this.#connection ??= Promise.resolve({
      ...{ store, stored, keeper: this.#keeper(store, launch), publisher },
      waiter: new IdleWaiter(store, () => this.#surroundings.clock.mono()),
    })
    return this.#connection
  }

  /** Publishes the events of this process about its jobs, or about its one job, so that others can watch them. */
  publishFrom(store: Store, ofOneJob = false): LivePublisher {
    if (this.#publisher === undefined) {
      this.#publisher = new LivePublisher(this.#surroundings, store, ofOneJob)
      this.#publisher.start()
    }
    return this.#publisher
  }

  /**
   * The connection for a listener. It has its own lease keeper: a blocked loop here does not end the work that its
   * claims are for.
   */
  async forListener(): Promise<Connection> {
    const connection = await this.forWorkers(undefined, false)
    return { ...connection, keeper: this.#keeper(connection.store, undefined) }
  }

  #keeper(store: Store, launch: Launch | undefined): LeaseKeeper {
    const { host, pid } = processIdentity()
    const { descriptor } = this.#source
    return new LeaseKeeper({
      store,
      events: this.#surroundings.events,
      mono: () => this.#surroundings.clock.mono(),
      host,
      pid,
      ...(store.traits.beatsFromThread && descriptor !== undefined
        ? { startThread: leaseThread(descriptor, this.#source.access, this.#leaseThreadAfterMs()) }
        : {}),
      ...defined({ blockedTo: launch?.blockedTo }),
    })
  }

  /** Well before the first renewal of the shortest lease, after a third of it. */
  #leaseThreadAfterMs(): number {
    return Math.min(latestLeaseThreadMs, ...[...this.#registry.queues.values()].map(({ leaseMs }) => leaseMs / 10))
  }

  async #open(): Promise<Store> {
    const file = this.#given === undefined ? this.#source.strayFile?.() : undefined
    const store = await this.#made()
    try {
      refuseUnsupported(this.#registry, store.traits)
      await store.open(settingsOfAll(this.#registry), { follows: true })
      this.#ready = store
      if (file !== undefined) this.#surroundings.events.emit('store.strayed', { file })
      this.#count(store)
      return store
    } catch (error) {
      this.#unopened = undefined
      if (store !== this.#given) await store.close()
      throw error
    }
  }

  /**
   * Starts the counting. A process of an isolated job was given its store and does not count, because its worker counts
   * for it.
   */
  #count(store: Store): void {
    if (!this.#hasHistory || store === this.#given) return
    const queues = [...this.#registry.queues.keys()]
    this.#meter = new Meter(this.#surroundings, store, queues)
    this.#meter.start()
  }

  /** Opens one more queue, declared or not. */
  async openOne(queue: Queue): Promise<{ readonly store: Store; readonly stored: StoredQueue }> {
    const store = await this.opened()
    refuseUnsupported(new Registry([], [queue]), store.traits)
    const [stored] = await store.open([settingsOf(queue, undefined)])
    return { store, stored: stored! }
  }

  /** Aborts when the mill is closed. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  refuseClosed(): void {
    if (this.#closed) throw new ClosedError('this mill')
  }

  /** Refuses to open anything from now on; whatever is open stays so until `close`. */
  shut(): void {
    this.#closed = true
    this.#closing.abort()
  }

  async close(): Promise<void> {
    this.shut()
    await Promise.all([this.#publisher?.close(), this.#meter?.close()])
    const connection = await this.#connection?.catch(() => undefined)
    await connection?.keeper.stop()
    this.#ready = undefined
    const store = await this.#unopened?.catch(() => undefined)
    if (store !== this.#given) await store?.close()
  }
}

/** The settings of all declared queues. */
export function settingsOfAll(registry: Registry): QueueSettings[] {
  return [...registry.queues.values()].map((queue) => settingsOf(queue, registry.orderedTask(queue.name)))
}

/** The settings of a queue. The task says how payloads merge; if no task is known, the stored setting stays. */
function settingsOf(queue: Queue, task: AnyOrderedTask | undefined): QueueSettings {
  const { name, ordered, fifo, order, shards, exclusive, throttle } = queue
  return {
    name,
    kind: ordered ? 'ordered' : 'plain',
    order,
    shards,
    ...(ordered ? { exclusive } : {}),
    ...(fifo ? { fifo } : {}),
    ...defined({ merge: task?.merge, throttle }),
    ...declaredLimits(queue),
  }
}
