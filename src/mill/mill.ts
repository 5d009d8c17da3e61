/** A mill: tasks, queues and a store put together. Applications hold one; it opens the store at its first call. */
/// <reference lib="esnext.disposable" preserve="true" />

import { type AdminParts, QueueAdmin } from '../client/admin/queue-admin.js'
import { type HistoryOptions, type QueueHistory, queueHistories } from '../client/admin/queue-history.js'
import { depthsIn } from '../client/admin/queue-looks.js'
import { type SettledResults, StoredJobHandle, settledResults } from '../client/jobs/stored-job-handle.js'
import type { ScheduleAdmin } from '../client/schedules/schedule-admin.js'
import { InvalidArgumentError, UnsupportedByStoreError } from '../core/errors.js'
import { type EventName, type Listener, refuseNoEvent } from '../core/events.js'
import type { JobHandle } from '../core/job/job.js'
import type { Logger } from '../core/logger.js'
import { describe } from '../core/messages/describe.js'
import { type Clock, type Random, systemClock, systemRandom } from '../core/platform/clock.js'
import type { Queue } from '../core/queue/queue.js'
import type { AnyTask } from '../core/task/any-task.js'
import type { EnqueueInOptions, SqliteDatabase } from '../core/task/enqueue-in.js'
import type { EnqueueArguments, EnqueueOptionsOf, HandlesOf, JobsOf } from '../core/task/enqueue-options.js'
import type { Flow, FlowHandles } from '../core/task/flow.js'
import type { EnqueueItem, ManyArguments } from '../core/task/middleware.js'
import { type AnySignal, isSignal, type SignalArguments } from '../core/task/signal.js'
import type { HandleOf, TaskInput } from '../core/task/task-definition.js'
import { callForms, callOptions, refuseMore } from '../core/values/call-check.js'
import type { Duration } from '../core/values/duration.js'
import { idMistake, isJobId, orderedIdOf } from '../core/values/ids.js'
import type { ProvisionedQueue } from '../stores/contract/provision.js'
import type { QueueDepth } from '../stores/contract/queue-depth.js'
import type { StoredQueue } from '../stores/contract/queue-settings.js'
import type { SignalAnswer } from '../stores/contract/steps.js'
import type { StoreTraits } from '../stores/contract/store.js'
import type { FsckFinding, StoreHealth } from '../stores/contract/store-health.js'
import type { SeenWorker } from '../stores/contract/worker-registry.js'
import type { RunParts } from '../workers/assemble-worker.js'
import type { ChildRun } from '../workers/isolated/child-run.js'
import type { QueueListener } from '../workers/listener/listener.js'
import type { ThrottledQueue, ThrottledQueueOptions } from '../workers/throttled-queue.js'
import type { Worker } from '../workers/worker.js'
import { assembleMill, type MillParts } from './assemble-mill.js'
import type { IsolatedParts } from './isolated-child.js'
import type { IsolatedFrom } from './isolated-from.js'
import type { ListenerOptions } from './options/listener-options.js'
import type { CheckedOptions } from './options/mill-options.js'
import { refuseUnsupported } from './options/unsupported.js'
import type { Launch, WorkerOptions } from './options/worker-options.js'
import { settingsOfAll } from './store-connection.js'
import type { StoreSource } from './store-source.js'

/**
 * A job queue for your application; `millrace()` makes one. `QueueName` is the union of its queue names, from `queues`
 * and from its tasks, if the compiler knows them all.
 */
export class Mill<QueueName extends string = string> implements AsyncDisposable {
  /** Its schedules: those of the configuration, and those set at run time. */
  readonly schedules: ScheduleAdmin
  readonly #parts: MillParts

  /** @internal */
  constructor(options: CheckedOptions, source: StoreSource, clock: Clock = systemClock, random: Random = systemRandom) {
    this.#parts = assembleMill(options, source, clock, random)
    this.schedules = this.#parts.schedules
  }

