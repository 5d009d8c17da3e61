/** The work of a mill: its workers, listeners and throttled queues, and the isolated job of a process. It ends with the mill. */

import type { ClientParts } from '../client/enqueue/client.js'
import type { ScheduleAdmin } from '../client/schedules/schedule-admin.js'
import { entryFile } from '../core/package-files.js'
import type { Surroundings } from '../core/surroundings.js'
import type { ChildClient } from '../runtime/run/child-calls.js'
import type { Connection, RunParts } from '../workers/assemble-worker.js'
import type { ChildRun } from '../workers/isolated/child-run.js'
import type { QueueListener } from '../workers/listener/listener.js'
import { itemQueueOf, ThrottledQueue, type ThrottledQueueOptions } from '../workers/throttled-queue.js'
import { Worker } from '../workers/worker.js'
import type { HandlerContext } from './handler-context.js'
import type { IsolatedParts } from './isolated-child.js'
import { type IsolatedFrom, isolatedFrom, refuseIsolated, withCommand } from './isolated-from.js'
import { type ListenerOptions, listenerOf } from './options/listener-options.js'
import type { CheckedOptions } from './options/mill-options.js'
import { type Launch, type WorkerOptions, withDefaults, workerSettings } from './options/worker-options.js'
import type { StoreConnection } from './store-connection.js'
import type { StoreSource } from './store-source.js'
import { WorkerLife } from './worker-life.js'

/** The parts of a mill that its work needs. */
interface MillWorkParts {
  readonly options: CheckedOptions
  readonly source: StoreSource
  readonly surroundings: Surroundings
  readonly connection: StoreConnection
  readonly clientParts: Omit<ClientParts, 'sender'>
  readonly children: ChildClient
  readonly context: HandlerContext
  readonly schedules: Pick<ScheduleAdmin, 'reconcile' | 'restore'>
}

export class MillWork {
  readonly #parts: MillWorkParts
  readonly #life: WorkerLife
  readonly #workers = new Set<Worker>()
  readonly #listeners = new Set<{ close(): Promise<void> }>()
  readonly #throttledQueues = new Set<{ close(): Promise<void> }>()

  constructor(parts: MillWorkParts) {
    const { options, context, surroundings } = parts
    this.#parts = parts
    this.#life = new WorkerLife(options.hooks, context, surroundings.events)
  }

  /** The parts that run jobs. */
  get runParts(): RunParts {
    const { options, surroundings, children } = this.#parts
    const { registry, middleware, formatError, maxPayloadBytes } = options
    return { ...surroundings, registry, middleware, children, formatError, maxPayloadBytes }
  }

  /** Opens the context for handlers that are called here without a worker. */
  openContext(): Promise<void> {
    return this.#life.context.open()
  }

  /** See `Mill.worker`. */
  worker(options: WorkerOptions, launch: Launch | undefined): Worker {
    const { options: checked, source, connection, schedules } = this.#parts
    connection.refuseClosed()
    refuseIsolated()
    const registry = withCommand(checked, launch?.command)
    const from = isolatedFrom(registry, checked.packing.demand, source, launch?.files ?? [], launch?.command)
    // A command serves its queue with its own options, without the configuration's defaults.
    const given = launch?.command === undefined ? withDefaults(options, checked.worker) : options
    const settings = workerSettings(given, registry, launch?.isSupervised ?? false)
    const parts = {
      ...this.runParts,
      connect: () => this.#connected(launch, from !== undefined),
      registry,
      waitsForStore: source.traits?.remote !== false,
      onStart: (isOver: () => boolean) => this.#life.begin(registry.runsHere ? isOver : undefined),
      restoreSchedules: () => schedules.restore(),
      onEnd: (error: unknown) => this.#life.end(error),
      ended: () => this.#workers.delete(worker),
      processes: from && { entry: entryFile('process-child-entry.js'), from },
    }
    const worker: Worker = new Worker(parts, settings)
    this.#workers.add(worker)
    return worker
  }

  /** For a worker, which first changes the stored schedules to match the declared ones. */
  async #connected(launch: Launch | undefined, hasProcesses: boolean): Promise<Connection> {
    const { connection, schedules } = this.#parts
    const connected = await connection.forWorkers(launch, hasProcesses)
    await schedules.reconcile()
    return connected
  }

  /** See `Mill.listener`. */
  listener<Input>(queue: string, options: ListenerOptions): QueueListener<Input> {
    const { options: checked, surroundings, children, connection } = this.#parts
    connection.refuseClosed()
    const listener: QueueListener<Input> = listenerOf(checked.registry.queue(queue), options, {
      ...checked,
      ...surroundings,
      children,
      connect: () => connection.forListener(),
      closed: () => this.#listeners.delete(listener),
    })
    this.#listeners.add(listener)
    return listener
  }

  /** See `Mill.isolated`. */
  async isolated(parts: IsolatedParts, from: IsolatedFrom): Promise<ChildRun> {
    const { options, surroundings, children, connection } = this.#parts
    connection.use(parts.store)
    const finished = async () => {
      await connection.publishFrom(parts.store, true).close()
      return parts.finished()
    }
    const { isolatedChild } = await import('./isolated-child.js')
    const around = { ...surroundings, children }
    const child = await isolatedChild(options, this.#life, around, { ...parts, finished }, from)
    connection.publishFrom(parts.store, true)
    return child
  }

  /** See `Mill.throttledQueue`. */
  throttledQueue<Item>(name: string, options: ThrottledQueueOptions): ThrottledQueue<Item> {
    const { options: checked, surroundings, clientParts, connection } = this.#parts
    connection.refuseClosed()
    const made: ThrottledQueue<Item> = new ThrottledQueue<Item>(
      itemQueueOf(name, options, checked.registry.queues.get(name)),
      surroundings,
      clientParts,
      (queue) => connection.openOne(queue),
      () => this.#throttledQueues.delete(made),
    )
    this.#throttledQueues.add(made)
    return made
  }

  /** Ends all of it, and closes what `context` has opened. */
  async close(): Promise<void> {
    await Promise.all([...this.#throttledQueues].map((queue) => queue.close()))
    await Promise.all([
      ...[...this.#workers].map((worker) => worker.stop()),
      ...[...this.#listeners].map((one) => one.close()),
    ])
    await this.#life.closeContext()
  }
}