  /**
   * For a process that asks a few questions and ends: its store starts no thread, and this one waits for the disk.
   * Called before the first of them.
   * @internal
   */
  serveInPlace(): void {
    this.#parts.connection.serveInPlace()
  }

  /** @internal */
  get namespace(): string {
    return this.#parts.options.namespace
  }

  /** @internal */
  get logger(): Logger {
    return this.#parts.options.logger
  }

  /** The declared tasks by name. */
  get tasks(): ReadonlyMap<string, AnyTask> {
    return this.#parts.options.registry.tasks
  }

  /** The declared queues by name, with every default filled in. */
  get queues(): ReadonlyMap<string, Queue> {
    return this.#parts.options.registry.queues
  }

  /** The store of its jobs: its descriptor without secrets, and its traits if they are known before it is opened. */
  get store(): { readonly text: string; readonly traits: StoreTraits | undefined } {
    // Not the source itself: its descriptor holds the password, and this value may be logged.
    const { text, traits } = this.#parts.source
    return { text, traits }
  }

  /**
   * Enqueues one job. For an ordered task it enqueues one payload: if its id waits or runs, the payload joins those of that id
   * (`outcome: 'merged'`). Resolves when the job is stored as durably as the store promises.
   * Throws `InvalidArgumentError` if `task` is not a task, `UnknownTaskError`, `UnknownQueueError`, `InvalidJobError`,
   * `PayloadTooLargeError`, `QueueFullError` or `QueueDrainingError` (nothing was stored), or `StoreUnavailableError` (in
   * doubt: enqueue again with an id of your own to be safe); of a join that is cancelled or deleted before all of its
   * members are added, `JobCancelledError`; of one that has died by then as `join-never-sealed` or `join-late`, `JobDeadError`.
   *
   * @example
   * const job = await mill.enqueue(sendEmail, { to: 'ada@example.com' }, { delay: '5m' })
   * console.log(await job.result({ timeout: '10m' }))
   */
  enqueue<T extends AnyTask>(task: T, ...args: EnqueueArguments<T, QueueName>): Promise<HandleOf<T>> {
    return this.#parts.client.enqueue(task, ...(args as EnqueueArguments<T>))
  }

  /**
   * Enqueues one job by the name of its task, for a relay that carries jobs of any task. If the mill declares the task, its
   * schema checks the input; for a task that only workers elsewhere know, `queue` must be given. Throws `UnknownTaskError`,
   * `InvalidArgumentError` for an invalid name, and the errors of `enqueue()`.
   *
   * @example
   * await mill.enqueueNamed('send-email', { to: 'ada@example.com' }, { id: 'welcome-42' })
   */
  async enqueueNamed(task: string, input?: unknown, options: EnqueueItem['options'] = {}): Promise<JobHandle> {
    const named = this.#parts.options.registry.named(task, options?.queue)
    return this.#parts.client.enqueueItem({ task: named, input, options })
  }

  /**
   * Enqueues many jobs of one task, each with the options that `each` gives it. All are checked before any is sent: a wrong one
   * throws `EnqueueManyError`, and nothing is stored. They are sent in calls of at most 250 jobs of one queue. Each call is
   * accepted as a whole or not at all; in an ordered queue this holds shard by shard. If jobs are refused, the `results` of
   * `EnqueueManyError` say what became of each job. Throws `InvalidArgumentError` if `task` is not a task.
   *
   * @example
   * await mill.enqueueMany(sendEmail, [{ to: 'ada@example.com' }, { to: 'alan@example.com' }])
   */
  enqueueMany<T extends AnyTask>(
    task: T,
    inputs: readonly TaskInput<T>[],
    each?: (input: TaskInput<T>, index: number) => EnqueueOptionsOf<T, QueueName>,
  ): Promise<HandleOf<T>[]>
  /**
   * Enqueues many jobs of several tasks, each as the arguments of its `enqueue`: `[[a, input], [b, input, { priority: 2
   * }]]`. They are checked and sent like many jobs of one task. Throws `InvalidArgumentError`, which names the job by
   * its index, if a task is missing.
   *
   * @example
   * await mill.enqueueMany([
   *   [sendEmail, { to: 'ada@example.com' }],
   *   [syncAccount, { account: 'ada', email: 'ada@example.com' }],
   * ])
   */
  enqueueMany<const Tasks extends readonly AnyTask[]>(jobs: JobsOf<Tasks, QueueName>): Promise<HandlesOf<Tasks>>
  enqueueMany(...args: ManyArguments): Promise<JobHandle[]> {
    return this.#parts.client.enqueueMany(...args)
  }

  /**
   * Enqueues a graph of jobs, in which one job may be waited for by several others. `build` adds them, each before those
   * that wait for it, and may return some of them: the flow resolves to what it returned, with handles in their place,
   * or to the handles of all. A flow has at most 1,000 jobs, which are stored in one step: all or none. Throws the errors
   * of `enqueue()`, and `UnsupportedByStoreError` on a store without joins.
   *
   * @example
   * const { reports } = await mill.flow((f) => {
   *   const page = f.job(crawl, { url: 'https://example.com' })
   *   const mails = f.jobs(sendEmail, [{ to: 'ada@example.com' }, { to: 'alan@example.com' }])
   *   return { reports: ['2026-10', '2026-11'].map((month) => f.job(report, { month }, { after: { page, mails } })) }
   * })
   */
  flow<Returned>(build: (flow: Flow<QueueName>) => Returned): Promise<FlowHandles<Returned>> {
    return this.#parts.client.flow(build as (flow: Flow) => Returned)
  }

  /**
   * How the `result()` of each handle settles, in their order. `fulfilled`: with its value. `rejected`: with the error
   * that `result()` throws, `ResultTimeoutError` for jobs that have not ended after `timeout` (default: none). Never
   * rejects because of a job; throws `InvalidArgumentError` if `handles` is not a list of handles. One watch on the
   * store serves all of them.
   *
   * @example
   * const jobs = await mill.enqueueMany(sendEmail, [{ to: 'ada@example.com' }])
   * for (const settled of await mill.results(jobs, { timeout: '1m' })) console.log(settled.status)
   */
  results<const Handles extends readonly JobHandle[]>(
    handles: Handles,
    options: { readonly timeout?: Duration } = {},
  ): Promise<SettledResults<Handles>> {
    return settledResults(handles, options)
  }

  /**
   * Enqueues one job through your own connection to the file of a SQLite store. Inside a transaction of the connection,
   * the job is committed or rolled back with it; otherwise the call makes its own. The job is stored when this returns,
   * and runs after the commit. `connection` must be opened by the SQLite package that the mill uses. The call is
   * synchronous, so await `mill.ready()` once before. It emits no `job.enqueued`. Throws the errors of `enqueue`;
   * `InvalidArgumentError` for a connection that cannot be used; `InvalidJobError` also for a schema or middleware that
   * is asynchronous; and `UnsupportedByStoreError` for another store.
   */
  enqueueIn<T extends AnyTask>(
    connection: SqliteDatabase,
    task: T,
    ...args: EnqueueArguments<T, QueueName, EnqueueInOptions>
  ): HandleOf<T>
  /**
   * Enqueues one job in your own transaction on the database of a Postgres store: the job is committed or rolled back
   * with it. `tx` is a transaction of pg, postgres.js, Drizzle, Kysely, TypeORM, Knex or Prisma, or a function
   * `(sql, params) => rows` that sends a statement in one. Await `mill.ready()` once before the first call. It emits no
   * `job.enqueued`. Throws or rejects with the errors of `enqueue`; a full queue leaves your transaction as it was.
   * `InvalidArgumentError` for a transaction that cannot be used, or the pool or client that has none;
   * `UnsupportedByStoreError` for a job of a group.
   * An error that says to begin the transaction again comes as your client throws it.
   *
   * @example
   * await db.transaction(async (tx) => {
   *   await tx.insert(orders).values(order)
   *   await mill.enqueueIn(tx, ship, { order: order.id })
   * })
   */
  enqueueIn<T extends AnyTask>(
    tx: object,
    task: T,
    ...args: EnqueueArguments<T, QueueName, EnqueueInOptions>
  ): Promise<HandleOf<T>>
  enqueueIn(connection: object, task: AnyTask, input?: unknown, options?: object): unknown {
    return this.#parts.transactions.enqueue(connection, { task, input, options: options === undefined ? {} : options })
  }

  /** Opens the store and declares the queues; otherwise the first call does. Rejects with the errors of that call. */
  async ready(): Promise<void> {
    await this.#parts.connection.opened()
  }

  /**
   * A handle to a job: by its task and id, or by id alone, which searches all declared queues. The id of an ordered job
   * may be a number, as when it was enqueued. Makes no call to the store.
   *
   * @example
   * console.log(await mill.job(sendEmail, '01M8HQD777000J7H3BTHMM4NSJ').status())
   */
  job(id: string): JobHandle
  job<T extends AnyTask>(task: T, id: NonNullable<EnqueueOptionsOf<T>['id']>): HandleOf<T>
  job(taskOrId: AnyTask | string, idOfTask?: string | number): JobHandle {
    const [task, id] = typeof taskOrId === 'object' ? [taskOrId, idOfTask] : [undefined, taskOrId]
    const jobId = task?.kind === 'ordered' ? orderedIdOf(id) : id
    if (!isJobId(jobId)) throw new InvalidArgumentError(`a job id ${idMistake(id)}`)
    return new StoredJobHandle(this.#parts.handleParts, task?.queue ?? [...this.queues.keys()], jobId)
  }

  /**
   * Sends a signal to one job, by its handle or its id: `ctx.waitFor()` of its handler then resolves. `'delivered'`: the
   * job waited for it, and is ready. `'kept'`: the job finds it when it waits. `'duplicate'`: it has one of this name
   * already, which stays. `'full'`: it keeps 64 signals, or 4 MiB of their data, and does not wait for this one. `'gone'`:
   * there is no such job, it has completed or was cancelled, or its wait for this signal is over. Atomic. Throws `InvalidArgumentError`,
   * `InvalidJobError` for data that does not fit the schema of the signal, `PayloadTooLargeError`, `CodecError`,
   * `StoreUnavailableError` (send it again: a signal that arrived is then a duplicate), or `UnsupportedByStoreError`.
   *
   * @example
   * console.log(await mill.signal('order-4711', approved, { yes: true }))
   */
  async signal<S extends AnySignal>(
    job: JobHandle | string,
    signal: S,
    ...[data]: SignalArguments<S>
  ): Promise<SignalAnswer> {
    if (!isSignal(signal))
      throw new InvalidArgumentError(
        `signal(job, signal) must get a signal of defineSignal(); got ${describe(signal)}.`,
      )
    const handle =
      job instanceof StoredJobHandle ? job : (this.job(typeof job === 'string' ? job : job?.id) as StoredJobHandle)
    return handle.send(signal, data)
  }

  /**
   * Opens the context for handlers that are called here without a worker.
   * @internal
   */
  openContext(): Promise<void> {
    return this.#parts.work.openContext()
  }

  /**
   * The parts that run the jobs of this mill.
   * @internal
   */
  get runParts(): RunParts {
    return this.#parts.work.runParts
  }

  /**
   * A worker, not yet started. Throws `ConfigError`, `UnknownQueueError` for a queue that is not declared, or
   * `PackageBundledError` if tasks are isolated and the package was bundled.
   *
   * @example
   * const worker = mill.worker({ concurrency: 20 })
   * await worker.start()
   * process.once('SIGTERM', () => void worker.stop())
   */
  worker(options?: WorkerOptions<QueueName>): Worker
  /** @internal */
  worker(options: WorkerOptions, launch: Launch): Worker
  worker(options: WorkerOptions = {}, launch?: Launch): Worker {
    return this.#parts.work.worker(options, launch)
  }

  /**
   * A listener that hands out the jobs of one queue, of any task, and keeps their leases: for work in processes of
   * your own. Makes no call to the store. Throws `ConfigError`, `InvalidArgumentError` for an ordered queue, or
   * `UnknownQueueError` for a queue that is not declared.
   *
   * @example
   * const listener = mill.listener<{ to: string }>('default')
   * const claim = await listener.next()
   * await claim.complete({ sentTo: claim.input.to })
   */
  listener<Input = unknown>(queue: QueueName, options: ListenerOptions = {}): QueueListener<Input> {
    return this.#parts.work.listener(queue, options)
  }

  /**
   * Prepares one isolated job in this process, which runs nothing else. Calls `onWorkerStart` and opens the context, and
   * rejects if that fails. Throws `ConfigError` if the codec or the seal differs from the worker's.
   * @internal
   */
  isolated(parts: IsolatedParts, from: IsolatedFrom): Promise<ChildRun> {
    return this.#parts.work.isolated(parts, from)
  }

  /**
   * A queue of items that are pushed at any pace and popped at a limited one, by any number of processes. The queue
   * need not be declared. A declared one keeps its options, and `limit` and `window` may be left out. Makes no call to
   * the store. Throws `ConfigError`, or `InvalidArgumentError` for an invalid name.
   *
   * @example
   * const pages = mill.throttledQueue<{ url: string }>('pages', { limit: 10, window: '1s' })
   * await pages.push({ url: 'https://example.com' })
   * console.log(await pages.pop())
   */
  throttledQueue<Item = unknown>(name: string, options: ThrottledQueueOptions = {}): ThrottledQueue<Item> {
    return this.#parts.work.throttledQueue(name, options)
  }

  /**
   * The parts that administer queues, declared or not.
   * @internal
   */
  get adminParts(): AdminParts {
    return this.#parts.adminParts
  }

  /**
   * Administration of one queue. Throws `UnknownQueueError` if it is not declared.
   *
   * @example
   * const { ready, running } = await mill.queue('default').depth()
   * console.log(ready, running)
   */
  queue(name: QueueName): QueueAdmin {
    return new QueueAdmin(this.#parts.options.registry.queue(name).name, this.adminParts)
  }

  /**
   * Counts of every declared queue, or of the named ones, in one round trip.
   *
   * @example
   * for (const { queue, ready, dead } of await mill.depths()) console.log(queue, ready, dead)
   */
  async depths(queues: readonly QueueName[] = [...this.queues.keys()] as QueueName[]): Promise<QueueDepth[]> {
    for (const name of queues) this.#parts.options.registry.queue(name)
    const { depths } = await depthsIn(await this.#parts.connection.looked(), queues, () => true)
    return depths
  }

  /**
   * The history of every declared queue, or of the named ones, like `history()` of one queue, in one round trip. Throws
   * `InvalidArgumentError`, or `UnsupportedByStoreError` if the store keeps no history.
   */
  async histories(
    queues: readonly QueueName[] = [...this.queues.keys()] as QueueName[],
    options: HistoryOptions = {},
  ): Promise<QueueHistory[]> {
    for (const name of queues) this.#parts.options.registry.queue(name)
    return queueHistories(await this.#parts.connection.looked(), queues, options, this.#parts.surroundings.clock.now())
  }

  /** The calls to a paid API that this mill has made, by kind; undefined if the store's calls cost nothing. */
  async apiCalls(): Promise<Readonly<Record<string, number>> | undefined> {
    return (await this.#parts.connection.looked()).apiCalls?.()
  }

  /**
   * The workers whose last beat is recent enough that they may still hold jobs; undefined if the store keeps no
   * registry.
   */
  async workers(): Promise<readonly SeenWorker[] | undefined> {
    return (await this.#parts.connection.looked()).workers?.list()
  }

  /**
   * Stops a worker, by its id, wherever it runs: it takes no more jobs and finishes those that it has, as at a signal.
   * `recycle`: its supervisor, if it has one, starts another in its place. Default false. The worker hears of it with
   * its next beat, within 5 s; an idle worker on a server within 20 s. Resolves to false if no such worker lives. Throws
   * `InvalidArgumentError`, or `UnsupportedByStoreError` if the store keeps no registry.
   */
  async stopWorker(id: string, options: { readonly recycle?: boolean | undefined } = {}): Promise<boolean> {
    checkStopOptions(options)
    const { workers, traits } = await this.#parts.connection.looked()
    if (workers !== undefined) return workers.signal(id, options.recycle === true ? 'recycle' : 'stop')
    throw new UnsupportedByStoreError(traits.name, 'signals to workers', 'Send a signal to their processes.')
  }

  /**
   * The health checks of the store; undefined if there is nothing to check. They open no queue and write nothing, and
   * also work on a store that cannot be opened.
   */
  async health(): Promise<StoreHealth | undefined> {
    return (await this.#parts.connection.looked()).health
  }

  /** The findings of the store's examination, with the declared queues; undefined if there is nothing to examine. */
  async examine(): Promise<FsckFinding[] | undefined> {
    return (await this.#parts.connection.looked()).health?.examine(settingsOfAll(this.#parts.options.registry))
  }

  /** The queues in the store, declared or not; undefined if it keeps no records. Opens none. */
  async storedQueues(): Promise<StoredQueue[] | undefined> {
    return (await this.#parts.connection.looked()).records?.queues()
  }

  /**
   * Creates the declared queues, with these tags, on a store that needs it; existing queues stay as they are. Throws
   * `UnsupportedByStoreError`.
   */
  async createQueues(tags: Readonly<Record<string, string>> = {}): Promise<ProvisionedQueue[]> {
    const store = await this.#parts.connection.looked()
    refuseUnsupported(this.#parts.options.registry, store.traits)
    return (await store.provision?.create(settingsOfAll(this.#parts.options.registry), tags)) ?? []
  }

  /**
   * Adds a listener to one kind of event of this process; returns a function that removes it. Throws
   * `InvalidArgumentError` for an unknown event.
   *
   * @example
   * const off = mill.on('job.failed', ({ queue, id, error }) => console.error(queue, id, error))
   * off()
   */
  on<Name extends EventName>(name: Name, listener: Listener<Name>): () => void {
    refuseNoEvent(name)
    return this.#parts.surroundings.events.on(name, listener)
  }

  /**
   * Ends this mill's throttled queues, stops its workers and listeners, closes what `context` has opened, then the store.
   * A second call is harmless.
   */
  async close(): Promise<void> {
    this.#parts.connection.shut()
    await this.#parts.work.close()
    await this.#parts.connection.close()
  }

  /** Closes the mill, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}

const checkStopOptions = callOptions('mill.stopWorker', { recycle: callForms.flag })

// An enqueue checks what it is given itself.
refuseMore('mill.', Mill.prototype, {
  promised: {
    ...{ enqueueNamed: 3, flow: 1, signal: 3, results: 2, ready: 0, close: 0, depths: 1, histories: 2, apiCalls: 0 },
    ...{ workers: 0, stopWorker: 2, health: 0, examine: 0, storedQueues: 0, createQueues: 1 },
  },
  direct: { enqueueIn: 4, job: 2, worker: 2, listener: 2, throttledQueue: 2, queue: 1, on: 2 },
})
